//! Workers: looking at them, what they offer, and taking them out of use.

use std::collections::{BTreeMap, BTreeSet};

use ganger_coordinator_core::fleet::Demand;
use ganger_proto::{Malformed, Reason, status, v1};
use ganger_shared::actor::Role;
use ganger_shared::ids::WorkerId;
use ganger_shared::limits::{self, Limits};
use ganger_shared::nearest::nearest;
use ganger_shared::rejection::Rejection;
use ganger_shared::view::WorkerView;
use tonic::{Code, Request, Response, Status};

use super::ask::{call, gone, not_yet};
use super::page::{Page, Pages, known_words, order, size};
use super::{Api, principal};
use crate::fleet::{Cordon, FleetMessage};
use crate::journal::StreamName;

const STATES: &[&str] = &["live", "suspect", "cordoned", "draining", "lost", "left"];

/// The service.
pub struct Workers {
    api: Api,
    lists: Pages<WorkerView>,
}

/// What the three calls that open and close a worker have in common.
struct Closing {
    worker: String,
    expected: Option<u64>,
}

/// Where one agent runs, and in which versions.
#[derive(Default)]
struct Offered<'a> {
    versions: BTreeSet<&'a str>,
    workers: BTreeSet<&'a str>,
}

impl Workers {
    /// The service over this API.
    pub fn new(api: Api) -> Self {
        Self { api, lists: Pages::new() }
    }

    async fn page(
        &self,
        request: v1::FleetServiceListRequest,
    ) -> Result<v1::FleetServiceListResponse, Status> {
        let size = size(request.page_size)?;
        let filter = request.filter.unwrap_or_default();
        known_words("filter.states", &filter.states, STATES)?;
        let (by_id, down) = match order(&request.order_by, &["name", "id"])? {
            None => (false, false),
            Some((key, down)) => (key == "id", down),
        };
        let page = if request.page_token.is_empty() {
            let mut workers = self.api.ask_fleet(FleetMessage::List).await?;
            let sequence = self.api.house.store.tip().log_seq;
            workers.retain(|worker| passes(&filter, worker));
            workers.sort_by(|a, b| {
                let by_name = a.name.cmp(&b.name);
                if by_id { a.id.cmp(&b.id) } else { by_name.then_with(|| a.id.cmp(&b.id)) }
            });
            if down {
                workers.reverse();
            }
            self.lists.first(size, workers, sequence)
        } else {
            self.lists.next(size, &request.page_token)?
        };
        let demand = self.api.ask_fleet(FleetMessage::Demand).await?;
        let Page { rows, next, sequence } = page;
        Ok(v1::FleetServiceListResponse {
            workers: rows.into_iter().map(Into::into).collect(),
            next_page_token: next,
            sequence,
            demand: demand.into_iter().map(wanted).collect(),
        })
    }

    /// Closes or opens a worker. Doing it again changes nothing, so no key is remembered.
    async fn close(&self, closing: Closing, how: Cordon) -> Result<u64, Status> {
        let Closing { worker, expected } = closing;
        let workers = self.api.ask_fleet(FleetMessage::List).await?;
        let worker = named(&workers, &worker)?;
        let current = self.sequence();
        if let Some(expected) = expected.filter(|expected| *expected < current) {
            let what = "the fleet".to_owned();
            return Err(status::of(&Rejection::StaleSequence { what, expected, current }));
        }
        let message = FleetMessage::Cordon(worker, how);
        self.api.house.fleet.cast(message).map_err(|_| gone())?;
        // The mailbox keeps its order: when this is answered, the word before it was taken.
        self.api.ask_fleet(FleetMessage::List).await?;
        Ok(self.sequence())
    }

    /// The number of the fleet's last event.
    fn sequence(&self) -> u64 {
        let streams = self.api.house.store.streams(StreamName::fleet().as_str());
        streams.first().map_or(0, |(_, sequence)| *sequence)
    }

    async fn assets(&self) -> Result<v1::FleetServiceAssetsResponse, Status> {
        let facts = self.api.ask_fleet(FleetMessage::Facts).await?;
        let workers = self.api.ask_fleet(FleetMessage::List).await?;
        let mut agents: BTreeMap<(&str, &str), Offered<'_>> = BTreeMap::new();
        let mut values: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for worker in &facts {
            for agent in &worker.agents {
                let asset = agents.entry((&agent.name, &agent.adapter)).or_default();
                asset.versions.extend(agent.version.as_deref());
                asset.workers.insert(worker.worker.as_str());
            }
            for (key, value) in &worker.labels {
                values.entry(key).or_default().insert(value);
            }
        }
        let texts = |set: BTreeSet<&str>| set.into_iter().map(str::to_owned).collect();
        let agents = agents.into_iter().map(|((name, adapter), offered)| v1::AgentAsset {
            name: name.to_owned(),
            adapter: adapter.to_owned(),
            versions: texts(offered.versions),
            workers: texts(offered.workers),
        });
        let labels = values.into_iter().map(|(key, values)| {
            let key = key.to_owned();
            v1::LabelAsset { key, values: texts(values) }
        });
        let here = |worker: &&WorkerView| facts.iter().any(|facts| facts.worker == worker.id);
        Ok(v1::FleetServiceAssetsResponse {
            agents: agents.collect(),
            labels: labels.collect(),
            limits: in_force(&self.api.house.limits),
            slots: facts.iter().map(|worker| worker.slots).fold(0, u32::saturating_add),
            busy: workers.iter().filter(here).map(|w| w.busy).fold(0, u32::saturating_add),
        })
    }
}

fn passes(filter: &v1::WorkerFilter, worker: &WorkerView) -> bool {
    let state = filter.states.is_empty() || filter.states.contains(&worker.state);
    state && filter.labels.iter().all(|(key, value)| worker.labels.get(key) == Some(value))
}

fn wanted(demand: Demand) -> v1::Demand {
    let Demand { labels, wanted, free } = demand;
    v1::Demand { labels, wanted, free }
}

/// The worker of this id, or the only one of this name.
fn named(workers: &[WorkerView], asked: &str) -> Result<WorkerId, Status> {
    if let Some(worker) = workers.iter().find(|worker| worker.id.as_str() == asked) {
        return Ok(worker.id.clone());
    }
    let same: Vec<&WorkerView> = workers.iter().filter(|worker| worker.name == asked).collect();
    match same.as_slice() {
        [one] => Ok(one.id.clone()),
        [] => {
            let names = workers.iter().map(|worker| worker.name.as_str());
            let near = nearest(asked, names).map(|near| format!("; did you mean `{near}`?"));
            let near = near.unwrap_or_default();
            let message = format!("no worker `{asked}`{near} `ganger get workers` lists them");
            Err(status::plain(Code::NotFound, "unknown_worker", &message))
        }
        several => {
            let ids: Vec<&str> = several.iter().map(|worker| worker.id.as_str()).collect();
            let form = format!("several workers are called `{asked}`: {}", ids.join(", "));
            Err(Malformed::new("worker", Reason::Form(form)).into())
        }
    }
}

/// The limits in force, by name.
fn in_force(own: &Limits) -> BTreeMap<String, u64> {
    let Limits {
        beat_ms,
        lease_ms,
        offer_ms,
        grace_ms,
        prepare_ms,
        plan_bytes,
        units_max,
        artifact_bytes,
    } = own;
    let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
    [
        ("beat_ms", beat_ms.0),
        ("lease_ms", lease_ms.0),
        ("offer_ms", offer_ms.0),
        ("grace_ms", grace_ms.0),
        ("prepare_ms", prepare_ms.0),
        ("plan_bytes", *plan_bytes),
        ("units_max", u64::from(*units_max)),
        ("artifact_bytes", *artifact_bytes),
        ("chunk_bytes", count(limits::CHUNK_BYTES)),
        ("page_size", count(limits::PAGE)),
        ("watch_queue", count(limits::WATCH_QUEUE)),
        ("attempts_per_unit", u64::from(limits::ATTEMPTS_PER_UNIT)),
        ("losses_per_unit", u64::from(limits::LOSSES_PER_UNIT)),
    ]
    .into_iter()
    .map(|(name, limit)| (name.to_owned(), limit))
    .collect()
}

#[tonic::async_trait]
impl v1::fleet_service_server::FleetService for Workers {
    async fn list(
        &self,
        request: Request<v1::FleetServiceListRequest>,
    ) -> Result<Response<v1::FleetServiceListResponse>, Status> {
        principal(request.extensions(), Role::Read)?;
        Ok(Response::new(self.page(request.into_inner()).await?))
    }

    async fn cordon(
        &self,
        request: Request<v1::FleetServiceCordonRequest>,
    ) -> Result<Response<v1::FleetServiceCordonResponse>, Status> {
        principal(request.extensions(), Role::Operate)?;
        let request = request.into_inner();
        call("FleetService/Cordon", &request.idempotency_key, &request, None)?;
        let closing = Closing { worker: request.worker, expected: request.expected_sequence };
        let sequence = self.close(closing, Cordon::Cordon).await?;
        Ok(Response::new(v1::FleetServiceCordonResponse { sequence, replayed: false }))
    }

    async fn drain(
        &self,
        request: Request<v1::FleetServiceDrainRequest>,
    ) -> Result<Response<v1::FleetServiceDrainResponse>, Status> {
        principal(request.extensions(), Role::Operate)?;
        let request = request.into_inner();
        call("FleetService/Drain", &request.idempotency_key, &request, None)?;
        if request.timeout_ms > 0 {
            return Err(not_yet("a time limit on draining"));
        }
        let closing = Closing { worker: request.worker, expected: request.expected_sequence };
        let sequence = self.close(closing, Cordon::Drain).await?;
        Ok(Response::new(v1::FleetServiceDrainResponse { sequence, replayed: false }))
    }

    async fn uncordon(
        &self,
        request: Request<v1::FleetServiceUncordonRequest>,
    ) -> Result<Response<v1::FleetServiceUncordonResponse>, Status> {
        principal(request.extensions(), Role::Operate)?;
        let request = request.into_inner();
        call("FleetService/Uncordon", &request.idempotency_key, &request, None)?;
        let closing = Closing { worker: request.worker, expected: request.expected_sequence };
        let sequence = self.close(closing, Cordon::Uncordon).await?;
        Ok(Response::new(v1::FleetServiceUncordonResponse { sequence, replayed: false }))
    }

    async fn assets(
        &self,
        request: Request<v1::FleetServiceAssetsRequest>,
    ) -> Result<Response<v1::FleetServiceAssetsResponse>, Status> {
        principal(request.extensions(), Role::Read)?;
        Ok(Response::new(Workers::assets(self).await?))
    }
}
