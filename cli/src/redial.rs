//! Trying a call again while nobody answers, for at most half a minute.
//!
//! Only for commands that follow a run: what was asked once and changes something carries its key,
//! so that asking again does nothing twice.

use std::time::{Duration, Instant};

use ganger_proto::Refusal;
use ganger_proto::client::Clients;

use crate::server::Server;

/// How long a coordinator may be away.
pub const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// The waits between dials since somebody last answered.
#[derive(Debug)]
pub struct Patience {
    since: Option<Instant>,
    pause: Duration,
}

impl Patience {
    /// Nobody was missed yet.
    pub fn new() -> Self {
        Self { since: None, pause: PAUSE_MIN }
    }

    /// Somebody answered.
    pub fn answered(&mut self) {
        *self = Self::new();
    }

    /// Nobody answered. Waits before the next dial; false when there has been enough of that. The
    /// first time is told.
    pub async fn wait(&mut self, refusal: &Refusal) -> bool {
        let since = *self.since.get_or_insert_with(|| {
            crate::output::note(&format!("no answer ({refusal}); dialling again"));
            Instant::now()
        });
        if since.elapsed() + self.pause > PATIENCE {
            return false;
        }
        pause(self.pause).await;
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        true
    }
}

/// Calls until somebody answers, or patience ends with the last refusal.
pub async fn patiently<T>(
    server: &mut Server,
    mut call: impl AsyncFnMut(Clients) -> Result<T, tonic::Status>,
) -> Result<T, Box<Refusal>> {
    let mut patience = Patience::new();
    loop {
        let refusal = match call(server.clients().clone()).await {
            Ok(answer) => return Ok(answer),
            Err(status) => Refusal::from(&status),
        };
        if !refusal.is_unreachable() || !patience.wait(&refusal).await {
            return Err(Box::new(refusal));
        }
        server.look_again();
    }
}

async fn pause(length: Duration) {
    #[expect(clippy::disallowed_methods, reason = "the wait between two dials")]
    tokio::time::sleep(length).await;
}
