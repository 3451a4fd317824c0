//! What a worker is asked to do.

use ganger_shared::ids::Epoch;
use ganger_shared::spec::{AgentTask, Assignment, Body, CheckTask, Source};
use ganger_shared::time::DurationMs;

use crate::malformed::Malformed;
use crate::v1::assignment::Body as WireBody;
use crate::{read, v1};

impl TryFrom<v1::Source> for Source {
    type Error = Malformed;
    fn try_from(wire: v1::Source) -> Result<Self, Malformed> {
        let v1::Source { repository, commit } = wire;
        Ok(Self {
            repository: read::text("repository", &repository)?,
            commit: read::text("commit", &commit)?,
        })
    }
}

impl From<Source> for v1::Source {
    fn from(source: Source) -> Self {
        let Source { repository, commit } = source;
        Self { repository: repository.to_string(), commit: commit.to_string() }
    }
}

impl TryFrom<v1::Assignment> for Assignment {
    type Error = Malformed;
    fn try_from(wire: v1::Assignment) -> Result<Self, Malformed> {
        let v1::Assignment {
            run,
            work,
            epoch,
            traceparent,
            source,
            timeout_ms,
            silence_ms,
            grace_ms,
            on_disconnect,
            env,
            body,
        } = wire;
        Ok(Self {
            run: read::text("run", &run)?,
            work: read::text("work", &work)?,
            epoch: Epoch(epoch),
            traceparent,
            source: read::optional("source", source)?,
            timeout_ms: DurationMs(timeout_ms),
            silence_ms: silence_ms.map(DurationMs),
            grace_ms: DurationMs(grace_ms),
            on_disconnect: read::word("on_disconnect", on_disconnect)?,
            env,
            body: read::present("body", body)?.try_into()?,
        })
    }
}

impl From<Assignment> for v1::Assignment {
    fn from(assignment: Assignment) -> Self {
        let Assignment {
            run,
            work,
            epoch,
            traceparent,
            source,
            timeout_ms,
            silence_ms,
            grace_ms,
            on_disconnect,
            env,
            body,
        } = assignment;
        Self {
            run: run.to_string(),
            work: work.to_string(),
            epoch: epoch.0,
            traceparent,
            source: source.map(Into::into),
            timeout_ms: timeout_ms.0,
            silence_ms: silence_ms.map(|silence| silence.0),
            grace_ms: grace_ms.0,
            on_disconnect: v1::OnDisconnect::from(on_disconnect).into(),
            env,
            body: Some(body.into()),
        }
    }
}

impl TryFrom<WireBody> for Body {
    type Error = Malformed;
    fn try_from(wire: WireBody) -> Result<Self, Malformed> {
        Ok(match wire {
            WireBody::Command(v1::CommandTask { run, files }) => Self::Command { run, files },
            WireBody::Agent(task) => Self::Agent(read::required("agent", Some(task))?),
            WireBody::Check(task) => Self::Check(read::required("check", Some(task))?),
        })
    }
}

impl From<Body> for WireBody {
    fn from(body: Body) -> Self {
        match body {
            Body::Command { run, files } => Self::Command(v1::CommandTask { run, files }),
            Body::Agent(task) => Self::Agent(task.into()),
            Body::Check(task) => Self::Check(task.into()),
        }
    }
}

impl TryFrom<v1::AgentTask> for AgentTask {
    type Error = Malformed;
    fn try_from(wire: v1::AgentTask) -> Result<Self, Malformed> {
        let v1::AgentTask { agent, tier, goal, objective, invariants, language, files, script } =
            wire;
        Ok(Self {
            agent: read::said("agent", agent)?,
            tier,
            goal,
            objective,
            invariants,
            language,
            files,
            script: read::optional("script", script)?,
        })
    }
}

impl From<AgentTask> for v1::AgentTask {
    fn from(task: AgentTask) -> Self {
        let AgentTask { agent, tier, goal, objective, invariants, language, files, script } = task;
        Self {
            agent,
            tier,
            goal,
            objective,
            invariants,
            language,
            files,
            script: script.map(Into::into),
        }
    }
}

impl TryFrom<v1::CheckTask> for CheckTask {
    type Error = Malformed;
    fn try_from(wire: v1::CheckTask) -> Result<Self, Malformed> {
        let v1::CheckTask { run, expect_exit, tree, pinned, pinned_from, place } = wire;
        Ok(Self {
            run,
            expect_exit,
            tree: read::text("tree", &tree)?,
            pinned,
            pinned_from: read::text("pinned_from", &pinned_from)?,
            place: read::word("place", place)?,
        })
    }
}

impl From<CheckTask> for v1::CheckTask {
    fn from(task: CheckTask) -> Self {
        let CheckTask { run, expect_exit, tree, pinned, pinned_from, place } = task;
        Self {
            run,
            expect_exit,
            tree: tree.to_string(),
            pinned,
            pinned_from: pinned_from.to_string(),
            place: v1::Place::from(place).into(),
        }
    }
}
