//! Who waits is not forgotten. When all goes well again, a client waits for a lock that another one has and releases: it is
//! to have it in a few round trips, or at the next look if what it was told is lost.

use std::rc::Rc;

use crate::lease::Lease;
use crate::schedules::actor::Actor;
use crate::schedules::promises::Promise;
use crate::schedules::schedule::{ALL, Call, How, Sin, Step};
use crate::world::clocks::MS;
use crate::world::dice::Dice;
use crate::world::turns;
use crate::world::{self, World};

/// For so long it is held, and waited for.
const HELD: i64 = 1_000 * MS;
const WAITED_AFTER: i64 = 300 * MS;

/// By then nobody stands in line who has gone.
pub(crate) const LINES_END: i64 = 16_000 * MS;

/// So long who is first in line waits at most before it looks by itself.
const LOOK: i64 = 250 * MS;

/// So many times a message goes one way, at most, and what the clocks and the waits of a few round trips add.
const WAYS: i64 = 12;
const GRACE: i64 = 40 * MS;

const CALL: Step = Step {
    pause: 0,
    before_end: None,
    call: Call::Unlock,
    manager: 0,
    slot: 0,
    resource: 0,
    mishap: None,
    how: How::Blocks,
    keeps: false,
    drives: false,
    shares: false,
};

const TAKE: Step = Step { call: Call::TryLock { ttl_ms: 30_000, wait_ms: 20_000 }, ..CALL };

/// Who holds the lock and who waits for it, if there are two that can.
pub(crate) fn pair(actors: &[Rc<Actor>]) -> Option<[Rc<Actor>; 2]> {
    world::with(|world| {
        if !world.schedule.is_waking || world.schedule.sins.contains(&Sin::SplitLists) {
            return None;
        }
        let is_there = |actor: &&Rc<Actor>| {
            let plan = &world.schedule.clients[actor.client];
            !world.clients[actor.client].is_gone && !plan.callers.iter().all(Vec::is_empty)
        };
        let mut able = actors.iter().filter(is_there);
        Some([Rc::clone(able.next()?), Rc::clone(able.next()?)])
    })
}

/// What one of the two takes, of so many resources, while a semaphore has so many permits.
fn take(actor: &Actor) -> Step {
    world::with(|world| {
        let schedule = &world.schedule;
        if schedule.permits > 0 {
            return TAKE;
        }
        // Both the same one; one of them all; or both all.
        let all = Dice::of(schedule.seed, 16, 0).below(4);
        let is_all = all == 3 || all > 0 && all - 1 == actor.client % 2;
        // Of two, the one that is in the way is now the first, now the second, in the order of the other.
        let slot = actor.client % 2;
        if is_all { Step { resource: ALL, slot, ..TAKE } } else { TAKE }
    })
}

pub(crate) fn hold(actor: &Actor) {
    let permits = world::with(|world| usize::from(world.schedule.permits.max(1)));
    let mut leases: Vec<Lease> = (0..permits).map(|_| Lease::new()).collect();
    let take = take(actor);
    let is_had = |lease| matches!(actor.take(take, lease), Some(Ok(())));
    let are_had = leases.iter_mut().map(is_had).all(|it| it);
    turns::sleep(HELD);
    for (nth, lease) in leases.iter_mut().filter(|it| it.hold.is_some()).enumerate() {
        world::with(|world| {
            if nth == 0 && are_had {
                world.let_go_at = Some(world.now);
            }
        });
        let _ = actor.take(CALL, lease);
        // The one is what it waits for.
        turns::sleep(HELD);
    }
}

pub(crate) fn wait(actor: &Actor) {
    turns::sleep(WAITED_AFTER);
    let mut lease = Lease::new();
    if let Some(Ok(())) = actor.take(take(actor), &mut lease) {
        world::with(World::judge_wait);
        let _ = actor.take(CALL, &mut lease);
    }
}

impl World {
    /// Somebody has the lock that it waited for.
    fn judge_wait(&mut self) {
        let Some(let_go_at) = self.let_go_at else { return };
        let tell_all = self.servers.iter().all(|it| it.store.knows_resp3);
        let is_told = tell_all && self.schedule.loses_pushes_in == 0;
        let most = WAYS * self.weather.most + GRACE + if is_told { 0 } else { LOOK };
        let took = self.now - let_go_at;
        if took > most {
            let words = format!("who waited had the lock {} ms after its release", took / MS);
            self.records.violate(Promise::NotForgotten, words);
        }
    }
}
