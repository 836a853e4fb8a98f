//! Waiting clients are not forgotten. When nothing goes wrong any more, a client waits for a lock that
//! another client holds and releases. It must get the lock in a few round trips, or at its next look if the
//! message to it is lost.

use std::rc::Rc;

use crate::manager::lease::Lease;
use crate::schedules::actor::Actor;
use crate::schedules::promises::Promise;
use crate::schedules::schedule::{ALL, Call, Sin, Step};
use crate::world::clocks::MS;
use crate::world::dice::Dice;
use crate::world::turns;
use crate::world::{self, World};

/// How long the lock is held, and when the other client begins to wait.
const HELD: i64 = 1_000 * MS;
const WAITED_AFTER: i64 = 300 * MS;

/// By then no client that is gone is in a wait queue any more.
pub(crate) const LINES_END: i64 = 16_000 * MS;

/// How long the first client in the wait queue waits at most before it looks by itself.
const LOOK: i64 = 250 * MS;

/// How many times at most a message travels one way, and the extra time for the clocks and the waits of a
/// few round trips.
const WAYS: i64 = 12;
const GRACE: i64 = 40 * MS;

const TAKE: Step = Step::of(Call::TryLock { ttl_ms: 30_000, wait_ms: 20_000 });

/// The client that holds the lock and the client that waits for it, if two clients are able to.
pub(crate) fn pair(actors: &[Rc<Actor>]) -> Option<[Rc<Actor>; 2]> {
    world::with(|world| {
        if !world.schedule.is_waking || world.schedule.sins.contains(&Sin::SplitLists) {
            return None;
        }
        let mut able = actors.iter().filter(|actor| world.has_part(actor.client));
        Some([Rc::clone(able.next()?), Rc::clone(able.next()?)])
    })
}

/// Who shares the lock, in half of the schedules in which the lock is of one resource: the holder, the
/// waiting client, or both. If both share it, the holder first holds it exclusively.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shares {
    Nobody,
    Holder,
    Waiter,
    Both,
}

fn shares() -> Shares {
    world::with(|world| {
        let mut dice = Dice::of(world.schedule.seed, 17, 0);
        let all = [Shares::Holder, Shares::Waiter, Shares::Both];
        let is_shared = world.schedule.permits == 0 && all_of(world) == 0 && dice.once_in(2);
        if is_shared { dice.pick(&all) } else { Shares::Nobody }
    })
}

/// 0: both take the same resource; 1 or 2: one of them takes all resources; 3: both take all.
fn all_of(world: &World) -> usize {
    Dice::of(world.schedule.seed, 16, 0).below(4)
}

/// The lock that one of the two takes. A semaphore is used if the schedule has permits.
fn take(actor: &Actor, sharers: [Shares; 2]) -> Step {
    let has_it_shared = sharers.contains(&shares());
    let take = Step { shares: has_it_shared, ..TAKE };
    world::with(|world| {
        let schedule = &world.schedule;
        if schedule.permits > 0 {
            return TAKE;
        }
        let all = all_of(world);
        let is_all = all == 3 || all > 0 && all - 1 == actor.client % 2;
        // Of two resources, the obstacle is sometimes the first and sometimes the second, in the order of
        // the other client.
        let slot = actor.client % 2;
        if is_all { Step { resource: ALL, slot, ..TAKE } } else { take }
    })
}

pub(crate) fn hold(actor: &Actor) {
    let permits = world::with(|world| usize::from(world.schedule.permits.max(1)));
    let mut leases: Vec<Lease> = (0..permits).map(|_| Lease::new()).collect();
    let take = take(actor, [Shares::Holder; 2]);
    let is_to_share = shares() == Shares::Both;
    let are_had = leases.iter_mut().all(|lease| matches!(actor.take(take, lease), Some(Ok(()))));
    turns::sleep(HELD);
    for (nth, lease) in leases.iter_mut().filter(|it| it.lock.is_some()).enumerate() {
        world::with(|world| {
            if nth == 0 && are_had {
                world.let_go_at = Some(world.now);
            }
        });
        if is_to_share {
            // The other client must get the lock beside this one.
            let _ = actor.take(Step::of(Call::Downgrade), lease);
            turns::sleep(HELD);
        }
        let _ = actor.take(Step::of(Call::Unlock), lease);
        // The other client waits for one of the two.
        turns::sleep(HELD);
    }
}

pub(crate) fn wait(actor: &Actor) {
    turns::sleep(WAITED_AFTER);
    let mut lease = Lease::new();
    let take = take(actor, [Shares::Waiter, Shares::Both]);
    if let Some(Ok(())) = actor.take(take, &mut lease) {
        world::with(World::judge_wait);
        let _ = actor.take(Step::of(Call::Unlock), &mut lease);
    }
}

impl World {
    /// A client got the lock that it waited for.
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
