//! Being asked to end: Ctrl-C and SIGTERM.
//!
//! The first asks for a good end; a second one ends the process at once, because a good end that
//! takes too long is not what a person at a terminal wants.

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::error::Error;

/// Cancelled at the first Ctrl-C or SIGTERM; the second ends the process.
pub fn ending() -> Result<CancellationToken, Error> {
    let mut interrupt = listen(SignalKind::interrupt())?;
    let mut terminate = listen(SignalKind::terminate())?;
    let token = CancellationToken::new();
    let told = token.clone();
    tokio::spawn(async move {
        either(&mut interrupt, &mut terminate).await;
        told.cancel();
        either(&mut interrupt, &mut terminate).await;
        std::process::exit(i32::from(crate::exit::Exit::Interrupted.code()));
    });
    Ok(token)
}

fn listen(kind: SignalKind) -> Result<Signal, Error> {
    signal(kind).map_err(Error::Runtime)
}

async fn either(first: &mut Signal, second: &mut Signal) {
    tokio::select! {
        _ = first.recv() => {}
        _ = second.recv() => {}
    }
}
