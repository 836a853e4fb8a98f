//! Asking whether anybody has a lock.

use std::mem;
use std::sync::Arc;

use super::connect::{ConnectQuorum, Progress};
use super::question::Question;
use super::{Actions, Ended, Event, Limits, Operation, QUESTION_TTL_MS, reply_ms};
use crate::command::{Request, Verb};
use crate::error::Status;
use crate::moment::Moment;
use crate::quorum::round::Outcome;
use crate::stats::{Account, Kind};
use crate::token::Token;

/// Asks the servers whether anybody holds a resource.
pub(crate) struct Inspect {
    resource: Arc<[u8]>,
    stage: Stage,
}

enum Stage {
    Submitted,
    Connecting(Box<ConnectQuorum>),
    Asking(Box<Question>),
}

impl Inspect {
    pub(crate) fn new(resource: &[u8]) -> Self {
        Self { resource: Arc::from(resource), stage: Stage::Submitted }
    }

    fn begin(&mut self, actions: &mut dyn Actions) {
        match ConnectQuorum::if_needed(Moment::NEVER, QUESTION_TTL_MS, actions) {
            Some(quorum) => self.stage = Stage::Connecting(quorum),
            None => self.ask(actions),
        }
    }

    fn ask(&mut self, actions: &mut dyn Actions) {
        let nobody = Token::from_random([0; 20]);
        let resource = Arc::clone(&self.resource);
        let request = Request::new(Verb::Inspect, resource, nobody, QUESTION_TTL_MS);
        self.stage = Stage::Asking(Box::new(Question::holders(actions.roster().len())));
        let (since, reply_ms) = (actions.now(), reply_ms(actions, QUESTION_TTL_MS));
        actions.ask(request, Limits { since, until: Moment::NEVER, reply_ms });
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
            Stage::Asking(holders) => actions.end(match holders.outcome() {
                Outcome::Reached => Ok(Ended::Inspected {
                    locked_until: holders.locked_until(),
                    absent: holders.absent(actions.roster()),
                }),
                _ => Err(holders.error(Status::Unreachable, actions.roster()).into()),
            }),
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
            Stage::Asking(holders) => Some(holders),
        }
    }
}
