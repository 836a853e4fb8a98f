//! Giving a lock a new TTL, and setting it again on servers that have lost it.

use std::sync::Arc;

use std::mem;

use super::round::Round;
use super::rounds::{Rounds, Step};
use super::{
    Actions, Ended, Event, Limits, Miss, Operation, Urgency, cancelled, end_round, give_up,
    release_of, reply_ms, request,
};
use crate::protocol::command::Verb;
use crate::protocol::error::{Error, Status};
use crate::protocol::lock::View;
use crate::protocol::moment::Moment;
use crate::protocol::quorum::backoff;
use crate::protocol::quorum::tally::Outcome;
use crate::protocol::stats::{Account, Kind};

/// One attempt to extend a lock. It is a part of the operations that extend.
pub(super) struct Extension {
    view: View,
    ttl_ms: i64,
    /// When to stop waiting. The attempt never waits past the end of the lock either.
    limit: Moment,
    rounds: Rounds,
    asked: Asked,
}

/// What is known of the lock from when the servers were asked, in its round of this number.
#[derive(Clone, Copy)]
struct Asked {
    number: u32,
    extended_until: Moment,
    at: Moment,
    /// Until when the lock was valid when the servers were asked, and whether it was shared.
    valid_until: Moment,
    is_shared: bool,
}

/// The state of an attempt.
pub(super) enum Attempt {
    Pending,
    /// With words about servers that could not take part.
    Extended {
        absent: String,
    },
    Failed {
        error: Error,
        /// Whether another attempt may succeed: the lock is still valid, and the servers may come back.
        may_succeed: bool,
    },
}

impl Extension {
    pub(super) fn new(view: View, ttl_ms: i64, limit: Moment) -> Self {
        let never = Moment::NEVER;
        let asked = Asked {
            number: 0,
            extended_until: never,
            at: never,
            valid_until: never,
            is_shared: false,
        };
        Self { view, ttl_ms, limit, rounds: Rounds::default(), asked }
    }

    pub(super) fn begin(&mut self, actions: &mut dyn Actions) -> Attempt {
        let lock = self.view.held_lock();
        if let Err(error) = lock.check_valid(actions.now()) {
            give_up(&self.view, actions);
            return Attempt::Failed { error, may_succeed: false };
        }
        let limit = lock.valid_until().min(self.limit);
        if self.rounds.connect(limit, self.ttl_ms, actions) {
            self.ask(actions);
        }
        Attempt::Pending
    }

    pub(super) fn handle(&mut self, event: Event, actions: &mut dyn Actions) -> Attempt {
        match self.rounds.handle(event, actions) {
            Step::Begin | Step::Wait => {}
            Step::Ask => self.ask(actions),
            Step::Unconnected(miss) => return failed(&miss, actions),
            Step::Conclude => {
                if let Some(round) = self.rounds.take_round() {
                    return self.conclude(round, actions);
                }
            }
        }
        Attempt::Pending
    }

    /// Whether the servers were asked to extend the lock.
    pub(super) fn has_asked(&self) -> bool {
        self.rounds.is_asking()
    }

    pub(super) fn round(&mut self) -> Option<&mut Round> {
        self.rounds.round()
    }

    /// Ends at once. If the lock was valid, it stays valid until its old end.
    pub(super) fn cancel(&mut self, actions: &mut dyn Actions) {
        if self.rounds.is_asking() {
            self.view.fail_round(self.asked.number);
            self.shorten_again(actions);
        }
        self.rounds = Rounds::default();
    }

    /// Another handle may have released the lock meanwhile. Through another manager, the extension may come after that
    /// release, and a key that stays may live too long.
    fn shorten_again(&self, actions: &mut dyn Actions) {
        let lock = self.view.held_lock();
        if lock.has_ended() && lock.stays_ms(actions.now()) > 0 && !lock.is_detached() {
            actions.tell(release_of(&self.view, actions));
        }
    }

    fn ask(&mut self, actions: &mut dyn Actions) {
        let (view, lock, since) = (&self.view, self.view.held_lock(), actions.now());
        let (valid_until, ttl_ms) = (lock.valid_until(), self.ttl_ms);
        lock.note_ttl(ttl_ms);
        let number = view.begin_round();
        self.rounds.ask(Round::extend(valid_until, ttl_ms, view.clone(), actions.roster().len()));
        self.asked = Asked {
            number,
            extended_until: actions.policy().drift().deadline(since, ttl_ms),
            at: since,
            valid_until,
            is_shared: lock.is_shared(),
        };
        let reply_ms = reply_ms(actions, ttl_ms);
        let limits = Limits { since, until: valid_until.min(self.limit), reply_ms };
        actions.ask(request(Verb::Extend, &self.view, ttl_ms).numbered(number), limits);
    }

    fn conclude(&mut self, round: Round, actions: &mut dyn Actions) -> Attempt {
        let Asked { number, extended_until, at: asked_at, valid_until, is_shared } = self.asked;
        let (view, lock) = (&self.view, self.view.held_lock());
        let is_reached = round.outcome() == Outcome::Reached
            && actions.now() < extended_until.max(lock.valid_until());
        let is_extended = end_round(view, number, is_reached, &round);
        if lock.has_ended() {
            // Another handle released the lock meanwhile.
            self.shorten_again(actions);
            return failed(&Miss::Votes(Status::Lost, Box::new(round)), actions);
        }
        if is_extended {
            // The holder may ask for less time than the lock has left, and the servers may have less than it
            // has.
            let end = round.end(actions.policy().drift(), self.ttl_ms, asked_at);
            let is_shorter = lock.shorten(valid_until, end);
            let has_other_ttl = is_shorter || lock.ttl_ms() != self.ttl_ms;
            lock.extend_to(extended_until, self.ttl_ms);
            if let Err(error) = lock.check_valid(actions.now()) {
                // By their clocks, the servers have less time than was asked for, and it is already over.
                give_up(view, actions);
                return Attempt::Failed { error, may_succeed: false };
            }
            if has_other_ttl {
                // With this TTL the lock may need renewal earlier than the moment that its keepers wait for.
                actions.wake_keepers(*lock.token());
            }
            self.repair(actions);
            return Attempt::Extended { absent: round.absent(actions.roster()) };
        }
        // Another handle may have extended the lock meanwhile. A request for an exclusive lock may be refused
        // because the lock has become shared meanwhile.
        let is_valid = (round.outcome() != Outcome::Refused || is_shared != lock.is_shared())
            && actions.now() < lock.valid_until()
            && !view.is_lost();
        let status = if is_valid { Status::Unreachable } else { Status::Lost };
        if !is_valid {
            give_up(view, actions);
        }
        failed(&Miss::Votes(status, Box::new(round)), actions)
    }

    /// A quorum has just vouched for the lock, so servers that have lost it are given it again. This is no
    /// extension, and it changes nothing for this call.
    fn repair(&self, actions: &mut dyn Actions) {
        let view = &self.view;
        let (number, servers) = view.begin_repairs();
        if servers.is_empty() {
            return;
        }
        view.note_servers(servers);
        let repair = request(Verb::Repair, view, self.ttl_ms).numbered(number);
        let told = actions.tell(repair.to(servers));
        view.withdraw_repairs(servers.minus(told));
        if view.held_lock().has_ended() && !view.held_lock().is_detached() {
            // Another handle released the lock meanwhile, and its release may have come before the repair.
            view.held_lock().note_release();
            actions.tell(release_of(view, actions));
        }
    }
}

fn failed(miss: &Miss, actions: &dyn Actions) -> Attempt {
    let may_succeed = match miss {
        Miss::Votes(Status::Unreachable, round) => !round.is_hopeless(),
        _ => false,
    };
    Attempt::Failed { error: miss.error(actions.roster()), may_succeed }
}

/// Extends a lock.
pub(crate) struct Extend {
    extension: Extension,
    /// How many tries are left while the servers cannot be reached.
    tries_left: i64,
    is_under_way: bool,
}

impl Extend {
    /// Tries once.
    pub(crate) fn new(view: View, ttl_ms: i64) -> Self {
        let extension = Extension::new(view, ttl_ms, Moment::NEVER);
        Self { extension, tries_left: 1, is_under_way: false }
    }

    /// Makes this many tries, with the pauses of the settings.
    pub(crate) fn with_tries(self, tries: i64) -> Self {
        Self { tries_left: tries, ..self }
    }

    fn go_on(&mut self, attempt: Attempt, actions: &mut dyn Actions) {
        match attempt {
            Attempt::Pending => {}
            Attempt::Extended { absent } => actions.end(Ok(Ended::Extended { absent })),
            Attempt::Failed { error, may_succeed } if !may_succeed || self.tries_left <= 0 => {
                actions.end(Err(error));
            }
            Attempt::Failed { .. } => self.pause(actions),
        }
    }

    /// Waits before the next try.
    fn pause(&mut self, actions: &mut dyn Actions) {
        match actions.random() {
            Ok(random) => {
                let pause = backoff::pause(actions.policy().retry_delay_ms(), random);
                let until = actions.now().plus(pause);
                self.is_under_way = false;
                actions.wait_until(until);
            }
            Err(error) => actions.end(Err(error)),
        }
    }
}

impl Operation for Extend {
    fn handle(&mut self, event: Event, actions: &mut dyn Actions) {
        if let Event::Cancelled { .. } = event {
            self.extension.cancel(actions);
            return actions.end(Err(cancelled()));
        }
        let attempt = if mem::replace(&mut self.is_under_way, true) {
            self.extension.handle(event, actions)
        } else {
            self.tries_left -= 1;
            self.extension.begin(actions)
        };
        self.go_on(attempt, actions);
    }

    fn urgency(&self) -> Urgency {
        Urgency::Holds
    }

    fn account(&self) -> Account {
        Account { kind: Kind::Extend, ..Account::default() }
    }

    fn resource(&self) -> Option<&Arc<[u8]>> {
        Some(self.extension.view.held_lock().resource())
    }

    fn round(&mut self) -> Option<&mut Round> {
        self.extension.round()
    }
}
