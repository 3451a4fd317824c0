//! Runs: looking at them, following them, waiting for them, and steering them.
//!
//! What is shown is what the run's actor has, with what only the fleet knows beside it.

mod list;
mod show;
mod summary;
mod wait;
mod watch;

use ganger_coordinator_core::run::Verb;
use ganger_proto::{read, v1};
use ganger_shared::actor::Role;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};
use tracing::Instrument as _;

use super::ask::{Done, call, internal, live, not_yet, row_of};
use super::page::Pages;
use super::{Api, principal};
use crate::runs::RunsMessage;

pub(super) use show::{explain, explain_all, view};

/// Looks at a run that is folded again, before giving up.
const FOLDS: usize = 32;

/// The service.
pub struct Runs {
    api: Api,
    lists: Pages<ganger_shared::view::RunRow>,
}

impl Runs {
    /// The service over this API.
    pub fn new(api: Api) -> Self {
        Self { api, lists: Pages::new() }
    }

    /// Folds a quarantined run again; its state is then what it was.
    async fn release(&self, name: &str) -> Result<v1::RunServiceResumeResponse, Status> {
        let wanted = name.to_owned();
        let released = self.api.ask_runs(|port| RunsMessage::Release { name: wanted, port });
        let run = released.await?.map_err(|rejection| ganger_proto::status::of(&rejection))?;
        // One that still cannot be folded ends a few times and is then set aside again: `find` says so.
        for _ in 0..FOLDS {
            let actor = self.api.find(run.as_str()).await?;
            if let Ok(row) = row_of(&actor, run.as_str()).await {
                return Ok(v1::RunServiceResumeResponse {
                    sequence: row.sequence,
                    replayed: false,
                });
            }
        }
        Err(internal(&format!("run {run} ends again and again; look at it")))
    }

    async fn pause_once(
        &self,
        caller: &super::Principal,
        mut request: v1::RunServicePauseRequest,
    ) -> Result<Done, Status> {
        let key = std::mem::take(&mut request.idempotency_key);
        let call = call("RunService/Pause", &key, &request, request.expected_sequence)?;
        let reason = read::said("reason", request.reason)?;
        self.api.command(caller, &request.run, Verb::Pause { call, reason }).await
    }

    async fn resume_once(
        &self,
        caller: &super::Principal,
        mut request: v1::RunServiceResumeRequest,
    ) -> Result<v1::RunServiceResumeResponse, Status> {
        let key = std::mem::take(&mut request.idempotency_key);
        let call = call("RunService/Resume", &key, &request, request.expected_sequence)?;
        if request.after_repair {
            return self.release(&request.run).await;
        }
        let Done { sequence, replayed, .. } =
            self.api.command(caller, &request.run, Verb::Resume { call }).await?;
        Ok(v1::RunServiceResumeResponse { sequence, replayed })
    }

    async fn stop_once(
        &self,
        caller: &super::Principal,
        mut request: v1::RunServiceStopRequest,
    ) -> Result<Done, Status> {
        let key = std::mem::take(&mut request.idempotency_key);
        let call = call("RunService/Stop", &key, &request, request.expected_sequence)?;
        let reason = read::said("reason", request.reason)?;
        let verb = Verb::Stop { call, reason, now: request.now };
        self.api.command(caller, &request.run, verb).await
    }
}

#[tonic::async_trait]
impl v1::run_service_server::RunService for Runs {
    type WatchStream = ReceiverStream<Result<v1::RunServiceWatchResponse, Status>>;

    async fn get(
        &self,
        request: Request<v1::RunServiceGetRequest>,
    ) -> Result<Response<v1::RunServiceGetResponse>, Status> {
        principal(request.extensions(), Role::Read)?;
        let view = show::view(&self.api, &request.into_inner().run).await?;
        Ok(Response::new(v1::RunServiceGetResponse { run: Some(view.into()) }))
    }

    async fn list(
        &self,
        request: Request<v1::RunServiceListRequest>,
    ) -> Result<Response<v1::RunServiceListResponse>, Status> {
        principal(request.extensions(), Role::Read)?;
        Ok(Response::new(self.page(request.into_inner()).await?))
    }

    async fn watch(
        &self,
        request: Request<v1::RunServiceWatchRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        principal(request.extensions(), Role::Read)?;
        let v1::RunServiceWatchRequest { run, after_sequence } = request.into_inner();
        Ok(Response::new(watch::follow(&self.api, &run, after_sequence).await?))
    }

    async fn wait(
        &self,
        request: Request<v1::RunServiceWaitRequest>,
    ) -> Result<Response<v1::RunServiceWaitResponse>, Status> {
        principal(request.extensions(), Role::Read)?;
        Ok(Response::new(wait::wait(&self.api, request.into_inner()).await?))
    }

    async fn pause(
        &self,
        request: Request<v1::RunServicePauseRequest>,
    ) -> Result<Response<v1::RunServicePauseResponse>, Status> {
        let caller = principal(request.extensions(), Role::Operate)?;
        let span = live("RunService/Pause", request.metadata());
        let Done { sequence, replayed, .. } =
            self.pause_once(&caller, request.into_inner()).instrument(span).await?;
        Ok(Response::new(v1::RunServicePauseResponse { sequence, replayed }))
    }

    async fn resume(
        &self,
        request: Request<v1::RunServiceResumeRequest>,
    ) -> Result<Response<v1::RunServiceResumeResponse>, Status> {
        let caller = principal(request.extensions(), Role::Operate)?;
        let span = live("RunService/Resume", request.metadata());
        let answer = self.resume_once(&caller, request.into_inner()).instrument(span).await?;
        Ok(Response::new(answer))
    }

    async fn stop(
        &self,
        request: Request<v1::RunServiceStopRequest>,
    ) -> Result<Response<v1::RunServiceStopResponse>, Status> {
        let caller = principal(request.extensions(), Role::Operate)?;
        let span = live("RunService/Stop", request.metadata());
        let Done { sequence, replayed, .. } =
            self.stop_once(&caller, request.into_inner()).instrument(span).await?;
        Ok(Response::new(v1::RunServiceStopResponse { sequence, replayed }))
    }

    async fn run_ready(
        &self,
        request: Request<v1::RunServiceRunReadyRequest>,
    ) -> Result<Response<v1::RunServiceRunReadyResponse>, Status> {
        principal(request.extensions(), Role::Operate)?;
        Err(not_yet("starting ready units by command"))
    }

    async fn evaluate(
        &self,
        request: Request<v1::RunServiceEvaluateRequest>,
    ) -> Result<Response<v1::RunServiceEvaluateResponse>, Status> {
        principal(request.extensions(), Role::Read)?;
        Err(not_yet("evaluating a run"))
    }

    async fn complete(
        &self,
        request: Request<v1::RunServiceCompleteRequest>,
    ) -> Result<Response<v1::RunServiceCompleteResponse>, Status> {
        principal(request.extensions(), Role::Judge)?;
        Err(not_yet("completing a run by command"))
    }

    async fn record_decision(
        &self,
        request: Request<v1::RunServiceRecordDecisionRequest>,
    ) -> Result<Response<v1::RunServiceRecordDecisionResponse>, Status> {
        principal(request.extensions(), Role::Judge)?;
        Err(not_yet("recording decisions"))
    }

    async fn raise_budget(
        &self,
        request: Request<v1::RunServiceRaiseBudgetRequest>,
    ) -> Result<Response<v1::RunServiceRaiseBudgetResponse>, Status> {
        principal(request.extensions(), Role::Operate)?;
        Err(not_yet("raising a budget"))
    }
}
