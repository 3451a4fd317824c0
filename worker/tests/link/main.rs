//! A whole worker against a coordinator that a test plays: real gRPC, real disk, real processes.
//!
//! One binary with three parts: with `__shim` it is the shim, with `__worker` a worker that a test
//! kills, and otherwise it runs the tests below. So there is no harness, which would take a real
//! `#[test]` away; `#[cfg_attr(any(), test)]` marks them instead, and a marked function that is
//! missing in the table is a dead-code warning.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

mod artifacts;
mod coordinator;
mod greeting;
mod ground;
mod leaving;
mod reports;
mod restarts;
mod transfers;
mod work;

type Test = (&'static str, fn());

macro_rules! tests {
    ($($module:ident: $($name:ident),+;)+) => {
        &[$($((concat!(stringify!($module), "::", stringify!($name)), $module::$name as fn())),+),+]
    };
}

const TESTS: &[Test] = tests! {
    greeting: hello_comes_first_and_says_who_what_and_how_far,
        a_refused_token_ends_the_worker_with_its_file_and_the_fix,
        a_worker_told_to_retry_uses_a_token_that_is_put_right,
        another_protocol_ends_the_worker,
        a_coordinator_that_comes_late_is_found,
        a_second_process_on_one_directory_is_refused;
    reports: unanswered_reports_come_again_on_a_new_connection,
        retry_later_keeps_a_report_until_it_is_recorded,
        a_repeated_assignment_starts_nothing_twice,
        a_stop_of_what_never_came_is_answered,
        a_disowned_lease_is_stopped;
    work: a_command_is_run_and_delivered,
        beats_flow_while_an_attempt_burns_the_processor,
        who_ignores_every_rung_is_killed,
        a_worker_cut_off_for_a_lease_stops_what_must_stop,
        a_worker_cut_off_goes_on_and_hands_in_later,
        more_than_the_slots_waits,
        an_assignment_whose_connection_breaks_begins_or_was_never_here;
    restarts: a_killed_worker_reports_its_attempts_as_ended_by_the_restart;
    leaving: a_leaving_worker_reports_its_attempts_and_says_goodbye,
        a_leaving_coordinator_is_dialled_again;
    transfers: an_interrupted_upload_goes_on_where_it_ended,
        what_is_there_is_not_sent_again,
        a_download_goes_on_and_is_verified;
};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some(ganger_worker::process::SHIM_ARGUMENT) => ganger_worker::shim::main(),
        Some(restarts::WORKER_ARGUMENT) => restarts::worker(&arguments[1..]),
        Some(_) | None => run(&arguments),
    }
}

fn run(arguments: &[String]) -> ExitCode {
    let filters: Vec<&String> = arguments.iter().filter(|a| !a.starts_with("--")).collect();
    let chosen = |name: &str| filters.is_empty() || filters.iter().any(|f| name.contains(*f));
    let mut failed = Vec::new();
    for (name, test) in TESTS.iter().filter(|(name, _)| chosen(name)) {
        let begun = std::time::Instant::now();
        let passed = catch_unwind(AssertUnwindSafe(test)).is_ok();
        let word = if passed { "ok" } else { "FAILED" };
        eprintln!("test {name} ... {word} ({} ms)", begun.elapsed().as_millis());
        if !passed {
            failed.push(*name);
        }
    }
    eprintln!("\n{} failed: {failed:?}", failed.len());
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
