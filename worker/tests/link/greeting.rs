//! How a worker greets, and what ends it before it begins.

use ganger_proto::status::plain;
use ganger_shared::link::{CoordinatorSays, PROTOCOL, PROTOCOL_MIN, Welcome};
use ganger_worker::RunError;
use ganger_worker::config::OnRefused;
use ganger_worker::identity::IdentityError;
use ganger_worker::link::LinkError;
use tonic::Code;

use crate::coordinator::{TOKEN, anchor, welcome, within};
use crate::ground::{Ground, Worker, block_on};

/// R063: who it is, what it offers, what it holds, how far it has seen; and beats only after that.
#[cfg_attr(any(), test)]
pub fn hello_comes_first_and_says_who_what_and_how_far() {
    block_on(async {
        let mut ground = Ground::new().await;
        let mut worker = ground.worker();
        let (mut connection, first) = ground.coordinator.attached().await;
        assert_eq!((first.protocol_min, first.protocol_max), (PROTOCOL_MIN, PROTOCOL));
        assert_eq!((first.live.len(), first.finished.len(), &first.seen), (0, 0, &None));
        let facts = &first.facts;
        assert_eq!(
            (facts.labels["team"].as_str(), facts.labels["os"].as_str()),
            ("tools", "linux")
        );
        assert!(facts.labels.contains_key("isolated"));
        assert!(facts.agents.iter().any(|agent| agent.name == "scripted"));
        assert_eq!(connection.beat().await.busy, 0);
        worker.leave();
        drop(connection);
        worker.ended().await.unwrap();
        let _second = ground.worker();
        let (_connection, again) = ground.coordinator.attached().await;
        assert_eq!(again.facts.worker, first.facts.worker);
        assert_ne!(again.facts.instance, first.facts.instance);
        assert_eq!(again.seen, Some(anchor(1)));
    });
}

#[cfg_attr(any(), test)]
pub fn a_refused_token_ends_the_worker_with_its_file_and_the_fix() {
    block_on(async {
        let ground = Ground::new().await;
        let file = ground.config().token_file;
        std::fs::write(&file, "another").unwrap();
        let error = ground.worker().ended().await.unwrap_err();
        assert!(matches!(error, RunError::Link(LinkError::TokenRefused { .. })), "{error}");
        let text = error.to_string();
        assert!(text.contains(file.to_str().unwrap()) && text.contains("role worker"), "{text}");
        std::fs::remove_file(&file).unwrap();
        let error = ground.worker().ended().await.unwrap_err();
        assert!(matches!(error, RunError::Link(LinkError::Token(_))), "{error}");
    });
}

/// A token that is renewed in its file is used without a restart.
#[cfg_attr(any(), test)]
pub fn a_worker_told_to_retry_uses_a_token_that_is_put_right() {
    block_on(async {
        let mut ground = Ground::new().await;
        let mut config = ground.config();
        config.on_refused = OnRefused::Retry;
        std::fs::write(&config.token_file, "another").unwrap();
        let file = config.token_file.clone();
        let _worker = Worker::start(config);
        within(ground.coordinator.refused()).await;
        std::fs::write(&file, TOKEN).unwrap();
        ground.coordinator.attached().await;
    });
}

#[cfg_attr(any(), test)]
pub fn another_protocol_ends_the_worker() {
    block_on(async {
        let mut ground = Ground::new().await;
        let worker = ground.worker();
        let mut connection = ground.coordinator.connection().await;
        connection.hello().await;
        let future = Welcome { protocol: PROTOCOL + 1, ..welcome() };
        connection.say(CoordinatorSays::Welcome(future)).await;
        let error = worker.ended().await.unwrap_err();
        assert!(matches!(error, RunError::Link(LinkError::Protocol { .. })), "{error}");
        let worker = ground.worker();
        let connection = ground.coordinator.connection().await;
        let status =
            plain(Code::FailedPrecondition, "protocol_mismatch", "this coordinator speaks 7 to 8");
        connection.refuse(status).await;
        let error = worker.ended().await.unwrap_err();
        assert!(error.to_string().contains("speaks 7 to 8"), "{error}");
    });
}

/// P116: a worker that is started before its coordinator, or refused for a while, finds it.
#[cfg_attr(any(), test)]
pub fn a_coordinator_that_comes_late_is_found() {
    block_on(async {
        let mut ground = Ground::new().await;
        let address = ground.coordinator.address.clone();
        ground.coordinator.vanish().await;
        let worker = Worker::start(crate::ground::config(&address, ground.dir.path()));
        let dir = ground.dir.path().join("artifacts");
        ground.coordinator = crate::coordinator::Coordinator::listen(&dir, Some(&address)).await;
        let busy = ground.coordinator.connection().await;
        busy.refuse(plain(Code::FailedPrecondition, "worker_refused", "not yet")).await;
        let (mut connection, _) = ground.coordinator.attached().await;
        within(connection.beat()).await;
        drop(worker);
    });
}

#[cfg_attr(any(), test)]
pub fn a_second_process_on_one_directory_is_refused() {
    block_on(async {
        let mut ground = Ground::new().await;
        let _first = ground.worker();
        let (_connection, _) = ground.coordinator.attached().await;
        match ground.worker().ended().await {
            Err(RunError::Identity(IdentityError::InUse { pid, .. })) => {
                assert_eq!(pid, std::process::id());
            }
            other => panic!("expected a refusal, got {other:?}"),
        }
    });
}
