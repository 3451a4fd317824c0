//! Rooms: prepared in parallel, from the pool, kept, reclaimed, dropped half way.

use std::fs;
use std::path::Path;
use std::time::Duration;

use ganger_shared::failure::FailureClass;
use ganger_shared::spec::Source;
use ganger_worker::attempts::port::{Keep, lease_of};
use ganger_worker::workspace::{self, Found, ReclaimError, Refusal, WARM_MAX};

use crate::ground::{Ground, block_on, files, git, write};

/// P052: twenty rooms of one repository at once, the mirror empty at the start.
#[cfg_attr(any(), test)]
pub fn twenty_rooms_are_prepared_at_once() {
    block_on(async {
        let ground = Ground::new().await;
        let assignments: Vec<_> = (0..20).map(|_| ground.command("true", &[])).collect();
        let prepared = assignments.iter().map(|assignment| {
            let (site, assignment) = (ground.site.clone(), assignment.clone());
            tokio::spawn(async move { workspace::prepare(&site, &assignment).await })
        });
        let tasks: Vec<_> = prepared.collect();
        for task in tasks {
            let room = task.await.unwrap().unwrap();
            assert!(room.tree.join("src/lib.rs").is_file());
            assert!(room.git.unwrap().is_dir());
        }
        assert_eq!(files(&ground.site.transfers()), Vec::<std::path::PathBuf>::new());
    });
}

/// A tree prepared ahead is given to one attempt only, moved to that attempt's base.
#[cfg_attr(any(), test)]
pub fn a_warm_tree_is_used_once() {
    block_on(async {
        let ground = Ground::new().await;
        ground.go(&ground.command("true", &[])).await;
        assert_eq!(workspace::refill(&ground.site, &ground.source()).await.unwrap(), WARM_MAX);
        assert_eq!(workspace::refill(&ground.site, &ground.source()).await.unwrap(), 0);
        let pool = ground.site.config.data_dir.join("warm/repo-1");
        let ready = || ready_in(&pool);
        let made = ground.command("echo x > src/new.rs", &["**"]);
        let went = ground.go(&made).await;
        let next = ground.take_in(went.delivery()).await;
        assert_eq!(ready(), WARM_MAX - 1);
        let mut later = ground.command("ls src", &[]);
        later.source = Some(Source { commit: next.clone(), ..ground.source() });
        let went = ground.go(&later).await;
        assert_eq!(ready(), WARM_MAX - 2);
        assert_eq!(went.delivery().tree.clone().unwrap().base, next);
        assert_eq!(went.delivery().excerpt, "lib.rs\nnew.rs");
        let went = ground.go(&later_try(&later)).await;
        assert_eq!(went.delivery().excerpt, "lib.rs\nnew.rs");
    });
}

fn ready_in(pool: &Path) -> usize {
    fs::read_dir(pool).unwrap().flatten().filter(|entry| entry.path().is_dir()).count()
}

fn later_try(assignment: &ganger_shared::spec::Assignment) -> ganger_shared::spec::Assignment {
    let mut again = assignment.clone();
    again.work = "build/main/2".parse().unwrap();
    again
}

/// P055, P062: an unknown commit is a failure of the workspace, and nothing stays of the room.
#[cfg_attr(any(), test)]
pub fn a_room_that_cannot_be_made_leaves_nothing() {
    block_on(async {
        let ground = Ground::new().await;
        let mut assignment = ground.command("true", &[]);
        let commit = ganger_shared::ids::CommitId::parse(&"b".repeat(40)).unwrap();
        assignment.source = Some(Source { commit, ..ground.source() });
        let failure = workspace::prepare(&ground.site, &assignment).await.unwrap_err();
        assert_eq!(failure.class, FailureClass::WorkspaceFailed);
        assert!(!ground.site.attempt(&lease_of(&assignment)).exists());
    });
}

/// A preparation given up half way leaves nothing.
#[cfg_attr(any(), test)]
pub fn a_dropped_preparation_leaves_nothing() {
    block_on(async {
        let ground = Ground::new().await;
        let assignment = ground.command("true", &[]);
        let dir = ground.site.attempt(&lease_of(&assignment));
        for polls in 1..40 {
            let mut preparing = Box::pin(workspace::prepare(&ground.site, &assignment));
            let mut done = false;
            for _ in 0..polls {
                if let Some(prepared) = a_moment(&mut preparing).await {
                    prepared.unwrap();
                    done = true;
                    break;
                }
            }
            drop(preparing);
            if done {
                assert!(dir.exists());
                workspace::discard(&ground.site, &assignment, Keep::Nothing).await.unwrap();
            }
            assert!(!dir.exists(), "after {polls} polls");
        }
    });
}

/// Lets a future go on for a moment.
async fn a_moment<T>(future: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(Duration::from_millis(3), future).await.ok()
}

/// Success removes the room; R041: what the agent committed by itself is pinned first.
#[cfg_attr(any(), test)]
pub fn a_discarded_room_keeps_the_agents_commits() {
    block_on(async {
        let ground = Ground::new().await;
        let run =
            "git checkout -q --detach && echo x > src/y && git add . && git commit -q -m mine";
        let assignment = ground.command(run, &["src/**"]);
        let went = ground.go(&assignment).await;
        assert!(went.delivery().tree.is_some());
        workspace::discard(&ground.site, &assignment, Keep::Nothing).await.unwrap();
        assert!(!went.room.dir.exists());
        let warm = ground.site.config.data_dir.join("warm/repo-1");
        assert_eq!(ready_in(&warm), WARM_MAX);
        let mirror = ground.site.mirrors().join("repo-1.git");
        let mirror = ganger_git::Mirror::open_or_create(&ground.git, &mirror).await.unwrap();
        let under = ganger_git::RefName::parse("refs/ganger/rescue").unwrap();
        let kept = mirror.refs_under(&under).await.unwrap();
        assert_eq!(kept.len(), 1);
        assert!(kept[0].0.as_str().contains("-orphan-1"), "{}", kept[0].0);
        assert!(mirror.read_file(&kept[0].1, "src/y").await.unwrap().is_some());
        workspace::discard(&ground.site, &assignment, Keep::Nothing).await.unwrap();
    });
}

/// A repository of the agent that cannot be looked through is left for people, even on success.
#[cfg_attr(any(), test)]
pub fn a_room_whose_repository_was_replaced_is_kept() {
    block_on(async {
        let ground = Ground::new().await;
        let run = "echo /nowhere > .git/objects/info/alternates; echo x > src/y";
        let assignment = ground.command(run, &["src/**"]);
        let went = ground.go(&assignment).await;
        assert!(went.delivery().tree.is_some());
        let left = workspace::discard(&ground.site, &assignment, Keep::Nothing).await;
        assert!(left.unwrap_err().message.contains("borrows objects"));
        let found = workspace::survey(&ground.site);
        let [Found::Room { dir, about }] = found.as_slice() else { panic!("{found:?}") };
        assert!(*dir == went.room.dir && about.kept_since.is_some());
    });
}

/// P058: whatever would be lost is refused by name; only what is handed in and clean goes.
#[cfg_attr(any(), test)]
pub fn reclaim_refuses_whatever_would_be_lost() {
    block_on(async {
        let ground = Ground::new().await;
        let paths = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect();
        let unreachable = "git checkout -q --detach; git -c maintenance.auto=false \
                           commit -q --allow-empty -m mine";
        for (run, wanted) in [
            ("echo x >> README.md", Refusal::Dirty { changed: paths(&["README.md"]) }),
            ("echo x > untracked", Refusal::Dirty { changed: paths(&["untracked"]) }),
            ("mkdir target; echo x > target/new", Refusal::Ignored { paths: paths(&["target/"]) }),
            ("echo x >> README.md; git stash -q", Refusal::Stashed),
            (unreachable, Refusal::Unreachable { commits: vec![] }),
        ] {
            let assignment = ground.command("true", &["**"]);
            let went = ground.go(&assignment).await;
            workspace::discard(&ground.site, &assignment, Keep::Tree).await.unwrap();
            let ran = std::process::Command::new("sh")
                .args(["-c", run])
                .current_dir(&went.room.tree)
                .status();
            assert!(ran.unwrap().success());
            let mut refused = refusal(workspace::reclaim(&ground.site, &went.room.dir).await);
            if let Refusal::Unreachable { commits } = &mut refused {
                assert_eq!(commits.drain(..).count(), 1);
            }
            assert_eq!(refused, wanted, "{run}");
            assert!(went.room.tree.exists());
        }
    });
}

fn refusal(result: Result<(), ReclaimError>) -> Refusal {
    match result {
        Err(ReclaimError::Refused { refusal, .. }) => refusal,
        other @ (Ok(()) | Err(ReclaimError::Unknown { .. } | ReclaimError::Failed { .. })) => {
            panic!("{other:?}")
        }
    }
}

/// A room that a dead worker left is kept for people, and reclaimed once it was kept long enough.
#[cfg_attr(any(), test)]
pub fn an_orphaned_room_is_kept_and_reclaimed_later() {
    block_on(async {
        let ground = Ground::new().await;
        let (dead, live) = (ground.command("true", &[]), ground.command("true", &[]));
        let room = workspace::prepare(&ground.site, &dead).await.unwrap();
        let used = workspace::prepare(&ground.site, &live).await.unwrap();
        write(&ground.site.transfers().join("torn.bundle"), "x");
        fs::create_dir(ground.site.attempts().join("stranger")).unwrap();
        let unknown = workspace::keep_orphans(&ground.site, &[lease_of(&live)]);
        assert_eq!(unknown, [ground.site.attempts().join("stranger")]);
        assert_eq!(files(&ground.site.transfers()).len(), 0);
        let week = Duration::from_hours(24 * 7);
        assert!(workspace::reclaim_kept(&ground.site, week).await.is_empty());
        let reclaimed = workspace::reclaim_kept(&ground.site, Duration::ZERO).await;
        assert_eq!(reclaimed.len(), 1);
        assert!(reclaimed[0].1.is_ok(), "{reclaimed:?}");
        assert!(!room.dir.exists() && used.dir.exists());
    });
}

/// P058: a room in which somebody lives, or whose attempt is not over, is never removed.
#[cfg_attr(any(), test)]
pub fn reclaim_refuses_the_living() {
    block_on(async {
        let ground = Ground::new().await;
        let assignment = ground.command("sleep 1000", &["**"]);
        let room = workspace::prepare(&ground.site, &assignment).await.unwrap();
        let unused = workspace::reclaim(&ground.site, &room.dir).await;
        assert_eq!(refusal(unused), Refusal::InUse);
        let (running, _events) = ground.start(&assignment, &room).await;
        let alive = refusal(workspace::reclaim(&ground.site, &room.dir).await);
        assert!(matches!(alive, Refusal::Alive(_)), "{alive:?}");
        drop(running);
    });
}

/// What was handed in and holds nothing else is removed; what nobody knows is only reported.
#[cfg_attr(any(), test)]
pub fn reclaim_removes_what_was_handed_in_and_no_strangers() {
    block_on(async {
        let ground = Ground::new().await;
        let assignment = ground.command("echo x > README.md; exit 1", &["**"]);
        let went = ground.go(&assignment).await;
        assert!(went.failed().1.unwrap().tree.is_some());
        workspace::discard(&ground.site, &assignment, Keep::Tree).await.unwrap();
        let stranger = ground.site.attempts().join("stranger");
        write(&stranger.join("precious"), "x");
        let found = workspace::survey(&ground.site);
        assert_eq!(found.len(), 2);
        assert!(found.contains(&Found::Unknown { dir: stranger.clone() }), "{found:?}");
        let refused = workspace::reclaim(&ground.site, &stranger).await;
        assert!(matches!(refused, Err(ReclaimError::Unknown { .. })), "{refused:?}");
        let outside = ground.dir.path().join("user");
        let refused = workspace::reclaim(&ground.site, &outside).await;
        assert!(matches!(refused, Err(ReclaimError::Unknown { .. })), "{refused:?}");
        workspace::reclaim(&ground.site, &went.room.dir).await.unwrap();
        assert!(!went.room.dir.exists() && stranger.exists());
    });
}

/// P060: what one attempt sets in its git configuration is not seen by another.
#[cfg_attr(any(), test)]
pub fn git_configuration_stays_with_its_attempt() {
    block_on(async {
        let ground = Ground::new().await;
        let first = ground.command("git config user.name lane-a", &[]);
        ground.go(&first).await;
        let second = ground.command("git config user.name", &[]);
        let went = ground.go(&second).await;
        assert_eq!(went.delivery().excerpt, "attempt");
        git(&ground.dir.path().join("user"), &["status"]);
    });
}
