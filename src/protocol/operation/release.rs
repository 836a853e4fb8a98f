//! Releasing a lock, and giving the turn to the next waiter of this manager.

use std::sync::Arc;
use std::time::Duration;

use super::round::{Absence, Round};
use super::rounds::{Continuation, Inquiry, Rounds};
use super::{Actions, Ended, Limits, Miss, cancelled, release_as, release_of, reply_ms};
use crate::protocol::command::Verb;
use crate::protocol::error::{Error, Status};
use crate::protocol::lock::{Phase, View, detached};
use crate::protocol::moment::Moment;
use crate::protocol::quorum::backoff;
use crate::protocol::quorum::tally::Outcome;
use crate::protocol::stats::{Account, Kind};
use crate::protocol::wait_queue::{Next, STAND_BACK};

/// In this many round trips a woken client has taken the lock.
const ROUND_TRIPS_TO_TAKE: u32 = 2;

/// Releases a lock.
pub(crate) struct Release {
    view: View,
    /// Until when the keys stay.
    stays_until: Moment,
    /// Whether nothing was left of the lock when the call was made.
    was_over: bool,
    /// Whether the lock was held, by our clock, when the release began.
    was_held: bool,
    /// Whether a release of the lock may have been sent before. If so, a server that has nothing to delete was
    /// already told by that earlier release.
    is_again: bool,
    /// When the servers were asked to release the lock.
    asked_at: Moment,
    rounds: Rounds,
}

impl Release {
    pub(crate) fn new(view: View) -> Self {
        let was_over = view.held_lock().is_over();
        let (never, rounds) = (Moment::from_nanos(0), Rounds::default());
        let (was_held, is_again, asked_at, stays_until) = (false, false, never, never);
        Self { view, stays_until, was_over, was_held, is_again, asked_at, rounds }
    }

    /// The keys stay until then.
    pub(crate) fn after(self, stays_until: Moment) -> Self {
        Self { stays_until, ..self }
    }

    /// Updates the wait queues, because the release is about to be sent. Returns the waiters of this manager
    /// that come next. Also returns, as one bit per resource, the resources that no waiter of this manager asks
    /// for right behind the release.
    fn let_go(&self, actions: &mut dyn Actions) -> (Vec<Next>, u128) {
        let (lock, since) = (self.view.held_lock(), actions.now());
        let (mut all, mut open) = (Vec::new(), 0);
        for (place, resource) in lock.target().names().iter().enumerate() {
            let (next, stands_back) = actions.wait_queues().release(lock, resource, since);
            if stands_back {
                // Without randomness, stand back for the longest time.
                let random = actions.random().unwrap_or(u64::MAX);
                let is_to = actions.wait_queues().is_to_stand_back(resource, since);
                let most = if is_to { STAND_BACK } else { Duration::ZERO };
                let until = since.plus(backoff::jitter(most, random));
                actions.wait_queues().stand_back(lock.target(), resource, until);
            }
            open |= open_line(place, &next);
            // Usually nobody waits, and then this takes no memory.
            if next != Next::Nobody {
                all.push(next);
            }
        }
        (all, open)
    }

    /// Another client was woken. A waiter of this manager that wants the lock asks only after that client has
    /// had time to take it.
    fn yield_to_woken(&self, actions: &mut dyn Actions) {
        let (now, random) = (actions.now(), actions.random().unwrap_or(u64::MAX));
        let round_trip = Duration::from_nanos((now - self.asked_at).max(0).unsigned_abs());
        let enough = (ROUND_TRIPS_TO_TAKE * round_trip).min(STAND_BACK);
        let until = now.plus(enough + backoff::jitter(enough, random));
        actions.wait_queues().woke(self.view.held_lock().target(), until, now);
    }
}

/// The bit of the resource at this place, or 0 if a waiter of this manager asks for it right behind the
/// release.
fn open_line(place: usize, next: &Next) -> u128 {
    if let Next::Ask(_) = next { 0 } else { 1 << (place % 128) }
}

/// Tells the next waiter that the release is on its way.
fn tell_next(next: Next, actions: &mut dyn Actions) {
    match next {
        Next::Ask(waiter) => actions.give_turn(waiter),
        Next::Tell(waiters) => waiters.into_iter().for_each(|it| actions.end_wait(it)),
        Next::Nobody => {}
    }
}

impl Inquiry for Release {
    fn rounds(&mut self) -> &mut Rounds {
        &mut self.rounds
    }

    fn begin(&mut self, actions: &mut dyn Actions) -> Option<(Moment, i64)> {
        if self.was_over {
            let error = Error::new(Status::Lost, "the lock had already ended");
            actions.end(Err(error));
            return None;
        }
        let lock = self.view.held_lock();
        self.was_held = lock.is_held(actions.now());
        // Not before the release begins, because a call that is refused or cancelled leaves the lock as it was. And
        // not later, because an extension that finds the lock released may send a release of its own.
        lock.stay_until(self.stays_until);
        // An extension that found out meanwhile that the lock is over has sent a release of its own.
        self.is_again = [Phase::Releasing, Phase::Over].contains(&lock.begin_release());
        if lock.is_detached() {
            actions.end(Err(detached()));
            return None;
        }
        actions.wake_keepers(*lock.token());
        Some((Moment::NEVER, lock.longest_ttl_ms()))
    }

    /// Sends the release, and behind it the request of the next waiter in the queue.
    fn ask(&mut self, actions: &mut dyn Actions) -> Round {
        let lock = self.view.held_lock();
        self.is_again |= lock.was_release_sent();
        if self.is_again {
            // Through another manager, this release may overtake the first one.
            lock.note_release();
        }
        let absence = match (self.is_again, self.was_held) {
            (true, _) => Absence::Released,
            (false, true) => Absence::LostUnlessRepeated,
            (false, false) => Absence::Lost,
        };
        let round = Round::release(absence, actions.roster().len());
        let (since, reply_ms) = (actions.now(), reply_ms(actions, lock.longest_ttl_ms()));
        let (next, open) = self.let_go(actions);
        // If a waiter asks right behind the release, it is meant to be the next holder, and no other waiter is
        // told.
        let request = match open {
            0 => release_as(Verb::Release, &self.view, since),
            lines => release_of(&self.view, actions).with_lines(lines),
        };
        self.asked_at = since;
        actions.ask(request, Limits { since, until: Moment::NEVER, reply_ms });
        next.into_iter().for_each(|next| tell_next(next, actions));
        round
    }

    fn conclude(&mut self, round: Round, actions: &mut dyn Actions) -> Continuation {
        let lock = self.view.held_lock();
        let status = match round.outcome() {
            Outcome::Refused if !self.is_again && lock.was_release_sent() => {
                // An extension through another manager has ended meanwhile, and its release came first.
                return Continuation::Ask;
            }
            Outcome::Reached => None,
            Outcome::Refused | Outcome::TooLate => Some(Status::Lost),
            Outcome::Unreachable => Some(Status::Unreachable),
        };
        if status != Some(Status::Unreachable) {
            lock.pass_to(Phase::Over);
        }
        if round.has_woken() {
            self.yield_to_woken(actions);
        }
        actions.end(match status {
            None => Ok(Ended::Released { absent: round.absent(actions.roster()) }),
            Some(status) => Err(round.error(status, actions.roster())),
        });
        Continuation::Over
    }

    /// The release is queued, and sent to the servers that are connected.
    fn conclude_unconnected(&mut self, _: &Miss, _: &mut dyn Actions) -> Continuation {
        Continuation::Ask
    }

    /// A release that has begun goes on, but no caller waits for it.
    fn cancel(&mut self, actions: &mut dyn Actions) {
        if self.rounds.is_connecting() {
            let (next, _) = self.let_go(actions);
            actions.tell(release_of(&self.view, actions));
            next.into_iter().for_each(|next| tell_next(next, actions));
        }
        actions.end(Err(cancelled()));
    }

    fn account(&self) -> Account {
        Account { kind: Kind::Release, held_since: Some(self.view.held_lock().asked_at()) }
    }

    fn resource(&self) -> &Arc<[u8]> {
        self.view.held_lock().resource()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::op_id::OpId;

    #[test]
    fn a_release_wakes_lines_without_a_local_waiter() {
        let (ask, tell) = (Next::Ask(OpId::new(1, 1)), Next::Tell(vec![OpId::new(2, 1)]));
        let next = [ask, Next::Nobody, tell];
        let open = next.iter().enumerate().map(|(place, next)| open_line(place, next));
        assert_eq!(open.collect::<Vec<_>>(), [0, 2, 4]);
    }
}
