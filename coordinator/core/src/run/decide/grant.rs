//! Taking a slot: the lease is the claim on every count, before anything runs.

use ganger_shared::delivery::Place;
use ganger_shared::event::{AttemptLease, CheckLease, RunEvent};
use ganger_shared::ids::{AttemptId, CheckId, LaneId, UnitId, WorkId};
use ganger_shared::ledger::Dimension;
use ganger_shared::limits;
use ganger_shared::link::Lease;
use ganger_shared::time::{DurationMs, Timestamp};

use super::Decision;
use crate::run::command::{Offer, Reply};
use crate::run::effect::{EffectId, WantKind};
use crate::run::state::Run;
use crate::run::unit::UnitState;

impl Run {
    pub(super) fn take_slot(&self, offer: &Offer, now: Timestamp) -> Decision {
        match &offer.want {
            WantKind::Attempt { unit, lane } => self.lease_attempt(offer, unit, lane, now),
            WantKind::Check { check, .. } => self.lease_check(offer, check),
        }
        .unwrap_or_else(|| Decision::nothing(Reply::Declined))
    }

    fn lease_attempt(
        &self,
        offer: &Offer,
        unit_id: &UnitId,
        lane: &LaneId,
        now: Timestamp,
    ) -> Option<Decision> {
        self.owed.get(&EffectId::WantSlot(unit_id.clone(), lane.clone()))?;
        let unit = &self.units[self.unit_ix(unit_id)?];
        let UnitState::Ready { not_before, .. } = unit.state else { return None };
        if not_before > now || unit.open > 0 || !self.grants() || self.exhausted().is_some() {
            return None;
        }
        let n = unit.attempts.iter().filter(|a| a.lease.attempt.lane == *lane).count() + 1;
        let timeout =
            unit.spec.timeout.as_ref().map_or(limits::ATTEMPT_TIMEOUT, |timeout| timeout.0);
        let lease = AttemptLease {
            attempt: AttemptId {
                unit: unit_id.clone(),
                lane: lane.clone(),
                n: u32::try_from(n).ok()?,
            },
            epoch: unit.epochs.get(lane).copied().unwrap_or_default().next(),
            worker: offer.worker.clone(),
            instance: offer.instance.clone(),
            base: self.tip.clone(),
            allotted_ms: DurationMs(timeout.0.min(self.account(Dimension::ActiveMs).left())),
        };
        let reply = Reply::Leased(Lease {
            run: self.head.as_ref()?.run.clone(),
            work: WorkId::Attempt(lease.attempt.clone()),
            epoch: lease.epoch,
        });
        Some(Decision { events: vec![RunEvent::AttemptLeased(lease)], reply })
    }

    fn lease_check(&self, offer: &Offer, check: &CheckId) -> Option<Decision> {
        self.owed.get(&EffectId::WantCheck(check.clone()))?;
        let measurement = self.measured.get(&(check.unit.clone(), check.subject.clone()))?;
        let measuring = self.measuring(check).filter(|m| m.id == *check && m.result.is_none())?;
        if !self.checks_wanted() {
            return None;
        }
        let lease = CheckLease {
            check: check.clone(),
            epoch: measuring.epoch.next(),
            worker: offer.worker.clone(),
            instance: offer.instance.clone(),
            commit: measurement.commit.clone(),
            tree: measurement.tree.clone(),
            place: offer.place.unwrap_or(Place::OtherTree),
        };
        let reply = Reply::Leased(Lease {
            run: self.head.as_ref()?.run.clone(),
            work: WorkId::Check(check.clone()),
            epoch: lease.epoch,
        });
        Some(Decision { events: vec![RunEvent::CheckLeased(lease)], reply })
    }
}
