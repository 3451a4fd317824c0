//! Carries out what goes wrong, and ends it.

use ganger_coordinator_core::fleet::Input;

use crate::coordinator::fleet::FleetMail;
use crate::net::Way;
use crate::scenario::Fault;
use crate::worker::WorkerEvent;
use crate::worker::attempts::AttemptsMail;
use crate::worker::program::commit_of;
use crate::world::World;

impl World {
    pub(crate) fn strikes(&mut self, fault: Fault) {
        self.note(|| format!("-- {fault:?}"));
        match fault {
            Fault::CoordinatorDies { after } => self.coordinator.dies_after = Some(after),
            Fault::WorkerDies { on } => {
                let back = self.chance.within(50, 9_000);
                self.worker_dies(on, back);
            }
            Fault::WorkerLeaves { on } => {
                if self.workers[on].up && !self.workers[on].process.attempts.leaving {
                    self.within_worker(on, WorkerEvent::Attempts(AttemptsMail::Leave));
                }
            }
            Fault::Wall { on, up, down, for_ms } => {
                for way in [(up, Way::Up), (down, Way::Down)] {
                    if way.0 {
                        self.wall_off(on, way.1, for_ms);
                    }
                }
            }
            Fault::Cut { on } => {
                for conn in self.conns_of(Some(on)) {
                    self.cut(conn);
                }
            }
            Fault::Freeze { on, for_ms } => {
                let now = self.now;
                self.host(on).freeze(now, for_ms);
                self.rules.excused_until(now + for_ms);
            }
            Fault::Sleep { on, for_ms } => {
                let now = self.now;
                self.host(on).sleep(now, for_ms);
                self.rules.excused_until(now + for_ms);
            }
            Fault::Set { on, by_ms } => self.host(on).skew_ms += by_ms,
            Fault::SyncFails => self.coordinator.sync_fails = self.coordinator.up,
            Fault::OutboxFails { on } => self.workers[on].disk_fails = self.workers[on].up,
            Fault::DiskFull { for_ms } => {
                self.coordinator.full_until_ms = self.now + for_ms;
                self.rules.excused_until(self.now + for_ms);
            }
            Fault::DiskSlow { for_ms } => {
                self.coordinator.slow_until_ms = self.now + for_ms;
                self.rules.excused_until(self.now + for_ms);
            }
            Fault::Cordon { on, drain } => self.closes(on, drain),
            Fault::Stranger { plan } => {
                if let Some(run) = self.people.made[plan].clone() {
                    let foreign = commit_of(&format!("foreign {}", self.now));
                    self.coordinator.branches.insert(run, foreign);
                }
            }
        }
    }

    /// Nothing goes wrong any more: what was planned to is off, what is wrong heals by itself.
    pub(crate) fn calms(&mut self) {
        self.note(|| "-- calm".to_owned());
        self.calm = true;
        self.coordinator.sync_fails = false;
        self.coordinator.dies_after = None;
        self.coordinator.full_until_ms = 0;
        self.coordinator.slow_until_ms = 0;
        for worker in &mut self.workers {
            worker.disk_fails = false;
        }
        for on in std::mem::take(&mut self.cordoned) {
            let worker = self.workers[on].id.clone();
            self.tell_fleet(FleetMail::Mark(Input::Uncordon(worker)));
        }
    }

    /// A coordinator that starts anew does not remember it.
    fn closes(&mut self, on: usize, drain: bool) {
        if self.coordinator.up {
            self.cordoned.insert(on);
            let worker = self.workers[on].id.clone();
            let how = if drain { Input::Drain(worker) } else { Input::Cordon(worker) };
            self.tell_fleet(FleetMail::Mark(how));
        }
    }

    fn host(&mut self, on: Option<usize>) -> &mut crate::host::Host {
        match on {
            Some(on) => &mut self.workers[on].host,
            None => &mut self.coordinator.host,
        }
    }
}
