//! The event that a kept lock is lost: whether it comes in time, once, and for a reason.

use std::mem;
use std::sync::Arc;

use super::{Attends, Keeping, KeptLock, LISTENS_PARTS};
use crate::protocol::error::{Error, Status};
use crate::schedules::promises::Promise;
use crate::schedules::schedule::Weather;
use crate::schedules::statuses::WAYS;
use crate::world::World;
use crate::world::clocks::MS;

/// From the header: the event comes while a tenth of the TTL is left.
const LEFT_PARTS: i64 = 10;

impl World {
    /// A caller has asked for events, and is about to leave. Each kept lock must have enough time left, or
    /// must have been reported as lost.
    pub(crate) fn judge_silence(&mut self, me: usize, manager: usize) {
        let since = self.attended_since(me, manager, Attends::Listens);
        let client = &self.clients[me];
        if client.is_gone {
            return;
        }
        let shown = client.read(self.now);
        let is_silent = |it: &Keeping| {
            let owes = (it.client, it.manager) == (me, manager) && !it.is_told && !it.ends;
            let owes = owes && !it.is_continued;
            let Some(lock) = it.lock.as_ref().filter(|_| owes) else { return false };
            if lock.has_just_shrunk(self.now) || self.was_shortened_elsewhere(lock) {
                return false;
            }
            let (until, ttl) = (lock.hold.valid_until().as_nanos(), lock.hold.ttl_ms() * MS);
            let listens_since = since.max(it.begun_at);
            shown > until - ttl / LEFT_PARTS
                && listens_since <= client.clock.when(until - ttl / LISTENS_PARTS)
        };
        if self.records.keepings.iter().any(is_silent) {
            let words = "of a kept lock less than a tenth is left, and nobody was told";
            self.records.violate(Promise::LostInTime, words);
        }
    }

    /// A caller is told that a kept lock is lost.
    pub(crate) fn judge_lost_event(
        &mut self,
        me: usize,
        number: usize,
        (error, remaining_ms): (&Error, i64),
    ) {
        if self.clients[me].is_gone {
            return;
        }
        let (of, words) = ([me as u64, number as u64], format!("lost: {error}, {remaining_ms} ms"));
        self.digest.answers.add(self.now, &of, words.as_bytes());
        let Some(place) = self.records.keepings.iter().position(|it| it.is_of(me, number)) else {
            return self.records.violate(Promise::NoFault, "a lock was lost that nobody keeps");
        };
        let keeping = &mut self.records.keepings[place];
        let (manager, begun_at, ends) = (keeping.manager, keeping.begun_at, keeping.ends);
        let was_told = mem::replace(&mut keeping.is_told, true);
        // One of several callers may receive the end of the call, and be stopped before another one
        // receives this event.
        let has_failed = keeping.has_failed && self.clients[me].callers == 1;
        if was_told || has_failed {
            let words = "of a lock that is kept once it was told twice that it is lost";
            return self.records.violate(Promise::OneEvent, words);
        }
        if keeping.over_at.is_some() && self.clients[me].callers == 1 {
            let words = "it was told that a lock is lost which nobody keeps any more";
            return self.records.violate(Promise::KeptNoMore, words);
        }
        let Some(lock) = self.records.keepings[place].lock.as_ref().filter(|_| !ends) else {
            return;
        };
        let (hold, tag, was_alone) = (Arc::clone(&lock.hold), lock.tag, lock.was_alone);
        let (until, ttl) = (hold.valid_until().as_nanos(), hold.ttl_ms() * MS);
        let least_ttl = lock.least_ttl.min(ttl);
        let shrunk_by = lock.shortened.map_or(0, |it| (it.known - until).max(0));
        let has_shrunk = lock.has_just_shrunk(self.now) || self.was_shortened_elsewhere(lock);
        let clock = &self.clients[me].clock;
        let (listened_by, renewed_by) =
            (clock.when(until - ttl / LISTENS_PARTS), clock.when(until - ttl + ttl / 3));
        let is_valid = self.now < clock.when(until);
        let listens_since = self.attended_since(me, manager, Attends::Listens).max(begun_at);
        let drives_since = self.attended_since(me, manager, Attends::Drives).max(begun_at);
        // A renewal that was under way when the lock was shortened has the time that it began with.
        let left = remaining_ms * MS + shrunk_by;
        let is_late = !hold.has_ended() && left * LEFT_PARTS < ttl;
        if is_late && !has_shrunk && listens_since <= listened_by {
            let words = format!("it was told that a kept lock is lost with {remaining_ms} ms left");
            return self.records.violate(Promise::LostInTime, words);
        }
        match error.status() {
            Status::Lost => {
                let held = self.records.hold(tag);
                let is_released = held.is_some_and(|it| it.releases > 0 || it.ended.is_some());
                if self.schedule.sins.is_empty() && is_valid && !is_released {
                    let words = "it was told that a kept lock is lost that was not";
                    self.records.violate(Promise::LostForAReason, words);
                }
                if let Some(held) = self.records.hold(tag) {
                    held.ended.get_or_insert(self.now);
                }
            }
            Status::Unreachable => {
                let has_reason = was_alone
                    || drives_since > renewed_by
                    || self.may_be_out_of_reach(me, tag, least_ttl, renewed_by);
                if !has_reason {
                    let words =
                        "it was told that a lock cannot be kept which a quorum would extend";
                    self.records.violate(Promise::LostForAReason, words);
                }
            }
            _ => {
                let words = "it was told that a kept lock is lost, and not why";
                self.records.violate(Promise::LostForAReason, words);
            }
        }
    }

    /// Whether a question through another manager may have shortened the lock. The manager that keeps the
    /// lock must look by itself.
    fn was_shortened_elsewhere(&self, lock: &KeptLock) -> bool {
        let mut tokens = self.records.tokens.iter().rev();
        let token = tokens.find(|it| it.tag == lock.tag);
        lock.shortened.is_some() && token.is_some_and(|it| it.used_by_several())
    }

    /// Whether something may have kept a quorum from extending a lock in time.
    fn may_be_out_of_reach(&self, me: usize, tag: u64, ttl: i64, since: i64) -> bool {
        let (client, plan) = (&self.clients[me], &self.schedule.clients[me]);
        let way = self.weather.most + self.weather.wake;
        let token = self.records.tokens.iter().rfind(|it| it.tag == tag);
        let ailing = self.struck(me) | !token.map_or(0, |it| it.servers_that_had_it(since));
        let ailing = client.list.iter().filter(|server| ailing & (1 << **server) != 0).count();
        let set_ms = if plan.reply_ms > 0 { plan.reply_ms } else { i64::MAX / MS };
        !self.schedule.sins.is_empty()
            || self.weather.slow_in > 0
            || self.weather.room < Weather::CALM.room
            || way * WAYS >= (ttl / 4).min(set_ms.min(plan.connect_ms) * MS)
            || plan.is_stopped()
            || ailing > client.list.len() - client.quorum()
    }
}
