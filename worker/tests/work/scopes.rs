//! What an attempt may write.

use ganger_shared::failure::FailureClass;
use ganger_worker::isolation::Host;

use crate::ground::{Ground, block_on, git};

/// R040: a change outside the unit's files fails the attempt by name, and what it left is kept.
#[cfg_attr(any(), test)]
pub fn a_change_outside_the_files_is_a_scope_violation() {
    block_on(async {
        let ground = Ground::new().await;
        let run = "echo x > src/ok.rs; echo x > docs.md; rm README.md";
        let went = ground.go(&ground.command(run, &["src/**"])).await;
        let (failure, left) = went.failed();
        assert_eq!(failure.class, FailureClass::ScopeViolation);
        assert!(failure.message.contains("README.md, docs.md"), "{}", failure.message);
        assert!(!failure.message.contains("src/ok.rs"), "{}", failure.message);
        assert_eq!(left.unwrap().tree.as_ref().unwrap().changes.total, 3);
        let nothing = ground.go(&ground.command("echo x > src/ok.rs", &[])).await;
        assert_eq!(nothing.failed().0.class, FailureClass::ScopeViolation);
    });
}

#[cfg_attr(any(), test)]
pub fn a_link_that_leads_out_is_a_scope_violation() {
    block_on(async {
        let ground = Ground::new().await;
        let went = ground.go(&ground.command("ln -s /etc/passwd src/x", &["**"])).await;
        let (failure, _) = went.failed();
        assert_eq!(failure.class, FailureClass::ScopeViolation);
        assert!(failure.message.contains("src/x -> /etc/passwd"), "{}", failure.message);
        let inside = ground.go(&ground.command("ln -s lib.rs src/x", &["**"])).await;
        assert!(inside.delivery().tree.is_some());
    });
}

#[cfg_attr(any(), test)]
pub fn a_repository_inside_the_tree_is_named() {
    block_on(async {
        let ground = Ground::new().await;
        let run = "git init -q sub && echo x > sub/a";
        let went = ground.go(&ground.command(run, &["**"])).await;
        let (failure, _) = went.failed();
        assert_eq!(failure.class, FailureClass::ScopeViolation);
        assert!(failure.message.contains("sub"), "{}", failure.message);
    });
}

/// R039: where the host hides nothing, an attempt that changes the worker's mirror is found out.
#[cfg_attr(any(), test)]
pub fn a_leak_into_the_mirror_is_found() {
    block_on(async {
        let ground = Ground::on(Some(open_host())).await;
        let mirror = ground.site.mirrors().join("repo-1.git");
        let assignment = ground.command("true", &["**"]);
        let room = ganger_worker::workspace::prepare(&ground.site, &assignment).await.unwrap();
        let name = format!("refs/ganger/base/{}", ground.base);
        git(&mirror, &["update-ref", "-d", &name]);
        let went = ground.work(&assignment, room).await;
        let (failure, _) = went.failed();
        assert_eq!(failure.class, FailureClass::ScopeViolation);
        assert!(failure.message.contains(&name), "{}", failure.message);
    });
}

/// Where the host allows it, neither the worker's directory nor its token is in sight.
#[cfg_attr(any(), test)]
pub fn an_isolated_attempt_sees_no_token_and_no_mirror() {
    block_on(async {
        let ground = Ground::new().await;
        if !ground.site.host.isolated {
            eprintln!("this host isolates nothing: {:?}", ground.site.host.refused);
            return;
        }
        let token = ground.site.config.token_file.display().to_string();
        let data = ground.site.config.data_dir.display().to_string();
        let run = format!("cat {token} 2>&1; ls {data} {data}/attempts; ls .. | sort");
        let went = ground.go(&ground.command(&run, &[])).await;
        let out = std::fs::read_to_string(went.room.evidence.join("stdout.txt")).unwrap();
        assert!(!out.contains("worker-token"), "{out}");
        assert!(!out.contains("mirrors") && !out.contains("host.git"), "{out}");
        assert!(went.delivery().isolated);
    });
}

/// The variable `main` sets for this process: a directory on the host.
pub const CACHE: &str = "WORK_TEST_CACHE";

/// A directory that a variable points to is seen, and what an attempt changes there is its own.
#[cfg_attr(any(), test)]
pub fn a_cache_that_is_let_through_is_changed_in_a_copy_only() {
    block_on(async {
        let ground = Ground::new().await;
        let cache = std::path::PathBuf::from(std::env::var_os(CACHE).unwrap());
        if !ground.site.host.overlay {
            eprintln!("this host has no overlay: {:?}", ground.site.host.refused);
            return;
        }
        std::fs::write(cache.join("kept"), "warm").unwrap();
        let run = format!("cat ${CACHE}/kept && echo cold > ${CACHE}/kept && cat ${CACHE}/kept");
        let mut assignment = ground.command(&run, &[]);
        assignment.env = vec![CACHE.to_owned()];
        let went = ground.go(&assignment).await;
        assert_eq!(went.delivery().excerpt, "warmcold");
        assert_eq!(std::fs::read_to_string(cache.join("kept")).unwrap(), "warm");
    });
}

/// A host that allows nothing but to hold on to descendants.
pub fn open_host() -> Host {
    Host {
        hold: ganger_worker::isolation::Hold::Descendants,
        isolated: false,
        overlay: false,
        refused: std::collections::BTreeMap::new(),
    }
}
