//! Runs, a page at a time: filtered, in order, and as they stood when the list was begun.

use ganger_proto::{Malformed, Reason, v1};
use ganger_shared::view::RunRow;
use tonic::Status;

use super::Runs;
use crate::run::RunMessage;
use crate::runs::{Listed, RunsMessage};
use crate::services::ask::gone;
use crate::services::page::{Page, known_words, order, size};

const STATES: &[&str] = &[
    "submitting",
    "active",
    "paused",
    "waiting",
    "held",
    "budget_limited",
    "stopping",
    "completed",
    "failed",
    "aborted",
];

impl Runs {
    pub(super) async fn page(
        &self,
        request: v1::RunServiceListRequest,
    ) -> Result<v1::RunServiceListResponse, Status> {
        let size = size(request.page_size)?;
        let filter = request.filter.unwrap_or_default();
        known_words("filter.states", &filter.states, STATES)?;
        let by = Order::read(&request.order_by)?;
        let page = if request.page_token.is_empty() {
            let mut rows = self.rows().await?;
            let sequence = self.api.house.store.tip().log_seq;
            rows.retain(|row| passes(&filter, row));
            by.sort(&mut rows);
            self.lists.first(size, rows, sequence)
        } else {
            self.lists.next(size, &request.page_token)?
        };
        let Page { rows, next, sequence } = page;
        let runs = rows.into_iter().map(Into::into).collect();
        Ok(v1::RunServiceListResponse { runs, next_page_token: next, sequence })
    }

    /// Every run, newest first, those that are not over as they stand now.
    async fn rows(&self) -> Result<Vec<RunRow>, Status> {
        let listed = self.api.ask_runs(|port| RunsMessage::List { port }).await?;
        let mut asked = Vec::with_capacity(listed.len());
        for Listed { row, live } in listed {
            let answer = live.and_then(|actor| {
                let (port, answer) = tokio::sync::oneshot::channel();
                actor.cast(RunMessage::Row(port)).ok().map(|()| answer)
            });
            asked.push((row, answer));
        }
        let mut rows = Vec::with_capacity(asked.len());
        for (row, answer) in asked {
            // A run whose actor just ended is shown as it was last heard of.
            let now = match answer {
                Some(answer) => answer.await.ok().flatten(),
                None => None,
            };
            rows.push(now.unwrap_or(row));
        }
        if self.api.ending.is_cancelled() { Err(gone()) } else { Ok(rows) }
    }
}

fn passes(filter: &v1::RunFilter, row: &RunRow) -> bool {
    let state = filter.states.is_empty() || filter.states.contains(&row.state);
    let project = filter.project.is_empty() || filter.project == row.project.as_str();
    state && project && filter.labels.iter().all(|(key, value)| row.labels.get(key) == Some(value))
}

/// In which order rows are listed.
#[derive(Clone, Copy)]
enum Order {
    Submitted { down: bool },
    Name { down: bool },
}

impl Order {
    fn read(asked: &str) -> Result<Self, Malformed> {
        match order(asked, &["submitted_at", "name"])? {
            None => Ok(Self::Submitted { down: true }),
            Some(("submitted_at", down)) => Ok(Self::Submitted { down }),
            Some(("name", down)) => Ok(Self::Name { down }),
            Some((other, _)) => Err(Malformed::new("order_by", Reason::Form(other.to_owned()))),
        }
    }

    fn sort(self, rows: &mut [RunRow]) {
        let down = match self {
            Self::Submitted { down } => {
                rows.sort_by(|a, b| (a.submitted_at, &a.id).cmp(&(b.submitted_at, &b.id)));
                down
            }
            Self::Name { down } => {
                rows.sort_by(|a, b| (&a.name, &a.id).cmp(&(&b.name, &b.id)));
                down
            }
        };
        if down {
            rows.reverse();
        }
    }
}
