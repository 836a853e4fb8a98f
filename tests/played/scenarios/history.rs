//! The holds of all clients, in true time, and whether they were right.

use super::client::{Client, token};
use super::cluster::Scene;
use crate::manager::lease::Lease;

#[derive(Debug)]
#[allow(dead_code, reason = "who it was is for whoever reads that it was wrong")]
pub(crate) struct HeldLock {
    client: usize,
    resource: String,
    token: String,
    from: i64,
    until: i64,
}

#[derive(Default)]
pub(crate) struct History {
    holds: Vec<HeldLock>,
}

impl History {
    /// A call has just granted or extended this lock.
    pub(crate) fn granted(&mut self, client: &Client, lease: &Lease, now: i64) {
        let (token, until) = (token(lease), client.end_of(lease));
        if let Some(hold) = self.of(&token) {
            // A call that was delayed may return a lock that has ended meanwhile.
            if lease.validity_ms() > 0 {
                hold.until = hold.until.max(until);
            }
            return;
        }
        let resource = String::from_utf8_lossy(lease.resource()).into_owned();
        let (client, from) = (client.me, now);
        self.holds.push(HeldLock { client, resource, token, from, until });
    }

    /// From now on the client does not believe any more that it holds this lock.
    pub(crate) fn ended(&mut self, token: &str, now: i64) {
        if let Some(hold) = self.of(token) {
            hold.until = hold.until.min(now);
        }
    }

    fn of(&mut self, token: &str) -> Option<&mut HeldLock> {
        self.holds.iter_mut().find(|it| it.token == token)
    }

    pub(crate) fn len(&self) -> usize {
        self.holds.len()
    }

    /// Two holds of one resource at the same time: there must never be any.
    pub(crate) fn overlap(&self) -> Option<(&HeldLock, &HeldLock)> {
        let pairs = self.holds.iter().enumerate();
        let mut pairs = pairs.flat_map(|(i, a)| self.holds[i + 1..].iter().map(move |b| (a, b)));
        pairs.find(|(a, b)| a.resource == b.resource && a.from.max(b.from) < a.until.min(b.until))
    }
}

/// Whether a quorum of servers will keep the lock that a call has just granted for as long as the call
/// says.
pub(crate) fn is_borne_out(world: Scene, client: &Client, lease: &Lease) -> bool {
    let resource = String::from_utf8_lossy(lease.resource());
    let kept_until = world.kept_until(&resource, &token(lease));
    lease.validity_ms() == 0 || client.end_of(lease) <= kept_until
}
