//! The end of a play.

use super::{Actor, tag_of, violate};
use crate::manager::lease::Lease;
use crate::manager::redlock::RedLock;
use crate::schedules::promises::Promise;
use crate::schedules::schedule::{Call, Step};
use crate::world::clocks::MS;
use crate::world::{self, turns};

/// The end of a play. When nothing goes wrong any more, each client must be able to take and to release
/// each lock, with nothing left behind.
pub(crate) fn close(actor: &Actor, ttl_ms: i64, resources: usize) {
    let set = |it: &RedLock| {
        it.settings().set_timeouts(1_000, 500).and_then(|()| it.settings().set_retry(3, 20))
    };
    // Take all remaining events.
    for manager in &actor.managers {
        while let Ok(event @ Some(_)) = manager.next_event(0) {
            actor.take_event(event);
        }
    }
    if actor.managers.iter().any(|it| set(it).is_err()) {
        violate(Promise::NoFault, "it does not take its settings".to_owned());
    }
    for resource in 0..resources {
        let mut lease = Lease::new();
        let wait_ms = world::with(|world| world.longest_wait_ms(actor.client, ttl_ms));
        let call = Call::TryLock { ttl_ms: 30_000, wait_ms };
        let step = Step { resource, ..Step::of(call) };
        let Some(said) = actor.take(step, &mut lease) else { return };
        let tag = tag_of(&lease);
        if let Err(error) = said {
            let words = format!("client {}: it has no lock to be had: {error}", actor.client);
            return violate(Promise::LockAgain, words);
        }
        if let Some(Err(error)) = actor.take(Step { call: Call::Unlock, ..step }, &mut lease) {
            let words = format!("client {}: it cannot release: {error}", actor.client);
            return violate(Promise::LockAgain, words);
        }
        if is_left(tag) {
            // A server may have been lost just then. The next call sends the release to it.
            let had_faults = world::with(|world| world.has_had_faults());
            if !had_faults || actor.managers[0].connect(0).is_err() || is_left(tag) {
                let words = format!("client {}: what it released is left", actor.client);
                return violate(Promise::FailedIsReleased, words);
            }
        }
    }
}

/// The following calls clear up the remains of locks that were released or not granted. A server that
/// refused releases is asked again from time to time.
pub(crate) fn clear_up(actor: &Actor) {
    let must = world::with(|world| world.clears_up(actor.client));
    if !must {
        return;
    }
    // The first call finds that the connection is lost, the second one makes a new connection, and the
    // third one logs in and sends the releases.
    for _ in 0..4 {
        for (which, manager) in actor.managers.iter().enumerate() {
            world::with(|world| world.go_through(which));
            let _ = manager.connect(0);
        }
        turns::sleep(250 * MS);
    }
    world::with(|world| {
        let mut spent = world.records.spent(actor.client, (world.schedule.held_up(), world.now));
        let tells_all = world.schedule.loses_nothing();
        let is_left = |tag: &u64| {
            let is_there = world.servers.iter().any(|it| it.left_until(*tag) > world.now);
            is_there || (tells_all && world.records.is_forgotten(*tag))
        };
        let left = spent.find(is_left);
        drop(spent);
        if let Some(tag) = left {
            let words = format!("client {}: something is left of a lock", actor.client);
            world.say(|_| format!("== <{:04x}> is left", tag & 0xFFFF));
            world.records.violate(Promise::FailedIsReleased, words);
        }
    });
}

/// Whether some server still has the key after everything under way has arrived.
fn is_left(tag: Option<u64>) -> bool {
    turns::sleep(world::with(|world| 4 * world.weather.most) + 5 * MS);
    world::with(|world| {
        tag.is_some_and(|tag| world.servers.iter().any(|it| it.left_until(tag) > world.now))
    })
}
