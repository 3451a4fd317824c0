//! What was before a restart is after it.

use ganger_coordinator::journal::{Journal, Options, StreamName};
use ganger_proto::client::Clients;
use ganger_proto::v1;

use crate::ground::{Ground, get, key, plan, submitted, word};

async fn runs(clients: &Clients) -> Vec<v1::RunRow> {
    clients.runs().list(v1::RunServiceListRequest::default()).await.unwrap().into_inner().runs
}

/// P051: the list of runs is the same after a restart, finished runs included.
#[tokio::test]
async fn a_restart_changes_nothing_of_what_is_shown() {
    let mut ground = Ground::start().await;
    let clients = ground.operator().await;
    let (open, paused, stopped) = (
        submitted(&clients, &plan("open", &["a", "b"])).await,
        submitted(&clients, &plan("paused", &["a"])).await,
        submitted(&clients, &plan("stopped", &["a"])).await,
    );
    let pause = v1::RunServicePauseRequest {
        idempotency_key: key(),
        run: paused.clone(),
        reason: "lunch".into(),
        ..Default::default()
    };
    clients.runs().pause(pause.clone()).await.unwrap();
    let stop = v1::RunServiceStopRequest {
        idempotency_key: key(),
        run: stopped.clone(),
        reason: "enough".into(),
        ..Default::default()
    };
    clients.runs().stop(stop).await.unwrap();
    let cancel = v1::UnitServiceCancelRequest {
        idempotency_key: key(),
        run: open.clone(),
        unit: "b".into(),
        reason: "not wanted".into(),
        ..Default::default()
    };
    clients.units().cancel(cancel).await.unwrap();
    let before = runs(&clients).await;
    let mut views = Vec::new();
    for run in [&open, &paused, &stopped] {
        views.push(get(&clients, run).await);
    }

    ground.restart().await;
    let clients = ground.operator().await;
    assert_eq!(runs(&clients).await, before);
    for (run, view) in [&open, &paused, &stopped].into_iter().zip(views) {
        assert_eq!(get(&clients, run).await, view);
    }
    // A call of before the restart is still known.
    assert!(clients.runs().pause(pause).await.unwrap().into_inner().replayed);
}

/// P042: a caller that comes while runs are still folded waits for them, and is not told that its
/// run is unknown.
#[tokio::test(flavor = "multi_thread")]
async fn callers_that_come_while_runs_are_folded_find_their_runs() {
    let mut ground = Ground::start().await;
    let clients = ground.operator().await;
    let mut all = Vec::new();
    for _ in 0..40 {
        all.push(submitted(&clients, &plan("p", &["a", "b", "c"])).await);
    }
    ground.restart().await;
    let clients = ground.operator().await;
    for run in &all {
        assert_eq!(get(&clients, run).await.row.unwrap().state, "active");
    }
    assert_eq!(runs(&clients).await.len(), all.len());
}

/// A run that cannot be folded is set aside by name, and the others are not held up by it.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_cannot_be_folded_is_quarantined_and_the_others_go_on() {
    let mut ground = Ground::start().await;
    let clients = ground.operator().await;
    let (broken, whole) = (
        submitted(&clients, &plan("p", &["a"])).await,
        submitted(&clients, &plan("q", &["a"])).await,
    );
    let last = get(&clients, &broken).await.row.unwrap().sequence;
    ground.end().await;
    let (journal, _) = Journal::open(&ground.data().join("journal"), Options::default()).unwrap();
    let stream = StreamName::run(&broken).unwrap();
    journal.append(&stream, last, vec![r#"{"type":"OfALaterBuild"}"#.into()]).await.unwrap();
    journal.close().await.unwrap();

    ground.begin().await;
    let clients = ground.operator().await;
    let look = v1::RunServiceGetRequest { run: broken.clone() };
    assert_eq!(word(clients.runs().get(look.clone()).await), "quarantined");
    assert_eq!(get(&clients, &whole).await.row.unwrap().state, "active");
    // Nothing was repaired, so folding it again ends the same way.
    let resume = v1::RunServiceResumeRequest {
        idempotency_key: key(),
        run: broken.clone(),
        after_repair: true,
        ..Default::default()
    };
    assert_eq!(word(clients.runs().resume(resume).await), "quarantined");
    ground.restart().await;
    let clients = ground.operator().await;
    assert_eq!(word(clients.runs().get(look).await), "quarantined");
}

/// P048: a plan is written as one batch. A power cut inside it leaves nothing of the run; what was
/// there before stays as it was.
#[tokio::test]
async fn a_submit_cut_off_anywhere_is_there_whole_or_not_at_all() {
    let mut ground = Ground::start().await;
    let clients = ground.operator().await;
    let before = submitted(&clients, &plan("before", &["a"])).await;
    let log = ground.data().join("journal/log");
    ground.end().await;
    let whole_before = text_of(&log).lines().count();
    ground.begin().await;
    let clients = ground.operator().await;
    let cut_off = submitted(&clients, &plan("cut-off", &["a", "b", "c"])).await;
    ground.end().await;
    let whole = text_of(&log);
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();
    let (first, last) = batch_of(&lines, &cut_off);
    assert!(first > whole_before && last - first > 4, "the batch is where it should be");

    for cut in first..last {
        let kept: String = lines[..cut].concat();
        std::fs::write(segment_of(&log), kept).unwrap();
        // Neither the index nor the mark of what was acknowledged had heard of it at that moment.
        std::fs::remove_dir_all(ground.data().join("journal/sled")).unwrap();
        std::fs::remove_file(ground.data().join("journal/verified")).unwrap();
        ground.begin().await;
        let clients = ground.operator().await;
        let names: Vec<String> = runs(&clients).await.into_iter().map(|run| run.id).collect();
        assert_eq!(names, std::slice::from_ref(&before), "cut after line {cut}");
        ground.end().await;
    }
}

fn segment_of(log: &std::path::Path) -> std::path::PathBuf {
    let mut segments: Vec<_> = std::fs::read_dir(log)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "log"))
        .collect();
    segments.sort();
    assert_eq!(segments.len(), 1, "so little fits one segment");
    segments.remove(0)
}

fn text_of(log: &std::path::Path) -> String {
    std::fs::read_to_string(segment_of(log)).unwrap()
}

/// The lines of a run's first batch: from its first line to the one that records its key.
fn batch_of(lines: &[&str], run: &str) -> (usize, usize) {
    let of_run = |line: &&str| line.contains(&format!("\"run/{run}\""));
    let first = lines.iter().position(of_run).unwrap();
    let last = lines.iter().position(|line| of_run(line) && line.contains("CommandRecorded"));
    (first + 1, last.unwrap() + 1)
}
