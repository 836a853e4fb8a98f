//! How a question counts a server's answer.

use super::{Count, Question, permits};
use crate::command::{Answer, Fences, FencesState, Slots};
use crate::moment::Moment;
use crate::quorum::ballot::Vote;
use crate::quorum::holders::Holders;
use crate::quorum::readers::Readers;
use crate::quorum::restoring::{Restoring, State};
use crate::quorum::round::Outcome;
use crate::server_set::ServerSet;
use crate::transport::condition::Condition;

impl Question {
    /// Hears a server's answer. Returns whether nothing more needs to be heard.
    pub(crate) fn hear(&mut self, server: usize, answer: Answer, now: Moment) -> bool {
        if let Count::Line(places) = &mut self.count {
            let reason = places.hear(server, answer);
            self.reasons.extend(reason.map(|reason| (server, reason)));
            return self.is_decided();
        }
        self.has_woken |= matches!(answer, Answer::Woke);
        if self.is_decided() {
            if let Count::Permits(permits) = &mut self.count {
                permits::hear(permits, server, &answer, now);
            }
            self.note_late(server, &answer);
            return true;
        }
        self.heard += 1;
        self.note_left(&answer, now);
        let is_vote = self.is_vote(server);
        let plain = match &answer {
            Answer::Done | Answer::Woke | Answer::Slots(Slots { got: Some(_), .. }) => Vote::Yes,
            &Answer::Granted { number } | &Answer::GrantedByClock { number } => {
                self.draw.note(number);
                Vote::Yes
            }
            Answer::Extended { .. } if is_vote => Vote::Yes,
            Answer::Failed(_) => Vote::Unusable,
            _ => Vote::No,
        };
        let vote = self.count(server, &answer, plain, now);
        if vote != Vote::Yes {
            self.reasons.push((server, answer));
        }
        self.is_decided()
    }

    /// Counts an answer, which is this vote where a vote needs nothing else. Returns the vote.
    fn count(&mut self, server: usize, answer: &Answer, plain: Vote, now: Moment) -> Vote {
        let is_vote = self.is_vote(server);
        let mut vote = plain;
        match &mut self.count {
            Count::Round(round) => _ = round.handle_vote(server, vote, now),
            Count::Permits(permits) => _ = permits::hear(permits, server, answer, now),
            Count::Taken(taken) => vote = permits::hear_of_taken(taken, server, answer, now),
            Count::Release(round, absence) => {
                vote = if absence.is_release(answer) { Vote::Yes } else { plain };
                round.handle_vote(server, vote, now);
            }
            Count::Confirm(round, confirm) => {
                vote = if is_vote { confirm.vote(answer, plain, now) } else { plain };
                round.handle_vote(server, vote, now);
            }
            Count::Holders(holders) => vote = hear_of_holder(holders, server, answer, now),
            Count::Readers(readers) => vote = hear_of_readers(readers, server, answer),
            Count::AllServers(ballot) => ballot.cast(server, plain),
            Count::Fences(fences) => vote = hear_of_fences(fences, server, answer),
            Count::Line(_) => {}
        }
        vote
    }

    /// The servers whose condition the question must be told, now that it is closed. None unless the question
    /// has failed.
    pub(crate) fn wanted_conditions(&self) -> ServerSet {
        if !self.is_decided() || self.outcome() == Outcome::Reached {
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

/// Notes what a server knows of fencing tokens. Returns the vote.
fn hear_of_fences(fences: &mut Restoring, server: usize, answer: &Answer) -> Vote {
    let &Answer::Fences(Fences { greatest, state, .. }) = answer else {
        fences.handle_silence(server);
        return Vote::Unusable;
    };
    let state = match state {
        FencesState::Whole => State::Whole,
        FencesState::ByClock => State::ByClock,
        FencesState::Lost { .. } => State::Lost,
        FencesState::ToRestore { may_go_by_clock } => State::ToRestore { may_go_by_clock },
    };
    fences.handle_numbers(server, state, greatest);
    Vote::Yes
}

/// Counts who has a resource on a server. Returns the vote.
fn hear_of_holder(holders: &mut Holders, server: usize, answer: &Answer, now: Moment) -> Vote {
    let value = match answer {
        Answer::Failed(_) => {
            holders.handle_silence(server);
            return Vote::Unusable;
        }
        Answer::Found { value, left_ms } => {
            // A negative time means that the key has no end.
            let until = if *left_ms < 0 { Moment::NEVER } else { now.plus_ms(*left_ms) };
            Some((value.clone(), until))
        }
        _ => None,
    };
    holders.handle_value(server, value);
    Vote::Yes
}

/// Counts how many readers have a resource on a server. Returns the vote.
fn hear_of_readers(readers: &mut Readers, server: usize, answer: &Answer) -> Vote {
    let count = match answer {
        Answer::Failed(_) => {
            readers.handle_silence(server);
            return Vote::Unusable;
        }
        Answer::Shared { readers, .. } => *readers,
        _ => 0,
    };
    readers.handle_count(server, count);
    Vote::Yes
}
