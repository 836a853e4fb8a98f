//! What is counted, and said, of the answers about the slots of a semaphore.

use crate::command::{Answer, SlotValue, Slots};
use crate::moment::Moment;
use crate::quorum::ballot::Vote;
use crate::quorum::permits::Permits;
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

/// Counts an answer. Returns whether it is decided.
pub(super) fn hear(permits: &mut Permits, server: usize, answer: &Answer, now: Moment) -> bool {
    match answer {
        Answer::Slots(Slots { got, taken, .. }) => {
            permits.handle_slots(server, *got, taken.bits(), now)
        }
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
    permits.leader().map_or(0, |(_, servers)| servers.count_ones() as usize)
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
pub(super) fn describe(of: u16, slots: &Slots) -> String {
    let taken = slots.taken.count();
    match (u32::from(of).saturating_sub(taken), slots.left_ms) {
        (0, 0..) => format!("all {of} permits taken (the next ends in {} ms)", slots.left_ms),
        (0, _) => format!("all {of} permits taken (for ever)"),
        (free, _) => format!("{free} of {of} permits free"),
    }
}
