//! How the servers' answers are evaluated. Each answer becomes a vote in a round. The answers of servers that
//! did not vote yes are kept for the error text.

mod confirmation;
mod count;
mod count_rule;
mod permits;
mod place;

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

pub(crate) use self::confirmation::Confirmation;
pub(crate) use self::count::Absence;
use self::count::{Confirms, Count, Releases};
use self::count_rule::Heard;
pub(crate) use self::permits::Found;
use self::place::Places;
use crate::protocol::command::{Answer, NthKey, Slots, shared};
use crate::protocol::condition::Condition;
use crate::protocol::error::{Error, Status};
use crate::protocol::failure::Failure;
use crate::protocol::lock::{Lock, View};
use crate::protocol::moment::Moment;
use crate::protocol::quorum::backoff::{Claim, Denial};
use crate::protocol::quorum::ballot::{Ballot, Vote};
use crate::protocol::quorum::draw::Draw;
use crate::protocol::quorum::holders::{Finding, Holders};
use crate::protocol::quorum::permit_count::PermitCount;
use crate::protocol::quorum::permits::Permits;
use crate::protocol::quorum::readers::Readers;
use crate::protocol::quorum::restoration::{Base, Restoring};
use crate::protocol::quorum::tally::{Goal, Outcome, Tally};
use crate::protocol::quorum::validity::{Drift, TTL_MAX_MS};
use crate::protocol::server_set::ServerSet;
use crate::protocol::servers::endpoint::Endpoint;
use crate::protocol::token::Token;
use crate::protocol::wait_queue::QueueRank;

/// One question to all servers, and its result.
pub(crate) struct Round {
    count: Count,
    /// The lock that an attempt asks for.
    attempt: Option<Arc<Lock>>,
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
    /// Whether nothing more needs to be heard.
    is_decided: bool,
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

impl Round {
    fn toward(goal: Goal, servers: usize) -> Self {
        Self::new(Count::Tally(Tally::new(goal, servers)))
    }

    /// Whether a quorum of servers can be connected.
    pub(crate) fn connect(servers: usize) -> Self {
        Self::toward(Goal::Connect, servers)
    }

    /// An attempt to take a lock.
    pub(crate) fn acquire(lock: Arc<Lock>, servers: usize) -> Self {
        let valid_until = lock.deadline();
        Self { attempt: Some(lock), ..Self::toward(Goal::Acquire { valid_until }, servers) }
    }

    /// Whether a quorum has the fencing token of a lock that was granted.
    pub(crate) fn raise(lock: Arc<Lock>, servers: usize) -> Self {
        let valid_until = lock.deadline();
        Self { attempt: Some(lock), ..Self::toward(Goal::Raise { valid_until }, servers) }
    }

    /// An extension by `ttl_ms` of a lock that is valid until `valid_until`.
    pub(crate) fn extend(valid_until: Moment, ttl_ms: i64, view: View, servers: usize) -> Self {
        let wanted = Wanted::Until(valid_until, ttl_ms);
        let round = Self::toward(Goal::Extend { valid_until }, servers);
        Self { view: Some(view), wanted, ..round }
    }

    pub(crate) fn release(absence: Absence, servers: usize) -> Self {
        Self::new(Count::Release(Releases::new(absence, servers)))
    }

    /// A question whether a lock is there.
    pub(crate) fn confirm(confirmation: Confirmation, view: View, servers: usize) -> Self {
        let wanted = Wanted::Until(view.held_lock().valid_until(), 0);
        let count = Count::Confirm(Box::new(Confirms::new(confirmation, false, servers)));
        Self { view: Some(view), wanted, ..Self::new(count) }
    }

    /// A question whether a lock is there that this manager wants to adopt. The word of every server counts.
    pub(crate) fn adopt(confirmation: Confirmation, servers: usize) -> Self {
        Self::new(Count::Confirm(Box::new(Confirms::new(confirmation, true, servers))))
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
        Self::new(Count::Waitlist(Places::new(asked_at, servers)))
    }

    /// The same question, which also finds out when the lock ends that is held.
    pub(crate) fn with_end(self) -> Self {
        Self { wanted: Wanted::End, ..self }
    }

    fn new(count: Count) -> Self {
        let (draw, lefts, heard, reasons, unheard) = Default::default();
        let (attempt, view, wanted) = (None, None, Wanted::Nothing);
        let (has_woken, is_decided) = (false, false);
        Self {
            count,
            attempt,
            draw,
            view,
            lefts,
            wanted,
            heard,
            reasons,
            unheard,
            has_woken,
            is_decided,
        }
    }

    /// How the question ended. A question that was never decided found too few servers.
    pub(crate) fn outcome(&self) -> Outcome {
        self.count.get().outcome().unwrap_or(Outcome::Unreachable)
    }

    /// The lock that this attempt asked for.
    pub(crate) fn attempted(&self) -> Option<&Arc<Lock>> {
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
        let Count::Confirm(confirms) = &self.count else { return 0 };
        let confirm = &confirms.confirmation;
        let mut left_ms = confirm.left_ms.clone();
        left_ms.sort_unstable_by(|a, b| b.cmp(a));
        let least = left_ms.get(self.ballot().quorum() as usize - 1).copied().unwrap_or(0);
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
    pub(crate) fn places(&self) -> &[(usize, QueueRank)] {
        match &self.count {
            Count::Waitlist(places) => places.heard(),
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
        matches!(&self.count, Count::Tally(round) if round.goal() == Goal::Connect)
    }

    /// Whether a confirmation found its own lock in this answer.
    fn is_ours(&self, answer: &Answer) -> bool {
        matches!(&self.count, Count::Confirm(it) if it.confirmation.left_ms(answer).is_some())
    }

    /// Whether some servers have granted an attempt, and others have refused it because another client has the
    /// lock.
    pub(crate) fn is_divided(&self) -> bool {
        let ballot = self.ballot();
        self.attempt.is_some() && ballot.yes() > 0 && ballot.no() > 0
    }

    fn ballot(&self) -> &Ballot {
        self.count.get().ballot()
    }
}

/// How a question counts a server's answer.
impl Round {
    /// Hears a server's answer. Returns whether nothing more needs to be heard.
    pub(crate) fn hear(&mut self, server: usize, answer: Answer, now: Moment) -> bool {
        self.has_woken |= matches!(answer, Answer::Woke);
        let is_late = self.is_decided && !self.count.get().counts_on();
        let is_vote = self.is_vote(server);
        let plain = Self::plain_vote(&answer, is_vote);
        let heard = Heard { server, answer: &answer, plain, is_vote, now };
        if is_late {
            self.count.get_mut().hear_late(&heard);
            self.note_late(server, &answer);
            return true;
        }
        if let &Answer::Granted { number } | &Answer::GrantedByClock { number } = &answer {
            self.draw.note(number);
        }
        self.heard += 1;
        self.note_left(&answer, now);
        let count = self.count.get_mut();
        let (vote, has_outcome) = (count.hear(&heard), count.outcome().is_some());
        if vote != Vote::Yes {
            self.reasons.push((server, self.count.get().reason(answer)));
        }
        self.is_decided = has_outcome && self.is_end_known();
        self.is_decided
    }

    /// The vote that an answer is where a vote needs nothing else.
    fn plain_vote(answer: &Answer, is_vote: bool) -> Vote {
        match answer {
            Answer::Done
            | Answer::Woke
            | Answer::Granted { .. }
            | Answer::GrantedByClock { .. }
            | Answer::Slots(Slots { got: Some(_), .. }) => Vote::Yes,
            Answer::Extended { .. } if is_vote => Vote::Yes,
            Answer::Failed(_) => Vote::Unusable,
            _ => Vote::No,
        }
    }

    /// The servers whose condition the question must be told, now that it is closed. None unless the question
    /// has failed.
    pub(crate) fn wanted_conditions(&self) -> ServerSet {
        if !self.is_decided || self.outcome() == Outcome::Reached {
            return ServerSet::default();
        }
        let ballot = self.ballot();
        let is_heard = |server| self.unheard.iter().any(|noted| noted.0 == server);
        let may_have_changed = |server| self.is_about_connections() && ballot.has_agreed(server);
        let servers = 0..ballot.servers() as usize;
        servers
            .filter(|&server| ballot.is_pending(server) || may_have_changed(server))
            .filter(|&server| !is_heard(server))
            .collect()
    }

    /// Notes the condition of a server that the question wants to know about.
    pub(crate) fn note_condition(&mut self, server: usize, condition: Condition) {
        self.unheard.push((server, condition));
    }
}

/// When a lock ends that the servers were asked about.
///
/// It ends when fewer than a quorum of the servers have it. Servers may have it for different times: a server was not
/// reached by the last extension, or its clock was set. What the first servers say then depends on who they are. So the
/// others are heard, too, if what they say can make a difference. Usually it cannot.
impl Round {
    /// When a quorum no longer has the lock, by the answers that were heard. If the servers were asked to
    /// extend the lock, `ttl_ms` is its new TTL. Returns two moments: the latest possible one if the clocks are
    /// right, and the one until which a quorum certainly has the lock. The second counts from `asked_at`.
    pub(crate) fn end(&self, drift: Drift, ttl_ms: i64, asked_at: Moment) -> (Moment, Moment) {
        let (servers, quorum) = (self.ballot().servers() as usize, self.ballot().quorum() as usize);
        // An extension takes nothing away: servers that were not heard may have the lock for as long as they should.
        // Whoever asks whether the lock is there wants to be sure: once a quorum was heard, they count as servers that
        // do not have it.
        let unheard = match &self.count {
            Count::Confirm(..) if self.is_held() => 0,
            _ => servers.saturating_sub(self.lefts.len()),
        };
        let Some(place) = (quorum - 1).checked_sub(unheard).filter(|it| *it < self.lefts.len())
        else {
            return (Moment::NEVER, Moment::NEVER);
        };
        // Answers come at different times. Therefore the longest remaining time and the latest end may belong
        // to different servers.
        let mut times: Vec<i64> = self.lefts.iter().map(|&(ms, _)| ms.max(ttl_ms)).collect();
        times.sort_unstable_by(|one, other| other.cmp(one));
        (self.ends(ttl_ms)[place], asked_at.plus_ms(drift.validity_ms(times[place])))
    }

    /// When the lock ends on each server that said so, the latest end first.
    fn ends(&self, ttl_ms: i64) -> Vec<Moment> {
        let end = |&(ms, heard_at): &(i64, Moment)| heard_at.plus_ms(ms.max(ttl_ms));
        let mut ends: Vec<Moment> = self.lefts.iter().map(end).collect();
        ends.sort_unstable_by(|one, other| other.cmp(one));
        ends
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
        // A negative time means that the key has no end.
        let left_ms = left_ms.map(|ms| if ms < 0 { TTL_MAX_MS } else { ms });
        self.lefts.extend(left_ms.map(|ms| (ms, now)));
    }

    /// Whether the servers that have not answered cannot change what is known of the end.
    fn is_end_known(&self) -> bool {
        match self.wanted {
            Wanted::Nothing => true,
            Wanted::End => self.count.get().is_end_sure(),
            Wanted::Until(until, ttl_ms) => {
                let is_all = self.heard >= self.ballot().servers();
                is_all || !self.is_held() || self.lasts(until, ttl_ms)
            }
        }
    }

    /// Whether a quorum of the servers has said for how long it has the lock.
    fn is_held(&self) -> bool {
        match self.outcome() {
            Outcome::Reached => true,
            // Not for as long as was asked.
            Outcome::Refused => {
                let is_quorum = self.lefts.len() >= self.ballot().quorum() as usize;
                is_quorum && self.lefts.iter().all(|&(ms, _)| ms > 0)
            }
            Outcome::TooLate | Outcome::Unreachable => false,
        }
    }

    /// Whether a quorum of the servers that were heard has the lock until this moment.
    fn lasts(&self, until: Moment, ttl_ms: i64) -> bool {
        let end = self.ends(ttl_ms).get(self.ballot().quorum() as usize - 1).copied();
        end.is_some_and(|end| end.plus_ms(Drift::PRECISION_MS) >= until)
    }
}

/// What is known after the servers refused a lock.
impl Round {
    /// Which of these servers may have the key of a lock that this question was to take. A server that says
    /// that the key belongs to another client has set nothing. No other answer makes that certain.
    pub(crate) fn may_have_it(&self, sent: ServerSet) -> ServerSet {
        let is_foreign = |reason: &&(usize, Answer)| reason.1.is_foreign();
        let foreign = self.reasons.iter().filter(is_foreign);
        sent.minus(foreign.map(|&(server, _)| server).collect())
    }

    /// Whether no later try can reach a quorum, because too many servers refuse for a reason that lasts.
    pub(crate) fn is_hopeless(&self) -> bool {
        let lasts = |reason: &&(usize, Answer)| matches!(&reason.1, Answer::Failed(failure) if failure.is_lasting());
        let lasting: ServerSet = self.reasons.iter().filter(lasts).map(|reason| reason.0).collect();
        lasting.len() > self.ballot().tolerance() as usize
    }

    /// Whether it found too few servers, and with the replies that did not come it could have found enough.
    pub(crate) fn lacks_only_replies(&self) -> bool {
        let failed = self.reasons.iter().filter_map(|(_, answer)| match answer {
            Answer::Failed(failure) => Some(failure),
            _ => None,
        });
        let others = failed.filter(|it| !matches!(it, Failure::NoAnswer { .. })).count();
        self.outcome() == Outcome::Unreachable && others <= self.ballot().tolerance() as usize
    }

    /// Whether readers are in the way.
    pub(crate) fn has_readers(&self) -> bool {
        self.reasons.iter().any(|reason| matches!(reason.1, Answer::Shared { .. }))
    }

    /// Whether only clients of this library can be in the way as servers say, and those tell waiters when they
    /// are gone: readers, a writer that waits for readers, or holders of permits.
    fn will_be_told(&self) -> bool {
        self.reasons.iter().any(|(_, answer)| {
            matches!(
                answer,
                Answer::Shared { .. }
                    | Answer::WriterWaits { .. }
                    | Answer::EnrolledForPermit { .. }
                    | Answer::EnrolledForOne { is_shared: true, .. }
            )
        })
    }

    /// What is known after the servers refused.
    pub(crate) fn refusal(&self, drift: Drift, now: Moment) -> Denial {
        let asked_at = match &self.count {
            Count::Waitlist(places) => places.asked_at(),
            _ => self.attempt.as_ref().map_or(now, |lock| lock.asked_at()),
        };
        let round_trip = Duration::from_nanos((now - asked_at).max(0).unsigned_abs());
        let claim = |&(server, ref answer): &(usize, Answer)| {
            let left_ms = answer.in_the_way_ms()?;
            if left_ms < 0 {
                return Some(Claim { server, expiry: Moment::NEVER, earliest: Moment::NEVER });
            }
            let earliest = asked_at.plus_ms(left_ms - drift.share_ms(left_ms));
            Some(Claim { server, expiry: asked_at.plus_ms(left_ms), earliest })
        };
        let claims: Vec<Claim> = self.reasons.iter().filter_map(claim).collect();
        // How many more servers refuse than may. A server that has not answered may be free. A server that
        // cannot be used is not.
        let (ballot, refusing) = (self.ballot(), self.reasons.len());
        let to_expire = refusing.saturating_sub(ballot.tolerance() as usize);
        let is_complete = claims.len() == refusing;
        let will_be_told = self.will_be_told();
        Denial { round_trip, claims, to_expire, is_complete, will_be_told }
    }
}

/// Questions about the slots of a semaphore: to take one, and to find out which are held.
impl Round {
    /// An attempt to take one of this many permits.
    pub(crate) fn permit(lock: Arc<Lock>, of: u16, servers: usize) -> Self {
        let permits = Permits::new(of, lock.token().share_of(of), lock.deadline(), servers);
        Self { attempt: Some(lock), ..Self::new(Count::Permits(permits)) }
    }

    /// The slot that was taken, or that can be.
    pub(crate) fn slot(&self) -> Found {
        let Count::Permits(permits) = &self.count else { return Found::Nothing };
        match (self.outcome(), permits.leader(), permits.next()) {
            (Outcome::Reached, Some((slot, servers)), _) => {
                Found::Had(slot, ServerSet::from_bits(servers))
            }
            (_, _, Some(slot)) => Found::MayMove(slot),
            _ => Found::Nothing,
        }
    }

    /// The question how many permits are taken.
    pub(crate) fn taken(of: u16, servers: usize) -> Self {
        Self::new(Count::Taken(PermitCount::new(of, servers)))
    }

    /// How many permits are taken, and when the first of them ends. None if the servers cannot say.
    pub(crate) fn permits_taken(&self) -> Option<(u16, Option<Moment>)> {
        let Count::Taken(taken) = &self.count else { return None };
        Some((taken.count()?, taken.first_end()))
    }

    /// The slot that each server has given us, for the servers that have answered.
    pub(crate) fn slots_given(&self) -> Vec<(usize, Option<u16>)> {
        let Count::Permits(permits) = &self.count else { return Vec::new() };
        permits.given().collect()
    }
}

/// Which of several resources the servers have refused.
impl Round {
    /// The resources that servers said to be in the way: one bit for each.
    pub(crate) fn in_the_way(&self) -> u128 {
        self.places_where(|answer| match *answer {
            Answer::Blocked { place, .. } | Answer::EnrolledForOne { place, .. } => Some(place),
            _ => None,
        })
    }

    /// Those of them that readers hold, or may hold. A server says so only to a client that asks for a place in
    /// line.
    pub(crate) fn readers_in_the_way(&self) -> u128 {
        self.places_where(|answer| match *answer {
            Answer::Blocked { place, .. }
            | Answer::EnrolledForOne { place, is_shared: true, .. } => Some(place),
            _ => None,
        })
    }

    fn places_where(&self, place: impl Fn(&Answer) -> Option<NthKey>) -> u128 {
        let bit = |place: NthKey| 1_u128.checked_shl(u32::from(place.nth) - 1);
        let bits = self.reasons.iter().filter_map(|reason| place(&reason.1).and_then(bit));
        bits.fold(0, |all, bit| all | bit)
    }
}

/// The words about a question that failed, and about servers that could not take part in one that succeeded.
impl Round {
    /// The failure in words: the votes counted and the servers named.
    pub(crate) fn error(&self, status: Status, endpoints: &[Endpoint]) -> Error {
        let ballot = self.ballot();
        let (servers, quorum) = (ballot.servers(), ballot.quorum());
        let yes = match self.is_about_connections() {
            true => self.connected(),
            false => self.count.get().votes(),
        };
        let mut words = format!(
            "{yes} of {servers} servers {}, {quorum} needed",
            self.count.get().past_tense()
        );
        words.push_str(match (status, self.outcome(), &self.count) {
            (Status::TooSlow, ..) => "; too late: no validity left",
            (Status::Lost, Outcome::TooLate, _) => "; too late: the lock had expired",
            (Status::Lost, Outcome::Reached, Count::Tally(_)) => {
                "; but the lock had ended before the replies were read"
            }
            (Status::Unreachable, Outcome::Reached, Count::Tally(_)) => {
                "; but another call found that one of them had lost the lock"
            }
            (Status::Unreachable, _, Count::Holders(_) | Count::Taken(_))
                if yes >= quorum as usize =>
            {
                "; but the replies differ, and the missing servers could complete a quorum"
            }
            _ => "",
        });
        let said = (0..endpoints.len()).filter_map(|server| Some((server, self.said_of(server)?)));
        words.push_str(&join(": ", said.collect(), endpoints));
        Error::new(status, words)
    }

    /// The words about a server that did not vote yes, or that is no longer connected.
    fn said_of(&self, server: usize) -> Option<String> {
        if let Some((_, condition)) = self.unheard.iter().find(|noted| noted.0 == server) {
            let is_fine = self.is_about_connections() && condition.is_connected;
            return (!is_fine).then(|| condition.words.clone());
        }
        if let Some(words) = self.count.get().said_of(server) {
            return Some(words);
        }
        let answer = self.reasons.iter().find(|reason| reason.0 == server);
        answer.map(|reason| self.describe(server, &reason.1)).or_else(|| {
            let is_pending = self.ballot().is_pending(server);
            is_pending.then(|| "not waited for".to_owned())
        })
    }

    /// How many servers are connected, as far as that was known at the end.
    fn connected(&self) -> usize {
        let is_unheard = |server| self.unheard.iter().any(|noted| noted.0 == server);
        let servers = 0..self.ballot().servers() as usize;
        let still = servers
            .filter(|&server| self.ballot().has_agreed(server) && !is_unheard(server))
            .count();
        still + self.unheard.iter().filter(|noted| noted.1.is_connected).count()
    }

    /// The servers that could not take part although the quorum was reached; empty if all could.
    pub(crate) fn absent(&self, endpoints: &[Endpoint]) -> String {
        let failed = |reason: &&(usize, Answer)| matches!(reason.1, Answer::Failed(_));
        let failed = self.reasons.iter().filter(failed);
        join(
            "",
            failed.map(|(server, it)| (*server, self.describe(*server, it))).collect(),
            endpoints,
        )
    }

    fn describe(&self, server: usize, answer: &Answer) -> String {
        match (answer, &self.count) {
            (Answer::Extended { .. }, _) if !self.is_vote(server) => Self::describe_doubt(),
            (Answer::Found { .. }, _) if !self.is_vote(server) && self.is_ours(answer) => {
                Self::describe_doubt()
            }
            (Answer::Found { left_ms, .. }, _) if self.is_ours(answer) => {
                format!("has the lock for only {left_ms} ms more")
            }
            (Answer::Failed(failure), _) => failure.to_string(),
            (Answer::Absent | Answer::AbsentOrReleased, _) => "no longer has the lock".to_owned(),
            (Answer::Found { value, left_ms }, _) if value == shared::VALUE => {
                held_by("readers", Some(*left_ms))
            }
            (Answer::Found { left_ms, .. }, _) => held_by("another client", Some(*left_ms)),
            (Answer::Foreign { left_ms }, _) => held_by("another client", *left_ms),
            (&Answer::Shared { readers, left_ms }, _) => match readers {
                0 => held_by("readers", left_ms),
                1 => held_by("1 reader", left_ms),
                _ => held_by(&format!("{readers} readers"), left_ms),
            },
            (Answer::WriterWaits { left_ms } | Answer::EnrolledBehindWriter { left_ms, .. }, _) => {
                format!("reserved for a waiting writer ({left_ms} ms left)")
            }
            (&Answer::Enrolled { left_ms, .. }, _) => held_by("another client", Some(left_ms)),
            (&Answer::EnrolledBehindReaders { left_ms, .. }, _) => {
                held_by("readers", Some(left_ms))
            }
            (Answer::Free, _) => "not held".to_owned(),
            (&Answer::Blocked { place, left_ms }, _) => {
                format!("{place} {}", held_by("another client", left_ms))
            }
            (Answer::Lacking { place }, _) => format!("no longer has {place}"),
            (
                Answer::Done
                | Answer::Woke
                | Answer::Granted { .. }
                | Answer::GrantedByClock { .. }
                | Answer::Extended { .. },
                _,
            ) => "agreed".to_owned(),
            (&Answer::EnrolledForOne { place, left_ms, is_shared, .. }, _) => {
                format!(
                    "{place} {}",
                    held_by(if is_shared { "readers" } else { "another client" }, left_ms)
                )
            }
            (Answer::Slots(slots), Count::Permits(permits)) => {
                permits::describe(permits.of(), slots)
            }
            // All are taken, because a server says this only to a client that stands in line.
            (Answer::EnrolledForPermit { slots, .. }, _) => {
                permits::describe(u16::try_from(slots.taken.count()).unwrap_or(u16::MAX), slots)
            }
            // Two of these stand for an answer only until it is counted.
            (
                Answer::Slots(_) | Answer::Permits(_) | Answer::Unfenced { .. } | Answer::Fences(_),
                _,
            ) => "answered".to_owned(),
        }
    }

    /// Why the word of a server that has the lock is no vote: it granted the lock late, or was given it since.
    fn describe_doubt() -> String {
        "has the lock, but not without interruption".to_owned()
    }

    /// Notes an answer that came after the question was decided. If the question failed, the words say what
    /// this server answered.
    fn note_late(&mut self, server: usize, answer: &Answer) {
        if self.outcome() == Outcome::Reached || !self.ballot().is_pending(server) {
            return;
        }
        let words = match answer {
            answer if answer.is_grant() => "agreed later".to_owned(),
            Answer::Extended { .. } if self.is_vote(server) => "agreed later".to_owned(),
            Answer::Found { .. } if self.is_vote(server) && self.is_ours(answer) => {
                "confirmed later".to_owned()
            }
            _ => self.describe(server, answer),
        };
        let is_connected = !matches!(answer, Answer::Failed(_));
        self.unheard.push((server, Condition { is_connected, words }));
    }
}

fn held_by(whom: &str, left_ms: Option<i64>) -> String {
    match left_ms {
        Some(left_ms @ 0..) => format!("held by {whom} ({left_ms} ms left)"),
        Some(_) => format!("held by {whom} (no expiry)"),
        None => format!("held by {whom}"),
    }
}

/// How long the name of a server usually is at most, with what separates it from other words.
const USUAL_NAME: usize = 32;

/// The servers in their order, each with the words about it.
fn join(begin: &str, mut said: Vec<(usize, String)>, endpoints: &[Endpoint]) -> String {
    said.sort_by_key(|entry| entry.0);
    let length = |it: &(usize, String)| it.1.len() + USUAL_NAME;
    let mut words = String::with_capacity(said.iter().map(length).sum());
    for (server, it) in said {
        words += if words.is_empty() { begin } else { ", " };
        let _ = write!(words, "{} {it}", endpoints[server]);
    }
    words
}
