//! How the answers of the servers are counted: one implementation of [`CountRule`] for each kind of question.

use super::confirmation::Confirmation;
use super::count_rule::{CountRule, Heard};
use super::permits;
use super::place::Places;
use crate::protocol::command::{Answer, Fences, FencesState, SlotValue, Slots};
use crate::protocol::moment::Moment;
use crate::protocol::quorum::ballot::{Ballot, Vote};
use crate::protocol::quorum::holders::{Finding, Holders};
use crate::protocol::quorum::permit_count::PermitCount;
use crate::protocol::quorum::permits::Permits;
use crate::protocol::quorum::readers::Readers;
use crate::protocol::quorum::restoration::{Restoring, State};
use crate::protocol::quorum::tally::{Goal, Outcome, Tally};

/// The answers to a question of one of these kinds.
pub(super) enum Count {
    /// To take or extend a lock, or to have connections.
    Tally(Tally),
    /// To take a permit of a semaphore.
    Permits(Permits),
    /// To find out how many permits are taken.
    Taken(PermitCount),
    /// To release a lock.
    Release(Releases),
    /// To confirm a lock. In a box, because it is by far the longest.
    Confirm(Box<Confirms>),
    /// To find out whether there is a lock.
    Holders(Holders),
    /// To find out how many readers there are.
    Readers(Readers),
    /// To find out from which servers others can be restored.
    Fences(Restoring),
    /// To hear from every server once.
    AllServers(Ballot),
    /// To stand in line for a resource.
    Waitlist(Places),
}

impl Count {
    pub(super) fn get(&self) -> &dyn CountRule {
        match self {
            Self::Tally(it) => it,
            Self::Permits(it) => it,
            Self::Taken(it) => it,
            Self::Release(it) => it,
            Self::Confirm(it) => &**it,
            Self::Holders(it) => it,
            Self::Readers(it) => it,
            Self::Fences(it) => it,
            Self::AllServers(it) => it,
            Self::Waitlist(it) => it,
        }
    }

    pub(super) fn get_mut(&mut self) -> &mut dyn CountRule {
        match self {
            Self::Tally(it) => it,
            Self::Permits(it) => it,
            Self::Taken(it) => it,
            Self::Release(it) => it,
            Self::Confirm(it) => &mut **it,
            Self::Holders(it) => it,
            Self::Readers(it) => it,
            Self::Fences(it) => it,
            Self::AllServers(it) => it,
            Self::Waitlist(it) => it,
        }
    }
}

impl CountRule for Tally {
    fn ballot(&self) -> &Ballot {
        self.ballot()
    }

    fn outcome(&self) -> Option<Outcome> {
        self.outcome()
    }

    fn hear(&mut self, heard: &Heard<'_>) -> Vote {
        self.handle_vote(heard.server, heard.plain, heard.now);
        heard.plain
    }

    fn past_tense(&self) -> String {
        let words = match self.goal() {
            Goal::Acquire { .. } => "granted",
            Goal::Raise { .. } => "stored the fencing token",
            Goal::Extend { .. } => "extended",
            Goal::Release => "released",
            Goal::Connect => "are connected",
        };
        words.to_owned()
    }
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

/// The answers to a release.
pub(super) struct Releases {
    tally: Tally,
    absence: Absence,
}

impl Releases {
    pub(super) fn new(absence: Absence, servers: usize) -> Self {
        Self { tally: Tally::new(Goal::Release, servers), absence }
    }
}

impl CountRule for Releases {
    fn ballot(&self) -> &Ballot {
        self.tally.ballot()
    }

    fn outcome(&self) -> Option<Outcome> {
        self.tally.outcome()
    }

    fn hear(&mut self, heard: &Heard<'_>) -> Vote {
        let is_release = self.absence.is_release(heard.answer);
        let vote = if is_release { Vote::Yes } else { heard.plain };
        self.tally.handle_vote(heard.server, vote, heard.now);
        vote
    }

    fn past_tense(&self) -> String {
        CountRule::past_tense(&self.tally)
    }
}

/// The answers to the question whether a lock is there.
pub(super) struct Confirms {
    tally: Tally,
    pub(super) confirmation: Confirmation,
    /// Whether the lock is one that this manager wants to adopt.
    is_of_ticket: bool,
}

impl Confirms {
    /// Another call may extend the lock meanwhile, so the question has no deadline of its own.
    pub(super) fn new(confirmation: Confirmation, is_of_ticket: bool, servers: usize) -> Self {
        let tally = Tally::new(Goal::Extend { valid_until: Moment::NEVER }, servers);
        Self { tally, confirmation, is_of_ticket }
    }
}

impl CountRule for Confirms {
    fn ballot(&self) -> &Ballot {
        self.tally.ballot()
    }

    fn outcome(&self) -> Option<Outcome> {
        self.tally.outcome()
    }

    fn hear(&mut self, heard: &Heard<'_>) -> Vote {
        let vote = match heard.is_vote {
            true => self.confirmation.vote(heard.answer, heard.plain, heard.now),
            false => heard.plain,
        };
        self.tally.handle_vote(heard.server, vote, heard.now);
        vote
    }

    fn past_tense(&self) -> String {
        match self.is_of_ticket {
            true => "hold the lock of the ticket".to_owned(),
            false => format!("confirmed for {} ms", self.confirmation.least_ms),
        }
    }
}

impl CountRule for Holders {
    fn ballot(&self) -> &Ballot {
        self.ballot()
    }

    fn outcome(&self) -> Option<Outcome> {
        self.finding().map(|finding| match finding {
            Finding::Locked | Finding::Free | Finding::Mixed => Outcome::Reached,
            Finding::Unreachable => Outcome::Unreachable,
        })
    }

    fn hear(&mut self, heard: &Heard<'_>) -> Vote {
        let value = match heard.answer {
            Answer::Failed(_) => {
                self.handle_silence(heard.server);
                return Vote::Unusable;
            }
            Answer::Found { value, left_ms } => Some((value.clone(), end(*left_ms, heard.now))),
            _ => None,
        };
        self.handle_value(heard.server, value);
        Vote::Yes
    }

    fn is_end_sure(&self) -> bool {
        self.is_end_sure()
    }

    /// A server without a holder has answered, too.
    fn votes(&self) -> usize {
        (self.ballot().yes() + self.ballot().no()) as usize
    }

    fn past_tense(&self) -> String {
        "answered".to_owned()
    }
}

impl CountRule for Readers {
    fn ballot(&self) -> &Ballot {
        self.ballot()
    }

    fn outcome(&self) -> Option<Outcome> {
        self.outcome()
    }

    fn hear(&mut self, heard: &Heard<'_>) -> Vote {
        let count = match heard.answer {
            Answer::Failed(_) => {
                self.handle_silence(heard.server);
                return Vote::Unusable;
            }
            Answer::Shared { readers, .. } => *readers,
            _ => 0,
        };
        self.handle_count(heard.server, count);
        Vote::Yes
    }

    fn past_tense(&self) -> String {
        "answered".to_owned()
    }
}

impl CountRule for Restoring {
    fn ballot(&self) -> &Ballot {
        self.ballot()
    }

    fn outcome(&self) -> Option<Outcome> {
        (self.ballot().pending() == 0).then_some(Outcome::Reached)
    }

    fn hear(&mut self, heard: &Heard<'_>) -> Vote {
        let &Answer::Fences(Fences { greatest, state, .. }) = heard.answer else {
            self.handle_silence(heard.server);
            return Vote::Unusable;
        };
        let state = match state {
            FencesState::Whole => State::Whole,
            FencesState::ByClock => State::ByClock,
            FencesState::Lost { .. } => State::Lost,
            FencesState::ToRestore { may_go_by_clock } => State::ToRestore { may_go_by_clock },
        };
        self.handle_numbers(heard.server, state, greatest);
        Vote::Yes
    }

    fn past_tense(&self) -> String {
        "answered".to_owned()
    }
}

/// Every server is heard once.
impl CountRule for Ballot {
    fn ballot(&self) -> &Ballot {
        self
    }

    fn outcome(&self) -> Option<Outcome> {
        (self.pending() == 0).then_some(Outcome::Reached)
    }

    fn hear(&mut self, heard: &Heard<'_>) -> Vote {
        self.cast(heard.server, heard.plain);
        heard.plain
    }

    fn past_tense(&self) -> String {
        "are connected".to_owned()
    }
}

impl CountRule for Permits {
    fn ballot(&self) -> &Ballot {
        self.ballot()
    }

    fn outcome(&self) -> Option<Outcome> {
        self.outcome()
    }

    fn hear(&mut self, heard: &Heard<'_>) -> Vote {
        match heard.answer {
            Answer::Slots(Slots { got, taken, .. }) => {
                self.handle_slots(heard.server, *got, taken.bits(), heard.now)
            }
            _ => self.handle_silence(heard.server, heard.now),
        };
        heard.plain
    }

    /// Which slot the server has given us matters still.
    fn hear_late(&mut self, heard: &Heard<'_>) {
        self.hear(heard);
    }

    /// How many servers have given us the slot that most servers have given us.
    fn votes(&self) -> usize {
        self.leader().map_or(0, |(_, servers)| servers.count_ones() as usize)
    }

    fn past_tense(&self) -> String {
        let words = match self.given().any(|(_, got)| got.is_some()) {
            true => "granted the same permit",
            false => "granted a permit",
        };
        words.to_owned()
    }

    fn said_of(&self, server: usize) -> Option<String> {
        permits::said_of(self, server)
    }
}

impl CountRule for PermitCount {
    fn ballot(&self) -> &Ballot {
        self.ballot()
    }

    fn outcome(&self) -> Option<Outcome> {
        let outcome = if self.count().is_some() { Outcome::Reached } else { Outcome::Unreachable };
        self.is_decided().then_some(outcome)
    }

    fn hear(&mut self, heard: &Heard<'_>) -> Vote {
        let Answer::Permits(found) = heard.answer else {
            self.handle_silence(heard.server);
            return Vote::Unusable;
        };
        let value = |it: &SlotValue| (it.slot, it.value.clone(), end(it.left_ms, heard.now));
        self.handle_values(heard.server, found.iter().map(value));
        Vote::Yes
    }

    fn is_end_sure(&self) -> bool {
        self.is_end_sure()
    }

    fn past_tense(&self) -> String {
        "answered".to_owned()
    }
}

/// When a key ends that lives for so many milliseconds more. Below 0: never.
fn end(left_ms: i64, now: Moment) -> Moment {
    if left_ms < 0 { Moment::NEVER } else { now.plus_ms(left_ms) }
}
