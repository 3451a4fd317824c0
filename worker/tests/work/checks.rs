//! Checks: measured in a clean tree of the subject, never in the author's.

use ganger_shared::delivery::{NotMeasured, Outcome};
use ganger_shared::failure::FailureClass;
use ganger_worker::workspace;

use crate::ground::{Ground, block_on};

#[cfg_attr(any(), test)]
pub fn a_check_passes_or_fails_by_its_exit_code() {
    block_on(async {
        let ground = Ground::new().await;
        for (run, outcome, code) in [
            ("test -f src/lib.rs", Outcome::Pass, Some(0)),
            ("echo no >&2; exit 3", Outcome::Fail, Some(3)),
            ("kill -9 $$", Outcome::Fail, None),
        ] {
            let check = ground.check(run, &ground.base, &[]).await;
            let went = ground.go(&check).await;
            let result = went.measured();
            let evidence = result.evidence.as_ref().unwrap();
            assert_eq!((result.outcome, evidence.exit_code), (outcome, code), "{run}");
            assert_eq!(evidence.pass, outcome == Outcome::Pass);
            assert_eq!(result.tree, ground.mirror.tree_of(&ground.base).await.unwrap());
        }
    });
}

/// P097: the author edits the gate's script; the check runs the one of the base.
#[cfg_attr(any(), test)]
pub fn an_edited_pinned_file_is_put_back_before_measuring() {
    block_on(async {
        let ground = Ground::new().await;
        let cheat = ground.command("echo 'exit 0' > verify.sh; echo x > verify.local", &["**"]);
        let commit = ground.take_in(ground.go(&cheat).await.delivery()).await;
        let free = ground.check("sh verify.sh", &commit, &[]).await;
        assert_eq!(ground.go(&free).await.measured().outcome, Outcome::Pass);
        let run = "test ! -e verify.local && sh verify.sh";
        let pinned = ground.check(run, &commit, &["verify.*"]).await;
        let went = ground.go(&pinned).await;
        let result = went.measured();
        assert_eq!((result.outcome, result.not_measured), (Outcome::Fail, None));

        let honest = ground.command("echo x > src/wanted.rs", &["src/**"]);
        let commit = ground.take_in(ground.go(&honest).await.delivery()).await;
        let pinned = ground.check("sh verify.sh", &commit, &["verify.*"]).await;
        assert_eq!(ground.go(&pinned).await.measured().outcome, Outcome::Pass);
    });
}

/// A check that changes what it measures has measured nothing; build output is no change of it.
#[cfg_attr(any(), test)]
pub fn a_check_that_changes_its_subject_has_not_measured_it() {
    block_on(async {
        let ground = Ground::new().await;
        let drift = ground.check("echo more >> README.md", &ground.base, &[]).await;
        let went = ground.go(&drift).await;
        let result = went.measured();
        assert_eq!(result.outcome, Outcome::NotMeasured);
        assert_eq!(result.not_measured, Some(NotMeasured::HarnessDefect));
        let message = result.message.clone().unwrap();
        assert!(message.contains("README.md"), "{message}");
        let pinned = ground.check("echo 'true' > verify.sh", &ground.base, &["verify.sh"]).await;
        assert_eq!(ground.go(&pinned).await.measured().outcome, Outcome::NotMeasured);
        let run = "mkdir -p cache target && echo x > cache/a && echo x > target/b";
        let output = ground.check(run, &ground.base, &[]).await;
        assert_eq!(ground.go(&output).await.measured().outcome, Outcome::Pass);
    });
}

#[cfg_attr(any(), test)]
pub fn a_commit_of_another_tree_is_refused_before_measuring() {
    block_on(async {
        let ground = Ground::new().await;
        let tree = ganger_shared::ids::TreeId::parse(&"e".repeat(40)).unwrap();
        let check = ground.check_of("true", &ground.base, &tree, &[]);
        let failure = workspace::prepare(&ground.site, &check).await.unwrap_err();
        assert_eq!(failure.class, FailureClass::TreeDrift);
        assert!(!ground.site.attempts().read_dir().unwrap().any(|_| true), "the room stayed");
    });
}
