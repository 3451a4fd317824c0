//! Which want gets which free slot (design section 4, placement; R055).
//!
//! Checks before attempts; then the run's priority and the unit's; then whose project and whose run
//! has fewer seats in use; then who waits longer; then the id. Among workers the one with most room
//! gets it, then the lesser id.

use std::cmp::Reverse;

use ganger_shared::delivery::Place;
use ganger_shared::ids::{RunId, WorkerId};
use ganger_shared::time::Timestamp;

use crate::run::{EffectId, Offer, WantKind};

use super::Fleet;
use super::claims::Part;
use super::message::{Now, Output};
use super::offers::Offered;
use super::seats::{Seat, Sort};
use super::timers::Timer;
use super::wants::{Line, Role, Rule, Standing, Want, WantKey};

/// What decides between two wants; the lesser goes first.
pub(super) type Rank<'a> =
    (Sort, Reverse<i32>, Reverse<i32>, u32, u32, Timestamp, &'a RunId, &'a EffectId);

impl Fleet {
    /// Offers what can be offered. Every round places a want or parks it, so it ends.
    pub(super) fn place(&mut self, now: Now, out: &mut Vec<Output>) {
        if !self.open {
            return;
        }
        while let Some((key, worker)) = self.first() {
            let blocker = self
                .wants
                .get(&key)
                .and_then(|want| self.claims.blocker(&want.owner(), want.files.as_ref()?));
            match blocker {
                Some(behind) => {
                    self.wants.stand(&key, Standing::Parked { behind }, &mut self.timers);
                }
                None => self.offer(now, &key, &worker, out),
            }
        }
    }

    /// The want whose turn it is among those with a free worker.
    fn first(&self) -> Option<(WantKey, WorkerId)> {
        let mut best: Option<(Rank<'_>, &WorkerId)> = None;
        for line in self.wants.lines().filter(|line| !line.queued.is_empty()) {
            let Some(worker) = self.free_worker(line) else { continue };
            let heads = line.queued.iter().filter_map(|(run, tickets)| {
                let (_, _, id) = tickets.first()?;
                self.wants.get(&(run.clone(), id.clone()))
            });
            let first = heads.map(|want| self.rank(want)).min();
            if let Some(rank) = first
                && best.as_ref().is_none_or(|(other, _)| rank < *other)
            {
                best = Some((rank, worker));
            }
        }
        best.map(|(rank, worker)| ((rank.6.clone(), rank.7.clone()), worker.clone()))
    }

    pub(super) fn rank<'a>(&self, want: &'a Want) -> Rank<'a> {
        let wanted = &want.wanted;
        let (of_project, of_run) = self.seats.shares(&wanted.project, &wanted.run);
        (
            match wanted.want.kind {
                WantKind::Check { .. } => Sort::Check,
                WantKind::Attempt { .. } => Sort::Attempt,
            },
            Reverse(wanted.run_priority),
            Reverse(wanted.want.priority),
            of_project,
            of_run,
            wanted.want.since,
            &wanted.run,
            &wanted.id,
        )
    }

    /// Who would serve the line's first want now.
    fn free_worker<'a>(&'a self, line: &'a Line) -> Option<&'a WorkerId> {
        let sort = line.shape.sort();
        let mut open = self.seats.open(sort).filter(|worker| line.capable.contains(*worker));
        let Role::Checker { author, rule } = &line.shape.role else { return open.next() };
        let own = || line.capable.get(author).filter(|own| self.seats.is_free(own, sort));
        match rule {
            Rule::OtherWorker => open.find(|worker| *worker != author),
            Rule::AnyWorker => own().or_else(|| open.next()),
            Rule::Default if has_other(line, author) => open.find(|worker| *worker != author),
            Rule::Default => own(),
        }
    }

    fn offer(&mut self, now: Now, key: &WantKey, worker: &WorkerId, out: &mut Vec<Output>) {
        let Some(want) = self.wants.get(key) else { return };
        let Some(instance) = self.workers.get(worker).map(|w| w.facts.instance.clone()) else {
            return;
        };
        let Some(line) = self.wants.line(want.line) else { return };
        let place = match &line.shape.role {
            Role::Author => None,
            Role::Checker { author, .. } if author == worker => Some(Place::OtherTree),
            Role::Checker { .. } => Some(Place::OtherWorker),
        };
        let project = want.wanted.project.clone();
        let seat =
            Seat { worker: worker.clone(), run: key.0.clone(), project, sort: line.shape.sort() };
        let kind = want.wanted.want.kind.clone();
        let claim = want.files.clone().map(|files| (want.owner(), files));
        let token = self.offers.next_token();
        if let Some((owner, files)) = &claim {
            self.claims.add(owner, Part::Offer(token), files);
        }
        let until_ms = now.ms.saturating_add(self.terms.offer_ms);
        self.timers.arm(until_ms, Timer::Offer(token));
        self.seats.take(&seat);
        let key = key.clone();
        self.wants.stand(&key, Standing::Offered { token }, &mut self.timers);
        out.push(Output::Offer {
            run: key.0.clone(),
            offer: Offer {
                token,
                want: kind,
                worker: worker.clone(),
                instance: instance.clone(),
                place,
            },
            lapses_ms: until_ms,
        });
        self.offers.insert(token, Offered { key, seat, instance, claim, until_ms });
    }
}

/// Whether another worker than the author's could measure it, now or when it has room.
fn has_other(line: &Line, author: &WorkerId) -> bool {
    line.capable.len() > usize::from(line.capable.contains(author))
}
