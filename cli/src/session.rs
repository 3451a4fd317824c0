//! A coordinator for the length of one command: the one that is named, the one that runs on the
//! state directory, or one of our own in this process.
//!
//! What is started is `up`'s; what is asked is the commands'.

use crate::context::Context;
use crate::error::Error;
use crate::redial::PATIENCE;
use crate::server::Server;
use crate::settings::Settings;
use crate::up::{Embedded, UpError, Wish};

/// A coordinator, and the one of our own behind it if there is one.
#[derive(Debug)]
pub struct Session {
    /// Who is spoken to.
    pub server: Server,
    /// Ours.
    pub embedded: Option<Embedded>,
}

impl Session {
    /// Finds a coordinator that runs: the one that is named, else the one on the state directory.
    pub async fn find(settings: &Settings) -> Result<Option<Self>, Error> {
        let server = match &settings.server {
            Some(address) => Some(Server::at(address, settings)?),
            None => Server::on_state_dir(settings).await?,
        };
        Ok(server.map(|server| Self { server, embedded: None }))
    }

    /// Starts one in this process, with telemetry where the command has some.
    pub async fn start(
        settings: &Settings,
        telemetry: Option<&ganger_telemetry::Telemetry>,
    ) -> Result<Self, Error> {
        match Embedded::start(settings, None, telemetry).await {
            Ok(embedded) => {
                let server = embedded.server(settings)?;
                Ok(Self { server, embedded: Some(embedded) })
            }
            Err(error) => Self::of_the_holder(settings, error).await,
        }
    }

    /// Somebody else has just started one on the state directory: that one is spoken to.
    async fn of_the_holder(settings: &Settings, error: UpError) -> Result<Self, Error> {
        if !error.is_held() {
            return Err(error.into());
        }
        let since = std::time::Instant::now();
        while since.elapsed() < PATIENCE {
            if let Some(server) = Server::on_state_dir(settings).await? {
                return Ok(Self { server, embedded: None });
            }
            #[expect(clippy::disallowed_methods, reason = "the wait between two looks")]
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
        Err(error.into())
    }

    /// Ends what was started; workers as wished.
    pub async fn close(self, wish: Wish) -> Result<(), Error> {
        match self.embedded {
            Some(embedded) => Ok(embedded.stop(wish).await?),
            None => Ok(()),
        }
    }
}

/// Carries out a short command on a coordinator, and ends what was started for it.
pub async fn with<T>(
    context: &Context,
    command: impl AsyncFnOnce(&mut Server) -> Result<T, Error>,
) -> Result<T, Error> {
    let mut session = match Session::find(&context.settings).await? {
        Some(session) => session,
        None => Session::start(&context.settings, None).await?,
    };
    let result = command(&mut session.server).await;
    let result = result.map_err(|error| error.at(session.server.address()));
    let closed = session.close(Wish::Leave).await;
    let result = result?;
    closed?;
    Ok(result)
}
