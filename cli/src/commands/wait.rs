//! `ganger wait RUN`: waits until a run rests, reaches a state or has a new event.
//!
//! A wait that expires is no error: it answers what it saw, with `expired: true`.

use std::time::{Duration, Instant};

use clap::builder::PossibleValuesParser;
use ganger_proto::convert::Snapshot;
use ganger_proto::{read, v1};
use ganger_shared::plan::Length;
use ganger_shared::time::DurationMs;
use serde::Serialize;

use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::follow::wait_request;
use crate::hand_over::Branch;
use crate::output::{complain, note};
use crate::redial::patiently;
use crate::server::Server;
use crate::{follow, session, signals};

/// The words of the command.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The run.
    pub run: String,
    /// Wait for this state [default: any in which the run rests].
    #[arg(long, value_name = "STATE", value_parser = PossibleValuesParser::new(STATES))]
    pub until: Option<String>,
    /// How long to wait, 1s to 12h.
    #[arg(long, value_name = "TIME", default_value = "4m", value_parser = timeout)]
    pub timeout: Length,
    /// Wait for any event after this sequence instead.
    #[arg(long, value_name = "SEQ", conflicts_with = "until")]
    pub after: Option<u64>,
}

fn timeout(text: &str) -> Result<Length, String> {
    let length = Length::parse(text).map_err(|error| error.to_string())?;
    let allowed = DurationMs::from_secs(1)..=DurationMs::from_mins(12 * 60);
    if allowed.contains(&length.0) { Ok(length) } else { Err("1s to 12h are possible".to_owned()) }
}

/// States a run can be waited for.
const STATES: [&str; 9] = [
    "active",
    "paused",
    "waiting",
    "held",
    "budget_limited",
    "stopping",
    "completed",
    "failed",
    "aborted",
];
/// States in which a run rests.
const RESTS: [&str; 6] = ["completed", "failed", "aborted", "held", "budget_limited", "waiting"];
/// States nothing ever changes.
const TERMINAL: [&str; 3] = ["completed", "failed", "aborted"];

/// What was seen.
#[derive(Debug, Serialize)]
struct Seen {
    expired: bool,
    latest_sequence: u64,
    run: Snapshot,
}

/// Waits.
pub async fn run(args: Args, context: &Context) -> Result<Exit, Error> {
    let leave = signals::ending()?;
    session::with(context, async |server| {
        let seen = tokio::select! {
            seen = wait(server, &args) => seen?,
            () = leave.cancelled() => {
                note(&format!("left run {}, which goes on", args.run));
                return Ok(Exit::Interrupted);
            }
        };
        let mut exit = exit(&seen, args.until.as_deref());
        if args.after.is_none() && !seen.expired {
            exit = hand_over(server, &args.run, exit).await?;
        }
        context.out.one(&seen, |style| {
            let row = &seen.run.row;
            let reason = row.reason.as_ref().map(|reason| format!(" ({reason})"));
            let expired = if seen.expired { ", the wait is over" } else { "" };
            let (state, reason) = (style.state(&row.state), reason.unwrap_or_default());
            format!("{} {state}{reason} at {}{expired}", row.id, row.sequence)
        })?;
        Ok(exit)
    })
    .await
}

/// Who waits follows: a completed run's branch comes here.
async fn hand_over(server: &mut Server, run: &str, exit: Exit) -> Result<Exit, Error> {
    let view = follow::get(server, run).await?;
    let Some(branch) = Branch::of(&view) else { return Ok(exit) };
    match branch.fetch(server.clients()).await {
        Ok(there) => {
            note(&format!("branch {} is in {}", there.branch, there.repository.display()));
            Ok(exit)
        }
        Err(error) => {
            complain(&error);
            Ok(Exit::Failed)
        }
    }
}

fn exit(seen: &Seen, until: Option<&str>) -> Exit {
    let row = &seen.run.row;
    if seen.expired || until == Some(row.state.as_str()) {
        return Exit::Ok;
    }
    let exit = Exit::of_run(&row.state, row.reason.as_deref());
    // It ended well, and not as was waited for.
    if exit == Exit::Ok && until.is_some() { Exit::Failed } else { exit }
}

async fn wait(server: &mut Server, args: &Args) -> Result<Seen, Error> {
    let until = Instant::now() + args.timeout.0.to_std();
    let mut after = args.after.unwrap_or(0);
    loop {
        let left = until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        let wake_on = match (&args.until, args.after) {
            (None, None) => v1::WakeOn::Rest,
            (Some(_), _) | (_, Some(_)) => v1::WakeOn::Event,
        };
        let request = wait_request(&args.run, after, left, wake_on);
        let asked = patiently(server, async |clients| clients.runs().wait(request.clone()).await);
        let answer = asked.await?.into_inner();
        let run: Snapshot = read::required("snapshot", answer.snapshot)?;
        let over = Instant::now() >= until;
        if answer.expired && !over {
            // The coordinator waits less long at a time than we do.
            continue;
        }
        let seen = match &args.until {
            None => true,
            Some(state) => reached(&run.row.state, state, after),
        };
        if seen || over {
            let latest_sequence = run.row.sequence;
            return Ok(Seen { expired: !seen || answer.expired, latest_sequence, run });
        }
        after = run.row.sequence;
    }
}

/// Whether a wait for `wanted` ends in this state: there, or never to come there by itself.
fn reached(state: &str, wanted: &str, looked_before: u64) -> bool {
    // A run at rest that is looked at for the first time may just be going on.
    state == wanted || TERMINAL.contains(&state) || (looked_before > 0 && RESTS.contains(&state))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_for_a_state_ends_there_or_where_it_cannot_be_reached() {
        assert!(reached("held", "held", 0));
        assert!(reached("completed", "held", 0));
        assert!(!reached("active", "held", 5));
        assert!(reached("held", "completed", 5));
    }

    #[test]
    fn a_wait_is_as_long_as_the_coordinator_allows() {
        assert!(timeout("240s").is_ok() && timeout("12h").is_ok());
        assert!(timeout("13h").is_err() && timeout("10ms").is_err() && timeout("soon").is_err());
    }
}
