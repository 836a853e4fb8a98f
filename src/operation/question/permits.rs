//! A question for a permit of a semaphore.

use std::sync::Arc;

use super::{Count, Question};
use crate::command::{Answer, SlotValue, Slots};
use crate::held_lock::HeldLock;
use crate::moment::Moment;
use crate::quorum::ballot::Vote;
use crate::quorum::permits::Permits;
use crate::quorum::round::Outcome;
use crate::quorum::taken::Taken;
use crate::server_set::ServerSet;

/// What came of it.
pub(crate) enum Found {
    /// These servers have given us this slot, and are a quorum.
    Had(u16, ServerSet),
    /// This one may be had yet.
    MayMove(u16),
    Nothing,
}

impl Question {
    /// An attempt to take one of so many permits.
    pub(crate) fn permit(hold: Arc<HeldLock>, of: u16, servers: usize) -> Self {
        let permits = Permits::new(of, hold.token().share_of(of), hold.deadline(), servers);
        Self { attempt: Some(hold), ..Self::new(Count::Permits(permits)) }
    }

    /// Which slot was had, or can be.
    pub(crate) fn slot(&self) -> Found {
        let Count::Permits(permits) = &self.count else { return Found::Nothing };
        match (self.outcome(), permits.leader(), permits.next()) {
            (Outcome::Reached, Some((slot, servers)), _) => Found::Had(slot, servers),
            (_, _, Some(slot)) => Found::MayMove(slot),
            _ => Found::Nothing,
        }
    }

    /// How many permits are taken?
    pub(crate) fn taken(of: u16, servers: usize) -> Self {
        Self::new(Count::Taken(Taken::new(of, servers)))
    }

    /// How many are, and when the first of them ends, if somebody can say.
    pub(crate) fn permits_taken(&self) -> Option<(u16, Option<Moment>)> {
        let Count::Taken(taken) = &self.count else { return None };
        Some((taken.count()?, taken.first_end()))
    }

    /// What slot each server has given us that has answered.
    pub(crate) fn slots_given(&self) -> Vec<(usize, Option<u16>)> {
        let Count::Permits(permits) = &self.count else { return Vec::new() };
        permits.given().collect()
    }
}

/// Counts an answer. Returns whether it is decided.
pub(super) fn hear(permits: &mut Permits, server: usize, answer: &Answer, now: Moment) -> bool {
    match answer {
        Answer::Slots(Slots { got, taken, .. }) => permits.handle_slots(server, *got, *taken, now),
        _ => permits.handle_silence(server, now),
    }
}

/// Counts who has which slot. Returns the vote, and whether it is decided.
pub(super) fn hear_of_taken(
    taken: &mut Taken,
    server: usize,
    answer: &Answer,
    now: Moment,
) -> (Vote, bool) {
    let Answer::Permits(found) = answer else {
        return (Vote::Unusable, taken.handle_silence(server));
    };
    let value = |it: &SlotValue| {
        // Below 0 it has no end.
        let until = if it.left_ms < 0 { Moment::NEVER } else { now.plus_ms(it.left_ms) };
        (it.slot, it.value.clone(), until)
    };
    (Vote::Yes, taken.handle_values(server, found.iter().map(value)))
}

/// How many servers have given us the slot that most have given us.
pub(super) fn votes(permits: &Permits) -> usize {
    permits.leader().map_or(0, |(_, servers)| servers.iter().count())
}

/// What these did.
pub(super) fn past_tense(permits: &Permits) -> String {
    match permits.given().any(|(_, got)| got.is_some()) {
        true => "granted the same permit".to_owned(),
        false => "granted a permit".to_owned(),
    }
}

/// What is to be said of a server that has given us another permit than most.
pub(super) fn said_of(permits: &Permits, server: usize) -> Option<String> {
    let (_, got) = permits.given().find(|it| it.0 == server)?;
    let is_leader = |slot| permits.leader().is_some_and(|(leader, _)| leader == slot);
    let free = permits.free_on(server).unwrap_or(0);
    let of = permits.of();
    got.filter(|&slot| !is_leader(slot))
        .map(|_| format!("granted another ({free} of {of} are free)"))
}

/// What a server says that has given us none.
pub(super) fn describe(permits: &Permits, slots: &Slots) -> String {
    let (of, taken) = (permits.of(), slots.taken.count());
    match (u32::from(of).saturating_sub(taken), slots.left_ms) {
        (0, 0..) => format!("all {of} permits taken (the next ends in {} ms)", slots.left_ms),
        (0, _) => format!("all {of} permits taken (for ever)"),
        (free, _) => format!("{free} of {of} permits free"),
    }
}
