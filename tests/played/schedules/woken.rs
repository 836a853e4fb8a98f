//! Who waits is not forgotten. When all goes well again, a client waits for a lock that another one has and releases: it is
//! to have it in a few round trips, or at the next look if what it was told is lost.

use std::rc::Rc;

use crate::lease::Lease;
use crate::schedules::actor::Actor;
use crate::schedules::promises::Promise;
use crate::schedules::schedule::{ALL, Call, Sin, Step};
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

const TAKE: Step = Step::of(Call::TryLock { ttl_ms: 30_000, wait_ms: 20_000 });

/// Who holds the lock and who waits for it, if there are two that can.
pub(crate) fn pair(actors: &[Rc<Actor>]) -> Option<[Rc<Actor>; 2]> {
    world::with(|world| {
        if !world.schedule.is_waking || world.schedule.sins.contains(&Sin::SplitLists) {
            return None;
        }
        let mut able = actors.iter().filter(|actor| world.has_part(actor.client));
        Some([Rc::clone(able.next()?), Rc::clone(able.next()?)])
    })
}

/// Who shares the lock, in half of the schedules in which it is of one resource: the one that holds it; the one that waits;
/// or both, where its holder has it alone first.
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

/// 0: both take the same resource; 1 or 2: one of them takes all; 3: both do.
fn all_of(world: &World) -> usize {
    Dice::of(world.schedule.seed, 16, 0).below(4)
}

/// What one of the two takes, of so many resources, while a semaphore has so many permits.
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
        // Of two, the one that is in the way is now the first, now the second, in the order of the other.
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
    for (nth, lease) in leases.iter_mut().filter(|it| it.hold.is_some()).enumerate() {
        world::with(|world| {
            if nth == 0 && are_had {
                world.let_go_at = Some(world.now);
            }
        });
        if is_to_share {
            // The other one is to have it beside this one.
            let _ = actor.take(Step::of(Call::Downgrade), lease);
            turns::sleep(HELD);
        }
        let _ = actor.take(Step::of(Call::Unlock), lease);
        // The one is what it waits for.
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
