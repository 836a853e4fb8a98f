//! What is made of the servers' answers: each becomes a vote in a round, and the reasons of those
//! that did not vote yes are kept, for the words.

mod confirmation;
mod hearing;
mod in_the_way;
mod permits;
mod place;
mod refusals;
mod slots;
mod words;

use std::sync::Arc;

pub(crate) use self::confirmation::Confirmation;
pub(crate) use self::permits::Found;
use self::place::Places;
use crate::command::{Answer, shared};
use crate::held_lock::{HeldLock, View};
use crate::moment::Moment;
use crate::quorum::ballot::Ballot;
use crate::quorum::draw::Draw;
use crate::quorum::holders::{Finding, Holders};
use crate::quorum::permits::Permits;
use crate::quorum::readers::Readers;
use crate::quorum::round::{Goal, Outcome, Round};
use crate::quorum::taken::Taken;
use crate::quorum::validity::{Drift, TTL_MAX_MS};
use crate::server_set::ServerSet;
use crate::token::Token;
use crate::transport::condition::Condition;
use crate::wait_queue::Place;

/// One question to all servers, and what came of it.
pub(crate) struct Question {
    count: Count,
    /// The lock that an attempt asks for.
    attempt: Option<Arc<HeldLock>>,
    /// The fencing tokens that were drawn for it.
    draw: Draw,
    /// The lock that is to be extended or confirmed: not every server's word that it has it is a vote.
    view: Option<View>,
    /// For how many milliseconds servers have that lock, by what they said, and when that was heard; those that have it
    /// not, for 0.
    lefts: Vec<(i64, Moment)>,
    /// What was said by servers that did not vote yes.
    reasons: Vec<(usize, Answer)>,
    /// What is known of those that were not heard before it failed, or may have changed since.
    unheard: Vec<(usize, Condition)>,
    /// Whether a server has woken somebody who waits for the lock that is released.
    has_woken: bool,
}

enum Count {
    /// To take or extend a lock, or to have connections.
    Round(Round),
    /// To take a permit of a semaphore.
    Permits(Permits),
    /// To find out how many permits are taken.
    Taken(Taken),
    /// To release a lock.
    Release(Round, Absence),
    /// To confirm a lock.
    Confirm(Round, Confirmation),
    /// To find out whether there is a lock.
    Holders(Holders),
    /// To find out how many readers there are.
    Readers(Readers),
    /// To hear of every server once.
    AllServers(Ballot),
    /// To stand in line for a resource.
    Line(Places),
}

/// What it means that a server has nothing to delete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Absence {
    /// The lock was lost there.
    Lost,
    /// So it was, unless the release went there twice: when it was sent, the lock was held.
    LostUnlessRepeated,
    /// We have released it: that was tried before.
    Released,
}

impl Question {
    fn round(goal: Goal, servers: usize) -> Self {
        Self::new(Count::Round(Round::new(goal, servers)))
    }

    /// Whether a quorum can be connected to.
    pub(crate) fn connect(servers: usize) -> Self {
        Self::round(Goal::Connect, servers)
    }

    /// An attempt to take a lock.
    pub(crate) fn acquire(hold: Arc<HeldLock>, servers: usize) -> Self {
        let valid_until = hold.deadline();
        Self { attempt: Some(hold), ..Self::round(Goal::Acquire { valid_until }, servers) }
    }

    /// Whether the fencing token of a lock that was granted stands on a quorum.
    pub(crate) fn raise(hold: Arc<HeldLock>, servers: usize) -> Self {
        let valid_until = hold.deadline();
        Self { attempt: Some(hold), ..Self::round(Goal::Raise { valid_until }, servers) }
    }

    /// An extension of a lock that is valid until then.
    pub(crate) fn extend(valid_until: Moment, view: View, servers: usize) -> Self {
        Self { view: Some(view), ..Self::round(Goal::Extend { valid_until }, servers) }
    }

    pub(crate) fn release(absence: Absence, servers: usize) -> Self {
        Self::new(Count::Release(Round::new(Goal::Release, servers), absence))
    }

    /// A question whether a lock is there. It may be extended meanwhile by another call, so it has no end of
    /// its own.
    pub(crate) fn confirm(confirmation: Confirmation, view: View, servers: usize) -> Self {
        let round = Round::new(Goal::Extend { valid_until: Moment::NEVER }, servers);
        Self { view: Some(view), ..Self::new(Count::Confirm(round, confirmation)) }
    }

    /// A question whether a lock is there that is to be adopted: the word of every server counts.
    pub(crate) fn adopt(confirmation: Confirmation, servers: usize) -> Self {
        let round = Round::new(Goal::Extend { valid_until: Moment::NEVER }, servers);
        Self::new(Count::Confirm(round, confirmation))
    }

    pub(crate) fn holders(servers: usize) -> Self {
        Self::new(Count::Holders(Holders::new(servers).with_mark(shared::VALUE)))
    }

    /// How many readers have a resource.
    pub(crate) fn readers_of(servers: usize) -> Self {
        Self::new(Count::Readers(Readers::new(servers)))
    }

    pub(crate) fn all_servers(servers: usize) -> Self {
        Self::new(Count::AllServers(Ballot::new(servers)))
    }

    /// A question, asked at this moment, where we stand in line for a resource.
    pub(crate) fn line(asked_at: Moment, servers: usize) -> Self {
        Self::new(Count::Line(Places::new(asked_at, servers)))
    }

    fn new(count: Count) -> Self {
        let (draw, lefts, reasons, unheard) = Default::default();
        Self { count, attempt: None, draw, view: None, lefts, reasons, unheard, has_woken: false }
    }

    fn is_decided(&self) -> bool {
        match &self.count {
            Count::Round(round) | Count::Release(round, _) | Count::Confirm(round, _) => {
                round.outcome().is_some()
            }
            Count::Permits(permits) => permits.outcome().is_some(),
            Count::Taken(taken) => taken.is_decided(),
            Count::Holders(holders) => holders.finding().is_some(),
            Count::Readers(readers) => readers.outcome().is_some(),
            Count::AllServers(ballot) => ballot.pending() == 0,
            Count::Line(places) => places.is_enough(),
        }
    }

    /// How it ended. One that never did found too few servers.
    pub(crate) fn outcome(&self) -> Outcome {
        let outcome = match &self.count {
            Count::Round(round) | Count::Release(round, _) | Count::Confirm(round, _) => {
                round.outcome()
            }
            Count::Permits(permits) => permits.outcome(),
            Count::Taken(taken) => taken.count().map(|_| Outcome::Reached),
            Count::Holders(holders) => holders.finding().map(|finding| match finding {
                Finding::Locked | Finding::Free | Finding::Mixed => Outcome::Reached,
                Finding::Unreachable => Outcome::Unreachable,
            }),
            Count::Readers(readers) => readers.outcome(),
            Count::AllServers(_) | Count::Line(_) => Some(Outcome::Reached),
        };
        outcome.unwrap_or(Outcome::Unreachable)
    }

    /// The lock that this attempt asked for.
    pub(crate) fn attempted(&self) -> Option<&Arc<HeldLock>> {
        self.attempt.as_ref()
    }

    /// Until when there is a lock, if it has found one.
    pub(crate) fn locked_until(&self) -> Option<Moment> {
        let Count::Holders(holders) = &self.count else { return None };
        holders.locked_until()
    }

    /// Whether a quorum has this value.
    pub(crate) fn is_locked_by(&self, value: &[u8]) -> bool {
        matches!(&self.count, Count::Holders(holders) if holders.has(value))
    }

    /// Whose lock it may be, on a quorum, if the mark of readers stands for that holder where it stands.
    pub(crate) fn holders_in_change(&self) -> Vec<Token> {
        match &self.count {
            Count::Holders(holders) if holders.finding() == Some(Finding::Mixed) => {
                holders.mixed().filter_map(Token::from_digits).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Whether those that were not heard may make a quorum of those that have one value.
    pub(crate) fn may_be_locked(&self) -> bool {
        matches!(&self.count, Count::Holders(holders) if holders.may_be_locked())
    }

    /// How many readers a quorum has.
    pub(crate) fn readers(&self) -> i64 {
        if let Count::Readers(readers) = &self.count { readers.count() } else { 0 }
    }

    /// For how long a quorum confirmed the lock, to be sure of at `now`.
    pub(crate) fn confirmed_ms(&self, now: Moment) -> i64 {
        let Count::Confirm(round, confirm) = &self.count else { return 0 };
        let mut left_ms = confirm.left_ms.clone();
        left_ms.sort_unstable_by(|a, b| b.cmp(a));
        let least = left_ms.get(round.ballot().quorum() as usize - 1).copied().unwrap_or(0);
        least.saturating_sub(confirm.elapsed_ms(now)).max(0)
    }

    /// When a quorum has the lock no longer, by what was heard, with this TTL if they were to extend it: at the latest, if
    /// clocks are as they should be; and until when they have it for sure, asked at that moment.
    pub(crate) fn end(&self, drift: Drift, ttl_ms: i64, asked_at: Moment) -> (Moment, Moment) {
        let (servers, quorum) = (self.ballot().servers() as usize, self.ballot().quorum() as usize);
        let unheard = servers.saturating_sub(self.lefts.len());
        let Some(place) = (quorum - 1).checked_sub(unheard).filter(|it| *it < self.lefts.len())
        else {
            return (Moment::NEVER, Moment::NEVER);
        };
        // Answers come at different times: which server has it for the longest, and which until the latest, are two
        // questions.
        let lefts = self.lefts.iter().map(|&(ms, heard_at)| (ms.max(ttl_ms), heard_at));
        let mut ends: Vec<Moment> =
            lefts.clone().map(|(ms, heard_at)| heard_at.plus_ms(ms)).collect();
        let mut times: Vec<i64> = lefts.map(|(ms, _)| ms).collect();
        ends.sort_unstable_by(|one, other| other.cmp(one));
        times.sort_unstable_by(|one, other| other.cmp(one));
        (ends[place], asked_at.plus_ms(drift.validity_ms(times[place])))
    }

    /// Notes for how long a server has the lock.
    fn note_left(&mut self, answer: &Answer, now: Moment) {
        if self.view.is_none() {
            return;
        }
        let left_ms = match *answer {
            Answer::Extended { left_ms } => Some(left_ms),
            Answer::Found { left_ms, .. } if self.is_ours(answer) => Some(left_ms),
            Answer::Found { .. } | Answer::Absent | Answer::Lacking { .. } => Some(0),
            ref other => other.is_foreign().then_some(0),
        };
        // Below 0 it has no end.
        let left_ms = left_ms.map(|ms| if ms < 0 { TTL_MAX_MS } else { ms });
        self.lefts.extend(left_ms.map(|ms| (ms, now)));
    }

    /// Those that voted yes.
    pub(crate) fn voters(&self) -> ServerSet {
        let ballot = self.ballot();
        (0..ballot.servers() as usize).filter(|&server| ballot.has_agreed(server)).collect()
    }

    /// The fencing token that was drawn for the lock that was granted, 0 if it was to have none; and whether it is to
    /// be raised on other servers.
    pub(crate) fn fencing_token(&self) -> (i64, bool) {
        (self.draw.token(), self.draw.is_to_raise(self.ballot().quorum()))
    }

    /// Whether this server's word that it has the lock is a vote.
    fn is_vote(&self, server: usize) -> bool {
        self.view.as_ref().is_none_or(|view| view.is_sound(server))
    }

    /// Whether a server has woken somebody who waits for the lock that is released.
    pub(crate) fn has_woken(&self) -> bool {
        self.has_woken
    }

    /// Where we stand in line, by what the servers said.
    pub(crate) fn places(&self) -> &[(usize, Place)] {
        match &self.count {
            Count::Line(places) => places.heard(),
            _ => &[],
        }
    }

    /// Those of these servers that have not answered.
    pub(crate) fn unheard_of(&self, sent: ServerSet) -> ServerSet {
        sent.iter().filter(|&server| self.ballot().is_pending(server)).collect()
    }

    /// Whether so many voted yes that they are a quorum.
    pub(crate) fn has_quorum(&self) -> bool {
        self.ballot().yes() >= self.ballot().quorum()
    }

    /// Whether it asks for connections alone.
    fn is_about_connections(&self) -> bool {
        matches!(&self.count, Count::Round(round) if round.goal() == Goal::Connect)
    }

    /// Whether a question found the lock that it is about.
    fn is_ours(&self, answer: &Answer) -> bool {
        matches!(&self.count, Count::Confirm(_, confirm) if confirm.left_ms(answer).is_some())
    }

    /// Whether some servers have granted an attempt, and others have not because somebody else has it.
    pub(crate) fn is_divided(&self) -> bool {
        let ballot = self.ballot();
        self.attempt.is_some() && ballot.yes() > 0 && ballot.no() > 0
    }

    fn ballot(&self) -> &Ballot {
        match &self.count {
            Count::Round(round) | Count::Release(round, _) | Count::Confirm(round, _) => {
                round.ballot()
            }
            Count::Permits(permits) => permits.ballot(),
            Count::Taken(taken) => taken.ballot(),
            Count::Holders(holders) => holders.ballot(),
            Count::Readers(readers) => readers.ballot(),
            Count::AllServers(ballot) => ballot,
            Count::Line(places) => places.ballot(),
        }
    }
}

impl Absence {
    /// Whether this answer says that we have released it.
    fn is_release(self, answer: &Answer) -> bool {
        match answer {
            Answer::Absent => self == Self::Released,
            Answer::AbsentOrReleased => self != Self::Lost,
            _ => false,
        }
    }
}
