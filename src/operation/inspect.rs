//! Asking whether anybody holds a lock.

use std::mem;
use std::sync::Arc;

use super::connect::{ConnectQuorum, Progress};
use super::round::Round;
use super::{Actions, Ended, Event, Limits, Operation, QUESTION_TTL_MS, reply_ms};
use crate::command::{Request, Verb, shared};
use crate::error::Status;
use crate::lock_kind::{LockKind, Target};
use crate::moment::Moment;
use crate::quorum::tally::Outcome;
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
    Asking(Box<Round>),
    /// Some servers have a token and others have the mark of readers. The question is whether the token's
    /// holder is one of the readers there.
    AskingFor(Box<InChange>),
    /// Readers hold the lock, and the question is how many. Also holds what was found before.
    Counting(Box<Round>, Box<Round>),
}

/// Holders that may be changing from an exclusive lock to a shared one.
struct InChange {
    /// The current question is about the last of these tokens. There is at least one.
    tokens: Vec<Token>,
    round: Round,
    /// What was found before.
    first: Box<Round>,
    /// The deadline for all tokens together. The call must not take longer because there are many.
    until: Moment,
}

impl Inspect {
    pub(crate) fn new(resource: &[u8]) -> Self {
        Self { resource: Arc::from(resource), counts: false, stage: Stage::Submitted }
    }

    /// The same inspection, which also asks when the lock ends, and how many readers hold it.
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
        self.stage = Stage::Asking(Box::new(self.holders(actions)));
        self.put((LockKind::Exclusive, Token::NOBODYS), Moment::NEVER, actions);
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

    fn conclude(&mut self, holders: Box<Round>, actions: &mut dyn Actions) {
        if holders.outcome() != Outcome::Reached {
            return Self::fail(&holders, actions);
        }
        let tokens = holders.holders_in_change();
        if !tokens.is_empty() {
            let until = actions.now().plus_ms(reply_ms(actions, QUESTION_TTL_MS));
            let round = self.holders(actions);
            let change = InChange { tokens, round, first: holders, until };
            return self.ask_for(Box::new(change), actions);
        }
        let is_shared = holders.is_locked_by(shared::VALUE);
        if self.counts && is_shared {
            let counting = Round::readers_of(actions.roster().len());
            self.stage = Stage::Counting(Box::new(counting), holders);
            return self.put((LockKind::Shared, Token::NOBODYS), Moment::NEVER, actions);
        }
        Self::end(&holders, is_shared.then_some(0), actions);
    }

    fn conclude_for(&mut self, mut change: Box<InChange>, actions: &mut dyn Actions) {
        let asked = &change.round;
        if asked.outcome() != Outcome::Reached {
            return Self::fail(asked, actions);
        }
        if asked.locked_until().is_some() {
            return Self::end(asked, None, actions);
        }
        change.tokens.pop();
        if !change.tokens.is_empty() {
            change.round = self.holders(actions);
            return self.ask_for(change, actions);
        }
        // The holder is none of these. But a silent server may have what other servers have, such as the mark
        // of other readers.
        if change.first.may_be_locked() {
            return Self::fail(&change.first, actions);
        }
        Self::end(&change.round, None, actions);
    }

    fn ask_for(&mut self, change: Box<InChange>, actions: &mut dyn Actions) {
        let token = change.tokens.last().copied().unwrap_or(Token::NOBODYS);
        let until = change.until;
        self.stage = Stage::AskingFor(change);
        self.put((LockKind::Shared, token), until, actions);
    }

    fn fail(round: &Round, actions: &mut dyn Actions) {
        let error = round.error(Status::Unreachable, actions.roster());
        actions.end(Err(error));
    }

    fn end(holders: &Round, readers: Option<i64>, actions: &mut dyn Actions) {
        actions.end(Ok(Ended::Inspected {
            locked_until: holders.locked_until(),
            readers,
            absent: holders.absent(actions.roster()),
        }));
    }

    fn conclude_count(counted: &Round, holders: &Round, actions: &mut dyn Actions) {
        if counted.outcome() != Outcome::Reached {
            return Self::fail(counted, actions);
        }
        // All readers may have left in between.
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
                Progress::Failed(miss) => miss.end(actions),
            },
            Stage::Asking(holders) => self.conclude(holders, actions),
            Stage::AskingFor(change) => self.conclude_for(change, actions),
            Stage::Counting(counted, holders) => Self::conclude_count(&counted, &holders, actions),
        }
    }

    fn account(&self) -> Account {
        Account { kind: Kind::Inspect, ..Account::default() }
    }

    fn resource(&self) -> Option<&Arc<[u8]>> {
        Some(&self.resource)
    }

    fn round(&mut self) -> Option<&mut Round> {
        match &mut self.stage {
            Stage::Submitted => None,
            Stage::Connecting(quorum) => quorum.round(),
            Stage::Asking(round) | Stage::Counting(round, _) => Some(round),
            Stage::AskingFor(change) => Some(&mut change.round),
        }
    }
}
