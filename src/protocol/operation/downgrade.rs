//! Turning an exclusive lock into a shared one: its holder goes on reading, and others may read, too.
//!
//! Each server makes the change in one step, and the lock keeps its end there. The lock counts as shared from
//! the moment when the servers are asked, whatever they answer, because a server may carry out the request at
//! any time. A server that was not reached makes the change with the next extension.

use std::sync::Arc;

use super::round::Round;
use super::rounds::{Continuation, Inquiry, Rounds};
use super::{
    Actions, End, Ended, Limits, QUESTION_TTL_MS, cancelled, end_round, give_up, reply_ms, request,
};
use crate::protocol::command::{Request, Verb};
use crate::protocol::error::{Error, Status};
use crate::protocol::lock::View;
use crate::protocol::moment::Moment;
use crate::protocol::quorum::tally::Outcome;
use crate::protocol::server_set::ServerSet;
use crate::protocol::token::Token;

/// Turns an exclusive lock into a shared one.
pub(crate) struct Downgrade {
    view: View,
    /// The number of the lock's round in which the servers are asked, and when they were asked.
    number: u32,
    asked_at: Moment,
    /// Until when the lock was valid at that time.
    valid_until: Moment,
    rounds: Rounds,
}

impl Downgrade {
    pub(crate) fn new(view: View) -> Self {
        let (number, asked_at, rounds) = (0, Moment::NEVER, Rounds::default());
        Self { view, number, asked_at, valid_until: Moment::NEVER, rounds }
    }

    /// Sent behind the downgrade: has the servers tell readers of other processes that wait in line.
    fn call_readers(&self, actions: &mut dyn Actions) {
        if actions.policy().has_waking() {
            // The request names a channel that nobody has.
            let resource = Arc::clone(self.view.held_lock().resource());
            let request = Request::new(Verb::Leave, resource, Token::NOBODYS, QUESTION_TTL_MS);
            actions.tell(request.to(ServerSet::first(actions.roster().len())));
        }
    }

    fn result(&self, round: &Round, actions: &mut dyn Actions) -> End {
        let &Self { number, asked_at, valid_until, .. } = self;
        let (view, lock) = (&self.view, self.view.held_lock());
        let is_reached = round.outcome() == Outcome::Reached && actions.now() < lock.valid_until();
        let is_ours = end_round(view, number, is_reached, round);
        if lock.has_ended() {
            // Another handle released the lock meanwhile.
            return Err(round.error(Status::Lost, actions.roster()));
        }
        if is_ours {
            if lock.shorten(valid_until, round.end(actions.policy().drift(), 0, asked_at)) {
                // The lock must be renewed earlier than the moment that its keepers wait for.
                actions.wake_keepers(*lock.token());
            }
            return Ok(Ended::Extended { absent: round.absent(actions.roster()) });
        }
        let is_valid = round.outcome() != Outcome::Refused
            && actions.now() < lock.valid_until()
            && !view.is_lost();
        if !is_valid {
            give_up(view, actions);
            return Err(round.error(Status::Lost, actions.roster()));
        }
        let error = round.error(Status::Unreachable, actions.roster());
        Err(shared_all_the_same(&error))
    }
}

/// The error if the lock may be shared on some servers already.
fn shared_all_the_same(error: &Error) -> Error {
    let words = format!("{error}; the lock is still held, but counts as shared from now on");
    Error::new(error.status(), words)
}

impl Inquiry for Downgrade {
    fn rounds(&mut self) -> &mut Rounds {
        &mut self.rounds
    }

    fn begin(&mut self, actions: &mut dyn Actions) -> Option<(Moment, i64)> {
        let lock = self.view.held_lock();
        if let Err(error) = lock.check_valid(actions.now()) {
            give_up(&self.view, actions);
            actions.end(Err(error));
            return None;
        }
        Some((lock.valid_until(), lock.ttl_ms()))
    }

    fn ask(&mut self, actions: &mut dyn Actions) -> Round {
        let (view, lock, asked_at) = (&self.view, self.view.held_lock(), actions.now());
        let (valid_until, ttl_ms) = (lock.valid_until(), lock.ttl_ms());
        (self.asked_at, self.valid_until) = (asked_at, valid_until);
        self.number = view.begin_downgrade();
        let round = Round::extend(valid_until, 0, view.clone(), actions.roster().len());
        let reply_ms = reply_ms(actions, ttl_ms);
        let limits = Limits { since: asked_at, until: valid_until, reply_ms };
        actions.ask(request(Verb::Downgrade, view, ttl_ms).numbered(self.number), limits);
        self.call_readers(actions);
        // Waiting readers of this manager ask behind the downgrade.
        let next = actions.wait_queues().downgraded(lock);
        next.into_iter().for_each(|waiter| actions.end_wait(waiter));
        round
    }

    fn conclude(&mut self, round: Round, actions: &mut dyn Actions) -> Continuation {
        let result = self.result(&round, actions);
        actions.end(result);
        Continuation::Over
    }

    fn cancel(&mut self, actions: &mut dyn Actions) {
        let is_asking = self.rounds.is_asking();
        if is_asking {
            self.view.fail_round(self.number);
        }
        actions.end(Err(if is_asking { shared_all_the_same(&cancelled()) } else { cancelled() }));
    }

    fn resource(&self) -> &Arc<[u8]> {
        self.view.held_lock().resource()
    }
}
