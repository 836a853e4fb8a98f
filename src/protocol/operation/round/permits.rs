//! How the answers about the slots of a semaphore are counted and described.

use crate::protocol::command::{Answer, SlotValue, Slots};
use crate::protocol::moment::Moment;
use crate::protocol::quorum::ballot::Vote;
use crate::protocol::quorum::permit_count::PermitCount;
use crate::protocol::quorum::permits::Permits;
use crate::protocol::server_set::ServerSet;

/// The result of a round for a permit.
pub(crate) enum Found {
    /// These servers have given us this slot, and they are a quorum.
    Had(u16, ServerSet),
    /// This slot can perhaps still be taken.
    MayMove(u16),
    Nothing,
}

/// Counts an answer. Returns whether the round is decided.
pub(super) fn hear(permits: &mut Permits, server: usize, answer: &Answer, now: Moment) -> bool {
    match answer {
        Answer::Slots(Slots { got, taken, .. }) => {
            permits.handle_slots(server, *got, taken.bits(), now)
        }
        _ => permits.handle_silence(server, now),
    }
}

/// Counts which slots a server has given to which holders. Returns the vote.
pub(super) fn hear_of_taken(
    taken: &mut PermitCount,
    server: usize,
    answer: &Answer,
    now: Moment,
) -> Vote {
    let Answer::Permits(found) = answer else {
        taken.handle_silence(server);
        return Vote::Unusable;
    };
    let value = |it: &SlotValue| {
        // A negative time means that the key has no end.
        let until = if it.left_ms < 0 { Moment::NEVER } else { now.plus_ms(it.left_ms) };
        (it.slot, it.value.clone(), until)
    };
    taken.handle_values(server, found.iter().map(value));
    Vote::Yes
}

/// How many servers have given us the slot that most servers have given us.
pub(super) fn votes(permits: &Permits) -> usize {
    permits.leader().map_or(0, |(_, servers)| servers.count_ones() as usize)
}

/// What these servers did, in words.
pub(super) fn past_tense(permits: &Permits) -> String {
    match permits.given().any(|(_, got)| got.is_some()) {
        true => "granted the same permit".to_owned(),
        false => "granted a permit".to_owned(),
    }
}

/// The words about a server that has given us another slot than most servers.
pub(super) fn said_of(permits: &Permits, server: usize) -> Option<String> {
    let (_, got) = permits.given().find(|it| it.0 == server)?;
    let is_leader = |slot| permits.leader().is_some_and(|(leader, _)| leader == slot);
    let free = permits.free_on(server).unwrap_or(0);
    let of = permits.of();
    got.filter(|&slot| !is_leader(slot))
        .map(|_| format!("granted another permit ({free} of {of} free)"))
}

/// The words about a server that has given us no slot.
pub(super) fn describe(of: u16, slots: &Slots) -> String {
    let taken = slots.taken.count();
    match (u32::from(of).saturating_sub(taken), slots.left_ms) {
        (0, 0..) => format!("all {of} permits taken (the next expires in {} ms)", slots.left_ms),
        (0, _) => format!("all {of} permits taken (no expiry)"),
        (free, _) => format!("{free} of {of} permits free"),
    }
}
