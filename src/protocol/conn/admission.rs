//! Whether the note that a server shows when it is connected to speaks for its memory.

use super::memories::{Memories, Verdict};
use crate::protocol::command::guard::{MemoryId, Note, Since};
use crate::protocol::command::identity::{Identity, RunId};
use crate::protocol::moment::Moment;

/// What is known of a server whose note is judged: its process, what its clock shows, what it says about itself, the
/// memory that has begun with this handshake, and the epoch in which it became the master, if that matters.
pub(crate) struct Known<'a> {
    pub(crate) process: RunId,
    pub(crate) clock_ms: i64,
    pub(crate) identity: &'a Identity,
    pub(crate) memories: &'a Memories,
    pub(crate) begun: Option<MemoryId>,
    pub(crate) epoch: Option<u64>,
}

/// What is to be done with a note that was read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// The note holds. This manager has found at that time that it took the place of another one.
    Accept {
        found_at: Option<Moment>,
    },
    /// Nothing from before is known.
    Lose,
    Rewrite(Note, Since),
}

impl Known<'_> {
    pub(crate) fn judge(&self, note: &Note, now: Moment) -> Admission {
        let next = |note: &Note| Note {
            generation: Note::generation_after(note.generation),
            ..note.clone()
        };
        let memories = self.memories;
        if note.id == self.process && self.begun == Some(note.life) {
            memories.adopt(note, now);
        }
        // It is remembered in any case: the server may not be marked now, and show an older note later.
        let verdict = memories.judge(note, now);
        if self.is_of_another(note) {
            memories.doubt(note.life, now);
            return Admission::Lose;
        }
        let Verdict::Sound { found_at } = verdict else {
            return Admission::Lose;
        };
        if note.id != self.process {
            // Another process of this server wrote the data, and none of it is missing.
            return Admission::Rewrite(
                Note { id: self.process, ..next(note) },
                Since::At(note.since_ms),
            );
        }
        if let Some(since) = note.corrected(self.clock_ms) {
            return Admission::Rewrite(next(note), since);
        }
        if note.is_logged && self.identity.is_durable() == Some(false) {
            let since = Since::At(note.since_ms);
            return Admission::Rewrite(Note { is_logged: false, ..next(note) }, since);
        }
        Admission::Accept { found_at }
    }

    /// Whether the note speaks for the memory of another server, or of this one before it was a replica or restarted.
    fn is_of_another(&self, note: &Note) -> bool {
        // No promotion is no news: a server forgets it.
        let is_promoted = self.identity.promotion().is_some_and(|it| note.promotion != Some(it));
        // It is of a time when this server was the master before, or of another master, whose data this server has.
        let is_of_other_epoch = self.epoch.is_some_and(|it| it != note.epoch);
        let is_logged = note.is_logged && self.identity.is_durable() == Some(true);
        let is_own =
            note.id == self.process || is_logged && !self.memories.was_replica(self.process);
        is_promoted || is_of_other_epoch || !is_own
    }
}

#[cfg(test)]
mod tests;
