//! Connections between workers and the coordinator: each keeps its order, any may end, and each end
//! learns of that in its own time.
//!
//! Not here: what is said, and when a connection is to break.

use std::collections::{BTreeMap, VecDeque};

use ganger_shared::link::{CoordinatorSays, WorkerSays};

use crate::world::{Happening, World};

/// A connection that is cut is given up by who speaks into it after this long.
const KEEPALIVE_MS: u64 = 12_000;

/// One way through a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Way {
    /// To the coordinator.
    Up,
    /// To the worker.
    Down,
}

/// One connection.
#[derive(Debug, Default)]
pub(crate) struct Conn {
    pub(crate) worker: usize,
    /// The start of the worker's process that dialled it.
    pub(crate) life: u64,
    up: VecDeque<WorkerSays>,
    down: VecDeque<CoordinatorSays>,
    /// No later word may arrive before this time.
    last_ms: [u64; 2],
    /// Who still listens: the worker, the coordinator.
    pub(crate) worker_listens: bool,
    pub(crate) coordinator_listens: bool,
    /// Nothing passes any more.
    cut: bool,
}

/// All connections, and the walls between hosts.
#[derive(Debug, Default)]
pub(crate) struct Net {
    pub(crate) conns: BTreeMap<u64, Conn>,
    next: u64,
    /// Until when nothing passes between a worker and the coordinator.
    walls: BTreeMap<(usize, Way), u64>,
}

impl World {
    pub(crate) fn dial(&mut self, worker: usize, life: u64) -> u64 {
        self.net.next += 1;
        let id = self.net.next;
        let conn = Conn {
            worker,
            life,
            worker_listens: true,
            coordinator_listens: true,
            ..Conn::default()
        };
        self.net.conns.insert(id, conn);
        id
    }

    pub(crate) fn wall_off(&mut self, worker: usize, way: Way, for_ms: u64) {
        let until = self.now + for_ms;
        let wall = self.net.walls.entry((worker, way)).or_default();
        *wall = until.max(*wall);
    }

    pub(crate) fn say_up(&mut self, id: u64, says: WorkerSays) {
        let Some(conn) = self.net.conns.get(&id).filter(|conn| !conn.cut) else { return };
        if conn.worker_listens && conn.coordinator_listens {
            let at = self.arrival(id, Way::Up);
            if let Some(conn) = self.net.conns.get_mut(&id) {
                conn.up.push_back(says);
                self.at(at, Happening::Arrives(id, Way::Up));
            }
        }
    }

    pub(crate) fn say_down(&mut self, id: u64, says: CoordinatorSays) {
        let Some(conn) = self.net.conns.get(&id).filter(|conn| !conn.cut) else { return };
        if conn.worker_listens && conn.coordinator_listens {
            let at = self.arrival(id, Way::Down);
            if let Some(conn) = self.net.conns.get_mut(&id) {
                conn.down.push_back(says);
                self.at(at, Happening::Arrives(id, Way::Down));
            }
        }
    }

    /// When a word that is said now arrives: not before the ones said before it.
    fn arrival(&mut self, id: u64, way: Way) -> u64 {
        let slow = if self.calm { 1 } else { self.chance.within(1, 12) };
        let delay = if slow == 12 { self.chance.within(20, 600) } else { self.chance.within(1, 6) };
        let Some(conn) = self.net.conns.get_mut(&id) else { return self.now };
        let wall = self.net.walls.get(&(conn.worker, way)).copied().unwrap_or(0);
        let last = &mut conn.last_ms[usize::from(way == Way::Down)];
        *last = (self.now.max(wall) + delay).max(*last);
        *last
    }

    pub(crate) fn arrives(&mut self, id: u64, way: Way) {
        let Some(conn) = self.net.conns.get_mut(&id) else { return };
        match way {
            Way::Up => {
                let says = conn.up.pop_front().filter(|_| !conn.cut && conn.coordinator_listens);
                if let Some(says) = says {
                    self.coordinator_hears(id, says);
                }
            }
            Way::Down => {
                let says = conn.down.pop_front().filter(|_| !conn.cut && conn.worker_listens);
                let (worker, life) = (conn.worker, conn.life);
                if let Some(says) = says
                    && self.workers[worker].is_alive(life)
                {
                    self.worker_hears(worker, id, says);
                }
            }
        }
    }

    /// Nothing passes any more; the ends learn of it soon, or only when they miss a sign of life.
    pub(crate) fn cut(&mut self, id: u64) {
        let Some(conn) = self.net.conns.get_mut(&id) else { return };
        conn.cut = true;
        for way in [Way::Up, Way::Down] {
            let half_open = self.chance.once_in(3);
            let learns = if half_open { KEEPALIVE_MS } else { self.chance.within(1, 300) };
            self.at(self.now + learns, Happening::SeesEnd(id, way));
        }
    }

    /// The worker's end is closed: the coordinator sees that once it has heard all before it.
    pub(crate) fn worker_hangs_up(&mut self, id: u64) {
        let Some(conn) = self.net.conns.get_mut(&id) else { return };
        if std::mem::take(&mut conn.worker_listens) && !conn.cut {
            let at = self.arrival(id, Way::Up);
            self.at(at, Happening::SeesEnd(id, Way::Up));
        }
    }

    pub(crate) fn coordinator_hangs_up(&mut self, id: u64) {
        let Some(conn) = self.net.conns.get_mut(&id) else { return };
        if std::mem::take(&mut conn.coordinator_listens) && !conn.cut {
            let at = self.arrival(id, Way::Down);
            self.at(at, Happening::SeesEnd(id, Way::Down));
        }
    }

    /// Somebody learns that a connection is over.
    pub(crate) fn sees_end(&mut self, id: u64, way: Way) {
        let Some(conn) = self.net.conns.get_mut(&id) else { return };
        let (worker, life) = (conn.worker, conn.life);
        match way {
            Way::Up if std::mem::take(&mut conn.coordinator_listens) => self.session_ended(id),
            Way::Down if std::mem::take(&mut conn.worker_listens) => {
                if self.workers[worker].is_alive(life) {
                    self.link_lost(worker, id);
                }
            }
            Way::Up | Way::Down => {}
        }
        let over = self.net.conns.get(&id);
        if over.is_some_and(|conn| !conn.worker_listens && !conn.coordinator_listens) {
            self.net.conns.remove(&id);
        }
    }

    /// The connections of a process that died; who was on the other end learns of it.
    pub(crate) fn conns_of(&self, worker: Option<usize>) -> Vec<u64> {
        let mine = self.net.conns.iter().filter(|(_, conn)| match worker {
            Some(worker) => conn.worker == worker && conn.worker_listens,
            None => conn.coordinator_listens,
        });
        mine.map(|(id, _)| *id).collect()
    }
}
