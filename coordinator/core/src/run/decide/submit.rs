//! The beginning of a run. The plan was checked before; here it becomes events.

use ganger_shared::event::{RunEvent, Submitted};
use ganger_shared::limits;
use ganger_shared::plan;
use ganger_shared::problem::{Code, Problem};
use ganger_shared::rejection::Rejection;

use crate::run::state::Run;

const FIRST_REVISION: u32 = 1;

impl Run {
    pub(super) fn submit(
        &self,
        submitted: Submitted,
        tasks: Vec<plan::Task>,
        units: Vec<plan::Unit>,
    ) -> Result<Vec<RunEvent>, Rejection> {
        if self.head.is_some() {
            return Err(Rejection::WrongState {
                what: format!("run {}", submitted.run),
                state: self.state.word().to_owned(),
                command: "submit",
                needs: "a new run",
            });
        }
        let planned = u32::try_from(units.len()).unwrap_or(u32::MAX);
        let most = submitted.budgets.units.unwrap_or(limits::UNITS);
        if planned > most {
            let message = format!("{planned} units are planned, and {most} are allowed");
            let problem = Problem::error(Code::Limit, "units", message);
            return Err(Rejection::Plan {
                problems: vec![problem.with_fix("raise `budgets.units`")],
            });
        }
        let mut events = vec![RunEvent::RunSubmitted(Box::new(submitted))];
        let revision = FIRST_REVISION;
        events.extend(tasks.into_iter().map(|task| RunEvent::TaskPlanned { revision, task }));
        events.extend(
            units.into_iter().map(|unit| RunEvent::UnitPlanned { revision, unit: Box::new(unit) }),
        );
        events.push(RunEvent::RevisionAccepted { revision, units: planned });
        Ok(events)
    }
}
