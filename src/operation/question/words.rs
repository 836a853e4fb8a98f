//! The words about a question that failed, and about servers that could not take part in one that succeeded.

use std::fmt::Write;

use super::{Condition, Count, Question, permits};
use crate::command::{Answer, shared};
use crate::error::{Error, Status};
use crate::quorum::round::{Goal, Outcome};
use crate::transport::endpoint::Endpoint;

impl Question {
    /// The failure in words: the votes counted and the servers named.
    pub(crate) fn error(&self, status: Status, endpoints: &[Endpoint]) -> Error {
        let ballot = self.ballot();
        let (servers, quorum) = (ballot.servers(), ballot.quorum());
        let yes = match &self.count {
            Count::Permits(permits) => permits::votes(permits),
            // A server without a holder has answered, too.
            Count::Holders(_) => (ballot.yes() + ballot.no()) as usize,
            _ if self.is_about_connections() => self.connected(),
            _ => ballot.yes() as usize,
        };
        let mut words =
            format!("{yes} of {servers} servers {}, {quorum} needed", self.past_tense());
        words.push_str(match (status, self.outcome(), &self.count) {
            (Status::TooSlow, ..) => "; too late: no validity left",
            (Status::Lost, Outcome::TooLate, _) => "; too late: the lock had expired",
            (Status::Lost, Outcome::Reached, Count::Round(_)) => {
                "; but the lock had ended before the replies were read"
            }
            (Status::Unreachable, Outcome::Reached, Count::Round(_)) => {
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
        if let Count::Permits(permits) = &self.count
            && let Some(words) = permits::said_of(permits, server)
        {
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

    /// What the servers that voted yes did, in words.
    fn past_tense(&self) -> String {
        match &self.count {
            Count::Round(round) | Count::Release(round, _) => match round.goal() {
                Goal::Acquire { .. } => "granted".to_owned(),
                Goal::Raise { .. } => "stored the fencing token".to_owned(),
                Goal::Extend { .. } => "extended".to_owned(),
                Goal::Release => "released".to_owned(),
                Goal::Connect => "are connected".to_owned(),
            },
            Count::Permits(permits) => permits::past_tense(permits),
            Count::Taken(_) => "answered".to_owned(),
            Count::Confirm(..) if self.view.is_none() => "hold the lock of the ticket".to_owned(),
            Count::Confirm(_, confirm) => format!("confirmed for {} ms", confirm.least_ms),
            Count::Holders(_) | Count::Readers(_) | Count::Fences(_) => "answered".to_owned(),
            Count::AllServers(_) => "are connected".to_owned(),
            Count::Line(_) => "report it free".to_owned(),
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
    pub(super) fn note_late(&mut self, server: usize, answer: &Answer) {
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

/// The servers in their order, each with the words about it.
fn join(begin: &str, mut said: Vec<(usize, String)>, endpoints: &[Endpoint]) -> String {
    said.sort_by_key(|entry| entry.0);
    let mut words = String::new();
    for (server, it) in said {
        let separator = if words.is_empty() { begin } else { ", " };
        let _ = write!(words, "{separator}{} {it}", endpoints[server]);
    }
    words
}
