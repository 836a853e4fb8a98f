//! Asking the servers whether a lock is still ours.

use std::sync::Arc;

use std::mem;

use super::connect::{ConnectQuorum, Progress};
use super::round::{Confirmation, Round};
use super::{
    Actions, Ended, Event, Limits, Operation, Urgency, cancelled, end_round, forget, reply_ms,
    request,
};
use crate::command::Verb;
use crate::error::Status;
use crate::lock::{Phase, View};
use crate::moment::Moment;
use crate::quorum::tally::Outcome;
use crate::stats::{Account, Kind};

/// Asks whether a lock is still there for at least this long.
pub(crate) struct Confirm {
    view: View,
    least_ms: i64,
    /// Until when the lock was valid when the servers were asked.
    valid_until: Moment,
    asked_at: Moment,
    /// Whether this has asked before.
    is_again: bool,
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
    is_shared: bool,
}

impl Confirm {
    pub(crate) fn new(view: View, least_ms: i64) -> Self {
        let valid_until = view.held_lock().valid_until();
        let (asked_at, stage) = (Moment::NEVER, Stage::Submitted);
        Self { view, least_ms, valid_until, asked_at, is_again: false, stage }
    }

    fn begin(&mut self, actions: &mut dyn Actions) {
        let lock = self.view.held_lock();
        if let Err(error) = lock.check_valid(actions.now()) {
            return actions.end(Err(error));
        }
        match ConnectQuorum::if_needed(lock.valid_until(), lock.longest_ttl_ms(), actions) {
            Some(quorum) => self.stage = Stage::Connecting(quorum),
            None => self.ask(actions),
        }
    }

    fn ask(&mut self, actions: &mut dyn Actions) {
        let (view, lock) = (&self.view, self.view.held_lock());
        let (drift, since) = (actions.settings().drift(), actions.now());
        let confirmation = Confirmation::new(*lock.token(), drift, since, self.least_ms);
        (self.asked_at, self.valid_until) = (since, lock.valid_until());
        let number = view.begin_round();
        let round = Round::confirm(confirmation, view.clone(), actions.roster().len());
        self.stage = Stage::Asking(Box::new(Asking { round, number, is_shared: lock.is_shared() }));
        let ttl_ms = lock.longest_ttl_ms();
        let reply_ms = reply_ms(actions, ttl_ms);
        let limits = Limits { since, until: Moment::NEVER, reply_ms };
        actions.ask(request(Verb::Inspect, &self.view, ttl_ms).numbered(number), limits);
    }

    fn conclude(&mut self, asking: Asking, actions: &mut dyn Actions) {
        let Asking { round, number, is_shared } = asking;
        let (view, lock, now) = (&self.view, self.view.held_lock(), actions.now());
        if is_shared != lock.is_shared() && !mem::replace(&mut self.is_again, true) {
            // The question was about the exclusive lock that this was before.
            view.fail_round(number);
            return self.begin(actions);
        }
        let is_valid = now < lock.valid_until() && !lock.has_ended();
        let is_reached = round.outcome() == Outcome::Reached && is_valid;
        let is_ours = end_round(view, number, is_reached, &round);
        let end = round.end(actions.settings().drift(), 0, self.asked_at);
        if !view.is_lost() && lock.shorten(self.valid_until, end) {
            // The lock must be renewed earlier than the moment that its keepers wait for.
            actions.wake_keepers(*lock.token());
        }
        if is_ours && round.confirmed_ms(now) >= self.least_ms {
            let absent = round.absent(actions.roster());
            return actions.end(Ok(Ended::Confirmed { absent }));
        }
        let status = if is_valid && !view.is_lost() {
            let was_extended = lock.valid_until() > self.valid_until;
            let may_be_enough = lock.valid_until().ms_since(now) >= self.least_ms;
            if was_extended && may_be_enough && !mem::replace(&mut self.is_again, true) {
                // Another handle has extended the lock since the servers were asked. The question is repeated
                // only once, because a kept lock may be extended again and again.
                return self.begin(actions);
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
    }

    /// Ends at once. A question changes nothing on the servers.
    fn cancel(&self, stage: &Stage, actions: &mut dyn Actions) {
        if let Stage::Asking(asking) = stage {
            self.view.fail_round(asking.number);
        }
        actions.end(Err(cancelled()));
    }
}

impl Operation for Confirm {
    fn handle(&mut self, event: Event, actions: &mut dyn Actions) {
        let stage = mem::replace(&mut self.stage, Stage::Submitted);
        if let Event::Cancelled { .. } = event {
            return self.cancel(&stage, actions);
        }
        match stage {
            Stage::Submitted => self.begin(actions),
            Stage::Connecting(mut quorum) => match quorum.handle(event, actions) {
                Progress::Pending => self.stage = Stage::Connecting(quorum),
                Progress::Connected => self.ask(actions),
                Progress::Failed(miss) => miss.end(actions),
            },
            Stage::Asking(asking) => self.conclude(*asking, actions),
        }
    }

    fn urgency(&self) -> Urgency {
        Urgency::Holds
    }

    fn account(&self) -> Account {
        Account { kind: Kind::Confirm, ..Account::default() }
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
