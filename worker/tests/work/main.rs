//! The rooms that do the work, with real processes, real git and real transfers.
//!
//! One binary with three parts: with `__shim` it is the shim, with `__scripted` the scripted agent,
//! and otherwise it runs the tests below. So there is no harness, which would take a real `#[test]`
//! away; `#[cfg_attr(any(), test)]` marks them instead, and a marked function that is missing in the
//! table is a dead-code warning.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

mod checks;
mod commands;
mod depot;
mod ground;
mod rooms;
mod scopes;
mod scripted;
mod secrets;

type Test = (&'static str, fn());

macro_rules! tests {
    ($($module:ident: $($name:ident),+;)+) => {
        &[$($((concat!(stringify!($module), "::", stringify!($name)), $module::$name as fn())),+),+]
    };
}

const TESTS: &[Test] = tests! {
    commands: a_command_that_exits_well_delivers_its_tree,
        a_command_that_exits_otherwise_fails_with_its_last_words,
        words_in_the_output_change_no_class,
        an_attempt_gets_its_own_home_and_no_other_environment,
        an_interrupt_reaches_the_program,
        without_a_repository_a_command_has_an_empty_directory,
        hostile_configuration_is_not_executed_on_the_host,
        an_unchanged_tree_is_the_base_itself;
    scripted: a_script_is_carried_out_and_told_in_events,
        nothing_changed_needs_a_declaration,
        an_agent_that_ends_without_a_word_has_crashed,
        a_denied_permission_is_no_success,
        a_huge_line_and_noise_are_drained_and_the_next_event_is_heard,
        a_script_may_fail_once_and_succeed_then,
        an_agent_hears_an_interrupt_unless_it_hangs,
        what_a_command_leaves_running_ends_with_the_attempt,
        dropping_a_running_agent_ends_it,
        a_script_that_is_none_is_refused_before_anything_starts;
    scopes: a_change_outside_the_files_is_a_scope_violation,
        a_link_that_leads_out_is_a_scope_violation,
        a_repository_inside_the_tree_is_named,
        a_leak_into_the_mirror_is_found,
        an_isolated_attempt_sees_no_token_and_no_mirror,
        a_cache_that_is_let_through_is_changed_in_a_copy_only;
    checks: a_check_passes_or_fails_by_its_exit_code,
        an_edited_pinned_file_is_put_back_before_measuring,
        a_check_that_changes_its_subject_has_not_measured_it,
        a_commit_of_another_tree_is_refused_before_measuring;
    rooms: twenty_rooms_are_prepared_at_once,
        a_warm_tree_is_used_once,
        a_room_that_cannot_be_made_leaves_nothing,
        a_dropped_preparation_leaves_nothing,
        a_discarded_room_keeps_the_agents_commits,
        a_room_whose_repository_was_replaced_is_kept,
        reclaim_refuses_whatever_would_be_lost,
        an_orphaned_room_is_kept_and_reclaimed_later,
        reclaim_refuses_the_living,
        reclaim_removes_what_was_handed_in_and_no_strangers,
        git_configuration_stays_with_its_attempt;
    secrets: a_value_let_through_is_never_kept;
};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some(ganger_worker::process::SHIM_ARGUMENT) => ganger_worker::shim::main(),
        Some(ganger_worker::executor::scripted::SCRIPTED_ARGUMENT) => {
            ganger_worker::executor::scripted::main()
        }
        Some(_) | None => run(&arguments),
    }
}

fn run(arguments: &[String]) -> ExitCode {
    if std::env::var_os(secrets::NAME).is_none() {
        return with_a_secret(arguments);
    }
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

/// Setting a variable of a running process is not safe, so the tests run in one that has it.
fn with_a_secret(arguments: &[String]) -> ExitCode {
    let cache = tempfile::tempdir().unwrap();
    let status = std::process::Command::new("/proc/self/exe")
        .args(arguments)
        .env(secrets::NAME, secrets::VALUE)
        .env(scopes::CACHE, cache.path())
        .status()
        .unwrap();
    if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
