//! Defects that can be planted, so that the checkers are checked too.
//!
//! Each is a mistake in what stands between the cores; none of them is in the product. Not here: how
//! a defect acts, which stands where the right behaviour stands.

/// One deliberate mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bug {
    /// A worker begins again when an assignment is repeated.
    RepeatedAssignBegins,
    /// The coordinator does not tell runs that a lease ended.
    LeasesNeverEnd,
    /// Callers and workers are answered before the journal has it.
    AnswersBeforeAppend,
    /// A report of an old attempt is taken for one of the newest.
    StaleReportCounts,
    /// Units start without waiting for what they come after.
    NoDependencies,
    /// The fleet is not told when a run wants a slot no more.
    WantsStay,
    /// A worker that starts anew drops the reports that were not answered.
    OutboxForgets,
    /// A connection that ends takes along what was on its way to the disk: it never begins.
    AcceptedIsForgotten,
    /// A run that is folded anew hands out nothing.
    NothingIsOwed,
}

impl Bug {
    /// Every one of them.
    pub const ALL: [Self; 9] = [
        Self::RepeatedAssignBegins,
        Self::LeasesNeverEnd,
        Self::AnswersBeforeAppend,
        Self::StaleReportCounts,
        Self::NoDependencies,
        Self::WantsStay,
        Self::OutboxForgets,
        Self::AcceptedIsForgotten,
        Self::NothingIsOwed,
    ];
}
