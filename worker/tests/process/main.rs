//! Real process trees: started, cancelled, orphaned, swept. No mocks, no fake clocks.
//!
//! One binary with three parts, because the shim must be a process of its own and a worker must be
//! killed for real: with `__shim` it is the shim, with `__worker` a worker that one test kills, and
//! otherwise it runs the tests below, one after the other (they count processes). So there is no
//! harness, which would take a real `#[test]` away; `#[cfg_attr(any(), test)]` marks them instead,
//! and a marked function that is missing in the table is a dead-code warning.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

mod cancel;
mod crash;
mod isolated;
mod outputs;
mod spawning;
mod support;
mod sweeping;
mod victim;

type Test = (&'static str, fn());

macro_rules! tests {
    ($($module:ident: $($name:ident),+;)+) => {
        &[$($((concat!(stringify!($module), "::", stringify!($name)), $module::$name as fn())),+),+]
    };
}

const TESTS: &[Test] = tests! {
    spawning: an_exit_code_and_a_signal_are_told_apart,
        the_environment_is_exactly_what_was_given,
        no_inherited_descriptor_reaches_the_program,
        a_large_prompt_goes_in_by_standard_input,
        a_pipe_carries_a_conversation,
        a_program_that_is_not_there_leaves_nothing_behind,
        a_reserved_name_and_oversized_arguments_are_refused,
        two_hundred_short_programs_leave_no_process_behind;
    cancel: a_kill_leaves_no_survivor,
        the_end_of_the_program_ends_what_it_started,
        a_program_that_ignores_term_is_killed,
        an_interrupt_reaches_the_program,
        dropping_the_tree_ends_it;
    crash: a_killed_worker_leaves_no_survivor,
        a_killed_shim_leaves_no_survivor,
        a_worker_killed_with_its_shim_is_swept_after,
        a_reboot_of_the_worker_in_the_middle_of_a_spawn_is_swept;
    sweeping: only_the_recorded_process_is_killed,
        a_record_of_another_boot_kills_nobody,
        a_record_that_cannot_be_read_is_kept_and_told;
    isolated: this_host_is_probed_by_trying,
        an_attempt_sees_its_own_directory_and_no_other,
        an_attempt_sees_no_process_but_its_own,
        a_cache_is_read_only_copied_or_shared_as_declared,
        root_inside_cannot_mount_its_way_out,
        without_root_an_attempt_is_isolated_all_the_same;
    outputs: an_endless_line_is_cut_in_bounded_memory,
        any_bytes_are_kept_as_they_are,
        what_exceeds_the_file_is_drained_and_named,
        a_follower_that_leaves_does_not_stop_the_program;
};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some(ganger_worker::process::SHIM_ARGUMENT) => ganger_worker::shim::main(),
        Some(victim::ARGUMENT) => victim::main(&arguments[1..]),
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
