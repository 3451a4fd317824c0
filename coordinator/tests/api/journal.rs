//! The journal through the API: every line as it was written, and proved.

use ganger_proto::v1;
use ganger_shared::digest::Digest;

use crate::ground::{Ground, get, plan, refused, submitted, word};

#[tokio::test(flavor = "multi_thread")]
async fn a_runs_lines_come_whole_and_prove_themselves() {
    let ground = Ground::start().await;
    let clients = ground.operator().await;
    let run = submitted(&clients, &plan("p", &["a"])).await;
    submitted(&clients, &plan("q", &["a"])).await;
    let export =
        |stream: String, after_sequence| v1::JournalServiceExportRequest { stream, after_sequence };
    let stream = format!("run/{run}");
    let mut lines = clients.journal().export(export(stream.clone(), 1)).await.unwrap().into_inner();
    let mut next = 2;
    while let Some(line) = lines.message().await.unwrap() {
        assert_eq!((line.stream.as_str(), line.sequence), (stream.as_str(), next));
        assert_eq!(Digest::of(&line.event[75..]).to_string(), line.hash);
        next += 1;
    }
    let last = get(&clients, &run).await.row.unwrap().sequence;
    assert_eq!(next, last + 1);

    let mut all = clients.journal().export(export(String::new(), 0)).await.unwrap().into_inner();
    let mut count = 0;
    while all.message().await.unwrap().is_some() {
        count += 1;
    }
    let verify = |stream: String| v1::JournalServiceVerifyRequest { stream };
    let proved = clients.journal().verify(verify(String::new())).await.unwrap().into_inner();
    assert_eq!((proved.events, proved.damage), (count, None));
    let one = clients.journal().verify(verify(stream)).await.unwrap().into_inner();
    assert_eq!((one.events, one.damage), (last, None));
    assert_eq!(one.anchor, proved.anchor);
    let unknown = clients.journal().export(export("run/r-none".into(), 0)).await;
    assert_eq!(word(unknown), "unknown_stream");
    let strange = refused(clients.journal().verify(verify("x y".into())).await);
    assert_eq!(strange.metadata["field"], "stream");
    let reader = ground.of_role(v1::Role::Read).await;
    let forbidden = reader.journal().export(export(String::new(), 0)).await;
    assert_eq!(word(forbidden), "forbidden");
}
