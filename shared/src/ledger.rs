//! The dimensions a run is accounted in. The account itself lives in the coordinator's core.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What can be counted or metered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dimension {
    /// Units ever planned: counted, claimed when planned.
    Units,
    /// Attempts ever leased: counted, claimed with the lease.
    Attempts,
    /// Milliseconds of attempts at work: metered, an allotment reserved with the lease.
    ActiveMs,
}

impl Dimension {
    /// Every dimension that is enforced.
    pub const ALL: [Self; 3] = [Self::Units, Self::Attempts, Self::ActiveMs];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Units => "units",
            Self::Attempts => "attempts",
            Self::ActiveMs => "active_ms",
        }
    }
}

impl fmt::Display for Dimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The state of one dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Account {
    /// What may be used; absent means no limit.
    pub limit: Option<u64>,
    /// What is set aside for live attempts.
    pub reserved: u64,
    /// What was used, by every attempt of every kind of end.
    pub settled: u64,
}

impl Account {
    /// What may still be reserved; `u64::MAX` without a limit.
    pub fn left(&self) -> u64 {
        self.limit.map_or(u64::MAX, |limit| {
            limit.saturating_sub(self.settled.saturating_add(self.reserved))
        })
    }

    /// How far use went past the limit.
    pub fn overrun(&self) -> u64 {
        self.limit.map_or(0, |limit| self.settled.saturating_sub(limit))
    }

    /// Sets `amount` aside.
    pub fn reserve(&mut self, amount: u64) {
        self.reserved = self.reserved.saturating_add(amount);
    }

    /// Ends a reservation of `reserved` and books what was really used.
    pub fn settle(&mut self, reserved: u64, used: u64) {
        self.reserved = self.reserved.saturating_sub(reserved);
        self.settled = self.settled.saturating_add(used);
    }

    /// Replaces a booking that was made in place of an unknown use.
    pub fn correct(&mut self, booked: u64, used: u64) {
        self.settled = self.settled.saturating_sub(booked).saturating_add(used);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_counts_reservations_and_use() {
        let mut account = Account { limit: Some(10), ..Account::default() };
        account.reserve(6);
        assert_eq!(account.left(), 4);
        account.settle(6, 8);
        assert_eq!(account.left(), 2);
        account.settle(0, 5);
        assert_eq!((account.left(), account.overrun()), (0, 3));
        assert_eq!(Account::default().left(), u64::MAX);
    }
}
