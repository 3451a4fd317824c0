//! The assignment a worker is given for a lease: everything it needs, nothing it must look up.

use ganger_shared::event::Submitted;
use ganger_shared::ids::{AttemptId, CheckId, WorkId};
use ganger_shared::limits;
use ganger_shared::plan::{Kind, Tier};
use ganger_shared::spec::{AgentTask, Assignment, Body, CheckTask, Source};
use ganger_shared::time::DurationMs;

use super::state::Run;

impl Run {
    /// The assignment of a live lease; its `traceparent` is left empty for the caller to fill.
    pub fn assignment(&self, work: &WorkId) -> Option<Assignment> {
        let head = self.head.as_deref()?;
        match work {
            WorkId::Attempt(id) => self.attempt_assignment(head, id),
            WorkId::Check(id) => self.check_assignment(head, id),
        }
    }

    fn attempt_assignment(&self, head: &Submitted, id: &AttemptId) -> Option<Assignment> {
        let (ix, at) = self.attempt(id)?;
        let (unit, lease) = (&self.units[ix].spec, &self.units[ix].attempts[at].lease);
        let files = unit.files.clone().unwrap_or_default();
        let body = match unit.kind {
            Kind::Command => Body::Command { run: unit.run.clone()?, files },
            Kind::Agent => {
                let agent = unit.agent.as_ref()?;
                let script = agent.script.as_ref().and_then(|path| head.attachments.get(path));
                Body::Agent(AgentTask {
                    agent: agent.name.clone(),
                    tier: agent.tier.map(|tier| tier_word(tier).to_owned()),
                    goal: head.goal.clone(),
                    objective: unit.objective.clone().unwrap_or_default(),
                    invariants: head.contract.invariants.clone(),
                    language: head.contract.language.clone(),
                    files,
                    script: script.cloned(),
                })
            }
            Kind::Write
            | Kind::Review
            | Kind::Verify
            | Kind::Gate
            | Kind::Question
            | Kind::Loop
            | Kind::Fork
            | Kind::Join => return None,
        };
        Some(Assignment {
            run: head.run.clone(),
            work: WorkId::Attempt(id.clone()),
            epoch: lease.epoch,
            traceparent: String::new(),
            source: head.repository.as_ref().zip(lease.base.as_ref()).map(|(repository, base)| {
                Source { repository: repository.id.clone(), commit: base.clone() }
            }),
            timeout_ms: lease.allotted_ms,
            silence_ms: unit.silence.as_ref().map(|silence| silence.0),
            grace_ms: head.grace_ms,
            on_disconnect: unit.on_disconnect(),
            env: unit.env.clone(),
            body,
        })
    }

    fn check_assignment(&self, head: &Submitted, id: &CheckId) -> Option<Assignment> {
        let unit = &self.units[self.unit_ix(&id.unit)?].spec;
        let check = unit.checks.iter().find(|check| check.name == id.check)?;
        let measurement = self.measured.get(&(id.unit.clone(), id.subject.clone()))?;
        let lease = self.measuring(id)?.lease.as_ref()?;
        let body = Body::Check(CheckTask {
            run: check.run.clone(),
            expect_exit: i32::from(check.expect_exit()),
            tree: measurement.tree.clone(),
            pinned: check.pinned.clone(),
            pinned_from: measurement.pinned_from.clone(),
            place: lease.place,
        });
        let timeout: DurationMs =
            check.timeout.as_ref().map_or(limits::CHECK_TIMEOUT, |timeout| timeout.0);
        Some(Assignment {
            run: head.run.clone(),
            work: WorkId::Check(id.clone()),
            epoch: lease.epoch,
            traceparent: String::new(),
            source: Some(Source {
                repository: head.repository.as_ref()?.id.clone(),
                commit: measurement.commit.clone(),
            }),
            timeout_ms: timeout,
            silence_ms: None,
            grace_ms: head.grace_ms,
            on_disconnect: unit.on_disconnect(),
            env: unit.env.clone(),
            body,
        })
    }
}

fn tier_word(tier: Tier) -> &'static str {
    match tier {
        Tier::Low => "low",
        Tier::Mid => "mid",
        Tier::Top => "top",
    }
}
