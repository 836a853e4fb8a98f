//! Turning an exclusive lock into a shared one: its holder goes on reading, and others may read, too.
//!
//! Each server makes the change in one step, and the lock keeps its end there. The lock counts as shared from
//! the moment when the servers are asked, whatever they answer, because a server may carry out the request at
//! any time. A server that was not reached makes the change with the next extension.

use std::mem;
use std::sync::Arc;

use super::connect::{ConnectQuorum, Progress};
use super::round::Round;
use super::{
    Actions, Ended, Event, Limits, Operation, QUESTION_TTL_MS, Urgency, cancelled, end_round,
    give_up, reply_ms, request,
};
use crate::command::{Request, Verb};
use crate::error::{Error, Status};
use crate::lock::View;
use crate::moment::Moment;
use crate::quorum::tally::Outcome;
use crate::server_set::ServerSet;
use crate::token::Token;

/// Turns an exclusive lock into a shared one.
pub(crate) struct Downgrade {
    view: View,
    stage: Stage,
}

enum Stage {
    Submitted,
    Connecting(Box<ConnectQuorum>),
    Asking(Box<Asking>),
}

/// The servers are asked, in the round of this number.
struct Asking {
    round: Round,
    number: u32,
    asked_at: Moment,
    /// Until when the lock was valid at that time.
    valid_until: Moment,
}

impl Downgrade {
    pub(crate) fn new(view: View) -> Self {
        Self { view, stage: Stage::Submitted }
    }

    fn begin(&mut self, actions: &mut dyn Actions) {
        let lock = self.view.held_lock();
        if let Err(error) = lock.check_valid(actions.now()) {
            give_up(&self.view, actions);
            return actions.end(Err(error));
        }
        match ConnectQuorum::if_needed(lock.valid_until(), lock.ttl_ms(), actions) {
            Some(quorum) => self.stage = Stage::Connecting(quorum),
            None => self.ask(actions),
        }
    }

    fn ask(&mut self, actions: &mut dyn Actions) {
        let (view, lock, asked_at) = (&self.view, self.view.held_lock(), actions.now());
        let (valid_until, ttl_ms) = (lock.valid_until(), lock.ttl_ms());
        let number = view.begin_downgrade();
        let round = Round::extend(valid_until, 0, view.clone(), actions.roster().len());
        self.stage = Stage::Asking(Box::new(Asking { round, number, asked_at, valid_until }));
        let reply_ms = reply_ms(actions, ttl_ms);
        let limits = Limits { since: asked_at, until: valid_until, reply_ms };
        actions.ask(request(Verb::Downgrade, view, ttl_ms).numbered(number), limits);
        self.call_readers(actions);
        // Waiting readers of this manager ask behind the downgrade.
        let next = actions.wait_queues().downgraded(lock);
        next.into_iter().for_each(|waiter| actions.end_wait(waiter));
    }

    /// Sent behind the downgrade: has the servers tell readers of other processes that wait in line.
    fn call_readers(&self, actions: &mut dyn Actions) {
        if actions.settings().has_waking() {
            // The request names a channel that nobody has.
            let resource = Arc::clone(self.view.held_lock().resource());
            let request = Request::new(Verb::Leave, resource, Token::NOBODYS, QUESTION_TTL_MS);
            actions.tell(request.to(ServerSet::first(actions.roster().len())));
        }
    }

    fn conclude(&self, asking: Asking, actions: &mut dyn Actions) {
        let Asking { round, number, asked_at, valid_until } = asking;
        let (view, lock) = (&self.view, self.view.held_lock());
        let is_reached = round.outcome() == Outcome::Reached && actions.now() < lock.valid_until();
        let is_ours = end_round(view, number, is_reached, &round);
        if lock.has_ended() {
            // Another handle released the lock meanwhile.
            let error = round.error(Status::Lost, actions.roster());
            return actions.end(Err(error));
        }
        if is_ours {
            if lock.shorten(valid_until, round.end(actions.settings().drift(), 0, asked_at)) {
                // The lock must be renewed earlier than the moment that its keepers wait for.
                actions.wake_keepers(*lock.token());
            }
            return actions.end(Ok(Ended::Extended { absent: round.absent(actions.roster()) }));
        }
        let is_valid = round.outcome() != Outcome::Refused
            && actions.now() < lock.valid_until()
            && !view.is_lost();
        if !is_valid {
            give_up(view, actions);
            let error = round.error(Status::Lost, actions.roster());
            return actions.end(Err(error));
        }
        let error = round.error(Status::Unreachable, actions.roster());
        actions.end(Err(shared_all_the_same(&error)));
    }
}

/// The error if the lock may be shared on some servers already.
fn shared_all_the_same(error: &Error) -> Error {
    let words = format!("{error}; the lock is still held, but counts as shared from now on");
    Error::new(error.status(), words)
}

impl Operation for Downgrade {
    fn handle(&mut self, event: Event, actions: &mut dyn Actions) {
        let stage = mem::replace(&mut self.stage, Stage::Submitted);
        if let Event::Cancelled { .. } = event {
            if let Stage::Asking(asking) = stage {
                self.view.fail_round(asking.number);
                return actions.end(Err(shared_all_the_same(&cancelled())));
            }
            return actions.end(Err(cancelled()));
        }
        match stage {
            Stage::Submitted => self.begin(actions),
            Stage::Connecting(mut quorum) => match quorum.handle(event, actions) {
                Progress::Pending => self.stage = Stage::Connecting(quorum),
                Progress::Connected => self.ask(actions),
                // No server was asked, so the lock is unchanged.
                Progress::Failed(miss) => miss.end(actions),
            },
            Stage::Asking(asking) => self.conclude(*asking, actions),
        }
    }

    fn urgency(&self) -> Urgency {
        Urgency::Holds
    }

    fn resource(&self) -> Option<&Arc<[u8]>> {
        Some(self.view.held_lock().resource())
    }

    fn round(&mut self) -> Option<&mut Round> {
        match &mut self.stage {
            Stage::Submitted => None,
            Stage::Connecting(quorum) => quorum.round(),
            Stage::Asking(asking) => Some(&mut asking.round),
        }
    }
}
