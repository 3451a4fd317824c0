//! Units: their results, why they do not run, and cancelling them.
//!
//! Verdicts by people and further attempts by command are not built; they are refused by name.

use std::collections::BTreeSet;

use ganger_coordinator_core::run::Verb;
use ganger_proto::{read, status, v1};
use ganger_shared::actor::Role;
use ganger_shared::ids::{AttemptId, UnitId};
use ganger_shared::rejection::Rejection;
use ganger_shared::view::{AttemptView, RunView, UnitView};
use tonic::{Request, Response, Status};
use tracing::Instrument as _;

use super::ask::{Done, ask, call, live, not_yet};
use super::{Api, Principal, principal, run};
use crate::run::RunMessage;

/// The service.
pub struct Units {
    api: Api,
}

impl Units {
    /// The service over this API.
    pub fn new(api: Api) -> Self {
        Self { api }
    }

    async fn cancel_once(
        &self,
        caller: &Principal,
        mut request: v1::UnitServiceCancelRequest,
    ) -> Result<v1::UnitServiceCancelResponse, Status> {
        let key = std::mem::take(&mut request.idempotency_key);
        let call = call("UnitService/Cancel", &key, &request, request.expected_sequence)?;
        let reason = read::said("reason", request.reason)?;
        if request.now {
            return Err(not_yet("cancelling a unit without grace"));
        }
        let verb = Verb::Cancel { call, unit: request.unit.clone(), reason };
        let Done { run, sequence, replayed } = self.api.command(caller, &request.run, verb).await?;
        let view = self.api.view(run.as_str()).await?;
        let units = going(&view, &request.unit);
        Ok(v1::UnitServiceCancelResponse { sequence, replayed, units })
    }

    async fn result(
        &self,
        request: v1::UnitServiceGetResultRequest,
    ) -> Result<v1::UnitServiceGetResultResponse, Status> {
        let v1::UnitServiceGetResultRequest { run, unit, attempt } = request;
        let asked: Option<AttemptId> = read::text_or_empty("attempt", &attempt)?;
        let view = run::view(&self.api, &run).await?;
        let row = &view.row;
        let Some(found) = view.units.iter().find(|other| other.id.as_str() == unit) else {
            return Err(self.unknown_unit(row.id.as_str(), &unit).await);
        };
        let attempt = match asked {
            None => chosen(found).cloned(),
            Some(id) => {
                let one = found.attempts.iter().find(|other| other.id == id).cloned();
                let unknown = Rejection::UnknownAttempt { run: row.id.clone(), attempt };
                Some(one.ok_or_else(|| status::of(&unknown))?)
            }
        };
        Ok(v1::UnitServiceGetResultResponse {
            unit: Some(found.clone().into()),
            attempt: attempt.map(Into::into),
        })
    }

    /// The run names the nearest unit it has.
    async fn unknown_unit(&self, run: &str, unit: &str) -> Status {
        let actor = match self.api.find(run).await {
            Ok(actor) => actor,
            Err(status) => return status,
        };
        let unit = unit.to_owned();
        match ask(&actor, |port| RunMessage::Explain { unit, port }).await {
            Ok(Err(rejection)) => status::of(&rejection),
            Ok(Ok(_)) => super::ask::internal(&"a unit is there and is not"),
            Err(status) => status,
        }
    }
}

/// The attempt that was accepted, else the newest.
fn chosen(unit: &UnitView) -> Option<&AttemptView> {
    use ganger_shared::verdict::Judgement;
    let accepted = |attempt: &&AttemptView| {
        attempt.verdicts.iter().any(|verdict| verdict.verdict == Judgement::Accept)
    };
    unit.attempts.iter().rev().find(accepted).or_else(|| unit.attempts.last())
}

/// The unit and what depends on it, as far as it is cancelled or being stopped.
fn going(view: &RunView, unit: &str) -> Vec<String> {
    let mut reached: BTreeSet<&UnitId> = BTreeSet::new();
    let mut open: Vec<&UnitId> =
        view.units.iter().map(|unit| &unit.id).filter(|id| id.as_str() == unit).collect();
    while let Some(id) = open.pop() {
        if reached.insert(id) {
            let dependants = view.units.iter().filter(|unit| unit.after.contains(id));
            open.extend(dependants.map(|unit| &unit.id));
        }
    }
    let going = |unit: &&UnitView| {
        reached.contains(&unit.id) && matches!(unit.state.as_str(), "cancelled" | "stopping")
    };
    view.units.iter().filter(going).map(|unit| unit.id.to_string()).collect()
}

#[tonic::async_trait]
impl v1::unit_service_server::UnitService for Units {
    async fn get_result(
        &self,
        request: Request<v1::UnitServiceGetResultRequest>,
    ) -> Result<Response<v1::UnitServiceGetResultResponse>, Status> {
        principal(request.extensions(), Role::Read)?;
        Ok(Response::new(self.result(request.into_inner()).await?))
    }

    async fn cancel(
        &self,
        request: Request<v1::UnitServiceCancelRequest>,
    ) -> Result<Response<v1::UnitServiceCancelResponse>, Status> {
        let caller = principal(request.extensions(), Role::Operate)?;
        let span = live("UnitService/Cancel", request.metadata());
        let answer = self.cancel_once(&caller, request.into_inner()).instrument(span).await?;
        Ok(Response::new(answer))
    }

    async fn explain(
        &self,
        request: Request<v1::UnitServiceExplainRequest>,
    ) -> Result<Response<v1::UnitServiceExplainResponse>, Status> {
        principal(request.extensions(), Role::Read)?;
        let v1::UnitServiceExplainRequest { run, unit } = request.into_inner();
        let (explanations, sequence) = if unit.is_empty() {
            run::explain_all(&self.api, &run).await?
        } else {
            run::explain(&self.api, &run, &unit).await?
        };
        let explanations = explanations.into_iter().map(Into::into).collect();
        Ok(Response::new(v1::UnitServiceExplainResponse { explanations, sequence }))
    }

    async fn accept(
        &self,
        request: Request<v1::UnitServiceAcceptRequest>,
    ) -> Result<Response<v1::UnitServiceAcceptResponse>, Status> {
        principal(request.extensions(), Role::Judge)?;
        Err(not_yet("accepting a delivery by command"))
    }

    async fn reject(
        &self,
        request: Request<v1::UnitServiceRejectRequest>,
    ) -> Result<Response<v1::UnitServiceRejectResponse>, Status> {
        principal(request.extensions(), Role::Judge)?;
        Err(not_yet("rejecting a delivery by command"))
    }

    async fn retry(
        &self,
        request: Request<v1::UnitServiceRetryRequest>,
    ) -> Result<Response<v1::UnitServiceRetryResponse>, Status> {
        principal(request.extensions(), Role::Judge)?;
        Err(not_yet("retrying a unit by command"))
    }

    async fn skip(
        &self,
        request: Request<v1::UnitServiceSkipRequest>,
    ) -> Result<Response<v1::UnitServiceSkipResponse>, Status> {
        principal(request.extensions(), Role::Judge)?;
        Err(not_yet("skipping a unit"))
    }

    async fn reopen(
        &self,
        request: Request<v1::UnitServiceReopenRequest>,
    ) -> Result<Response<v1::UnitServiceReopenResponse>, Status> {
        principal(request.extensions(), Role::Judge)?;
        Err(not_yet("reopening a unit"))
    }
}
