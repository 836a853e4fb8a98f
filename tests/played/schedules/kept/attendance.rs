//! Since when a thread has driven a manager, or taken its events. A client that was present must be told.

use crate::world::World;
use crate::world::clocks::MS;

/// A thread that comes back within this time was not absent.
pub(super) const GAP: i64 = MS;

/// Since when a thread has been in a call of a manager.
#[derive(Clone, Copy, Default)]
pub(crate) struct Attendance {
    inside: usize,
    since: i64,
    left_at: i64,
}

impl Attendance {
    fn enter(&mut self, now: i64) {
        if self.inside == 0 && now > self.left_at + GAP {
            self.since = now;
        }
        self.inside += 1;
    }

    fn leave(&mut self, now: i64) {
        self.inside -= 1;
        self.left_at = now;
    }
}

/// What a thread does in a call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attends {
    Drives,
    /// It also takes events.
    Listens,
}

impl World {
    pub(crate) fn enter(&mut self, client: usize, manager: usize, attends: Attends) {
        let now = self.now;
        let (drives, listens) = self.clients[client].attendance_of(manager);
        drives.enter(now);
        if attends == Attends::Listens {
            listens.enter(now);
        }
    }

    pub(crate) fn leave(&mut self, client: usize, manager: usize, attends: Attends) {
        let now = self.now;
        let (drives, listens) = self.clients[client].attendance_of(manager);
        drives.leave(now);
        if attends == Attends::Listens {
            listens.leave(now);
        }
    }

    /// Since when some thread has done that all the time, without being stopped.
    pub(super) fn attended_since(
        &mut self,
        client: usize,
        manager: usize,
        attends: Attends,
    ) -> i64 {
        let now = self.now;
        let client = &mut self.clients[client];
        let stopped_until = client.stopped_until;
        let (drives, listens) = client.attendance_of(manager);
        let it = if attends == Attends::Listens { listens } else { drives };
        if it.inside == 0 && now > it.left_at + GAP {
            i64::MAX
        } else {
            it.since.max(stopped_until)
        }
    }
}
