//! One run: its graph, its budgets, and everything that is still owed because of it.
//!
//! `decide_all` takes the waiting commands, decides each on the state the one before left, and
//! returns events, replies and the effects that became due. State is a fold over those events and
//! nothing else: a restarted coordinator folds the journal and hands out all of `owed`. There is no
//! recovery code here, and no work proportional to the graph in any step but a stop or a pause.

mod apply;
mod assign;
mod command;
mod decide;
mod effect;
mod state;
mod unit;
mod view;

pub use apply::FoldError;
pub use command::{Call, Command, Offer, Reply, Verb};
pub use decide::{Decided, Decision};
pub use effect::{Effect, EffectId, SlotWant, WantKind};
pub use state::{Applying, Live, Run, RunState, Tally};
pub use unit::{Attempt, Gate, Integration, Measurement, Measuring, Phase, Unit, UnitState};
pub use view::trace_id;

#[cfg(test)]
mod tests;
