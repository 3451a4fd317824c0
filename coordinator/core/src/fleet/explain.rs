//! Why a unit does not run: its place among what waits, and the reasons, a line each.

use ganger_shared::ids::{RunId, UnitId};

use super::Fleet;
use super::wants::{Line, Role, Rule, Standing, Want, has_agent};

/// How a unit's wants stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// The place of its first want among all, from 1; absent while a slot is offered to it.
    pub position: Option<u64>,
    /// Why it waits.
    pub reasons: Vec<String>,
}

impl Fleet {
    /// Why the unit's attempt or check has no slot; `None` where it wants none. Looks at every want.
    pub fn explain(&self, run: &RunId, unit: &UnitId) -> Option<Waiting> {
        let mine = |key| self.wants.get(&key).filter(|want| want.unit() == unit);
        let wants = self.wants.of_run(run);
        let want = wants.into_iter().filter_map(mine).min_by_key(|want| self.rank(want))?;
        let line = self.wants.line(want.line)?;
        let rank = self.rank(want);
        let is_waiting = |other: &&Want| !matches!(other.standing, Standing::Offered { .. });
        let ahead =
            self.wants.all().filter(is_waiting).filter(|other| self.rank(other) < rank).count();
        let ahead = u64::try_from(ahead).unwrap_or(u64::MAX);
        let mut reasons = vec![];
        if !self.open {
            reasons.push("the coordinator is still reading its runs".to_owned());
        }
        self.missing(line, &mut reasons);
        let position = match &want.standing {
            Standing::Timed { .. } if want.setbacks > 0 => {
                reasons.push("its run did not take the slot it was offered".to_owned());
                Some(ahead + 1)
            }
            Standing::Timed { .. } => {
                let until = want.wanted.want.not_before;
                reasons.push(format!("waiting for retry until {until}"));
                Some(ahead + 1)
            }
            Standing::Parked { behind: (run, unit) } => {
                reasons.push(format!("files claimed by {run}/{unit}"));
                Some(ahead + 1)
            }
            Standing::Queued => {
                if reasons.is_empty() {
                    reasons.push("all capable slots are busy".to_owned());
                }
                Some(ahead + 1)
            }
            Standing::Offered { .. } => {
                reasons.push("a slot is offered to it".to_owned());
                None
            }
        };
        if position.is_some() && ahead > 0 {
            reasons.push(format!("wants ahead of it: {ahead}"));
        }
        Some(Waiting { position, reasons })
    }

    /// What no worker that may be offered has.
    fn missing(&self, line: &Line, reasons: &mut Vec<String>) {
        let offered: Vec<_> = self.workers.values().filter(|w| w.is_offerable()).collect();
        let before = reasons.len();
        for (key, value) in &line.shape.labels {
            if !offered.iter().any(|worker| worker.facts.labels.get(key) == Some(value)) {
                reasons.push(format!("no worker offers label {key}={value}"));
            }
        }
        if let Some(name) = &line.shape.agent
            && !offered.iter().any(|worker| has_agent(&worker.facts, name))
        {
            reasons.push(format!("no worker has agent `{name}`"));
        }
        if offered.is_empty() {
            reasons.push("no worker is attached and open for work".to_owned());
        }
        if line.capable.is_empty() && reasons.len() == before {
            reasons.push("no one worker offers everything it requires".to_owned());
        }
        if let Role::Checker { author, rule: Rule::OtherWorker } = &line.shape.role
            && line.capable.len() == 1
            && line.capable.contains(author)
        {
            reasons.push(format!("only its author's worker `{author}` could measure it"));
        }
    }
}
