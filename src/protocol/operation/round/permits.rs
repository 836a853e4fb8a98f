//! What is said about the slots of a semaphore.

use crate::protocol::command::Slots;
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
