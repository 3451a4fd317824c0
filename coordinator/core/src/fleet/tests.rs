//! What must hold of the fleet: single cases here, random histories in `history`.
