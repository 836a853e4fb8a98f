//! How a question counts a server's answer.

use super::{Count, Question, permits};
use crate::command::{Answer, Slots};
use crate::moment::Moment;
use crate::quorum::ballot::Vote;
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
        self.note_left(&answer, now);
        let is_vote = self.is_vote(server);
        let plain = match &answer {
            Answer::Done | Answer::Woke | Answer::Slots(Slots { got: Some(_), .. }) => Vote::Yes,
            &Answer::Granted { number } => {
                self.draw.note(number);
                Vote::Yes
            }
            Answer::Extended { .. } if is_vote => Vote::Yes,
            Answer::Failed(_) => Vote::Unusable,
            _ => Vote::No,
        };
        let (vote, is_decided) = match &mut self.count {
            Count::Round(round) => (plain, round.handle_vote(server, plain, now)),
            Count::Permits(permits) => (plain, permits::hear(permits, server, &answer, now)),
            Count::Taken(taken) => permits::hear_of_taken(taken, server, &answer, now),
            Count::Release(round, absence) => {
                let vote = if absence.is_release(&answer) { Vote::Yes } else { plain };
                (vote, round.handle_vote(server, vote, now))
            }
            Count::Confirm(round, confirm) => {
                let vote = if is_vote { confirm.vote(&answer, plain, now) } else { plain };
                (vote, round.handle_vote(server, vote, now))
            }
            Count::Holders(holders) => match &answer {
                Answer::Failed(_) => (Vote::Unusable, holders.handle_silence(server)),
                Answer::Found { value, left_ms } => {
                    // A negative time means that the key has no end.
                    let until = if *left_ms < 0 { Moment::NEVER } else { now.plus_ms(*left_ms) };
                    (Vote::Yes, holders.handle_value(server, Some((value.clone(), until))))
                }
                _ => (Vote::Yes, holders.handle_value(server, None)),
            },
            Count::Readers(readers) => match &answer {
                Answer::Failed(_) => (Vote::Unusable, readers.handle_silence(server)),
                Answer::Shared { readers: count, .. } => {
                    (Vote::Yes, readers.handle_count(server, *count))
                }
                _ => (Vote::Yes, readers.handle_count(server, 0)),
            },
            Count::AllServers(ballot) => {
                ballot.cast(server, plain);
                (plain, ballot.pending() == 0)
            }
            Count::Line(_) => return true,
        };
        if vote != Vote::Yes {
            self.reasons.push((server, answer));
        }
        is_decided
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
