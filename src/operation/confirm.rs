//! Asking the servers whether a lock is still ours.

use std::sync::Arc;

use std::mem;

use super::connect::{ConnectQuorum, Progress};
use super::question::{Confirmation, Question};
use super::{
    Actions, Ended, Event, Limits, Operation, Urgency, cancelled, end_round, forget, reply_ms,
    request,
};
use crate::command::Verb;
use crate::error::Status;
use crate::held_lock::{Phase, View};
use crate::moment::Moment;
use crate::quorum::round::Outcome;
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
    question: Question,
    number: u32,
    is_shared: bool,
}

impl Confirm {
    pub(crate) fn new(view: View, least_ms: i64) -> Self {
        let valid_until = view.hold().valid_until();
        let (asked_at, stage) = (Moment::NEVER, Stage::Submitted);
        Self { view, least_ms, valid_until, asked_at, is_again: false, stage }
    }

    fn begin(&mut self, actions: &mut dyn Actions) {
        let hold = self.view.hold();
        if let Err(error) = hold.check_valid(actions.now()) {
            return actions.end(Err(error.into()));
        }
        match ConnectQuorum::if_needed(hold.valid_until(), hold.longest_ttl_ms(), actions) {
            Some(quorum) => self.stage = Stage::Connecting(quorum),
            None => self.ask(actions),
        }
    }

    fn ask(&mut self, actions: &mut dyn Actions) {
        let (view, hold) = (&self.view, self.view.hold());
        let (drift, since) = (actions.settings().drift(), actions.now());
        let confirmation = Confirmation::new(*hold.token(), drift, since, self.least_ms);
        (self.asked_at, self.valid_until) = (since, hold.valid_until());
        let number = view.begin_round();
        let question = Question::confirm(confirmation, view.clone(), actions.roster().len());
        self.stage =
            Stage::Asking(Box::new(Asking { question, number, is_shared: hold.is_shared() }));
        let ttl_ms = hold.longest_ttl_ms();
        let reply_ms = reply_ms(actions, ttl_ms);
        let limits = Limits { since, until: Moment::NEVER, reply_ms };
        actions.ask(request(Verb::Inspect, &self.view, ttl_ms).numbered(number), limits);
    }

    fn conclude(&mut self, asking: Asking, actions: &mut dyn Actions) {
        let Asking { question, number, is_shared } = asking;
        let (view, hold, now) = (&self.view, self.view.hold(), actions.now());
        if is_shared != hold.is_shared() && !mem::replace(&mut self.is_again, true) {
            // The question was about the exclusive lock that this was before.
            view.fail_round(number);
            return self.begin(actions);
        }
        let is_valid = now < hold.valid_until() && !hold.has_ended();
        let is_reached = question.outcome() == Outcome::Reached && is_valid;
        let is_ours = end_round(view, number, is_reached, &question);
        let end = question.end(actions.settings().drift(), 0, self.asked_at);
        if !view.is_lost() && hold.shorten(self.valid_until, end) {
            // The lock must be renewed earlier than the moment that its keepers wait for.
            actions.wake_keepers(*hold.token());
        }
        if is_ours && question.confirmed_ms(now) >= self.least_ms {
            let absent = question.absent(actions.roster());
            return actions.end(Ok(Ended::Confirmed { absent }));
        }
        let status = if is_valid && !view.is_lost() {
            let was_extended = hold.valid_until() > self.valid_until;
            let may_be_enough = hold.valid_until().ms_since(now) >= self.least_ms;
            if was_extended && may_be_enough && !mem::replace(&mut self.is_again, true) {
                // Another handle has extended the lock since the servers were asked. The question is repeated
                // only once, because a kept lock may be extended again and again.
                return self.begin(actions);
            }
            // The lock is there, or may be, but not for that long.
            let is_short = is_ours || question.outcome() == Outcome::Refused;
            if is_short { Status::TooShort } else { Status::Unreachable }
        } else {
            // A question changes nothing on the servers. Unlock clears up what is left.
            hold.pass_to(Phase::Lost);
            forget(hold, actions);
            Status::Lost
        };
        actions.end(Err(question.error(status, actions.roster()).into()));
    }

    /// Ends at once. A question changes nothing on the servers.
    fn cancel(&self, stage: &Stage, actions: &mut dyn Actions) {
        if let Stage::Asking(asking) = stage {
            self.view.fail_round(asking.number);
        }
        actions.end(Err(cancelled().into()));
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
        Some(self.view.hold().resource())
    }

    fn question(&mut self) -> Option<&mut Question> {
        match &mut self.stage {
            Stage::Submitted => None,
            Stage::Connecting(quorum) => quorum.question(),
            Stage::Asking(asking) => Some(&mut asking.question),
        }
    }
}
