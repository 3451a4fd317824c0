//! Every name that leaves the process as telemetry: spans, attributes, links, metrics and labels.
//!
//! Names of agents' work follow the OpenTelemetry `GenAI` conventions (`gen_ai.*`), ours start with
//! `ganger.`. Not here: values, and when to use them.

/// Names of spans.
pub mod span {
    /// One execution of a contract, the root of its trace.
    pub const RUN: &str = "run";
    /// A zero-length marker that makes a run visible long before it ends.
    pub const RUN_STARTED: &str = "run started";
    /// One unit from ready to its verdict.
    pub const UNIT: &str = "unit";
    /// The time a lane waits for a slot.
    pub const QUEUE_WAIT: &str = "queue wait";
    /// One try at a unit on one worker.
    pub const ATTEMPT: &str = "attempt";
    /// A short sign of life of a long attempt.
    pub const ATTEMPT_PROGRESS: &str = "attempt progress";
    /// A worker making the attempt's clone and worktree.
    pub const WORKSPACE: &str = "workspace";
    /// The agent at work; [`invoke_agent`] adds its name.
    pub const INVOKE_AGENT: &str = "invoke_agent";
    /// One tool call of the agent; [`execute_tool`] adds its name.
    pub const EXECUTE_TOOL: &str = "execute_tool";
    /// One check of a delivery.
    pub const CHECK: &str = "check";
    /// A judge reading a delivery.
    pub const JUDGE: &str = "judge";
    /// The coordinator integrating an accepted delivery.
    pub const APPLY: &str = "apply";
    /// A client handing in a run.
    pub const CLIENT_SUBMIT: &str = "client.submit";
    /// A coordinator answering an rpc.
    pub const SERVER_CALL: &str = "coordinator.call";

    /// The conventional name of an agent's span.
    pub fn invoke_agent(agent: &str) -> String {
        format!("{INVOKE_AGENT} {agent}")
    }

    /// The conventional name of a tool call's span.
    pub fn execute_tool(tool: &str) -> String {
        format!("{EXECUTE_TOOL} {tool}")
    }
}

/// Keys of span attributes.
pub mod attribute {
    /// Which `GenAI` operation a span is; one of [`super::operation`].
    pub const OPERATION: &str = "gen_ai.operation.name";
    /// The agent's name, for us the executor's agent kind.
    pub const AGENT_NAME: &str = "gen_ai.agent.name";
    /// The agent's version.
    pub const AGENT_VERSION: &str = "gen_ai.agent.version";
    /// The agent's own session id.
    pub const CONVERSATION: &str = "gen_ai.conversation.id";
    /// Who serves the model, for instance `anthropic`.
    pub const PROVIDER: &str = "gen_ai.provider.name";
    /// The model asked for.
    pub const REQUEST_MODEL: &str = "gen_ai.request.model";
    /// The model that answered.
    pub const RESPONSE_MODEL: &str = "gen_ai.response.model";
    /// Tokens read, cached ones included.
    pub const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
    /// Tokens written.
    pub const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
    /// Of the tokens read, those served from a cache.
    pub const CACHE_READ_TOKENS: &str = "gen_ai.usage.cache_read.input_tokens";
    /// Of the tokens read, those written to a cache.
    pub const CACHE_CREATION_TOKENS: &str = "gen_ai.usage.cache_creation.input_tokens";
    /// The tool's name.
    pub const TOOL_NAME: &str = "gen_ai.tool.name";
    /// The id of one tool call.
    pub const TOOL_CALL: &str = "gen_ai.tool.call.id";
    /// The class of an error, few values.
    pub const ERROR_TYPE: &str = "error.type";

    /// The run's id.
    pub const RUN: &str = "ganger.run.id";
    /// The project the run belongs to.
    pub const PROJECT: &str = "ganger.project";
    /// The contract's digest.
    pub const CONTRACT: &str = "ganger.contract.sha256";
    /// The plan revision in force.
    pub const REVISION: &str = "ganger.plan.revision";
    /// The unit's id.
    pub const UNIT: &str = "ganger.unit.id";
    /// The attempt's id, `unit/lane/n`.
    pub const ATTEMPT: &str = "ganger.attempt.id";
    /// The lane of the attempt.
    pub const LANE: &str = "ganger.lane";
    /// The fence of the lease.
    pub const EPOCH: &str = "ganger.lease.epoch";
    /// The worker's enrolled identity.
    pub const WORKER: &str = "ganger.worker.id";
    /// The executor that drives the agent.
    pub const EXECUTOR: &str = "ganger.executor";
    /// How the thing ended, few values.
    pub const OUTCOME: &str = "ganger.outcome";
    /// Cost in millionths of a US dollar.
    pub const COST: &str = "ganger.cost_usd_micros";
    /// How often the agent's session was continued.
    pub const CONTINUATIONS: &str = "ganger.continuations";
    /// The first lines of the result.
    pub const RESULT_EXCERPT: &str = "ganger.result.excerpt";
    /// The digest of a delivery's result envelope.
    pub const DELIVERY: &str = "ganger.delivery.sha256";
    /// The check's name.
    pub const CHECK: &str = "ganger.check.name";
    /// What a link means; one of [`super::link`].
    pub const LINK: &str = "ganger.link";
}

/// Values of [`attribute::OPERATION`].
pub mod operation {
    /// A whole run.
    pub const INVOKE_WORKFLOW: &str = "invoke_workflow";
    /// An agent at work.
    pub const INVOKE_AGENT: &str = "invoke_agent";
    /// A tool call.
    pub const EXECUTE_TOOL: &str = "execute_tool";
}

/// What a link between two spans means.
pub mod link {
    /// This attempt tries again what the linked one did not finish.
    pub const RETRY_OF: &str = "retry_of";
    /// This attempt races the linked one on the same unit.
    pub const LANE_OF: &str = "lane_of";
    /// This unit or attempt repairs what the linked one delivered.
    pub const REPAIRS: &str = "repairs";
    /// A connection or process took up again what the linked span began.
    pub const REATTACHES: &str = "reattaches";
    /// The linked request asked for this run.
    pub const SUBMITTED_BY: &str = "submitted_by";
}

/// Names of metrics; see [`crate::metrics`] for the instruments.
pub mod metric {
    /// Runs that ended.
    pub const RUNS_ENDED: &str = "ganger.runs.ended";
    /// Attempts that ended.
    pub const ATTEMPTS_ENDED: &str = "ganger.attempts.ended";
    /// Leases that ran out.
    pub const LEASES_LOST: &str = "ganger.leases.lost";
    /// Commands answered with a rejection.
    pub const REJECTIONS: &str = "ganger.rejections";
    /// Problems the OTLP exporter reported.
    pub const EXPORT_FAILURES: &str = "ganger.telemetry.export_failures";
    /// Runs that have not ended.
    pub const RUNS_ACTIVE: &str = "ganger.runs.active";
    /// Lanes that want a slot and have none.
    pub const LANES_WANTED: &str = "ganger.lanes.wanted";
    /// Slots free to take a lane.
    pub const SLOTS_FREE: &str = "ganger.slots.free";
    /// Workers attached.
    pub const WORKERS: &str = "ganger.workers.attached";
    /// How long lanes waited for a slot.
    pub const QUEUE_WAIT: &str = "ganger.queue_wait.duration";
    /// How long attempts took.
    pub const ATTEMPT: &str = "ganger.attempt.duration";
    /// How long a journal batch took to be durable.
    pub const APPEND: &str = "ganger.journal.append.duration";
    /// How long agents worked, by the `GenAI` conventions.
    pub const INVOKE_AGENT: &str = "gen_ai.invoke_agent.duration";
    /// Tokens used, by the `GenAI` conventions.
    pub const TOKENS: &str = "gen_ai.client.token.usage";
}

/// Keys of metric labels: few values each, never the id of a run, unit or attempt.
pub mod label {
    /// How the thing ended.
    pub const OUTCOME: &str = super::attribute::OUTCOME;
    /// The executor that drives the agent.
    pub const EXECUTOR: &str = super::attribute::EXECUTOR;
    /// The set of labels a slot has or a lane wants, sorted and joined with commas.
    pub const LABEL_SET: &str = "ganger.label_set";
    /// The kind of a rejection.
    pub const REJECTION: &str = "ganger.rejection";
    /// `input` or `output`.
    pub const TOKEN_TYPE: &str = "gen_ai.token.type";
    /// Which `GenAI` operation is measured.
    pub const OPERATION: &str = super::attribute::OPERATION;
    /// Who serves the model.
    pub const PROVIDER: &str = super::attribute::PROVIDER;
    /// The model asked for.
    pub const MODEL: &str = super::attribute::REQUEST_MODEL;
    /// The class of an error.
    pub const ERROR_TYPE: &str = super::attribute::ERROR_TYPE;
}
