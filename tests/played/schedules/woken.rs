//! Who waits is not forgotten. When all goes well again, a client waits for a lock that another one has and releases: it is
//! to have it in a few round trips, or at the next look if what it was told is lost.

use std::rc::Rc;

use crate::lease::Lease;
use crate::schedules::actor::Actor;
use crate::schedules::promises::Promise;
use crate::schedules::schedule::{Call, How, Sin, Step};
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

/// Who shares the lock, in half of the schedules without permits: the one that holds it; the one that waits; or both, where
/// its holder has it alone first.
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
        let is_shared = world.schedule.permits == 0 && dice.once_in(2);
        if is_shared { dice.pick(&all) } else { Shares::Nobody }
    })
}

pub(crate) fn hold(actor: &Actor) {
    let (mut lease, shares) = (Lease::new(), shares());
    let take = Step { shares: shares == Shares::Holder, ..TAKE };
    if let Some(Ok(())) = actor.take(take, &mut lease) {
        turns::sleep(HELD);
        world::with(|world| world.let_go_at = Some(world.now));
        if shares == Shares::Both {
            let _ = actor.take(Step { call: Call::Downgrade, ..CALL }, &mut lease);
            // The other one is to have it meanwhile.
            turns::sleep(HELD);
        }
        let _ = actor.take(CALL, &mut lease);
    }
}

pub(crate) fn wait(actor: &Actor) {
    turns::sleep(WAITED_AFTER);
    let mut lease = Lease::new();
    let take = Step { shares: matches!(shares(), Shares::Waiter | Shares::Both), ..TAKE };
    if let Some(Ok(())) = actor.take(take, &mut lease) {
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
