//! What happens to a run's result: handing its branch to the caller.
//!
//! What lies past the branch is not built. A plan with mode `branch` is its submitter's consent to
//! hand the branch out once the run is completed; whoever operates consents by asking.

use ganger_proto::{Malformed, Reason, status, v1};
use ganger_shared::actor::Role;
use ganger_shared::ids::{CommitId, RepositoryId};
use ganger_shared::rejection::Rejection;
use ganger_shared::view::RunView;
use tonic::{Request, Response, Status};

use super::ask::{call, internal, not_yet};
use super::{Api, Principal, principal, source};

/// The service.
pub struct Deliveries {
    api: Api,
}

impl Deliveries {
    /// The service over this API.
    pub fn new(api: Api) -> Self {
        Self { api }
    }

    /// It changes nothing, so no key is remembered: the same call gives the branch as it stands.
    async fn hand_out(
        &self,
        caller: &Principal,
        request: v1::DeliveryServiceApplyRequest,
    ) -> Result<v1::DeliveryServiceApplyResponse, Status> {
        call("DeliveryService/Apply", &request.idempotency_key, &request, None)?;
        let have = source::commits("have", &request.have)?;
        let view = self.api.view(&request.run).await?;
        seen(&view, request.expected_sequence).map_err(|rejection| status::of(&rejection))?;
        may_be_handed_out(&view, caller).map_err(|rejection| status::of(&rejection))?;
        let (branch, repository, tip) = place(&view)?;
        let bundle = source::bundle(&self.api, &repository, (&tip, &have)).await?;
        Ok(v1::DeliveryServiceApplyResponse {
            sequence: view.row.sequence,
            replayed: false,
            branch,
            tip: tip.to_string(),
            bundle: bundle.map(Into::into),
            mode: v1::DeliveryMode::Branch.into(),
        })
    }
}

fn seen(view: &RunView, expected: Option<u64>) -> Result<(), Rejection> {
    let current = view.row.sequence;
    match expected {
        Some(expected) if expected < current => {
            let what = format!("run {}", view.row.id);
            Err(Rejection::StaleSequence { what, expected, current })
        }
        Some(_) | None => Ok(()),
    }
}

fn may_be_handed_out(view: &RunView, caller: &Principal) -> Result<(), Rejection> {
    let refused = |state: String, needs: &'static str| {
        let what = format!("run {}", view.row.id);
        Err(Rejection::WrongState { what, state, command: "deliver", needs })
    };
    if view.branch.is_none() {
        return refused("without a repository".to_owned(), "a run with a repository");
    }
    if caller.role.allows(Role::Operate) {
        return Ok(());
    }
    if view.delivery == "hold" {
        let needs = "delivery mode `branch` in the plan, or a token of role operate";
        return refused("in delivery mode `hold`".to_owned(), needs);
    }
    if view.row.state != "completed" {
        let needs = "a completed run, or a token of role operate";
        return refused(view.row.state.clone(), needs);
    }
    Ok(())
}

/// Where the branch stands.
fn place(view: &RunView) -> Result<(String, RepositoryId, CommitId), Status> {
    let lost = || internal(&format!("run {} has a branch and no repository", view.row.id));
    let branch = view.branch.clone().ok_or_else(lost)?;
    let repository = view.repository_id.as_deref().ok_or_else(lost)?;
    let repository = RepositoryId::parse(repository)
        .map_err(|error| Malformed::new("repository_id", Reason::Form(error.to_string())))?;
    let tip = view.tip.clone().or_else(|| view.base.clone()).ok_or_else(lost)?;
    Ok((branch, repository, tip))
}

#[tonic::async_trait]
impl v1::delivery_service_server::DeliveryService for Deliveries {
    async fn approve(
        &self,
        request: Request<v1::DeliveryServiceApproveRequest>,
    ) -> Result<Response<v1::DeliveryServiceApproveResponse>, Status> {
        principal(request.extensions(), Role::Judge)?;
        Err(not_yet("consent to a delivery past the branch"))
    }

    async fn apply(
        &self,
        request: Request<v1::DeliveryServiceApplyRequest>,
    ) -> Result<Response<v1::DeliveryServiceApplyResponse>, Status> {
        let caller = principal(request.extensions(), Role::Submit)?;
        Ok(Response::new(self.hand_out(&caller, request.into_inner()).await?))
    }
}
