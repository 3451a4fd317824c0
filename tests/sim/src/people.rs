//! People: each asks for one thing under one key, and asks again until somebody answers.

use ganger_coordinator_core::run::{Call, Reply, Verb};
use ganger_shared::actor::Actor;
use ganger_shared::digest::Digest;
use ganger_shared::ids::{IdempotencyKey, RunId};
use ganger_shared::rejection::Rejection;

use crate::coordinator::Mail;
use crate::coordinator::run::{Asked, ReplyTo};
use crate::coordinator::runs::RunsMail;
use crate::scenario::{Wish, read, submit};
use crate::world::{Happening, World};

/// One call.
#[derive(Debug)]
pub(crate) struct Asker {
    wish: Wish,
    key: IdempotencyKey,
    /// What it last saw of what it asks about.
    expected: Option<u64>,
    pub(crate) answered: bool,
}

/// Everybody who asks, and what they know.
#[derive(Debug, Default)]
pub(crate) struct People {
    pub(crate) askers: Vec<Asker>,
    /// The run of each plan, once somebody was told.
    pub(crate) made: Vec<Option<RunId>>,
    ids: u64,
}

impl People {
    pub(crate) fn of(plans: usize) -> Self {
        Self { made: vec![None; plans], ..Self::default() }
    }
}

impl World {
    /// Somebody begins to ask for something.
    pub(crate) fn wishes(&mut self, at_ms: u64, wish: Wish) {
        let nth = self.people.askers.len();
        let key = IdempotencyKey::parse(&format!("key-{nth}")).expect("printable");
        let expected = (!self.calm && self.chance.once_in(6)).then(|| self.chance.below(60));
        self.people.askers.push(Asker { wish, key, expected, answered: false });
        self.at(at_ms, Happening::Asks(nth));
    }

    /// The call is made, for the first time or once more, perhaps twice at once.
    pub(crate) fn asks(&mut self, nth: usize) {
        if self.people.askers[nth].answered {
            return;
        }
        let again = self.chance.within(700, 3_000);
        self.at(self.now + again, Happening::Asks(nth));
        let twice = self.chance.once_in(8);
        for _ in 0..=u8::from(twice) {
            if self.calm || !self.chance.once_in(6) {
                let way = self.chance.within(1, 60);
                self.at(self.now + way, Happening::CallArrives(nth));
            }
        }
    }

    pub(crate) fn call_arrives(&mut self, nth: usize) {
        if !self.coordinator.up {
            return;
        }
        let Asker { wish, key, expected, .. } = &self.people.askers[nth];
        let (wish, key, expected) = (wish.clone(), key.clone(), *expected);
        let by = Actor::Principal("anna".to_owned());
        let reply = ReplyTo::Caller(nth);
        if let Wish::Submit { plan } = wish {
            let new = self.fresh_run();
            let verb = submit(&self.plans[plan], key.clone(), &new, self.bug);
            let asked = Box::new(Asked { by, verb, reply });
            return self.post(Mail::Runs(RunsMail::Submit { new, key, asked }));
        }
        let Some(run) = self.people.made[wish.plan()].clone() else { return };
        let body = Digest::of(format!("{wish:?}").as_bytes());
        let call = Call { key, body, expected };
        let reason = "because".to_owned();
        let verb = match wish {
            Wish::Submit { .. } => return,
            Wish::Cancel { plan, unit } => {
                let units = read(&self.plans[plan]).units;
                let unit =
                    units[usize::try_from(unit % units.len() as u64).unwrap_or(0)].id.to_string();
                Verb::Cancel { call, unit, reason }
            }
            Wish::Stop { now, .. } => Verb::Stop { call, reason, now },
            Wish::Pause { .. } => Verb::Pause { call, reason },
            Wish::Resume { .. } => Verb::Resume { call },
        };
        let asked = Box::new(Asked { by, verb, reply });
        self.post(Mail::Runs(RunsMail::Call { run, asked }));
    }

    fn fresh_run(&mut self) -> RunId {
        self.people.ids += 1;
        RunId::from_uuid_bytes(&u128::from(self.people.ids).to_be_bytes())
    }

    /// The coordinator answers; what it says is done must be in the journal.
    pub(crate) fn reply_to_caller(&mut self, nth: usize, run: &RunId, reply: Reply) {
        let key = self.people.askers[nth].key.clone();
        if let Reply::Done { .. } = reply {
            self.rules.done(run, &key);
        }
        self.note(|| format!("call {nth} is answered {reply:?}"));
        if self.calm || !self.chance.once_in(6) {
            let way = self.chance.within(1, 60);
            let told = Happening::Told(nth, run.clone(), Box::new(reply));
            self.at(self.now + way, told);
        }
    }

    pub(crate) fn told(&mut self, nth: usize, run: &RunId, reply: &Reply) {
        let asker = &mut self.people.askers[nth];
        match reply {
            Reply::Done { .. } => {
                asker.answered = true;
                if let Wish::Submit { plan } = asker.wish {
                    let made = &mut self.people.made[plan];
                    if made.as_ref().is_some_and(|made| made != run) {
                        self.rules
                            .broken(format!("plan {plan} was submitted once and made two runs"));
                    }
                    *made = Some(run.clone());
                }
            }
            Reply::Rejected(Rejection::Journal { .. }) => {}
            Reply::Rejected(Rejection::UnknownRun { run }) => {
                self.rules.broken(format!("run {run} was made and nobody knows it any more"));
            }
            Reply::Rejected(_) => asker.answered = true,
            Reply::Leased(_) | Reply::Declined | Reply::Answered(_) | Reply::Reconciled { .. } => {
                self.rules.broken(format!("call {nth} was answered {reply:?}"));
            }
        }
    }
}
