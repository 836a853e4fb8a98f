//! Asking how many permits of a semaphore are taken.

use std::mem;
use std::sync::Arc;

use super::connect::{ConnectQuorum, Progress};
use super::round::Round;
use super::{Actions, Ended, Event, Limits, Operation, QUESTION_TTL_MS, reply_ms};
use crate::command::{Request, Verb};
use crate::error::Status;
use crate::lock_kind::Target;
use crate::moment::Moment;
use crate::stats::{Account, Kind};
use crate::token::Token;

/// Asks the servers which slots of a semaphore are held.
pub(crate) struct InspectPermits {
    target: Target,
    stage: Stage,
}

enum Stage {
    Submitted,
    Connecting(Box<ConnectQuorum>),
    Asking(Box<Round>),
}

impl InspectPermits {
    pub(crate) fn new(target: Target) -> Self {
        Self { target, stage: Stage::Submitted }
    }

    fn begin(&mut self, actions: &mut dyn Actions) {
        match ConnectQuorum::if_needed(Moment::NEVER, QUESTION_TTL_MS, actions) {
            Some(quorum) => self.stage = Stage::Connecting(quorum),
            None => self.ask(actions),
        }
    }

    fn ask(&mut self, actions: &mut dyn Actions) {
        let target = self.target.clone();
        let of = target.kind.permits().unwrap_or(1);
        let round = Round::taken(of, actions.roster().len()).with_end();
        let request = Request::new(Verb::Inspect, target, Token::NOBODYS, QUESTION_TTL_MS);
        self.stage = Stage::Asking(Box::new(round));
        let (since, reply_ms) = (actions.now(), reply_ms(actions, QUESTION_TTL_MS));
        actions.ask(request, Limits { since, until: Moment::NEVER, reply_ms });
    }
}

impl Operation for InspectPermits {
    fn handle(&mut self, event: Event, actions: &mut dyn Actions) {
        match mem::replace(&mut self.stage, Stage::Submitted) {
            Stage::Submitted => self.begin(actions),
            Stage::Connecting(mut quorum) => match quorum.handle(event, actions) {
                Progress::Pending => self.stage = Stage::Connecting(quorum),
                Progress::Connected => self.ask(actions),
                Progress::Failed(miss) => miss.end(actions),
            },
            Stage::Asking(taken) => actions.end(match taken.permits_taken() {
                Some((taken_count, first_end)) => {
                    let absent = taken.absent(actions.roster());
                    Ok(Ended::Counted { taken: taken_count, first_end, absent })
                }
                None => Err(taken.error(Status::Unreachable, actions.roster())),
            }),
        }
    }

    fn account(&self) -> Account {
        Account { kind: Kind::Inspect, ..Account::default() }
    }

    fn resource(&self) -> Option<&Arc<[u8]>> {
        Some(&self.target.resource)
    }

    fn round(&mut self) -> Option<&mut Round> {
        match &mut self.stage {
            Stage::Submitted => None,
            Stage::Connecting(quorum) => quorum.round(),
            Stage::Asking(taken) => Some(taken),
        }
    }
}
