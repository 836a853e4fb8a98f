//! Asking whether anybody holds a lock.

use std::mem;
use std::sync::Arc;

use super::round::Round;
use super::rounds::{Continuation, Inquiry, Rounds};
use super::{Actions, Ended, Limits, QUESTION_TTL_MS, Urgency, reply_ms};
use crate::protocol::command::{Request, Verb, shared};
use crate::protocol::error::Status;
use crate::protocol::lock_kind::{LockKind, Target};
use crate::protocol::moment::Moment;
use crate::protocol::quorum::tally::Outcome;
use crate::protocol::stats::{Account, Kind};
use crate::protocol::token::Token;

/// Asks the servers whether anybody holds a resource.
pub(crate) struct Inspect {
    resource: Arc<[u8]>,
    counts: bool,
    matter: Matter,
    rounds: Rounds,
}

/// What the servers are asked.
#[derive(Default)]
enum Matter {
    /// Who holds the resource.
    #[default]
    Holders,
    /// Some servers have a token and others have the mark of readers. The question is whether the token's
    /// holder is one of the readers there.
    Change(InChange),
    /// Readers hold the lock, and the question is how many. Also holds what was found before.
    Readers(Box<Round>),
}

/// Holders that may be changing from an exclusive lock to a shared one.
struct InChange {
    /// The current question is about the last of these tokens. There is at least one.
    tokens: Vec<Token>,
    /// What was found before.
    first: Box<Round>,
    /// The deadline for all tokens together. The call must not take longer because there are many.
    until: Moment,
}

impl Inspect {
    pub(crate) fn new(resource: &[u8]) -> Self {
        let (matter, rounds) = Default::default();
        Self { resource: Arc::from(resource), counts: false, matter, rounds }
    }

    /// The same inspection, which also asks when the lock ends, and how many readers hold it.
    pub(crate) fn with_count(self) -> Self {
        Self { counts: true, ..self }
    }

    /// The question who holds the resource. Whoever is told more than that is also told for how long.
    fn holders(&self, actions: &dyn Actions) -> Round {
        let round = Round::holders(actions.roster().len());
        if self.counts { round.with_end() } else { round }
    }

    /// Asks as the holder of an exclusive lock, which every server can answer, or as a reader.
    fn put(&self, (kind, token): (LockKind, Token), until: Moment, actions: &mut dyn Actions) {
        let target = Target { resource: Arc::clone(&self.resource), kind };
        let request = Request::new(Verb::Inspect, target, token, QUESTION_TTL_MS);
        let (since, reply_ms) = (actions.now(), reply_ms(actions, QUESTION_TTL_MS));
        actions.ask(request, Limits { since, until, reply_ms });
    }

    fn conclude_holders(&mut self, holders: Round, actions: &mut dyn Actions) -> Continuation {
        if holders.outcome() != Outcome::Reached {
            return fail(&holders, actions);
        }
        let tokens = holders.holders_in_change();
        if !tokens.is_empty() {
            let until = actions.now().plus_ms(reply_ms(actions, QUESTION_TTL_MS));
            self.matter = Matter::Change(InChange { tokens, first: Box::new(holders), until });
            return Continuation::Ask;
        }
        let is_shared = holders.is_locked_by(shared::VALUE);
        if self.counts && is_shared {
            self.matter = Matter::Readers(Box::new(holders));
            return Continuation::Ask;
        }
        end(&holders, is_shared.then_some(0), actions)
    }

    fn conclude_change(
        &mut self,
        mut change: InChange,
        asked: &Round,
        actions: &mut dyn Actions,
    ) -> Continuation {
        if asked.outcome() != Outcome::Reached {
            return fail(asked, actions);
        }
        if asked.locked_until().is_some() {
            return end(asked, None, actions);
        }
        change.tokens.pop();
        if !change.tokens.is_empty() {
            self.matter = Matter::Change(change);
            return Continuation::Ask;
        }
        // The holder is none of these. But a silent server may have what other servers have, such as the mark
        // of other readers.
        if change.first.may_be_locked() {
            return fail(&change.first, actions);
        }
        end(asked, None, actions)
    }
}

fn conclude_readers(counted: &Round, holders: &Round, actions: &mut dyn Actions) -> Continuation {
    if counted.outcome() != Outcome::Reached {
        return fail(counted, actions);
    }
    // All readers may have left in between.
    let readers = counted.readers();
    let locked_until = holders.locked_until().filter(|_| readers > 0);
    let absent = counted.absent(actions.roster());
    actions.end(Ok(Ended::Inspected { locked_until, readers: Some(readers), absent }));
    Continuation::Over
}

fn fail(round: &Round, actions: &mut dyn Actions) -> Continuation {
    let error = round.error(Status::Unreachable, actions.roster());
    actions.end(Err(error));
    Continuation::Over
}

fn end(holders: &Round, readers: Option<i64>, actions: &mut dyn Actions) -> Continuation {
    actions.end(Ok(Ended::Inspected {
        locked_until: holders.locked_until(),
        readers,
        absent: holders.absent(actions.roster()),
    }));
    Continuation::Over
}

impl Inquiry for Inspect {
    fn rounds(&mut self) -> &mut Rounds {
        &mut self.rounds
    }

    fn begin(&mut self, _: &mut dyn Actions) -> Option<(Moment, i64)> {
        Some((Moment::NEVER, QUESTION_TTL_MS))
    }

    fn ask(&mut self, actions: &mut dyn Actions) -> Round {
        let servers = actions.roster().len();
        let nobody = Token::NOBODYS;
        let (round, by, until) = match &self.matter {
            Matter::Holders => {
                (self.holders(actions), (LockKind::Exclusive, nobody), Moment::NEVER)
            }
            Matter::Change(change) => {
                let token = change.tokens.last().copied().unwrap_or(nobody);
                (self.holders(actions), (LockKind::Shared, token), change.until)
            }
            Matter::Readers(_) => {
                (Round::readers_of(servers), (LockKind::Shared, nobody), Moment::NEVER)
            }
        };
        self.put(by, until, actions);
        round
    }

    fn conclude(&mut self, round: Round, actions: &mut dyn Actions) -> Continuation {
        match mem::take(&mut self.matter) {
            Matter::Holders => self.conclude_holders(round, actions),
            Matter::Change(change) => self.conclude_change(change, &round, actions),
            Matter::Readers(holders) => conclude_readers(&round, &holders, actions),
        }
    }

    fn urgency(&self) -> Urgency {
        Urgency::Wants
    }

    fn account(&self) -> Account {
        Account { kind: Kind::Inspect, ..Account::default() }
    }

    fn resource(&self) -> &Arc<[u8]> {
        &self.resource
    }
}
