//! A submit: everything a run needs is durable before the run is, and one key makes one run.

use ganger_coordinator_core::check::Checked;
use ganger_coordinator_core::run::{Call, Verb};
use ganger_proto::{read, status, v1};
use ganger_shared::actor::Role;
use ganger_shared::digest::ArtifactRef;
use ganger_shared::event::Submitted;
use ganger_shared::ids::RunId;
use ganger_shared::rejection::Rejection;
use tonic::{Code, Status};
use uuid::Uuid;

use super::{Plans, Sent};
use crate::run::{Asked, ReplyTo, RunMessage};
use crate::runs::RunsMessage;
use crate::services::Principal;
use crate::services::ask::{ask, blocking, call, done, internal};

impl Plans {
    pub(super) async fn submit_once(
        &self,
        caller: &Principal,
        mut request: v1::PlanServiceSubmitRequest,
    ) -> Result<v1::PlanServiceSubmitResponse, Status> {
        let key = std::mem::take(&mut request.idempotency_key);
        let call = call("PlanService/Submit", &key, &asked_for(&request), None)?;
        let sent = Sent {
            text: request.plan,
            attachments: read::each_by_name("attachments", request.attachments)?,
            source: read::optional("repository", request.repository)?,
        };
        if let Some(answer) = self.replay(&call).await? {
            return Ok(answer);
        }
        let checked = self
            .check(&sent)
            .await?
            .map_err(|problems| status::of(&Rejection::Plan { problems }))?;
        may_have_priority(caller, checked.plan.priority())?;
        self.uploaded(&sent).await?;
        let plan = self.keep_plan(sent.text.clone()).await?;
        let run = self.reserve(&call).await?;
        self.prepared(&sent, &run).await?;
        self.write_down(caller, call, (checked, self.submitted_as(run, plan, sent))).await
    }

    /// What was answered the first time, whatever the fleet and the store look like now (P043).
    async fn replay(&self, call: &Call) -> Result<Option<v1::PlanServiceSubmitResponse>, Status> {
        let key = call.key.clone();
        let reserved = self.api.ask_runs(|port| RunsMessage::Reserve { key, new: None, port });
        let Some(run) = reserved.await? else { return Ok(None) };
        let name = run.to_string();
        let found = self.api.ask_runs(|port| RunsMessage::Find { name, port }).await?;
        let actor = match found {
            Ok(actor) => actor,
            // Its submit was refused, or is being written: then that run answers.
            Err(Rejection::UnknownRun { .. }) => return Ok(None),
            Err(rejection) => return Err(status::of(&rejection)),
        };
        let key = call.key.clone();
        let called = ask(&actor, |port| RunMessage::Called { key, port }).await?;
        let Some((body, sequence)) = called else { return Ok(None) };
        if body != call.body {
            let (key, first) = (call.key.to_string(), body.to_string());
            let now = call.body.to_string();
            return Err(status::of(&Rejection::KeyReused { key, first, now }));
        }
        Ok(Some(v1::PlanServiceSubmitResponse {
            run_id: run.to_string(),
            sequence,
            replayed: true,
            warnings: Vec::new(),
        }))
    }

    async fn keep_plan(&self, text: Vec<u8>) -> Result<ArtifactRef, Status> {
        let artifacts = self.api.artifacts.clone();
        let kept = blocking(move || artifacts.put_bytes(&text)).await?;
        kept.map_err(|error| {
            status::plain(Code::ResourceExhausted, "artifacts", &format!("keep the plan: {error}"))
        })
    }

    /// The id under which the mirror is prepared; every call with this key gets the same.
    async fn reserve(&self, call: &Call) -> Result<RunId, Status> {
        let (key, new) = (call.key.clone(), RunId::from_uuid_bytes(Uuid::now_v7().as_bytes()));
        let new = Some(new);
        let reserved = self.api.ask_runs(|port| RunsMessage::Reserve { key, new, port }).await?;
        reserved.ok_or_else(|| internal(&"a key was not reserved"))
    }

    fn submitted_as(&self, run: RunId, plan: ArtifactRef, sent: Sent) -> Draft {
        let limits = &self.api.house.limits;
        let (grace_ms, prepare_ms) = (limits.grace_ms, limits.prepare_ms);
        Draft { run, plan, sent, grace_ms, prepare_ms }
    }

    async fn write_down(
        &self,
        caller: &Principal,
        call: Call,
        (checked, draft): (Checked, Draft),
    ) -> Result<v1::PlanServiceSubmitResponse, Status> {
        let run = draft.run.clone();
        let warnings = checked.warnings.iter().cloned().map(Into::into).collect();
        let (tasks, units) = (checked.tasks.clone(), checked.units.clone());
        let submitted = Box::new(draft.into_submitted(checked));
        let verb = Verb::Submit { call, submitted, tasks, units };
        let by = caller.actor();
        let outcome = self.api.ask_runs(|port| {
            let asked = Box::new(Asked { by, verb, reply: ReplyTo::Caller(port) });
            RunsMessage::Submit { run, asked }
        });
        let done = done(outcome.await?)?;
        Ok(v1::PlanServiceSubmitResponse {
            run_id: done.run.to_string(),
            sequence: done.sequence,
            replayed: done.replayed,
            warnings,
        })
    }
}

/// What becomes the first event, beside the plan itself.
struct Draft {
    run: RunId,
    plan: ArtifactRef,
    sent: Sent,
    grace_ms: ganger_shared::time::DurationMs,
    prepare_ms: ganger_shared::time::DurationMs,
}

impl Draft {
    fn into_submitted(self, checked: Checked) -> Submitted {
        let Self { run, plan, sent, grace_ms, prepare_ms } = self;
        let Checked { plan: file, contract_hash, .. } = checked;
        Submitted {
            run,
            project: file.project(),
            name: file.name.to_string(),
            mode: file.mode(),
            dispatch: file.dispatch(),
            priority: file.priority(),
            delivery: file.delivery_mode(),
            labels: file.labels,
            goal: file.goal.unwrap_or_default(),
            contract: file.contract,
            contract_hash,
            plan,
            attachments: sent.attachments,
            repository: sent.source.map(|source| source.repository),
            budgets: file.budgets,
            grace_ms,
            prepare_ms,
        }
    }
}

/// Going before others is the operator's to give.
fn may_have_priority(caller: &Principal, priority: i32) -> Result<(), Status> {
    if priority <= 0 || caller.role.allows(Role::Operate) {
        return Ok(());
    }
    let (principal, has) = (caller.name.clone(), caller.role);
    Err(status::of(&Rejection::Forbidden { principal, has, needs: Role::Operate }))
}

/// What makes two submits the same: not how the base travels, which a mirror that has it by now makes
/// needless.
fn asked_for(request: &v1::PlanServiceSubmitRequest) -> v1::PlanServiceSubmitRequest {
    let mut asked = request.clone();
    if let Some(repository) = &mut asked.repository {
        repository.bundle = None;
    }
    asked
}
