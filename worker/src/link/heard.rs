//! What the coordinator says on an attached connection, and what each of it leads to.
//!
//! An assignment is on the disk before anybody works on it. Not here: the connection.

use ganger_shared::failure::{Failure, FailureClass};
use ganger_shared::link::{Anchor, Answer, CoordinatorSays, Lease, StopReason};
use ganger_shared::spec::Assignment;
use ganger_worker_core::outbox::{NotAccepted, lease_of};

use super::session::{Live, SessionEnd};
use crate::attempts::{AttemptsMessage, failed, stopped};
use crate::outbox::{AcceptError, Gone};

impl Live<'_> {
    /// Takes one message; `Some` where it ends the connection.
    pub(super) async fn hear(&mut self, says: CoordinatorSays) -> Option<SessionEnd> {
        let taken = match says {
            CoordinatorSays::Welcome(_) => {
                return Some(lost("it said welcome twice"));
            }
            CoordinatorSays::Goodbye { reason } => {
                return Some(SessionEnd::CoordinatorLeft { reason });
            }
            CoordinatorSays::Keep(lease) => {
                tracing::debug!(run = %lease.run, work = %lease.work, "kept");
                Ok(())
            }
            CoordinatorSays::Assign(assignment) => self.assigned(assignment).await,
            CoordinatorSays::Stop { lease, reason, now } => self.stop(lease, reason, now).await,
            CoordinatorSays::Answered { lease, number, answer, anchor } => {
                self.answered(lease, number, answer, anchor).await
            }
        };
        if self.owed().overfull {
            return Some(lost("more reports wait than a coordinator that answers would leave"));
        }
        taken.err().map(|gone| lost(&gone.to_string()))
    }

    /// On its way to the disk; `accepted` goes on when it is there. So a burst of assignments is a
    /// few writes, and the coordinator's queue is read meanwhile.
    async fn assigned(&mut self, assignment: Box<Assignment>) -> Result<(), Gone> {
        let held = self.session.outbox.begin_accept((*assignment).clone()).await?;
        self.accepting.push_back((assignment, held));
        Ok(())
    }

    /// The oldest assignment on its way has its answer.
    pub(super) async fn accepted(&mut self, held: Result<(), AcceptError>) -> Result<(), Gone> {
        let Some((assignment, _)) = self.accepting.pop_front() else { return Ok(()) };
        let outbox = &self.session.outbox;
        let lease = lease_of(&assignment);
        match held {
            Ok(()) => {
                self.tell(AttemptsMessage::Begin(assignment));
                Ok(())
            }
            Err(AcceptError::Gone(gone)) => Err(gone),
            Err(AcceptError::Not(
                repeated @ (NotAccepted::Repeated { .. } | NotAccepted::Stale { .. }),
            )) => {
                tracing::info!(why = %repeated, "an assignment changes nothing");
                Ok(())
            }
            Err(full @ (AcceptError::Not(NotAccepted::Full { .. }) | AcceptError::DiskFull)) => {
                tracing::error!(why = %full, "an assignment is handed back");
                let failure = Failure::new(FailureClass::PreflightFailed, full.to_string());
                outbox.decline(&lease, failed(failure)).await.map(drop)
            }
        }
    }

    /// What is on its way to the disk is neither here nor not here: whatever ends a lease waits for
    /// that, or it could overtake the beginning.
    pub(super) async fn all_accepted(&mut self) -> Result<(), Gone> {
        while let Some((_, held)) = self.accepting.front_mut() {
            let held = held.accepted().await;
            self.accepted(held).await?;
        }
        Ok(())
    }

    /// A lease that never got here is reported as ended: its coordinator waits for that.
    async fn stop(&mut self, lease: Lease, reason: StopReason, now: bool) -> Result<(), Gone> {
        self.all_accepted().await?;
        if self.owed().live.contains(&lease) {
            self.tell(AttemptsMessage::Stop { lease, reason, now });
            return Ok(());
        }
        let declined = self.session.outbox.decline(&lease, stopped()).await?;
        tracing::info!(run = %lease.run, work = %lease.work, declined, "stop of what is not here");
        Ok(())
    }

    async fn answered(
        &mut self,
        lease: Lease,
        number: u32,
        answer: Answer,
        anchor: Option<Anchor>,
    ) -> Result<(), Gone> {
        let owed = self.owed();
        self.sending.answered(&owed, &lease, number, answer);
        let disowned = match answer {
            Answer::Recorded | Answer::RetryLater => false,
            Answer::Stale | Answer::RunClosed | Answer::UnknownRun => owed.live.contains(&lease),
        };
        if disowned {
            tracing::warn!(run = %lease.run, work = %lease.work, ?answer, "a lease is not ours");
            self.all_accepted().await?;
            let (lease, reason) = (lease.clone(), StopReason::Revoked);
            self.tell(AttemptsMessage::Stop { lease, reason, now: false });
        }
        self.session.outbox.answered(lease, number, answer, anchor).await
    }

    /// Attempts that are gone end the whole worker: nothing is lost by not telling them.
    fn tell(&self, message: AttemptsMessage) {
        let _ = self.session.attempts.cast(message);
    }
}

pub(super) fn lost(why: &str) -> SessionEnd {
    SessionEnd::Lost { why: why.to_owned() }
}
