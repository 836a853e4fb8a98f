//! Asking how many permits of a semaphore are taken.

use std::sync::Arc;

use super::round::Round;
use super::rounds::{Continuation, Inquiry, Rounds};
use super::{Actions, Ended, Limits, QUESTION_TTL_MS, Urgency, reply_ms};
use crate::protocol::command::{Request, Verb};
use crate::protocol::error::Status;
use crate::protocol::lock_kind::Target;
use crate::protocol::moment::Moment;
use crate::protocol::stats::{Account, Kind};
use crate::protocol::token::Token;

/// Asks the servers which slots of a semaphore are held.
pub(crate) struct InspectPermits {
    target: Target,
    rounds: Rounds,
}

impl InspectPermits {
    pub(crate) fn new(target: Target) -> Self {
        Self { target, rounds: Rounds::default() }
    }
}

impl Inquiry for InspectPermits {
    fn rounds(&mut self) -> &mut Rounds {
        &mut self.rounds
    }

    fn begin(&mut self, _: &mut dyn Actions) -> Option<(Moment, i64)> {
        Some((Moment::NEVER, QUESTION_TTL_MS))
    }

    fn ask(&mut self, actions: &mut dyn Actions) -> Round {
        let target = self.target.clone();
        let of = target.kind.permits().unwrap_or(1);
        let round = Round::taken(of, actions.roster().len()).with_end();
        let request = Request::new(Verb::Inspect, target, Token::NOBODYS, QUESTION_TTL_MS);
        let (since, reply_ms) = (actions.now(), reply_ms(actions, QUESTION_TTL_MS));
        actions.ask(request, Limits { since, until: Moment::NEVER, reply_ms });
        round
    }

    fn conclude(&mut self, round: Round, actions: &mut dyn Actions) -> Continuation {
        actions.end(match round.permits_taken() {
            Some((taken, first_end)) => {
                let absent = round.absent(actions.roster());
                Ok(Ended::Counted { taken, first_end, absent })
            }
            None => Err(round.error(Status::Unreachable, actions.roster())),
        });
        Continuation::Over
    }

    fn urgency(&self) -> Urgency {
        Urgency::Wants
    }

    fn account(&self) -> Account {
        Account { kind: Kind::Inspect, ..Account::default() }
    }

    fn resource(&self) -> &Arc<[u8]> {
        &self.target.resource
    }
}
