//! What is known of a server and outlives its connections: the memories of its processes, and its clock.
//!
//! A server's note says since when its memory is known. But the note is a key like any other, and an older one
//! can be brought back: by `SWAPDB`, an imported dump, or a primary's copy. A client that has never seen a later
//! note cannot know that. So a manager remembers what it has seen.

use std::sync::{Mutex, PoisonError};

use super::clocks::Clock;
use super::lost_requests::LostRequests;
use crate::protocol::command::guard::{MemoryId, Note};
use crate::protocol::command::identity::RunId;
use crate::protocol::moment::Moment;

/// What is known of a server, for all connections to it.
#[derive(Default)]
pub(crate) struct Lasting {
    pub(crate) clock: Clock,
    pub(crate) memories: Memories,
    pub(crate) lost_requests: LostRequests,
    /// What all keys on the server have before their names.
    pub(crate) prefix: Box<[u8]>,
}

impl Lasting {
    pub(crate) fn with_prefix(prefix: &[u8]) -> Self {
        Self { prefix: prefix.into(), ..Self::default() }
    }
}

/// The memories that were seen, by the process that had them, and which processes were replicas.
pub(crate) struct Memories(Mutex<Known>);

#[derive(Default)]
struct Known {
    seen: Vec<Seen>,
    replicas: Vec<Replica>,
    /// Memories that this manager knows to be lost: their notes were gone, or others were in their places.
    over: Vec<MemoryId>,
    /// Memories of which this manager knows that a part is lost, or all of it, and when it last found that. Their notes
    /// do not say so: nobody is known to have marked the server since.
    damaged: Vec<(MemoryId, Moment)>,
    /// When this manager last found that a memory was lost.
    lost_at: Option<Moment>,
}

/// This process said that it was a replica, and this manager heard that at this time. Nobody is known to have marked
/// its memory since. It has the data of another server, whatever its note says.
#[derive(Clone, Copy, Debug)]
struct Replica {
    process: RunId,
    heard_at: Moment,
}

/// The latest that was seen of a process.
#[derive(Clone, Copy, Debug)]
struct Seen {
    process: RunId,
    life: MemoryId,
    generation: i64,
    longest_ms: i64,
    /// When this memory was found in the place of another one.
    found_at: Option<Moment>,
}

/// How a note compares with what was seen before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing contradicts the note. If it took the place of another one, the time when that was found: the
    /// memory was lost before that, but it is not known for how long before.
    Sound { found_at: Option<Moment> },
    /// A later note was seen. So the memory was replaced by an older one, or was lost. Or the server was a replica
    /// meanwhile.
    Older,
}

impl Default for Memories {
    fn default() -> Self {
        Self(Mutex::new(Known::default()))
    }
}

impl Memories {
    /// How many processes are remembered for a server. A manager meets a new one with each restart.
    const MAX: usize = 16;

    /// Judges a note, and remembers it if it is sound.
    pub(crate) fn judge(&self, note: &Note, now: Moment) -> Verdict {
        self.with(|known| {
            let before = known.lives();
            let verdict = match known.judge(note, now) {
                Verdict::Sound { found_at } => {
                    Verdict::Sound { found_at: found_at.max(known.damaged_at(note.life)) }
                }
                Verdict::Older => Verdict::Older,
            };
            match verdict {
                Verdict::Older => known.doubt(note.life, now),
                // The server shows this memory, so it has none of the others.
                Verdict::Sound { .. } => known.end_all_but(note.life, before, now),
            }
            verdict
        })
    }

    /// The server has this memory, and lost a part of it, or all of it. That counts also if the server cannot be marked
    /// now, and a client that does not know of the loss then makes the note look sound.
    pub(crate) fn doubt(&self, life: MemoryId, now: Moment) {
        self.with(|known| known.doubt(life, now));
    }

    /// The memory of this note was lost at this time at the latest, whatever the note says.
    pub(crate) fn note_loss(&self, note: &Note, at: Moment) {
        self.with(|known| {
            if let Some(seen) = known.seen.iter_mut().find(|it| it.process == note.id) {
                seen.found_at = seen.found_at.max(Some(at));
            }
        });
    }

    /// The note of this memory is gone. If it comes back, for example from an old log, it is an older one.
    pub(crate) fn note_end(&self, life: MemoryId, now: Moment) {
        self.with(|known| known.end(life, now));
    }

    /// The server has no note. The same as [`Self::note_end`] for all that was seen.
    pub(crate) fn note_missing(&self, now: Moment) {
        self.with(|known| known.lives().into_iter().for_each(|life| known.end(life, now)));
    }

    /// When this manager last found that a memory of the server was lost. That counts also if the server does not let
    /// the loss be noted.
    pub(crate) fn lost_at(&self) -> Option<Moment> {
        self.with(|known| known.lost_at)
    }

    /// Remembers a note that this manager has written for a memory that begins now.
    pub(crate) fn adopt(&self, note: &Note, now: Moment) {
        self.with(|known| {
            known.end_all_but(note.life, known.lives(), now);
            known.seen.retain(|it| it.process != note.id);
            known.replicas.retain(|it| it.process != note.id);
            remember(&mut known.seen, Seen::of(note));
        });
    }

    /// The process has said that it is a replica.
    pub(crate) fn note_replica(&self, process: RunId, heard_at: Moment) {
        self.with(|Known { replicas, .. }| {
            replicas.retain(|it| it.process != process);
            remember(replicas, Replica { process, heard_at });
        });
    }

    /// Whether the process was a replica, and its memory was not marked since, as far as is known.
    pub(crate) fn was_replica(&self, process: RunId) -> bool {
        self.with(|known| known.replicas.iter().any(|it| it.process == process))
    }

    /// The greatest generation that was seen of the notes of a process; 0 if none was seen.
    pub(crate) fn generation(&self, process: RunId) -> i64 {
        self.with(|known| {
            known.seen.iter().find(|it| it.process == process).map_or(0, |seen| seen.generation)
        })
    }

    fn with<T>(&self, work: impl FnOnce(&mut Known) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Known {
    /// Judges a note, and remembers it if it is sound.
    fn judge(&mut self, note: &Note, now: Moment) -> Verdict {
        let Self { seen: all, replicas, over, .. } = self;
        if over.contains(&note.life) {
            return Verdict::Older;
        }
        // Processes that kept the memory of the process before them have written their own notes.
        let of_life = all.iter().filter(|it| it.life == note.life);
        let latest = of_life.max_by_key(|it| it.generation).copied();
        if latest.is_some_and(|it| note.generation < it.generation) {
            return Verdict::Older;
        }
        // What it had granted before it was a replica may be lost.
        let replica_at = replicas.iter().find(|it| it.process == note.id).map(|it| it.heard_at);
        let Some(seen) = all.iter_mut().find(|it| it.process == note.id) else {
            let found_at = latest.and_then(|it| it.found_at).max(replica_at);
            remember(all, Seen { found_at, ..Seen::of(note) });
            return Verdict::Sound { found_at };
        };
        // Each rewrite raises the generation, so a note with the same generation is the same note. An older
        // one that somebody has rewritten may have come as far.
        let is_as_late = note.generation == seen.generation;
        let is_of_before = replica_at.is_some() && note.life == seen.life;
        if note.generation < seen.generation || is_as_late && !seen.is(note) || is_of_before {
            return Verdict::Older;
        }
        // Another client has seen the loss. If it was there first, its note says since when. But the note
        // of another database may be as late.
        let found_at = if seen.life == note.life { seen.found_at } else { Some(now) };
        *seen = Seen { found_at, ..Seen::of(note) };
        replicas.retain(|it| it.process != note.id);
        Verdict::Sound { found_at }
    }

    /// The server has this memory now, so it may also lack what it has told of others.
    fn doubt(&mut self, life: MemoryId, now: Moment) {
        for it in self.lives().into_iter().chain([life]) {
            self.damaged.retain(|(damaged, _)| *damaged != it);
            remember(&mut self.damaged, (it, now));
        }
        self.note_lost(now);
    }

    fn damaged_at(&self, life: MemoryId) -> Option<Moment> {
        self.damaged.iter().find(|(damaged, _)| *damaged == life).map(|(_, at)| *at)
    }

    fn end(&mut self, life: MemoryId, now: Moment) {
        if !self.over.contains(&life) {
            remember(&mut self.over, life);
            self.note_lost(now);
        }
    }

    fn end_all_but(&mut self, life: MemoryId, lives: Vec<MemoryId>, now: Moment) {
        lives.into_iter().filter(|&it| it != life).for_each(|it| self.end(it, now));
    }

    fn note_lost(&mut self, now: Moment) {
        self.lost_at = self.lost_at.max(Some(now));
    }

    fn lives(&self) -> Vec<MemoryId> {
        self.seen.iter().map(|it| it.life).collect()
    }
}

impl Seen {
    fn of(note: &Note) -> Self {
        let &Note { id: process, life, generation, longest_ms, .. } = note;
        Self { process, life, generation, longest_ms, found_at: None }
    }

    /// Whether this may be the note, if it is as late.
    fn is(&self, note: &Note) -> bool {
        (self.life, self.longest_ms) == (note.life, note.longest_ms)
    }
}

fn remember<T>(all: &mut Vec<T>, one: T) {
    if all.len() == Memories::MAX {
        all.remove(0);
    }
    all.push(one);
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Moment = Moment::from_nanos(1_000_000_000_000);
    const SOUND: Verdict = Verdict::Sound { found_at: None };

    fn note(process: u8, life: u64, generation: i64) -> Note {
        let id = RunId::parse(&format!("{process:02x}{}", "0".repeat(38))).expect("an id");
        let life = MemoryId::from_random(life);
        Note::sample(id, life, generation)
    }

    #[test]
    fn an_older_note_is_detected_by_its_generation() {
        let memories = Memories::default();
        assert_eq!(memories.judge(&note(1, 1, 3), NOW), SOUND);
        // A rewrite of the same memory.
        assert_eq!(memories.judge(&note(1, 1, 5), NOW), SOUND);
        assert_eq!(memories.judge(&note(1, 1, 5), NOW), SOUND);
        assert_eq!(memories.judge(&note(1, 1, 4), NOW), Verdict::Older);
        assert_eq!(memories.judge(&note(1, 2, 4), NOW), Verdict::Older);
        assert_eq!(memories.judge(&note(1, 2, 5), NOW), Verdict::Older);
        assert_eq!(memories.generation(note(1, 1, 1).id), 5);
        // Somebody has rewritten an older one.
        let rewritten = Note { longest_ms: 77, ..note(1, 1, 5) };
        assert_eq!(memories.judge(&rewritten, NOW), Verdict::Older);
        // It is rewritten once more. What was found still counts.
        let found = Verdict::Sound { found_at: Some(NOW) };
        let later = NOW.plus_ms(3);
        assert_eq!(memories.judge(&Note { generation: 6, ..rewritten }, later), found);
        // It is a loss also if the server does not let it be noted.
        assert_eq!(memories.lost_at(), Some(NOW));
        assert_eq!(memories.judge(&note(1, 1, 4), NOW.plus_ms(7)), Verdict::Older);
        assert_eq!(memories.lost_at(), Some(NOW.plus_ms(7)));
    }

    #[test]
    fn a_new_memory_of_a_known_process_is_a_loss() {
        let memories = Memories::default();
        memories.judge(&note(1, 1, 3), NOW);
        let found = Verdict::Sound { found_at: Some(NOW) };
        assert_eq!(memories.judge(&note(1, 2, 4), NOW), found);
        assert_eq!(memories.judge(&note(1, 2, 5), NOW.plus_ms(9)), found);
    }

    #[test]
    fn a_loss_without_a_note_is_remembered() {
        let memories = Memories::default();
        memories.judge(&note(1, 1, 3), NOW);
        for (ms, found_ms) in [(5, 5), (3, 5), (9, 9)] {
            memories.note_loss(&note(1, 1, 3), NOW.plus_ms(ms));
            let found = Verdict::Sound { found_at: Some(NOW.plus_ms(found_ms)) };
            assert_eq!(memories.judge(&note(1, 1, 3), NOW), found);
        }
    }

    #[test]
    fn each_process_has_its_own_notes() {
        let memories = Memories::default();
        memories.judge(&note(1, 1, 9), NOW);
        assert_eq!(memories.judge(&note(2, 2, 1), NOW), SOUND);
        assert_eq!(memories.judge(&note(1, 1, 8), NOW), Verdict::Older);
        // The oldest one is forgotten at last.
        for process in 3..=u8::try_from(Memories::MAX + 1).unwrap() {
            memories.judge(&note(process, process.into(), 1), NOW);
        }
        assert_eq!(memories.generation(note(1, 1, 1).id), 0);
        assert_eq!(memories.generation(note(2, 1, 1).id), 1);
    }

    #[test]
    fn a_restart_with_data_is_no_loss() {
        let memories = Memories::default();
        memories.judge(&note(1, 1, 3), NOW);
        memories.judge(&note(1, 2, 5), NOW);
        assert_eq!(memories.judge(&note(2, 2, 4), NOW), Verdict::Older);
        let found = Verdict::Sound { found_at: Some(NOW) };
        assert_eq!(memories.judge(&note(2, 2, 6), NOW.plus_ms(9)), found);
    }

    /// A durable server restarts, and its next process has written a note. Then a file from before is brought back.
    #[test]
    fn a_note_of_an_earlier_process_is_older() {
        let memories = Memories::default();
        assert_eq!(memories.judge(&note(1, 1, 3), NOW), SOUND);
        assert_eq!(memories.judge(&note(2, 1, 4), NOW), SOUND);
        assert_eq!(memories.judge(&note(1, 1, 3), NOW), Verdict::Older);
        let found = Verdict::Sound { found_at: Some(NOW) };
        assert_eq!(memories.judge(&note(1, 1, 4), NOW.plus_ms(9)), found);
    }

    /// The server could not be marked, and other clients do not know of the loss.
    #[test]
    fn a_lost_memory_is_doubted_until_it_is_marked() {
        let memories = Memories::default();
        memories.judge(&note(1, 1, 3), NOW);
        memories.doubt(note(1, 2, 1).life, NOW.plus_ms(5));
        assert_eq!(memories.lost_at(), Some(NOW.plus_ms(5)));
        memories.doubt(note(1, 2, 1).life, NOW.plus_ms(7));
        let found = Verdict::Sound { found_at: Some(NOW.plus_ms(7)) };
        // The memory that was displaced by it, and that one, of whatever process.
        for it in [note(1, 1, 4), note(2, 1, 5), note(3, 2, 9)] {
            assert_eq!(memories.judge(&it, NOW.plus_ms(9)), found);
        }
        assert_eq!(memories.judge(&note(4, 4, 1), NOW.plus_ms(11)), SOUND);
    }

    /// It is a primary again, has its old note, and does not show that it was promoted.
    #[test]
    fn the_note_of_a_former_replica_needs_a_rewrite() {
        let memories = Memories::default();
        memories.judge(&note(1, 1, 3), NOW);
        memories.note_replica(note(1, 1, 3).id, NOW.plus_ms(5));
        for generation in [3, 4] {
            assert_eq!(memories.judge(&note(1, 1, generation), NOW), Verdict::Older);
        }
        // Of another process.
        assert_eq!(memories.judge(&note(2, 2, 3), NOW), SOUND);
        assert!(memories.was_replica(note(1, 1, 3).id) && !memories.was_replica(note(2, 2, 3).id));
        // Another client has marked it, or this manager.
        let found = Verdict::Sound { found_at: Some(NOW.plus_ms(9)) };
        assert_eq!(memories.judge(&note(1, 3, 4), NOW.plus_ms(9)), found);
        assert!(!memories.was_replica(note(1, 1, 3).id));
        memories.note_replica(note(1, 1, 3).id, NOW.plus_ms(15));
        memories.adopt(&note(1, 4, 5), NOW);
        assert_eq!(memories.judge(&note(1, 4, 5), NOW.plus_ms(19)), SOUND);
    }

    #[test]
    fn a_first_seen_replica_has_lost_its_memory() {
        let memories = Memories::default();
        memories.note_replica(note(1, 1, 3).id, NOW.plus_ms(5));
        let found = Verdict::Sound { found_at: Some(NOW.plus_ms(5)) };
        assert_eq!(memories.judge(&note(1, 1, 3), NOW.plus_ms(9)), found);
    }

    #[test]
    fn a_note_written_by_this_manager_is_not_older() {
        let memories = Memories::default();
        memories.judge(&note(1, 1, 9), NOW);
        memories.adopt(&note(1, 2, 1), NOW);
        assert_eq!(memories.judge(&note(1, 2, 1), NOW), SOUND);
        assert_eq!(memories.judge(&note(1, 1, 9), NOW), Verdict::Older);
    }

    /// By a restart with an old log, or by `SWAPDB`.
    #[test]
    fn a_lost_memory_does_not_come_back() {
        let memories = Memories::default();
        let is_older = |note: &Note| memories.judge(note, NOW) == Verdict::Older;
        // The note was gone, when it was read behind an acquire.
        assert!(!is_older(&note(1, 1, 3)));
        memories.note_end(note(1, 1, 3).life, NOW.plus_ms(4));
        assert_eq!(memories.lost_at(), Some(NOW.plus_ms(4)));
        assert!(is_older(&note(1, 1, 3)) && is_older(&note(2, 1, 3)) && is_older(&note(1, 1, 9)));
        // Another one was in its place: of the same process, of another one, and of our own making.
        for (process, life) in [(1, 2), (2, 3)] {
            assert!(!is_older(&note(process, life, 10)));
            assert!(is_older(&note(process, life - 1, 11)));
        }
        memories.adopt(&note(3, 4, 12), NOW);
        assert!(is_older(&note(2, 3, 13)) && !is_older(&note(3, 4, 12)));
        // The server had none.
        memories.note_missing(NOW.plus_ms(9));
        assert_eq!(memories.lost_at(), Some(NOW.plus_ms(9)));
        assert!(is_older(&note(3, 4, 14)) && !is_older(&note(3, 5, 15)));
    }
}
