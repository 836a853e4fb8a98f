//! What a client thinks of a server whose note it has read.

use crate::rules::{Mistake, Start};
use crate::state::Server;

/// Whether the server has kept its memory: its note is the latest one that was seen of it, and names its process.
pub(crate) fn trusts(server: &Server, start: &Start) -> bool {
    let Some(note) = server.note else { return false };
    let is_believed = note == server.known
        || start.makes(Mistake::OlderNoteIsBelieved)
        || start.makes(Mistake::OlderNoteOfTheSameLifeIsBelieved) && note.life == server.known.life;
    is_believed && (!server.is_copy || start.makes(Mistake::CopyIsBelieved))
}

/// The life that a client's connection knows, and sends with its requests.
pub(crate) fn life_for_clients(server: &Server, start: &Start) -> u8 {
    let note = server.note.filter(|_| trusts(server, start));
    note.unwrap_or(server.known).life
}

/// Whether the numbers of the server belong to its memory.
pub(crate) fn fits(server: &Server, start: &Start) -> bool {
    trusts(server, start) && server.note.is_some_and(|it| it.life == server.hash.life)
}
