//! Plans: what is wrong with one, and making a run of one, once per key.
//!
//! The rules are the core's; here are the bounds of a request, what the fleet knows of agents, and
//! the files and commits a plan needs before its run may be written down.

mod needs;
mod submit;

use ganger_coordinator_core::check::{Checked, Context, check_text};
use ganger_proto::convert::SubmittedSource;
use ganger_proto::{read, v1};
use ganger_shared::actor::Role;
use ganger_shared::digest::ArtifactRef;
use ganger_shared::problem::{Code, Problem};
use tonic::{Request, Response, Status};
use tracing::Instrument as _;

use super::ask::{blocking, live, not_yet};
use super::{Api, principal};
use crate::fleet::FleetMessage;

/// The service.
pub struct Plans {
    api: Api,
}

/// A plan as it came, read from the wire.
#[derive(Clone)]
struct Sent {
    text: Vec<u8>,
    attachments: std::collections::BTreeMap<String, ArtifactRef>,
    source: Option<SubmittedSource>,
}

impl Plans {
    /// The service over this API.
    pub fn new(api: Api) -> Self {
        Self { api }
    }

    /// Every rule of the core, and what the request itself lacks.
    async fn check(&self, sent: &Sent) -> Result<Result<Checked, Vec<Problem>>, Status> {
        let limits = self.api.house.limits.clone();
        let bytes = u64::try_from(sent.text.len()).unwrap_or(u64::MAX);
        if bytes > limits.plan_bytes {
            return Ok(Err(vec![too_large(bytes, limits.plan_bytes)]));
        }
        let text = match String::from_utf8(sent.text.clone()) {
            Ok(text) => text,
            Err(error) => return Ok(Err(vec![not_utf8(error.utf8_error().valid_up_to())])),
        };
        let agents = self.agents().await?;
        let attachments = sent.attachments.clone();
        let checked = blocking(move || {
            let (agents, limits) = (agents.as_deref(), &limits);
            check_text(&text, &Context { agents, limits, attachments: &attachments })
        })
        .await?;
        Ok(checked.and_then(|checked| needs::repository(checked, sent.source.as_ref())))
    }

    /// The agents of live workers; nothing while no worker is known, for then none may be missed.
    async fn agents(&self) -> Result<Option<Vec<String>>, Status> {
        let facts = self.api.ask_fleet(FleetMessage::Facts).await?;
        let mut names: Vec<String> =
            facts.iter().flat_map(|facts| &facts.agents).map(|agent| agent.name.clone()).collect();
        names.sort_unstable();
        names.dedup();
        Ok(if facts.is_empty() { None } else { Some(names) })
    }
}

fn too_large(bytes: u64, max: u64) -> Problem {
    let message = format!("the plan has {bytes} bytes, and {max} are allowed (limit plan_bytes)");
    Problem::error(Code::Limit, "", message)
        .with_fix("split the plan, or ask the operator for a larger plan_bytes")
}

fn not_utf8(at: usize) -> Problem {
    Problem::error(Code::Syntax, "", format!("the plan is not UTF-8 from byte {at} on"))
        .with_fix("save the file as UTF-8")
}

#[tonic::async_trait]
impl v1::plan_service_server::PlanService for Plans {
    async fn check(
        &self,
        request: Request<v1::PlanServiceCheckRequest>,
    ) -> Result<Response<v1::PlanServiceCheckResponse>, Status> {
        principal(request.extensions(), Role::Read)?;
        let request = request.into_inner();
        let sent = Sent {
            text: request.plan,
            attachments: read::each_by_name("attachments", request.attachments)?,
            source: read::optional("repository", request.repository)?,
        };
        let problems = match self.check(&sent).await? {
            Ok(checked) => checked.warnings,
            Err(problems) => problems,
        };
        let problems = problems.into_iter().map(Into::into).collect();
        Ok(Response::new(v1::PlanServiceCheckResponse { problems }))
    }

    async fn submit(
        &self,
        request: Request<v1::PlanServiceSubmitRequest>,
    ) -> Result<Response<v1::PlanServiceSubmitResponse>, Status> {
        let caller = principal(request.extensions(), Role::Submit)?;
        let span = live("PlanService/Submit", request.metadata());
        let answer = self.submit_once(&caller, request.into_inner()).instrument(span).await?;
        Ok(Response::new(answer))
    }

    async fn revise(
        &self,
        request: Request<v1::PlanServiceReviseRequest>,
    ) -> Result<Response<v1::PlanServiceReviseResponse>, Status> {
        principal(request.extensions(), Role::Submit)?;
        Err(not_yet("revising a plan"))
    }
}
