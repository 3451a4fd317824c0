//! Values of the environment are nowhere but in the process.

use std::fs;

use ganger_shared::redact::Redactor;
use ganger_worker::attempts::port::ExecEvent;

use crate::ground::{Ground, block_on, files};

/// The variable `main` sets for this process, and its value.
pub const NAME: &str = "WORK_TEST_SECRET";
pub const VALUE: &str = "s3cr3t/value+for:tests";

/// R164, P114: an allowed value reaches the program and no file, event, message or artifact.
#[cfg_attr(any(), test)]
pub fn a_value_let_through_is_never_kept() {
    block_on(async {
        let ground = Ground::new().await;
        let run = format!(
            "test \"${NAME}\" = '{VALUE}' || exit 9
             echo plain ${NAME}; printf %s ${NAME} | base64; echo error ${NAME} >&2; exit 1"
        );
        let mut assignment = ground.command(&run.replace(VALUE, "x"), &[]);
        assignment.env = vec![NAME.to_owned()];
        let went = ground.go(&assignment).await;
        assert_eq!(went.end.exit, Some(ganger_worker::process::Exit::Code(9)));

        let script = format!(
            "
- run: \"echo plain ${NAME}; printf %s ${NAME} | base64; echo error ${NAME} >&2\"
- say: \"the value is {VALUE}\"
- fail: {{ class: task_failed, message: \"it is {VALUE}\" }}"
        );
        let mut assignment = ground.agent(&script, &["**"]);
        assignment.env = vec![NAME.to_owned()];
        let went = ground.go(&assignment).await;
        let (failure, left) = went.failed();
        assert_eq!(failure.message, format!("it is [REDACTED:{NAME}]"));
        let summary = &left.unwrap().summary;
        assert_eq!(*summary, format!("the value is [REDACTED:{NAME}]"));
        let text = ExecEvent::Text { text: summary.clone() };
        assert!(went.events.contains(&text), "{:?}", went.events);
        let shown = format!("{:?} {:?}", went.end, went.events);
        assert!(!shown.contains(VALUE), "{shown}");
        let kept = fs::read_to_string(went.room.evidence.join("stderr.txt")).unwrap();
        let marks = kept.matches(&format!("[REDACTED:{NAME}]")).count();
        assert_eq!(marks, 3, "{kept}");

        let mut redactor = Redactor::new();
        redactor.guard(NAME, VALUE).unwrap();
        let script = script.into_bytes();
        let artifacts = ground.depot.everything().into_iter().filter(|bytes| *bytes != script);
        let data = files(&ground.site.config.data_dir).into_iter();
        let data = data.filter(|path| !path.ends_with("script.yaml"));
        for bytes in artifacts.chain(data.map(|path| fs::read(path).unwrap())) {
            assert_eq!(redactor.bytes(&bytes), bytes, "{}", String::from_utf8_lossy(&bytes));
        }
    });
}
