//! Asking whether anybody has a lock.

use std::mem;
use std::sync::Arc;

use super::connect::{ConnectQuorum, Progress};
use super::question::Question;
use super::{Actions, Ended, Event, Limits, Operation, QUESTION_TTL_MS, reply_ms};
use crate::command::{Request, Verb, shared};
use crate::error::Status;
use crate::lock_kind::{LockKind, Target};
use crate::moment::Moment;
use crate::quorum::round::Outcome;
use crate::stats::{Account, Kind};
use crate::token::Token;

/// Asks the servers whether anybody holds a resource.
pub(crate) struct Inspect {
    resource: Arc<[u8]>,
    counts: bool,
    stage: Stage,
}

enum Stage {
    Submitted,
    Connecting(Box<ConnectQuorum>),
    Asking(Box<Question>),
    /// Readers have it: how many? With what was found before.
    Counting(Box<Question>, Box<Question>),
}

impl Inspect {
    pub(crate) fn new(resource: &[u8]) -> Self {
        Self { resource: Arc::from(resource), counts: false, stage: Stage::Submitted }
    }

    /// The same, which asks as well how many readers have it.
    pub(crate) fn with_count(self) -> Self {
        Self { counts: true, ..self }
    }

    fn begin(&mut self, actions: &mut dyn Actions) {
        match ConnectQuorum::if_needed(Moment::NEVER, QUESTION_TTL_MS, actions) {
            Some(quorum) => self.stage = Stage::Connecting(quorum),
            None => self.ask(actions),
        }
    }

    fn ask(&mut self, actions: &mut dyn Actions) {
        self.stage = Stage::Asking(Box::new(Question::holders(actions.roster().len())));
        self.put(LockKind::Exclusive, actions);
    }

    /// As the holder of an exclusive lock asks, and every server knows how to answer; or as a reader.
    fn put(&self, kind: LockKind, actions: &mut dyn Actions) {
        let nobody = Token::from_random([0; 20]);
        let target = Target { resource: Arc::clone(&self.resource), kind };
        let request = Request::new(Verb::Inspect, target, nobody, QUESTION_TTL_MS);
        let (since, reply_ms) = (actions.now(), reply_ms(actions, QUESTION_TTL_MS));
        actions.ask(request, Limits { since, until: Moment::NEVER, reply_ms });
    }

    fn conclude(&mut self, holders: Box<Question>, actions: &mut dyn Actions) {
        if holders.outcome() != Outcome::Reached {
            let error = holders.error(Status::Unreachable, actions.roster());
            return actions.end(Err(error.into()));
        }
        if self.counts && holders.is_locked_by(shared::VALUE) {
            let counting = Question::readers_of(actions.roster().len());
            self.stage = Stage::Counting(Box::new(counting), holders);
            return self.put(LockKind::Shared, actions);
        }
        let is_shared = holders.is_locked_by(shared::VALUE);
        actions.end(Ok(Ended::Inspected {
            locked_until: holders.locked_until(),
            readers: is_shared.then_some(0),
            absent: holders.absent(actions.roster()),
        }));
    }

    fn conclude_count(counted: &Question, holders: &Question, actions: &mut dyn Actions) {
        if counted.outcome() != Outcome::Reached {
            let error = counted.error(Status::Unreachable, actions.roster());
            return actions.end(Err(error.into()));
        }
        // They may all have left in between.
        let readers = counted.readers();
        let locked_until = holders.locked_until().filter(|_| readers > 0);
        let absent = counted.absent(actions.roster());
        actions.end(Ok(Ended::Inspected { locked_until, readers: Some(readers), absent }));
    }
}

impl Operation for Inspect {
    fn handle(&mut self, event: Event, actions: &mut dyn Actions) {
        match mem::replace(&mut self.stage, Stage::Submitted) {
            Stage::Submitted => self.begin(actions),
            Stage::Connecting(mut quorum) => match quorum.handle(event, actions) {
                Progress::Pending => self.stage = Stage::Connecting(quorum),
                Progress::Connected => self.ask(actions),
                Progress::Failed(miss) => {
                    let error = miss.error(actions.roster());
                    actions.end(Err(error.into()));
                }
            },
            Stage::Asking(holders) => self.conclude(holders, actions),
            Stage::Counting(counted, holders) => Self::conclude_count(&counted, &holders, actions),
        }
    }

    fn account(&self) -> Account {
        Account { kind: Kind::Inspect, ..Account::default() }
    }

    fn resource(&self) -> Option<&Arc<[u8]>> {
        Some(&self.resource)
    }

    fn question(&mut self) -> Option<&mut Question> {
        match &mut self.stage {
            Stage::Submitted => None,
            Stage::Connecting(quorum) => quorum.question(),
            Stage::Asking(question) | Stage::Counting(question, _) => Some(question),
        }
    }
}
