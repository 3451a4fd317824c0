//! Following a run: its events as they are recorded, until it comes to rest.
//!
//! A connection that breaks is dialled again for half a minute and goes on after the last event
//! seen. What a follower does never reaches the run: it may leave at any time.

use std::time::{Duration, Instant};

use ganger_proto::client::Clients;
use ganger_proto::convert::{Snapshot, Watched};
use ganger_proto::{Refusal, read, v1};
use ganger_shared::view::RunView;
use tokio_util::sync::CancellationToken;
use tonic::{Code, Status};

use crate::commands::workers;
use crate::error::Error;
use crate::redial::{Patience, patiently};
use crate::server::Server;

mod progress;
pub mod screen;

pub use screen::Screen;

/// How long one wait for rest lasts before it is asked again.
const WAIT: Duration = Duration::from_mins(5);
/// How long the last events may take once the run is at rest.
const LAST_EVENTS: Duration = Duration::from_secs(5);
/// How often the progress line is drawn.
const DRAW: Duration = Duration::from_millis(200);

/// How following ended.
#[derive(Debug)]
pub enum Followed {
    /// The run is at rest.
    Rest(Box<RunView>),
    /// Who followed was asked to leave.
    Detached,
}

/// Why one connection's worth of following ended.
enum Break {
    /// Look again from here.
    Resync(u64),
    /// The coordinator refused or went away.
    Refused(Box<Refusal>),
    /// Something of ours.
    Error(Error),
}

impl From<Status> for Break {
    fn from(status: Status) -> Self {
        Self::Refused(Box::new(Refusal::from(&status)))
    }
}

impl From<Error> for Break {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

/// Follows a run from after a sequence on.
pub async fn follow(
    server: &mut Server,
    run: &str,
    after: u64,
    screen: &mut Screen,
    leave: &CancellationToken,
) -> Result<Followed, Error> {
    let mut patience = Patience::new();
    let mut follower = Follower { run: run.to_owned(), after, screen, heard: false };
    loop {
        let refusal = match follower.stretch(server.clients(), leave).await {
            Ok(Stretch::Rest) => break,
            Ok(Stretch::Over) if is_over(server, run).await? => break,
            Ok(Stretch::Over) => Box::new(Refusal::from(&cut_off())),
            Ok(Stretch::Detached) => return Ok(Followed::Detached),
            Err(Break::Resync(sequence)) => {
                follower.after = sequence;
                continue;
            }
            Err(Break::Error(error)) => return Err(error),
            Err(Break::Refused(refusal)) => refusal,
        };
        if std::mem::take(&mut follower.heard) {
            patience.answered();
        }
        if !refusal.is_unreachable() {
            return Err(refusal.into());
        }
        follower.screen.clear();
        tokio::select! {
            more = patience.wait(&refusal) => if !more { return Err(refusal.into()) },
            () = leave.cancelled() => return Ok(Followed::Detached),
        }
        server.look_again();
    }
    let view = get(server, run).await?;
    Ok(Followed::Rest(Box::new(view)))
}

/// The run, whole.
pub async fn get(server: &mut Server, run: &str) -> Result<RunView, Error> {
    let request = v1::RunServiceGetRequest { run: run.to_owned() };
    let answer =
        patiently(server, async |clients| clients.runs().get(request.clone()).await).await?;
    Ok(read::required("run", answer.into_inner().run)?)
}

/// How one connection's worth of following ended well.
enum Stretch {
    /// The run is at rest.
    Rest,
    /// The coordinator ended the stream, as it does after the last event of a run.
    Over,
    /// We were asked to leave.
    Detached,
}

async fn is_over(server: &mut Server, run: &str) -> Result<bool, Error> {
    Ok(get(server, run).await?.row.ended_at.is_some())
}

fn cut_off() -> Status {
    Status::unavailable("the stream ended before the run did")
}

struct Follower<'a> {
    run: String,
    after: u64,
    screen: &'a mut Screen,
    heard: bool,
}

impl Follower<'_> {
    /// Follows over one connection.
    async fn stretch(
        &mut self,
        clients: &Clients,
        leave: &CancellationToken,
    ) -> Result<Stretch, Break> {
        let request =
            v1::RunServiceWatchRequest { run: self.run.clone(), after_sequence: self.after };
        let mut events = clients.runs().watch(request).await?.into_inner();
        let mut rest = Box::pin(until_rest(clients.clone(), self.run.clone()));
        let mut rested: Option<(u64, Instant)> = None;
        let mut draw = tokio::time::interval(DRAW);
        draw.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            if let Some((sequence, since)) = rested
                && (self.after >= sequence || since.elapsed() > LAST_EVENTS)
            {
                self.screen.clear();
                return Ok(Stretch::Rest);
            }
            tokio::select! {
                biased;
                () = leave.cancelled() => {
                    self.screen.clear();
                    return Ok(Stretch::Detached);
                }
                next = events.message() => match next? {
                    Some(next) => self.take(clients, next).await?,
                    None => return Ok(Stretch::Over),
                },
                at = &mut rest, if rested.is_none() => rested = Some((at?, Instant::now())),
                _ = draw.tick() => self.draw(clients).await?,
            }
        }
    }

    async fn take(
        &mut self,
        clients: &Clients,
        next: v1::RunServiceWatchResponse,
    ) -> Result<(), Break> {
        use v1::run_service_watch_response::Next;
        self.heard = true;
        match next.next {
            Some(Next::Event(event)) => {
                let event = Watched::try_from(event).map_err(Error::from)?;
                self.after = self.after.max(event.sequence);
                if self.screen.wants_names(&event) {
                    self.screen.know(workers::names(clients).await);
                }
                Ok(self.screen.event(&event)?)
            }
            Some(Next::ResyncRequired(resync)) => Err(Break::Resync(resync.sequence)),
            // A newer coordinator says something this build does not know.
            None => Ok(()),
        }
    }

    async fn draw(&mut self, clients: &Clients) -> Result<(), Break> {
        if self.screen.wants_progress() {
            let snapshot = snapshot(clients, &self.run).await?;
            self.screen.progress(&snapshot);
        }
        Ok(())
    }
}

/// Waits until the run is at rest; the sequence it is at rest at.
async fn until_rest(clients: Clients, run: String) -> Result<u64, Status> {
    loop {
        let answer = clients.runs().wait(wait_request(&run, 0, WAIT, v1::WakeOn::Rest)).await?;
        let answer = answer.into_inner();
        if !answer.expired {
            let row = answer.snapshot.and_then(|snapshot| snapshot.row);
            let missing = || Status::new(Code::DataLoss, "the coordinator's answer has no run");
            return Ok(row.ok_or_else(missing)?.sequence);
        }
    }
}

/// The run in a few lines, as it is now.
async fn snapshot(clients: &Clients, run: &str) -> Result<Snapshot, Break> {
    // Every run has an event after 0, so that this answers at once.
    let request = wait_request(run, 0, Duration::from_millis(1), v1::WakeOn::Event);
    let answer = clients.runs().wait(request).await?.into_inner();
    Ok(read::required("snapshot", answer.snapshot).map_err(Error::from)?)
}

/// What to wait for.
pub fn wait_request(
    run: &str,
    after_sequence: u64,
    timeout: Duration,
    wake_on: v1::WakeOn,
) -> v1::RunServiceWaitRequest {
    v1::RunServiceWaitRequest {
        run: run.to_owned(),
        after_sequence,
        timeout_ms: u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX),
        wake_on: wake_on.into(),
    }
}
