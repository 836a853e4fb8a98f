//! Locks that are passed from one client to another by a ticket. The giver no longer holds the lock, and
//! the adopter holds it on a quorum.

use std::mem;

use crate::protocol::error::{Error, Status};
use crate::schedules::plants::Plant;
use crate::schedules::promises::Promise;
use crate::schedules::schedule::{Call, How, Schedule, Sin, Step};
use crate::schedules::verdicts::{Asked, Told};
use crate::world::World;
use crate::world::clocks::MS;
use crate::world::dice::Dice;

/// A ticket that nobody has adopted yet.
#[derive(Clone, Debug)]
pub(crate) struct Offer {
    pub(crate) resource: usize,
    pub(crate) ticket: String,
}

/// Applies to some schedules in which clients have the same servers, and one caller each. Some locks are
/// given away instead of released, and some that are wanted are adopted if there is a ticket. Everything
/// else remains the same.
pub(crate) fn hand_some_over(schedule: &mut Schedule) {
    let mut dice = Dice::of(schedule.seed, 11, 0);
    let is_plain = |call: Call| !matches!(call, Call::KeepAlive);
    let may_be = !schedule.sins.contains(&Sin::SplitLists)
        && schedule.clients.iter().all(|it| it.callers.len() == 1)
        && schedule.steps().all(|it| is_plain(it.call) && !it.keeps);
    if !may_be || !dice.once_in(2) {
        return;
    }
    for steps in schedule.callers_mut() {
        for mut step in mem::take(steps) {
            let how = How::Blocks;
            match step.call {
                Call::Unlock if step.manager == 0 && dice.once_in(2) => {
                    steps.push(Step { call: Call::Detach, how, ..step });
                    if dice.once_in(2) {
                        continue;
                    }
                    // The giver tries to continue.
                    step.pause = dice.between(0, 20 * MS);
                    (step.mishap, step.before_end) = (None, None);
                    step.call = match dice.below(3) {
                        0 => Call::Extend { ttl_ms: 1_000 },
                        1 => Call::Confirm { least_ms: 0 },
                        _ => Call::Unlock,
                    };
                }
                Call::Lock { .. } | Call::TryLock { .. }
                    if step.manager == 0 && dice.once_in(3) =>
                {
                    (step.call, step.how) = (Call::Adopt, how);
                    // Another client must have given a lock away by then.
                    step.pause += dice.between(0, 200 * MS);
                }
                _ => {}
            }
            steps.push(step);
        }
    }
}

impl World {
    /// Judges the calls that give a lock away or adopt one, and all later calls of a giver. Returns whether
    /// the call was one of these.
    pub(crate) fn judge_handover(&mut self, asked: &Asked, told: &Told) -> bool {
        let status = told.said.as_ref().err().map(Error::status);
        let is_about_lease = matches!(
            asked.call,
            Call::Extend { .. }
                | Call::Confirm { .. }
                | Call::Unlock
                | Call::KeepAlive
                | Call::Downgrade
                | Call::Detach
        );
        if asked.is_detached && is_about_lease {
            let is_foreign = self.schedule.clients[asked.client].is_foreign(asked.manager);
            let refused =
                [Some(Status::Lost), Some(Status::InvalidArgument).filter(|_| is_foreign)];
            if status.is_none() || !refused.contains(&status) {
                let words = format!("its giver was told {status:?} of a lock that was given away");
                self.records.violate(Promise::HandedOver, words);
            }
            return true;
        }
        match asked.call {
            Call::Detach if status.is_none() => self.note_given(asked, told),
            Call::Adopt => self.judge_adopted(asked, told, status),
            _ => return false,
        }
        true
    }

    fn note_given(&mut self, asked: &Asked, told: &Told) {
        let (now, keeps) = (self.now, self.is_broken(Plant::GivesAndKeeps));
        let Some(tag) = asked.tag.filter(|tag| told.tag == Some(*tag) && asked.is_held) else {
            return self.records.violate(Promise::HandedOver, "what nobody held was given away");
        };
        if let Some(hold) = self.records.hold(tag).filter(|_| !keeps) {
            hold.ended.get_or_insert(now);
        }
        if let Some(token) = self.records.find(tag) {
            token.is_handed = true;
        }
    }

    fn judge_adopted(&mut self, asked: &Asked, told: &Told, status: Option<Status>) {
        let Some(true) = told.found else { return };
        match status {
            None => {}
            Some(Status::Lost | Status::Unreachable | Status::TooSlow) => return,
            Some(Status::InvalidArgument) if asked.is_held => return,
            Some(_) => return self.records.violate(Promise::NoFault, "it could not be adopted"),
        }
        let Some(tag) = told.tag else {
            return self.records.violate(Promise::HandedOver, "a lock without a token");
        };
        if self.records.seen(tag, asked.at) < self.clients[asked.client].quorum() {
            let words = "a lock was adopted that no quorum has";
            return self.records.violate(Promise::HandedOver, words);
        }
        let mut resource = asked.resource;
        if let Some(token) = self.records.find(tag) {
            token.client = asked.client;
            token.note_use(asked.manager);
            resource = token.resource;
        }
        self.note_held(asked, told, tag, resource);
        self.judge_kept_until(asked.client, tag, told.valid_until);
    }
}
