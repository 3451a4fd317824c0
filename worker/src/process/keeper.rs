//! The owner of one tree while it lives: passes rungs down to the shim, its reports up, and sees
//! to the end of the tree itself if the shim is killed. One task per tree, no shared state.

use std::path::PathBuf;

use tokio::io::{AsyncWriteExt, BufReader, Lines};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::process::Child;
use tokio::sync::{mpsc, watch};

use super::record::ProcessRecord;
use super::sweep::{SweptOutcome, end_recorded};
use super::wire::{Report, Rung, line};
use super::{Exit, Phase, Stopped};

pub(super) struct Keeper {
    pub(super) shim: Child,
    pub(super) reports: Lines<BufReader<OwnedReadHalf>>,
    pub(super) orders: OwnedWriteHalf,
    pub(super) rungs: mpsc::Receiver<Rung>,
    pub(super) phase: watch::Sender<Phase>,
    pub(super) record: ProcessRecord,
    pub(super) records: PathBuf,
}

impl Keeper {
    /// Keeps the tree until its end.
    pub(super) async fn keep(mut self) {
        let (exit, said) = self.listen().await;
        let stopped = match said {
            Some(survivors) => Stopped { confirmed: survivors.is_empty(), survivors },
            None => self.take_over().await,
        };
        // The shim exits right after its last report; how it does is of no interest.
        let _ = self.shim.wait().await;
        if stopped.confirmed
            && let Err(error) = self.record.remove(&self.records)
        {
            tracing::warn!(%error, attempt = self.record.attempt, "process record stays behind");
        }
        // Closed first: whoever sees the end can no longer climb a rung.
        self.rungs.close();
        self.phase.send_replace(Phase::Ended { exit, stopped });
    }

    /// Until the shim reports the tree empty, or is silent for good (`None`).
    async fn listen(&mut self) -> (Option<Exit>, Option<Vec<i32>>) {
        let mut exit = None;
        loop {
            tokio::select! {
                report = next(&mut self.reports) => match report {
                    Some(Report::Exited(how)) => {
                        exit = Some(how);
                        self.phase.send_replace(Phase::Exited(how));
                    }
                    Some(Report::Empty { survivors }) => return (exit, Some(survivors)),
                    Some(Report::Started(_) | Report::Failed(_)) | None => return (exit, None),
                },
                Some(rung) = self.rungs.recv() => self.pass_down(rung).await,
            }
        }
    }

    async fn pass_down(&mut self, rung: Rung) {
        // If the shim is gone, the next report is its end, and the tree is ended from here.
        if let Ok(bytes) = line(&rung) {
            let _ = self.orders.write_all(&bytes).await;
        }
    }

    /// The shim was killed: end its tree by the record.
    async fn take_over(&mut self) -> Stopped {
        tracing::warn!(attempt = self.record.attempt, "shim is gone, ending its tree by record");
        let record = self.record.clone();
        let ended = tokio::task::spawn_blocking(move || end_recorded(&record)).await;
        match ended {
            Ok(SweptOutcome::Survivors(left)) => Stopped {
                confirmed: false,
                survivors: left.iter().map(|process| process.pid).collect(),
            },
            Ok(_) => Stopped { confirmed: true, survivors: vec![] },
            Err(_) => Stopped { confirmed: false, survivors: vec![] },
        }
    }
}

/// The next report; `None` once nothing sensible will come any more.
pub(super) async fn next(reports: &mut Lines<BufReader<OwnedReadHalf>>) -> Option<Report> {
    let line = reports.next_line().await.ok()??;
    serde_json::from_str(&line).ok()
}
