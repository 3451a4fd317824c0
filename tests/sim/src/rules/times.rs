//! What must happen in time: leases end when nobody names them, and what waits gets its slot.

use std::collections::BTreeMap;

use ganger_coordinator_core::run::{Effect, EffectId, Offer, Run, SlotWant, WantKind};
use ganger_shared::ids::RunId;
use ganger_shared::link::{Beat, Lease};
use ganger_shared::time::Timestamp;

use super::Rules;
use crate::coordinator::{BEAT_MS, LEASE_MS};
use crate::world::World;

/// How much later than its end a lease may be ended.
const LATE_MS: u64 = 4_000;
/// How long a slot may be free while somebody waits for one like it: longer than the longest wait
/// after offers that were not taken.
const IDLE_MS: u64 = 30_000;
/// How many slots others may be given while one that would fit stays free.
const GRANTS_MAX: u64 = 40;
/// How many offers a run may turn down because it does not want them.
const UNWANTED_MAX: u32 = 4;

/// What was when.
#[derive(Debug, Default)]
pub(super) struct Times {
    last: BTreeMap<RunId, Timestamp>,
    /// Every live lease, and when it was last granted or named by a beat.
    named: BTreeMap<Lease, u64>,
    /// Nothing is late that fell due before.
    excused_ms: u64,
    grants: u64,
    /// What waits although it could be served: since when, and after how many grants.
    waits: BTreeMap<(RunId, EffectId), (u64, u64)>,
    /// Offers for what was not wanted any more.
    unwanted: BTreeMap<(RunId, String), u32>,
}

impl Times {
    pub(super) fn last_of(&self, run: &RunId) -> Timestamp {
        self.last.get(run).copied().unwrap_or_default()
    }

    pub(super) fn saw(&mut self, run: &RunId, at: Timestamp) {
        self.last.insert(run.clone(), at);
    }

    pub(super) fn leased(&mut self, id: &RunId, run: &Run, now: u64) {
        let live = |lease: &Lease| {
            lease.run != *id
                || run.live().get(&lease.work).is_some_and(|live| live.epoch == lease.epoch)
        };
        self.named.retain(|lease, _| live(lease));
        for (work, live) in run.live() {
            let lease = Lease { run: id.clone(), work: work.clone(), epoch: live.epoch };
            self.named.entry(lease).or_insert(now);
        }
    }
}

impl Rules {
    pub(crate) fn excused_until(&mut self, at_ms: u64) {
        self.times.excused_ms = self.times.excused_ms.max(at_ms);
        self.times.waits.clear();
    }

    /// After a start every lease gets a whole term.
    pub(crate) fn coordinator_began(&mut self, now: u64) {
        self.excused_until(now);
        self.times.unwanted.clear();
    }

    pub(crate) fn beaten(&mut self, now: u64, beat: &Beat) {
        for progress in &beat.live {
            if let Some(named) = self.times.named.get_mut(&progress.lease) {
                *named = now;
            }
        }
    }

    /// Called while a coordinator is up and its runs are folded.
    pub(crate) fn in_time(&mut self, now: u64) {
        let excused = self.times.excused_ms;
        let late = self.times.named.iter().find(|(_, named)| {
            now.saturating_sub(excused.max(**named)) > LEASE_MS + BEAT_MS + LATE_MS
        });
        if let Some((lease, named)) = late {
            let what = format!("{} @{} of {}", lease.work, lease.epoch, lease.run);
            self.broken(format!("{what} was last named at {named} and is still leased"));
        }
    }

    pub(crate) fn offered(&mut self, run: &RunId, offer: &Offer) {
        self.times.grants += 1;
        let wanted = self.folded.get(run).is_some_and(|run| {
            let mut owed = run.owed().values();
            owed.any(|effect| matches!(effect, Effect::WantSlot(want) if want.kind == offer.want))
        });
        if wanted {
            return;
        }
        let what = match &offer.want {
            WantKind::Attempt { unit, .. } => unit.to_string(),
            WantKind::Check { check, .. } => check.to_string(),
        };
        let count = self.times.unwanted.entry((run.clone(), what.clone())).or_default();
        *count += 1;
        if *count > UNWANTED_MAX {
            self.broken(format!("{what} of {run} is offered slots again and again and wants none"));
        }
    }

    /// Notes what waits although it could be served now; too long is too long.
    fn could_be_served(&mut self, now: u64, keys: Vec<(RunId, EffectId)>) {
        let grants = self.times.grants;
        let before = std::mem::take(&mut self.times.waits);
        for key in keys {
            let since = before.get(&key).copied().unwrap_or((now, grants));
            if now - since.0 > IDLE_MS || grants - since.1 > GRANTS_MAX {
                let (run, id) = &key;
                self.broken(format!("{id:?} of {run} waits beside free slots since {}", since.0));
            }
            self.times.waits.insert(key, since);
        }
    }
}

impl World {
    /// Which wants a worker that does nothing could serve at this moment.
    pub(crate) fn look_for_idle_slots(&mut self) {
        let awake = self.coordinator.host.still_until_ms <= self.now;
        let hub = self.coordinator.process.as_ref().filter(|hub| awake && hub.runs.opened);
        let Some(hub) = hub else {
            return self.rules.could_be_served(self.now, Vec::new());
        };
        let wall = self.coordinator.host.wall(self.now);
        let idle: Vec<_> = self
            .workers
            .iter()
            .enumerate()
            .filter(|(on, _)| !self.cordoned.contains(on))
            .map(|(_, worker)| worker)
            .filter(|worker| worker.up && worker.process.link.is_attached())
            .filter(|worker| !worker.process.is_busy() && !worker.process.attempts.leaving)
            .filter(|worker| hub.fleet.streams.get(&worker.id).copied() == worker.process.link.conn)
            .collect();
        let mut keys = Vec::new();
        for (id, run) in self.rules.runs() {
            for (effect_id, effect) in run.owed() {
                let Effect::WantSlot(want) = effect else { continue };
                let free = want.not_before <= wall && !self.is_claimed(want);
                let fits = |labels: &BTreeMap<String, String>| {
                    want.labels.iter().all(|(key, value)| labels.get(key) == Some(value))
                };
                if free
                    && idle
                        .iter()
                        .any(|worker| fits(&worker.labels) && may_serve(want, worker.id.as_str()))
                {
                    keys.push((id.clone(), effect_id.clone()));
                }
            }
        }
        let waits = keys.clone();
        self.rules.could_be_served(self.now, keys);
        if self.rules.what_broke().is_some() {
            for (id, effect) in waits {
                let unit = match effect {
                    EffectId::WantSlot(unit, _) => unit,
                    EffectId::WantCheck(check) => check.unit,
                    EffectId::Claim(_)
                    | EffectId::Assign(..)
                    | EffectId::Stop(..)
                    | EffectId::Take(_)
                    | EffectId::Merge(_)
                    | EffectId::Apply(_) => continue,
                };
                let hub = self.coordinator.process.as_ref();
                let why = hub.and_then(|hub| hub.fleet.core.explain(&id, &unit));
                let why = why.map(|waiting| waiting.reasons);
                self.note(|| format!("{unit} waits: {why:?}"));
            }
        }
    }

    /// Whether another run claims files of the repository.
    pub(crate) fn is_claimed_by_other(&self, want: &SlotWant, of: &RunId) -> bool {
        want.claim.is_some()
            && self.rules.runs().any(|(id, run)| {
                let mut owed = run.owed().values();
                id != of && owed.any(|effect| matches!(effect, Effect::Claim { .. }))
            })
    }

    /// Whether anybody claims files of the repository: then it may be these.
    pub(crate) fn is_claimed(&self, want: &SlotWant) -> bool {
        want.claim.is_some()
            && self.rules.runs().any(|(_, run)| {
                run.owed().values().any(|effect| matches!(effect, Effect::Claim { .. }))
            })
    }
}

/// Checks that may go to any worker go anywhere; the default prefers others than the author.
fn may_serve(want: &SlotWant, worker: &str) -> bool {
    match &want.kind {
        WantKind::Attempt { .. } => true,
        WantKind::Check { author, .. } => author.as_str() != worker,
    }
}
