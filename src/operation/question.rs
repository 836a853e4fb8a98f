//! How the servers' answers are evaluated. Each answer becomes a vote in a round. The answers of servers that
//! did not vote yes are kept for the error text.

mod confirmation;
mod ending;
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
use crate::quorum::restoring::{Base, Restoring};
use crate::quorum::round::{Goal, Outcome, Round};
use crate::quorum::taken::Taken;
use crate::server_set::ServerSet;
use crate::token::Token;
use crate::transport::condition::Condition;
use crate::wait_queue::Place;

/// One question to all servers, and its result.
pub(crate) struct Question {
    count: Count,
    /// The lock that an attempt asks for.
    attempt: Option<Arc<HeldLock>>,
    /// The fencing tokens that the servers drew for it.
    draw: Draw,
    /// The lock that the question extends or confirms. Not every server's word that it has the lock is a vote.
    view: Option<View>,
    /// For how many milliseconds the servers have that lock, by their answers, and when each answer was heard.
    /// The time is 0 for a server that does not have the lock.
    lefts: Vec<(i64, Moment)>,
    /// What must be known beside the outcome.
    wanted: Wanted,
    /// How many servers were heard while something was still to be found out.
    heard: u32,
    /// The answers of servers that did not vote yes.
    reasons: Vec<(usize, Answer)>,
    /// The condition of servers that were not heard before the question failed, or whose condition may have
    /// changed since.
    unheard: Vec<(usize, Condition)>,
    /// Whether a server has woken a client that waits for the lock that is released.
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
    /// To find out from which servers others can be restored.
    Fences(Restoring),
    /// To hear from every server once.
    AllServers(Ballot),
    /// To stand in line for a resource.
    Line(Places),
}

/// What a question must find out beside its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    Nothing,
    /// When the lock that was found ends.
    End,
    /// Whether a quorum has the lock until this moment, which was its end when the servers were asked. In any case a
    /// server has it for this many milliseconds after its answer.
    Until(Moment, i64),
}

/// What it means if a server has nothing to delete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Absence {
    /// The lock was lost there.
    Lost,
    /// The lock was lost there, unless the release reached the server twice. The lock was held when the release
    /// was sent.
    LostUnlessRepeated,
    /// We have released the lock there, because a release was tried before.
    Released,
}

impl Question {
    fn round(goal: Goal, servers: usize) -> Self {
        Self::new(Count::Round(Round::new(goal, servers)))
    }

    /// Whether a quorum of servers can be connected.
    pub(crate) fn connect(servers: usize) -> Self {
        Self::round(Goal::Connect, servers)
    }

    /// An attempt to take a lock.
    pub(crate) fn acquire(hold: Arc<HeldLock>, servers: usize) -> Self {
        let valid_until = hold.deadline();
        Self { attempt: Some(hold), ..Self::round(Goal::Acquire { valid_until }, servers) }
    }

    /// Whether a quorum has the fencing token of a lock that was granted.
    pub(crate) fn raise(hold: Arc<HeldLock>, servers: usize) -> Self {
        let valid_until = hold.deadline();
        Self { attempt: Some(hold), ..Self::round(Goal::Raise { valid_until }, servers) }
    }

    /// An extension by `ttl_ms` of a lock that is valid until `valid_until`.
    pub(crate) fn extend(valid_until: Moment, ttl_ms: i64, view: View, servers: usize) -> Self {
        let wanted = Wanted::Until(valid_until, ttl_ms);
        let round = Self::round(Goal::Extend { valid_until }, servers);
        Self { view: Some(view), wanted, ..round }
    }

    pub(crate) fn release(absence: Absence, servers: usize) -> Self {
        Self::new(Count::Release(Round::new(Goal::Release, servers), absence))
    }

    /// A question whether a lock is there. Another call may extend the lock meanwhile, so the question has no
    /// deadline of its own.
    pub(crate) fn confirm(confirmation: Confirmation, view: View, servers: usize) -> Self {
        let round = Round::new(Goal::Extend { valid_until: Moment::NEVER }, servers);
        let wanted = Wanted::Until(view.hold().valid_until(), 0);
        Self { view: Some(view), wanted, ..Self::new(Count::Confirm(round, confirmation)) }
    }

    /// A question whether a lock is there that this manager wants to adopt. The word of every server counts.
    pub(crate) fn adopt(confirmation: Confirmation, servers: usize) -> Self {
        let round = Round::new(Goal::Extend { valid_until: Moment::NEVER }, servers);
        Self::new(Count::Confirm(round, confirmation))
    }

    pub(crate) fn holders(servers: usize) -> Self {
        Self::new(Count::Holders(Holders::new(servers).with_mark(shared::VALUE)))
    }

    /// How many readers hold a resource.
    pub(crate) fn readers_of(servers: usize) -> Self {
        Self::new(Count::Readers(Readers::new(servers)))
    }

    /// What every server knows of fencing tokens.
    pub(crate) fn fences(servers: usize) -> Self {
        Self::new(Count::Fences(Restoring::new(servers)))
    }

    pub(crate) fn all_servers(servers: usize) -> Self {
        Self::new(Count::AllServers(Ballot::new(servers)))
    }

    /// A question about our place in line for a resource, asked at this moment.
    pub(crate) fn line(asked_at: Moment, servers: usize) -> Self {
        Self::new(Count::Line(Places::new(asked_at, servers)))
    }

    /// The same question, which also finds out when the lock ends that is held.
    pub(crate) fn with_end(self) -> Self {
        Self { wanted: Wanted::End, ..self }
    }

    fn new(count: Count) -> Self {
        let (draw, lefts, heard, reasons, unheard) = Default::default();
        let (attempt, view, wanted, has_woken) = (None, None, Wanted::Nothing, false);
        Self { count, attempt, draw, view, lefts, wanted, heard, reasons, unheard, has_woken }
    }

    /// Whether nothing more needs to be heard.
    fn is_decided(&self) -> bool {
        self.has_outcome() && self.is_end_known()
    }

    fn has_outcome(&self) -> bool {
        match &self.count {
            Count::Round(round) | Count::Release(round, _) | Count::Confirm(round, _) => {
                round.outcome().is_some()
            }
            Count::Permits(permits) => permits.outcome().is_some(),
            Count::Taken(taken) => taken.is_decided(),
            Count::Holders(holders) => holders.finding().is_some(),
            Count::Readers(readers) => readers.outcome().is_some(),
            Count::AllServers(ballot) => ballot.pending() == 0,
            Count::Fences(fences) => fences.ballot().pending() == 0,
            Count::Line(places) => places.is_enough(),
        }
    }

    /// How the question ended. A question that was never decided found too few servers.
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
            Count::AllServers(_) | Count::Line(_) | Count::Fences(_) => Some(Outcome::Reached),
        };
        outcome.unwrap_or(Outcome::Unreachable)
    }

    /// The lock that this attempt asked for.
    pub(crate) fn attempted(&self) -> Option<&Arc<HeldLock>> {
        self.attempt.as_ref()
    }

    /// Until when there is a lock, if the question found one.
    pub(crate) fn locked_until(&self) -> Option<Moment> {
        let Count::Holders(holders) = &self.count else { return None };
        holders.locked_until()
    }

    /// Whether a quorum has this value.
    pub(crate) fn is_locked_by(&self, value: &[u8]) -> bool {
        matches!(&self.count, Count::Holders(holders) if holders.has(value))
    }

    /// The tokens of holders that may have the lock on a quorum. That is so if the mark of readers, on the
    /// servers that have it, stands for that holder.
    pub(crate) fn holders_in_change(&self) -> Vec<Token> {
        match &self.count {
            Count::Holders(holders) if holders.finding() == Some(Finding::Mixed) => {
                holders.mixed().filter_map(Token::from_digits).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Whether the servers that were not heard may complete a quorum that has one value.
    pub(crate) fn may_be_locked(&self) -> bool {
        matches!(&self.count, Count::Holders(holders) if holders.may_be_locked())
    }

    /// How many readers a quorum has.
    pub(crate) fn readers(&self) -> i64 {
        if let Count::Readers(readers) = &self.count { readers.count() } else { 0 }
    }

    /// For how many milliseconds after `now` the lock is confirmed for certain by a quorum.
    pub(crate) fn confirmed_ms(&self, now: Moment) -> i64 {
        let Count::Confirm(round, confirm) = &self.count else { return 0 };
        let mut left_ms = confirm.left_ms.clone();
        left_ms.sort_unstable_by(|a, b| b.cmp(a));
        let least = left_ms.get(round.ballot().quorum() as usize - 1).copied().unwrap_or(0);
        least.saturating_sub(confirm.elapsed_ms(now)).max(0)
    }

    /// The servers that voted yes.
    pub(crate) fn voters(&self) -> ServerSet {
        let ballot = self.ballot();
        (0..ballot.servers() as usize).filter(|&server| ballot.has_agreed(server)).collect()
    }

    /// The fencing token that was drawn for the granted lock, 0 if none was drawn. Also whether the token must
    /// be raised on other servers.
    pub(crate) fn fencing_token(&self) -> (i64, bool) {
        (self.draw.token(), self.draw.is_to_raise(self.ballot().quorum()))
    }

    /// What is known of this server's numbers from all servers, if they are to be restored.
    pub(crate) fn restored(&self, server: usize) -> Option<Base> {
        let Count::Fences(fences) = &self.count else { return None };
        fences.base_of(server)
    }

    /// Whether the word of this server that it has the lock is a vote.
    fn is_vote(&self, server: usize) -> bool {
        self.view.as_ref().is_none_or(|view| view.is_sound(server))
    }

    /// Whether a server has woken a client that waits for the lock that is released.
    pub(crate) fn has_woken(&self) -> bool {
        self.has_woken
    }

    /// Our places in line, by the servers' answers.
    pub(crate) fn places(&self) -> &[(usize, Place)] {
        match &self.count {
            Count::Line(places) => places.heard(),
            _ => &[],
        }
    }

    /// Which of these servers have not answered.
    pub(crate) fn unheard_of(&self, sent: ServerSet) -> ServerSet {
        sent.iter().filter(|&server| self.ballot().is_pending(server)).collect()
    }

    /// Whether the servers that voted yes are a quorum.
    pub(crate) fn has_quorum(&self) -> bool {
        self.ballot().yes() >= self.ballot().quorum()
    }

    /// Whether the question asks for connections only.
    fn is_about_connections(&self) -> bool {
        matches!(&self.count, Count::Round(round) if round.goal() == Goal::Connect)
    }

    /// Whether a confirmation found its own lock in this answer.
    fn is_ours(&self, answer: &Answer) -> bool {
        matches!(&self.count, Count::Confirm(_, confirm) if confirm.left_ms(answer).is_some())
    }

    /// Whether some servers have granted an attempt, and others have refused it because another client has the
    /// lock.
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
            Count::Fences(fences) => fences.ballot(),
            Count::Line(places) => places.ballot(),
        }
    }
}

impl Absence {
    /// Whether this answer means that we have released the lock.
    fn is_release(self, answer: &Answer) -> bool {
        match answer {
            Answer::Absent => self == Self::Released,
            Answer::AbsentOrReleased => self != Self::Lost,
            _ => false,
        }
    }
}
