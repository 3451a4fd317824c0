//! The scripted agent as a real program under the shim: everything real agents do, on demand.

use std::fs;
use std::io::Read;
use std::net::TcpListener;

use ganger_shared::delivery::Usage;
use ganger_shared::failure::FailureClass;
use ganger_shared::time::DurationMs;
use ganger_worker::attempts::port::{ExecCommand, ExecEvent};
use ganger_worker::process::Exit;
use ganger_worker::workspace;

use crate::ground::{Ground, block_on, to_the_end};

#[cfg_attr(any(), test)]
pub fn a_script_is_carried_out_and_told_in_events() {
    block_on(async {
        let ground = Ground::new().await;
        let script = r#"
- say: I begin
- write: { path: src/a.rs, text: "a\n" }
- append: { path: src/a.rs, text: "b\n" }
- move: { from: src/a.rs, to: src/b.rs }
- delete: README.md
- run: "cat src/b.rs > src/c.rs"
- usage: { tokens_in: 10, tokens_out: 1 }
- usage: { tokens_in: 5 }
- context: 42
- retry: { class: overloaded, wait: 1ms }
- rate_limit: 2s
- work: 1ms
- say: I am done
"#;
        let went = ground.go(&ground.agent(script, &["**"])).await;
        let delivery = went.delivery();
        let usage = Usage { tokens_in: Some(15), tokens_out: Some(1), ..Usage::default() };
        assert_eq!((delivery.usage, went.evidence.usage), (usage, usage));
        assert_eq!(delivery.summary, "I am done");
        assert_eq!(delivery.excerpt, "I am done");
        assert_eq!(delivery.session.as_deref(), Some("implement-main-1"));
        let commit = ground.take_in(delivery).await;
        assert_eq!(
            ground.mirror.list_files(&commit).await.unwrap(),
            [".gitignore", "src/b.rs", "src/c.rs", "src/lib.rs", "verify.sh"]
        );
        let quiet = |event: &&ExecEvent| !matches!(event, ExecEvent::Activity { .. });
        let events: Vec<ExecEvent> = went.events.iter().filter(quiet).cloned().collect();
        let text = |text: &str| ExecEvent::Text { text: text.to_owned() };
        assert!(events.contains(&text("I begin")), "{events:?}");
        assert!(events.contains(&ExecEvent::Context { percent: 42 }));
        let wait_ms = DurationMs(1);
        assert!(events.contains(&ExecEvent::Retry { class: FailureClass::Overloaded, wait_ms }));
        let wait_ms = Some(DurationMs::from_secs(2));
        assert!(events.contains(&ExecEvent::RateLimit { wait_ms }));
        let tools =
            events.iter().filter(|event| matches!(event, ExecEvent::ToolEnd { ok: true, .. }));
        assert_eq!(tools.count(), 5);
    });
}

/// P091: no change and no declaration is no success; a declaration is.
#[cfg_attr(any(), test)]
pub fn nothing_changed_needs_a_declaration() {
    block_on(async {
        let ground = Ground::new().await;
        let went = ground.go(&ground.agent("- say: all done, trust me", &["**"])).await;
        assert_eq!(went.failed().0.class, FailureClass::NoChange);
        let declared = ground.go(&ground.agent("- declare_no_change: it is there", &["**"])).await;
        let delivery = declared.delivery();
        assert!(delivery.no_change);
        assert_eq!(delivery.summary, "it is there");
    });
}

/// P090: an exit code 0 without a word, and words that are no events, are no success.
#[cfg_attr(any(), test)]
pub fn an_agent_that_ends_without_a_word_has_crashed() {
    block_on(async {
        let ground = Ground::new().await;
        for (script, class) in [
            ("- crash: 0", FailureClass::CliCrash),
            ("- crash: 3", FailureClass::CliCrash),
            ("- crash: SIGKILL", FailureClass::ProcessTerminated),
            ("- fail: { class: rate_limited, message: slow down }", FailureClass::RateLimited),
            ("- run: \"echo 401; exit 1\"", FailureClass::TaskFailed),
        ] {
            let went = ground.go(&ground.agent(script, &["**"])).await;
            assert_eq!(went.failed().0.class, class, "{script}: {:?}", went.failed());
        }
    });
}

/// P085: a denied permission is no success, whatever the agent says after it.
#[cfg_attr(any(), test)]
pub fn a_denied_permission_is_no_success() {
    block_on(async {
        let ground = Ground::new().await;
        let script = "
- permission: { tool: Bash, allowed: false }
- write: { path: a, text: b }
- say: done";
        let went = ground.go(&ground.agent(script, &["**"])).await;
        let (failure, left) = went.failed();
        assert_eq!(failure.class, FailureClass::PermissionDenied);
        assert!(failure.message.contains("Bash"));
        assert!(left.is_some());
    });
}

/// P103, P104: 64 MiB without a line end and bytes that are no text are drained in bounds, and the
/// next event is heard.
#[cfg_attr(any(), test)]
pub fn a_huge_line_and_noise_are_drained_and_the_next_event_is_heard() {
    block_on(async {
        let ground = Ground::new().await;
        let script = "
- noise: { bytes: 300KiB, invalid_utf8: true }
- huge_line: 64MiB
- say: still here
- declare_no_change: nothing";
        let went = ground.go(&ground.agent(script, &[])).await;
        assert!(went.delivery().no_change);
        let text = ExecEvent::Text { text: "still here".to_owned() };
        assert!(went.events.contains(&text));
        assert!(went.evidence.output_truncated);
        let capture = &went.end.captures[0];
        assert!(capture.bytes_written > 64 << 20, "{capture:?}");
        assert_eq!(capture.bytes_kept, 64 << 20);
    });
}

/// R066: what a script does may depend on the number of the attempt.
#[cfg_attr(any(), test)]
pub fn a_script_may_fail_once_and_succeed_then() {
    block_on(async {
        let ground = Ground::new().await;
        let script = "
- attempt:
    1: [ { fail: { class: cli_crash } } ]
    2: [ { write: { path: a, text: b } } ]";
        let first = ground.go(&ground.agent_try(1, script, &["**"])).await;
        assert_eq!(first.failed().0.class, FailureClass::CliCrash);
        for later in [2, 3] {
            let went = ground.go(&ground.agent_try(later, script, &["**"])).await;
            assert!(went.delivery().tree.is_some());
        }
    });
}

/// An interrupt goes by the agent's own protocol; a script that hangs is left to the ladder's end.
#[cfg_attr(any(), test)]
pub fn an_agent_hears_an_interrupt_unless_it_hangs() {
    block_on(async {
        let ground = Ground::new().await;
        let assignment = ground.agent("[ { say: up }, { silent: 1h } ]", &[]);
        let room = workspace::prepare(&ground.site, &assignment).await.unwrap();
        let (running, mut events) = ground.start(&assignment, &room).await;
        while !matches!(events.recv().await, Some(ExecEvent::Text { .. })) {}
        let steer = ExecCommand::Steer { text: "left".to_owned() };
        running.commands.send(steer).await.unwrap();
        running.commands.send(ExecCommand::Interrupt).await.unwrap();
        let (events, end) = to_the_end(events).await;
        assert!(events.contains(&ExecEvent::Text { text: "steered: left".to_owned() }));
        assert_eq!(end.failure.unwrap().class, FailureClass::Cancelled);
        assert_eq!(end.exit, Some(Exit::Code(130)));

        let assignment = ground.agent("[ { say: up }, { hang: true } ]", &[]);
        let room = workspace::prepare(&ground.site, &assignment).await.unwrap();
        let (running, mut events) = ground.start(&assignment, &room).await;
        while !matches!(events.recv().await, Some(ExecEvent::Text { .. })) {}
        running.commands.send(ExecCommand::Interrupt).await.unwrap();
        let tree = running.tree.clone().unwrap();
        tree.interrupt().await.unwrap();
        tree.terminate().await.unwrap();
        tree.kill().await.unwrap();
        let (_, end) = to_the_end(events).await;
        assert_eq!((end.exit, end.confirmed), (Some(Exit::Signal(9)), true));
    });
}

/// P099: what an agent's command leaves running ends with the attempt.
#[cfg_attr(any(), test)]
pub fn what_a_command_leaves_running_ends_with_the_attempt() {
    block_on(async {
        let ground = Ground::new().await;
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let script = format!(
            "
- run: \"setsid sleep 1000 > /dev/null 2>&1 &\"
- connect: \"{address}\"
- write: {{ path: a, text: b }}"
        );
        let assignment = ground.agent(&script, &["**"]);
        let went = ground.go(&assignment).await;
        assert!(went.end.confirmed);
        let mut word = String::new();
        listener.accept().unwrap().0.read_to_string(&mut word).unwrap();
        assert_eq!(word, format!("implement 1 {}\n", assignment.epoch));
        let alive = fs::read_dir("/proc").unwrap().flatten().filter(|entry| {
            let cwd = fs::read_link(entry.path().join("cwd"));
            cwd.is_ok_and(|cwd| cwd.starts_with(&went.room.dir))
        });
        assert_eq!(alive.count(), 0);
    });
}

/// The driver's death is the attempt's: dropping what was started ends everything.
#[cfg_attr(any(), test)]
pub fn dropping_a_running_agent_ends_it() {
    block_on(async {
        let ground = Ground::new().await;
        let assignment = ground.agent("[ { say: up }, { silent: 1h } ]", &[]);
        let room = workspace::prepare(&ground.site, &assignment).await.unwrap();
        let (running, mut events) = ground.start(&assignment, &room).await;
        while !matches!(events.recv().await, Some(ExecEvent::Text { .. })) {}
        let pid = running.started.pid;
        drop(running);
        crate::ground::until("the agent is gone", || !is_alive(pid)).await;
    });
}

fn is_alive(pid: u32) -> bool {
    ganger_worker::process::Fingerprint::of(pid.cast_signed()).is_some()
}

#[cfg_attr(any(), test)]
pub fn a_script_that_is_none_is_refused_before_anything_starts() {
    block_on(async {
        let ground = Ground::new().await;
        let assignment = ground.agent("- dance: now", &[]);
        let room = workspace::prepare(&ground.site, &assignment).await.unwrap();
        let (send, _events) = tokio::sync::mpsc::channel(64);
        let refused = ganger_worker::executor::start(&ground.site, &assignment, &room, send).await;
        let failure = refused.unwrap_err();
        assert_eq!(failure.class, FailureClass::ConfigError);
        assert!(failure.message.contains("dance"), "{}", failure.message);
    });
}
