//! Giving a lock a new TTL, and giving it again to servers that have lost it.

use std::mem;

use super::connect::{ConnectQuorum, Progress};
use super::question::Question;
use super::{
    Actions, Ended, Event, Limits, Miss, Operation, check_valid, end_round, give_up, release_of,
    reply_ms, request,
};
use crate::command::Verb;
use crate::error::Status;
use crate::held_lock::View;
use crate::moment::Moment;
use crate::quorum::backoff;
use crate::quorum::round::Outcome;

/// Extends a lock.
pub(crate) struct Extend {
    view: View,
    ttl_ms: i64,
    /// How often it is tried still while the servers cannot be reached.
    tries_left: i64,
    stage: Stage,
}

enum Stage {
    Submitted,
    Connecting(Box<ConnectQuorum>),
    Asking(Box<Asking>),
    /// Between two tries.
    Pausing,
}

/// The servers are asked, in the round of this number.
struct Asking {
    question: Question,
    number: u32,
    extended_until: Moment,
}

impl Extend {
    /// Tries once.
    pub(crate) fn new(view: View, ttl_ms: i64) -> Self {
        Self { view, ttl_ms, tries_left: 1, stage: Stage::Submitted }
    }

    /// Tries so often, with the pauses of the settings.
    pub(crate) fn with_tries(self, tries: i64) -> Self {
        Self { tries_left: tries, ..self }
    }

    fn begin(&mut self, actions: &mut dyn Actions) {
        self.tries_left -= 1;
        let hold = self.view.hold();
        if let Err(error) = check_valid(hold, actions.now()) {
            give_up(&self.view, actions);
            return actions.end(Err(error.into()));
        }
        match ConnectQuorum::if_needed(hold.valid_until(), self.ttl_ms, actions) {
            Some(quorum) => self.stage = Stage::Connecting(quorum),
            None => self.ask(actions),
        }
    }

    fn ask(&mut self, actions: &mut dyn Actions) {
        let (view, hold, since) = (&self.view, self.view.hold(), actions.now());
        let (valid_until, ttl_ms) = (hold.valid_until(), self.ttl_ms);
        hold.note_ttl(ttl_ms);
        self.stage = Stage::Asking(Box::new(Asking {
            question: Question::extend(valid_until, view.clone(), actions.roster().len()),
            number: view.begin_round(),
            extended_until: actions.settings().drift().deadline(since, ttl_ms),
        }));
        let reply_ms = reply_ms(actions, ttl_ms);
        let limits = Limits { since, until: valid_until, reply_ms };
        actions.ask(request(Verb::Extend, &self.view, ttl_ms), limits);
    }

    fn conclude(&mut self, asking: Asking, actions: &mut dyn Actions) {
        let Asking { question, number, extended_until } = asking;
        let (view, hold) = (&self.view, self.view.hold());
        let is_reached = question.outcome() == Outcome::Reached
            && actions.now() < extended_until.max(hold.valid_until());
        let is_extended = end_round(view, number, is_reached, &question);
        if hold.has_ended() {
            // Another handle released it meanwhile.
            return self.fail(&Miss::Votes(Status::Lost, Box::new(question)), actions);
        }
        if is_extended {
            hold.extend_to(extended_until);
            self.repair(actions);
            let absent = question.absent(actions.roster());
            return actions.end(Ok(Ended::Extended { absent }));
        }
        // Another handle may have extended it meanwhile.
        let is_valid = question.outcome() != Outcome::Refused
            && actions.now() < hold.valid_until()
            && !view.is_lost();
        let status = if is_valid { Status::Unreachable } else { Status::Lost };
        if !is_valid {
            give_up(view, actions);
        }
        self.fail(&Miss::Votes(status, Box::new(question)), actions);
    }

    /// A quorum has just vouched for the lock: servers that have lost it are given it again. That is no
    /// extension, and changes nothing for this call.
    fn repair(&self, actions: &mut dyn Actions) {
        let view = &self.view;
        let servers = view.begin_repairs();
        if servers.is_empty() {
            return;
        }
        view.note_servers(servers);
        let told = actions.tell(request(Verb::Repair, view, self.ttl_ms).to(servers));
        view.withdraw_repairs(servers.minus(told));
        if view.hold().has_ended() {
            // Another handle released it meanwhile, and its release may have come before the repair.
            view.hold().note_release();
            actions.tell(release_of(view));
        }
    }

    /// Tries again after a pause, if that is of use.
    fn fail(&mut self, miss: &Miss, actions: &mut dyn Actions) {
        let is_unreachable = matches!(miss, Miss::Votes(Status::Unreachable, _));
        if !is_unreachable || self.tries_left <= 0 {
            let error = miss.error(actions.roster());
            return actions.end(Err(error.into()));
        }
        match actions.random() {
            Ok(random) => {
                let pause = backoff::pause(actions.settings().retry_delay_ms(), random);
                let until = actions.now().plus(pause);
                self.stage = Stage::Pausing;
                actions.wait_until(until);
            }
            Err(error) => actions.end(Err(error.into())),
        }
    }
}

impl Operation for Extend {
    fn handle(&mut self, event: Event, actions: &mut dyn Actions) {
        match mem::replace(&mut self.stage, Stage::Submitted) {
            Stage::Submitted | Stage::Pausing => self.begin(actions),
            Stage::Connecting(mut quorum) => match quorum.handle(event, actions) {
                Progress::Pending => self.stage = Stage::Connecting(quorum),
                Progress::Connected => self.ask(actions),
                Progress::Failed(miss) => self.fail(&miss, actions),
            },
            Stage::Asking(asking) => self.conclude(*asking, actions),
        }
    }

    fn question(&mut self) -> Option<&mut Question> {
        match &mut self.stage {
            Stage::Submitted | Stage::Pausing => None,
            Stage::Connecting(quorum) => quorum.question(),
            Stage::Asking(asking) => Some(&mut asking.question),
        }
    }
}
