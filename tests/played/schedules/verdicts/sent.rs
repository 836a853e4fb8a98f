//! Whether required releases were sent to the servers.

use super::Asked;
use crate::schedules::promises::Promise;
use crate::schedules::records::Token;
use crate::schedules::schedule::{Fault, Weather, What};
use crate::world::World;
use crate::world::clocks::MS;
use crate::world::network::Connection;

/// For clocks that are slow by a hundredth, and the longest TTL.
const KEPT_LONGER_MS: i64 = 150;

impl World {
    /// When a call ends, required releases have been sent to every server that is there, and are not left
    /// for a later call to send. This includes releases that a lost connection may have swallowed.
    pub(super) fn judge_sent(&mut self, asked: &Asked) {
        let client = &self.clients[asked.client];
        // A key may exist a little longer than a release is worth sending.
        let (soon, me) = (self.now + KEPT_LONGER_MS * MS, asked.client);
        let may_differ = |it: &Fault| {
            matches!(it.what, What::Refuse { .. } | What::StepClock { .. } | What::Kill { .. })
        };
        let is_plain = self.weather.room >= Weather::CALM.room
            && client.callers == 1
            && client.stopped == asked.stopped
            && !client.may_be_late
            && !self.schedule.faults.iter().any(may_differ);
        let held_up = self.schedule.held_up();
        if !is_plain {
            return;
        }
        // A call does not wait for the answers of all servers, so it may end before it knows that one of them
        // wants the text of a script.
        let of_both = |it: &&Connection, server| {
            (it.client, it.manager, it.server) == (me, asked.manager, server)
                && it.is_idle()
                && !it.hides_no_script()
        };
        let is_mine = |it: &&Token| {
            !it.is_shared()
                && it.kept_by == asked.manager
                && self.records.is_spent(it.tag, me, (held_up, self.now))
        };
        let mine = |tag| self.records.tokens.iter().filter(is_mine).find(|it| it.tag == tag);
        for &server in &client.list {
            let it = &self.servers[server];
            let left = it.store.tags().filter(|tag| it.left_until(*tag) > soon).find_map(mine);
            let Some(token) = left else { continue };
            let is_idle = |at: usize| self.connections[at].is_idle();
            let (promise, words) = if token.overtaken.is_some_and(is_idle) {
                (Promise::ReleasedInOrder, "a release came before what it was to release")
            } else if self.connections.iter().any(|it| of_both(&it, server)) {
                let words = "a release was not sent to a server that was there";
                (Promise::FailedIsReleased, words)
            } else {
                continue;
            };
            return self.records.violate(promise, words);
        }
    }

    /// Whether a client can have told all servers by the end what to delete, and in the right order.
    pub(crate) fn clears_up(&self, client: usize) -> bool {
        let is_quiet = |it: &Fault| matches!(it.what, What::Kill { quietly: true, .. });
        let client = &self.clients[client];
        !client.may_be_late && !client.is_gone && !self.schedule.faults.iter().any(is_quiet)
    }
}
