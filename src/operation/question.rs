//! What is made of the servers' answers: each becomes a vote in a round, and the reasons of those
//! that did not vote yes are kept, for the words.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use crate::command::Answer;
use crate::error::{Error, Status};
use crate::hold::{Hold, View};
use crate::moment::Moment;
use crate::quorum::backoff::{Claim, Refusal};
use crate::quorum::ballot::{Ballot, Vote};
use crate::quorum::holders::{Finding, Holders};
use crate::quorum::round::{Goal, Outcome, Round};
use crate::quorum::validity::Drift;
use crate::server_set::ServerSet;
use crate::token::Token;
use crate::transport::condition::Condition;
use crate::transport::endpoint::Endpoint;

/// One question to all servers, and what came of it.
pub(crate) struct Question {
    count: Count,
    /// The lock that an attempt asks for.
    attempt: Option<Arc<Hold>>,
    /// The lock that is to be extended or confirmed: not every server's word that it has it is a vote.
    view: Option<View>,
    /// What was said by servers that did not vote yes.
    reasons: Vec<(usize, Answer)>,
    /// What is known of those that were not heard before it failed, or may have changed since.
    unheard: Vec<(usize, Condition)>,
}

enum Count {
    /// To take, extend or release a lock, or to have connections.
    Round(Round),
    /// To release a lock for which that was tried before: where it is gone, we did it.
    ReleaseAgain(Round),
    /// To confirm a lock.
    Confirm(Round, Confirmation),
    /// To find out whether there is a lock.
    Holders(Holders),
    /// To hear of every server once.
    AllServers(Ballot),
}

/// What a confirmation asks for.
pub(crate) struct Confirmation {
    pub(crate) token: Token,
    pub(crate) drift: Drift,
    pub(crate) asked_at: Moment,
    pub(crate) least_ms: i64,
    /// For how long those servers that voted yes have it, to be sure of, since they were asked.
    left_ms: Vec<i64>,
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
    pub(crate) fn acquire(hold: Arc<Hold>, servers: usize) -> Self {
        let valid_until = hold.deadline();
        Self { attempt: Some(hold), ..Self::round(Goal::Acquire { valid_until }, servers) }
    }

    /// An extension of a lock that is valid until then.
    pub(crate) fn extend(valid_until: Moment, view: View, servers: usize) -> Self {
        Self { view: Some(view), ..Self::round(Goal::Extend { valid_until }, servers) }
    }

    pub(crate) fn release(again: bool, servers: usize) -> Self {
        let round = Round::new(Goal::Release, servers);
        Self::new(if again { Count::ReleaseAgain(round) } else { Count::Round(round) })
    }

    /// A question whether a lock is there. It may be extended meanwhile by another call, so it has no end of
    /// its own.
    pub(crate) fn confirm(confirmation: Confirmation, view: View, servers: usize) -> Self {
        let round = Round::new(Goal::Extend { valid_until: Moment::NEVER }, servers);
        Self { view: Some(view), ..Self::new(Count::Confirm(round, confirmation)) }
    }

    pub(crate) fn holders(servers: usize) -> Self {
        Self::new(Count::Holders(Holders::new(servers)))
    }

    pub(crate) fn all_servers(servers: usize) -> Self {
        Self::new(Count::AllServers(Ballot::new(servers)))
    }

    fn new(count: Count) -> Self {
        let (reasons, unheard) = Default::default();
        Self { count, attempt: None, view: None, reasons, unheard }
    }

    fn is_decided(&self) -> bool {
        match &self.count {
            Count::Round(round) | Count::ReleaseAgain(round) | Count::Confirm(round, _) => {
                round.outcome().is_some()
            }
            Count::Holders(holders) => holders.finding().is_some(),
            Count::AllServers(ballot) => ballot.pending() == 0,
        }
    }

    /// How it ended. One that never did found too few servers.
    pub(crate) fn outcome(&self) -> Outcome {
        let outcome = match &self.count {
            Count::Round(round) | Count::ReleaseAgain(round) | Count::Confirm(round, _) => {
                round.outcome()
            }
            Count::Holders(holders) => holders.finding().map(|it| match it {
                Finding::Locked | Finding::Free => Outcome::Reached,
                Finding::Unreachable => Outcome::Unreachable,
            }),
            Count::AllServers(_) => Some(Outcome::Reached),
        };
        outcome.unwrap_or(Outcome::Unreachable)
    }

    /// The lock that this attempt asked for.
    pub(crate) fn attempted(&self) -> Option<&Arc<Hold>> {
        self.attempt.as_ref()
    }

    /// The servers, of these, that may have the key of a lock that this was to take. One that says
    /// that the key is another's has set nothing; of every other answer that is not certain.
    pub(crate) fn may_have_it(&self, sent: ServerSet) -> ServerSet {
        let is_foreign = |it: &&(usize, Answer)| matches!(it.1, Answer::Foreign { .. });
        let foreign = self.reasons.iter().filter(is_foreign);
        sent.minus(foreign.map(|&(server, _)| server).collect())
    }

    /// What is known after the servers refused.
    pub(crate) fn refusal(&self, drift: Drift, now: Moment) -> Refusal {
        let asked_at = self.attempt.as_ref().map_or(now, |hold| hold.asked_at());
        let round_trip = Duration::from_nanos((now - asked_at).max(0).unsigned_abs());
        let claim = |&(server, ref answer): &(usize, Answer)| {
            let &Answer::Foreign { left_ms: Some(left_ms) } = answer else { return None };
            if left_ms < 0 {
                return Some(Claim { server, expiry: Moment::NEVER, earliest: Moment::NEVER });
            }
            let earliest = asked_at.plus_ms(left_ms - drift.share_ms(left_ms));
            Some(Claim { server, expiry: asked_at.plus_ms(left_ms), earliest })
        };
        let claims: Vec<Claim> = self.reasons.iter().filter_map(claim).collect();
        // So many more refuse than may. Who has not answered may be free; who cannot be used is not.
        let (ballot, refusing) = (self.ballot(), self.reasons.len());
        let to_expire = refusing.saturating_sub(ballot.tolerance() as usize);
        let is_complete = claims.len() == refusing;
        Refusal { round_trip, claims, to_expire, is_complete }
    }

    /// Whether it has found a lock.
    pub(crate) fn found_lock(&self) -> bool {
        matches!(&self.count, Count::Holders(it) if it.finding() == Some(Finding::Locked))
    }

    /// For how long a quorum confirmed the lock, to be sure of at `now`.
    pub(crate) fn confirmed_ms(&self, now: Moment) -> i64 {
        let Count::Confirm(round, confirm) = &self.count else { return 0 };
        let mut left_ms = confirm.left_ms.clone();
        left_ms.sort_unstable_by(|a, b| b.cmp(a));
        let least = left_ms.get(round.ballot().quorum() as usize - 1).copied().unwrap_or(0);
        least.saturating_sub(confirm.elapsed_ms(now)).max(0)
    }

    /// Those that voted yes.
    pub(crate) fn voters(&self) -> ServerSet {
        let ballot = self.ballot();
        (0..ballot.servers() as usize).filter(|&server| ballot.has_agreed(server)).collect()
    }

    /// Whether this server's word that it has the lock is a vote.
    fn is_vote(&self, server: usize) -> bool {
        self.view.as_ref().is_none_or(|view| view.is_sound(server))
    }

    /// The failure that it is, in words: the votes counted and the servers named.
    pub(crate) fn error(&self, status: Status, endpoints: &[Endpoint]) -> Error {
        let ballot = self.ballot();
        let (servers, quorum) = (ballot.servers(), ballot.quorum());
        let yes =
            if self.is_about_connections() { self.connected() } else { ballot.yes() as usize };
        let mut words = format!("{yes} of {servers} servers {}, {quorum} needed", self.deed());
        if status == Status::TooSlow {
            words.push_str("; that came too late for any validity to be left");
        }
        if status == Status::Lost && self.outcome() == Outcome::TooLate {
            words.push_str("; that came when the lock had expired");
        }
        let said = (0..endpoints.len()).filter_map(|it| Some((it, self.said_of(it)?)));
        words.push_str(&join(": ", said.collect(), endpoints));
        Error::new(status, words)
    }

    /// What is to be said of a server that did not vote yes, or has no connection any more.
    fn said_of(&self, server: usize) -> Option<String> {
        if let Some((_, condition)) = self.unheard.iter().find(|it| it.0 == server) {
            let is_fine = self.is_about_connections() && condition.is_connected;
            return (!is_fine).then(|| condition.words.clone());
        }
        let answer = self.reasons.iter().find(|it| it.0 == server);
        answer.map(|it| self.describe(server, &it.1)).or_else(|| {
            let is_pending = self.ballot().is_pending(server);
            is_pending.then(|| "had not answered yet".to_owned())
        })
    }

    /// Whether so many voted yes that they are a quorum.
    pub(crate) fn has_quorum(&self) -> bool {
        self.ballot().yes() >= self.ballot().quorum()
    }

    /// Whether it asks for connections alone.
    fn is_about_connections(&self) -> bool {
        matches!(&self.count, Count::Round(round) if round.goal() == Goal::Connect)
    }

    /// How many servers are connected, as far as that was known at the end.
    fn connected(&self) -> usize {
        let is_unheard = |server| self.unheard.iter().any(|it| it.0 == server);
        let servers = 0..self.ballot().servers() as usize;
        let still = servers.filter(|&it| self.ballot().has_agreed(it) && !is_unheard(it)).count();
        still + self.unheard.iter().filter(|it| it.1.is_connected).count()
    }

    /// Who could not take part, although the quorum came about; nothing if all could.
    pub(crate) fn absent(&self, endpoints: &[Endpoint]) -> String {
        let failed = |it: &&(usize, Answer)| matches!(it.1, Answer::Failed(_));
        let failed = self.reasons.iter().filter(failed);
        join(
            "",
            failed.map(|(server, it)| (*server, self.describe(*server, it))).collect(),
            endpoints,
        )
    }

    /// What those did that voted yes.
    fn deed(&self) -> String {
        match &self.count {
            Count::Round(round) | Count::ReleaseAgain(round) => match round.goal() {
                Goal::Acquire { .. } => "granted".to_owned(),
                Goal::Extend { .. } => "extended".to_owned(),
                Goal::Release => "released".to_owned(),
                Goal::Connect => "are connected".to_owned(),
            },
            Count::Confirm(_, confirm) => format!("confirmed for {} ms", confirm.least_ms),
            Count::Holders(_) => "answered".to_owned(),
            Count::AllServers(_) => "are connected".to_owned(),
        }
    }

    fn describe(&self, server: usize, answer: &Answer) -> String {
        match (answer, &self.count) {
            (Answer::Extended { .. }, _) if !self.is_vote(server) => Self::describe_doubt(),
            (Answer::Found { .. }, Count::Confirm(_, confirm))
                if !self.is_vote(server) && confirm.left_ms(answer).is_some() =>
            {
                Self::describe_doubt()
            }
            (Answer::Found { left_ms, .. }, Count::Confirm(_, confirm))
                if confirm.left_ms(answer).is_some() =>
            {
                format!("has it for {left_ms} ms only")
            }
            (Answer::Failed(failure), _) => failure.to_string(),
            (Answer::Absent, _) => "has it no more".to_owned(),
            (&Answer::Found { left_ms, .. } | &Answer::Foreign { left_ms: Some(left_ms) }, _) => {
                match left_ms {
                    0.. => format!("held by another ({left_ms} ms left)"),
                    _ => "held by another (for ever)".to_owned(),
                }
            }
            (Answer::Foreign { left_ms: None }, _) => "held by another".to_owned(),
            (Answer::Done | Answer::Extended { .. }, _) => "agreed".to_owned(),
        }
    }

    /// Whether a question found the lock that it is about.
    fn is_ours(&self, answer: &Answer) -> bool {
        matches!(&self.count, Count::Confirm(_, confirm) if confirm.left_ms(answer).is_some())
    }

    /// Why the word of a server that has the lock is no vote: it granted it late, or was given it since.
    fn describe_doubt() -> String {
        "has it, but has not had it all the time".to_owned()
    }

    fn ballot(&self) -> &Ballot {
        match &self.count {
            Count::Round(round) | Count::ReleaseAgain(round) | Count::Confirm(round, _) => {
                round.ballot()
            }
            Count::Holders(holders) => holders.ballot(),
            Count::AllServers(ballot) => ballot,
        }
    }
}

impl Question {
    /// It was decided before this answer. If it has failed, the words say what came of the server.
    fn note_late(&mut self, server: usize, answer: &Answer) {
        if self.outcome() == Outcome::Reached || !self.ballot().is_pending(server) {
            return;
        }
        let words = match answer {
            Answer::Done => "agreed after that".to_owned(),
            Answer::Extended { .. } if self.is_vote(server) => "agreed after that".to_owned(),
            Answer::Found { .. } if self.is_vote(server) && self.is_ours(answer) => {
                "confirmed after that".to_owned()
            }
            _ => self.describe(server, answer),
        };
        let is_connected = !matches!(answer, Answer::Failed(_));
        self.unheard.push((server, Condition { is_connected, words }));
    }
}

/// The servers in their order, each with what is to be said of it.
fn join(begin: &str, mut said: Vec<(usize, String)>, endpoints: &[Endpoint]) -> String {
    said.sort_by_key(|it| it.0);
    let mut words = String::new();
    for (server, it) in said {
        let separator = if words.is_empty() { begin } else { ", " };
        let _ = write!(words, "{separator}{} {it}", endpoints[server]);
    }
    words
}

impl Question {
    /// A server's answer. Returns whether nothing more needs to be heard.
    pub(crate) fn hear(&mut self, server: usize, answer: Answer, now: Moment) -> bool {
        if self.is_decided() {
            self.note_late(server, &answer);
            return true;
        }
        let is_vote = self.is_vote(server);
        let plain = match &answer {
            Answer::Done => Vote::Yes,
            Answer::Extended { .. } if is_vote => Vote::Yes,
            Answer::Failed(_) => Vote::Unusable,
            _ => Vote::No,
        };
        let (vote, is_decided) = match &mut self.count {
            Count::Round(round) => (plain, round.handle_vote(server, plain, now)),
            Count::ReleaseAgain(round) => {
                let vote = if answer == Answer::Absent { Vote::Yes } else { plain };
                (vote, round.handle_vote(server, vote, now))
            }
            Count::Confirm(round, confirm) => {
                let vote = if is_vote { confirm.vote(&answer, plain, now) } else { plain };
                (vote, round.handle_vote(server, vote, now))
            }
            Count::Holders(holders) => match &answer {
                Answer::Failed(_) => (Vote::Unusable, holders.handle_silence(server)),
                Answer::Found { value, .. } => {
                    (Vote::Yes, holders.handle_value(server, Some(value.clone())))
                }
                _ => (Vote::Yes, holders.handle_value(server, None)),
            },
            Count::AllServers(ballot) => {
                ballot.cast(server, plain);
                (plain, ballot.pending() == 0)
            }
        };
        if vote != Vote::Yes {
            self.reasons.push((server, answer));
        }
        is_decided
    }

    /// Whether it is to be told how things stand with a server, now that it is closed.
    pub(crate) fn wants_condition(&self, server: usize) -> bool {
        let has_failed = self.is_decided() && self.outcome() != Outcome::Reached;
        let is_heard = self.unheard.iter().any(|it| it.0 == server);
        let ballot = self.ballot();
        let may_have_changed = ballot.is_pending(server) || ballot.has_agreed(server);
        has_failed
            && !is_heard
            && if self.is_about_connections() {
                may_have_changed
            } else {
                ballot.is_pending(server)
            }
    }

    /// How things stand with a server of which it wants to know.
    pub(crate) fn note_condition(&mut self, server: usize, condition: Condition) {
        self.unheard.push((server, condition));
    }
}

impl Confirmation {
    pub(crate) fn new(token: Token, drift: Drift, asked_at: Moment, least_ms: i64) -> Self {
        Self { token, drift, asked_at, least_ms, left_ms: Vec::new() }
    }

    fn vote(&mut self, answer: &Answer, otherwise: Vote, now: Moment) -> Vote {
        match self.left_ms(answer) {
            Some(left_ms) if left_ms.saturating_sub(self.elapsed_ms(now)) >= self.least_ms => {
                self.left_ms.push(left_ms);
                Vote::Yes
            }
            _ => otherwise,
        }
    }

    /// For how long a server has the lock, to be sure of, when it was asked; none if it has not.
    fn left_ms(&self, answer: &Answer) -> Option<i64> {
        match answer {
            Answer::Found { value, left_ms: -1 } if value == self.token.as_bytes() => {
                Some(i64::MAX)
            }
            Answer::Found { value, left_ms } if value == self.token.as_bytes() => {
                Some(self.drift.validity_ms(*left_ms))
            }
            _ => None,
        }
    }

    /// Rounded up: what is left is not to be more than there is.
    fn elapsed_ms(&self, now: Moment) -> i64 {
        now.ms_since(self.asked_at) + 1
    }
}
