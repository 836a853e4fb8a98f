//! Asking the servers whether a lock is still ours.

use std::sync::Arc;

use std::mem;

use super::round::{Confirmation, Round};
use super::rounds::{Continuation, Inquiry, Rounds};
use super::{Actions, Ended, Limits, cancelled, end_round, forget, reply_ms, request};
use crate::protocol::command::Verb;
use crate::protocol::error::Status;
use crate::protocol::lock::{Phase, View};
use crate::protocol::moment::Moment;
use crate::protocol::quorum::tally::Outcome;
use crate::protocol::stats::{Account, Kind};

/// Asks whether a lock is still there for at least this long.
pub(crate) struct Confirm {
    view: View,
    least_ms: i64,
    /// Until when the lock was valid when the servers were asked.
    valid_until: Moment,
    asked_at: Moment,
    /// Whether this has asked before.
    is_again: bool,
    /// The number of the lock's round in which the servers are asked.
    number: u32,
    /// Whether the lock was shared when they were asked.
    is_shared: bool,
    rounds: Rounds,
}

impl Confirm {
    pub(crate) fn new(view: View, least_ms: i64) -> Self {
        let valid_until = view.held_lock().valid_until();
        let (asked_at, number, rounds) = (Moment::NEVER, 0, Rounds::default());
        Self {
            view,
            least_ms,
            valid_until,
            asked_at,
            is_again: false,
            number,
            is_shared: false,
            rounds,
        }
    }
}

impl Inquiry for Confirm {
    fn rounds(&mut self) -> &mut Rounds {
        &mut self.rounds
    }

    fn begin(&mut self, actions: &mut dyn Actions) -> Option<(Moment, i64)> {
        let lock = self.view.held_lock();
        if let Err(error) = lock.check_valid(actions.now()) {
            actions.end(Err(error));
            return None;
        }
        Some((lock.valid_until(), lock.longest_ttl_ms()))
    }

    fn ask(&mut self, actions: &mut dyn Actions) -> Round {
        let (view, lock) = (&self.view, self.view.held_lock());
        let (drift, since) = (actions.policy().drift(), actions.now());
        let confirmation = Confirmation::new(*lock.token(), drift, since, self.least_ms);
        (self.asked_at, self.valid_until) = (since, lock.valid_until());
        (self.number, self.is_shared) = (view.begin_round(), lock.is_shared());
        let round = Round::confirm(confirmation, view.clone(), actions.roster().len());
        let ttl_ms = lock.longest_ttl_ms();
        let reply_ms = reply_ms(actions, ttl_ms);
        let limits = Limits { since, until: Moment::NEVER, reply_ms };
        actions.ask(request(Verb::Inspect, &self.view, ttl_ms).numbered(self.number), limits);
        round
    }

    fn conclude(&mut self, round: Round, actions: &mut dyn Actions) -> Continuation {
        let (view, lock, now) = (&self.view, self.view.held_lock(), actions.now());
        if self.is_shared != lock.is_shared() && !mem::replace(&mut self.is_again, true) {
            // The question was about the exclusive lock that this was before.
            view.fail_round(self.number);
            return Continuation::Begin;
        }
        let is_valid = now < lock.valid_until() && !lock.has_ended();
        let is_reached = round.outcome() == Outcome::Reached && is_valid;
        let is_ours = end_round(view, self.number, is_reached, &round);
        let end = round.end(actions.policy().drift(), 0, self.asked_at);
        if !view.is_lost() && lock.shorten(self.valid_until, end) {
            // The lock must be renewed earlier than the moment that its keepers wait for.
            actions.wake_keepers(*lock.token());
        }
        if is_ours && round.confirmed_ms(now) >= self.least_ms {
            let absent = round.absent(actions.roster());
            actions.end(Ok(Ended::Confirmed { absent }));
            return Continuation::Over;
        }
        let status = if is_valid && !view.is_lost() {
            let was_extended = lock.valid_until() > self.valid_until;
            let may_be_enough = lock.valid_until().ms_since(now) >= self.least_ms;
            if was_extended && may_be_enough && !mem::replace(&mut self.is_again, true) {
                // Another handle has extended the lock since the servers were asked. The question is repeated
                // only once, because a kept lock may be extended again and again.
                return Continuation::Begin;
            }
            // The lock is there, or may be, but not for that long.
            let is_short = is_ours || round.outcome() == Outcome::Refused;
            if is_short { Status::TooShort } else { Status::Unreachable }
        } else {
            // A question changes nothing on the servers. Unlock clears up what is left.
            lock.pass_to(Phase::Lost);
            forget(lock, actions);
            Status::Lost
        };
        actions.end(Err(round.error(status, actions.roster())));
        Continuation::Over
    }

    /// A question changes nothing on the servers.
    fn cancel(&mut self, actions: &mut dyn Actions) {
        if self.rounds.is_asking() {
            self.view.fail_round(self.number);
        }
        actions.end(Err(cancelled()));
    }

    fn account(&self) -> Account {
        Account { kind: Kind::Confirm, ..Account::default() }
    }

    fn resource(&self) -> &Arc<[u8]> {
        self.view.held_lock().resource()
    }
}
