//! What is known of a server's memory before its connection is up. The server has a note already, or is given
//! one, or what it has must be rewritten first.

use super::{Change, Link, State};
use crate::command::guard::{Borne, MemoryId, Note, Reading, Since};
use crate::command::handshake::Memory;
use crate::command::identity::{Identity, RunId};
use crate::moment::Moment;
use crate::quorum::offset::Showing;
use crate::system::clock;
use crate::system::entropy::SystemEntropy;
use crate::token::random;
use crate::transport::guard::Guard;
use crate::transport::memories::{Memories, Verdict as MemoryVerdict};
use crate::transport::server_registry::{Seen, Verdict};
use crate::transport::why::Why;
use crate::trouble::Trouble;

/// Other servers are waited for during 1 / this part of the connect timeout, because they decide whether a
/// server without a note is new.
const WAIT_PART: i64 = 2;

/// What is said of a server that is durable in part.
pub(in crate::transport) const LOGGED_NO_MORE: &str = "appendfsync is no longer always: \
     after a restart, the server has no vote for a while";
const LOGGED_IN_PART: &str = "appendfsync is always now, but was not when redlock:guard was written: \
     after the next restart, the server has no vote for a while";

/// What is known of a server whose note is judged: its process, what its clock shows, what it says about itself, and
/// the memory that has begun with this handshake.
struct Known<'a> {
    process: RunId,
    clock_ms: i64,
    identity: &'a Identity,
    memories: &'a Memories,
    begun: Option<MemoryId>,
}

/// What is to be done with a note that was read.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// The note holds. This manager has found at that time that it took the place of another one.
    Accept {
        found_at: Option<Moment>,
    },
    /// Nothing from before is known.
    Lose,
    Rewrite(Note, Since),
}

impl Link {
    /// All questions of the handshake are answered. The connection is up, unless the server must be marked
    /// first. It is refused if the same server is in the list under another name as well.
    pub(super) fn admit(&mut self, now: Moment) -> Option<Change> {
        let State::Handshake { handshake, .. } = &self.state else { return None };
        let (memory, capabilities) = (handshake.memory().clone(), handshake.capabilities());
        self.identity = handshake.identity().clone();
        if let Some(id) = self.identity.run_id()
            && let Err(twin) = self.server_registry.enter(self.place, id, &self.name())
        {
            let why = format!("same server as {twin}: list each server once");
            return self.connect_failed(Why::new(Trouble::SameServer, why), now);
        }
        let (process, reading) = match memory {
            Memory::NotAsked => {
                return self.come_up(capabilities.without_clock(), Guard::default(), now);
            }
            Memory::Untold(refusal) => {
                self.server_registry.note(self.place, Seen::Untold);
                let guard = Guard::blind(refusal).with_loss(self.lasting.memories.lost_at());
                return self.come_up(capabilities.without_clock(), guard, now);
            }
            Memory::Read(process, reading) => (process, reading),
        };
        if reading.now_us <= 0 {
            let why = "clock shows a time before 1970: set the clock";
            return self.connect_failed(why.into(), now);
        }
        match &reading.borne {
            Borne::Unusable(unusable) => self.connect_failed((*unusable).into(), now),
            Borne::Nothing => {
                self.lasting.memories.note_missing(now);
                self.server_registry.note(self.place, Seen::Missing);
                self.end_waiting(now)
            }
            Borne::Damaged => {
                self.lasting.memories.note_missing(now);
                self.begin_memory(process, None, Since::Now, now)
            }
            Borne::Note(note) => match self.known(process, &reading).judge(note, now) {
                Step::Accept { found_at } => {
                    let lost_at = self.note_clock(note, &reading, now);
                    let guard = self.remember(note, reading.now_ms(), found_at.max(lost_at), now);
                    self.come_up(capabilities, guard, now)
                }
                Step::Lose => self.begin_memory(process, Some(note), Since::Now, now),
                Step::Rewrite(new, since) => {
                    if note.is_logged && !new.is_logged {
                        self.remark = Some(LOGGED_NO_MORE);
                    }
                    self.mark(&new, since, now)
                }
            },
        }
    }

    fn known(&self, process: RunId, reading: &Reading) -> Known<'_> {
        let begun = match self.state {
            State::Handshake { begun, .. } => begun,
            _ => None,
        };
        let (identity, memories) = (&self.identity, &self.lasting.memories);
        Known { process, clock_ms: reading.now_ms(), identity, memories, begun }
    }

    /// Notes the clock that the server has shown together with this note. If this server has taken the place of another
    /// one, returns when its memory was lost, as far as that other one shows it.
    fn note_clock(&self, note: &Note, reading: &Reading, now: Moment) -> Option<Moment> {
        let State::Handshake { asked_at, .. } = self.state else { return None };
        let in_ns = |us: i64| us.saturating_mul(1_000);
        let (shown, grain) = (in_ns(reading.now_us), in_ns(reading.grain_us));
        let showing = Showing { shown, grain, sent: asked_at, heard: clock::now() };
        let drift = self.server_registry.rules().drift();
        let succession = self.lasting.clock.note((note.id, note.life), &showing, drift)?;
        let lost_at = succession.lost_at(note.age_ms(reading.now_ms()), now);
        self.lasting.memories.note_loss(note, lost_at);
        Some(lost_at)
    }

    /// Handles a server that has a note of its own process.
    fn remember(
        &mut self,
        note: &Note,
        clock_ms: i64,
        found_at: Option<Moment>,
        now: Moment,
    ) -> Guard {
        let seen = match note.young_ms(clock_ms) {
            0 => Seen::Marked,
            left_ms => Seen::Young { until: now.plus_ms(left_ms) },
        };
        self.server_registry.note(self.place, seen);
        let is_logged_in_part = !note.is_logged && self.identity.is_durable() == Some(true);
        let in_part = is_logged_in_part.then_some(LOGGED_IN_PART);
        let rules = self.server_registry.rules();
        let asked_at = match self.state {
            State::Handshake { since, .. } => since,
            _ => now,
        };
        let guard = Guard::of(note, clock_ms, found_at, now, rules)
            .primary_since(asked_at)
            .with_caveat(self.remark.or(in_part).unwrap_or_default());
        if self.identity.role().is_empty() { guard.without_role() } else { guard }
    }

    /// When [`Self::handle_due`] must be called for a handshake that began at `since`.
    pub(super) fn handshake_due(&self, is_asking: bool, since: Moment) -> Moment {
        if is_asking {
            since.plus_ms(self.timeouts.connect_ms())
        } else if self.server_registry.verdict(self.place, clock::now()).is_some() {
            Moment::from_nanos(0)
        } else {
            since.plus_ms(self.timeouts.connect_ms() / WAIT_PART)
        }
    }

    /// Handles a server without a note. Gives it one if it is known whether the server is new, or if the time
    /// to wait for other servers is over.
    pub(super) fn end_waiting(&mut self, now: Moment) -> Option<Change> {
        let State::Handshake { handshake, since, .. } = &self.state else { return None };
        let &Memory::Read(process, ref reading) = handshake.memory() else { return None };
        if self.lasting.memories.generation(process) > 0 {
            return self.begin_memory(process, None, Since::Now, now);
        }
        let connect_ms = self.timeouts.connect_ms();
        if now >= since.plus_ms(connect_ms / WAIT_PART) {
            self.server_registry.end_waiting(self.place);
        }
        // After this time it is too late to mark the server as new, because this connection has been given
        // up.
        let until_ms = reading.now_ms().saturating_add(connect_ms);
        let since = match self.server_registry.verdict(self.place, now)? {
            Verdict::Fresh => Since::Fresh { until_ms },
            Verdict::Lost => Since::Now,
        };
        self.begin_memory(process, None, since, now)
    }

    /// Marks the server: a memory of this process begins. `old` is the note of the memory before it.
    fn begin_memory(
        &mut self,
        process: RunId,
        old: Option<&Note>,
        since: Since,
        now: Moment,
    ) -> Option<Change> {
        let Ok(number) = random(&SystemEntropy) else {
            let why = "no random bytes from the system for the key redlock:guard";
            return self.connect_failed(why.into(), now);
        };
        let life = MemoryId::from_random(number);
        let known = self.lasting.memories.generation(process);
        let longest_ms = self.server_registry.rules().longest_ms();
        let note = Note::of_beginning((process, life), old, (known, longest_ms), &self.identity);
        if let State::Handshake { begun, .. } = &mut self.state {
            *begun = Some(life);
        }
        self.mark(&note, since, now)
    }

    fn mark(&mut self, note: &Note, since: Since, now: Moment) -> Option<Change> {
        let State::Handshake { handshake, asked_at, .. } = &mut self.state else { return None };
        *asked_at = now;
        handshake.mark(note, since, &mut self.outbox);
        self.send(now)
    }
}

impl Known<'_> {
    fn judge(&self, note: &Note, now: Moment) -> Step {
        let next = |note: &Note| Note {
            generation: Note::generation_after(note.generation),
            ..note.clone()
        };
        // No promotion is no news: a server forgets it.
        let memories = self.memories;
        if self.identity.promotion().is_some_and(|it| note.promotion != Some(it)) {
            memories.doubt(note.life, now);
            return Step::Lose;
        }
        if note.id != self.process {
            let is_logged = note.is_logged && self.identity.is_durable() == Some(true);
            let is_own = is_logged && !memories.was_replica(self.process);
            if !is_own {
                memories.doubt(note.life, now);
                return Step::Lose;
            }
            if memories.judge(note, now) == MemoryVerdict::Older {
                return Step::Lose;
            }
            // Another process of this server wrote the data, and none of it is missing.
            return Step::Rewrite(
                Note { id: self.process, ..next(note) },
                Since::At(note.since_ms),
            );
        }
        if self.begun == Some(note.life) {
            memories.adopt(note, now);
        }
        let MemoryVerdict::Sound { found_at } = memories.judge(note, now) else {
            return Step::Lose;
        };
        if let Some(since) = note.corrected(self.clock_ms) {
            return Step::Rewrite(next(note), since);
        }
        if note.is_logged && self.identity.is_durable() == Some(false) {
            let since = Since::At(note.since_ms);
            return Step::Rewrite(Note { is_logged: false, ..next(note) }, since);
        }
        Step::Accept { found_at }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Moment = Moment::from_nanos(1_000_000_000_000);

    fn life(number: u64) -> MemoryId {
        MemoryId::from_random(number)
    }

    /// A note of process a, made 5 s ago, of a memory whose grants are all in the log.
    fn note(memory: u64, generation: i64) -> Note {
        let note = Note::sample(RunId::sample('a'), life(memory), generation);
        Note { since_ms: Note::SEEN_MS - 5_000, is_logged: true, ..note }
    }

    /// The judgement about a note of process `process`, after these notes were seen.
    fn judge(process: char, identity: &Identity, seen: &[Note], judged: &Note) -> Step {
        let memories = Memories::default();
        seen.iter().for_each(|it| _ = memories.judge(it, NOW));
        let (process, begun) = (RunId::sample(process), Some(life(99)));
        Known { process, clock_ms: Note::SEEN_MS, identity, memories: &memories, begun }
            .judge(judged, NOW)
    }

    /// The same note, rewritten.
    fn next(note: Note) -> Note {
        Note { generation: note.generation + 1, ..note }
    }

    #[test]
    fn a_complete_log_hands_the_note_to_the_next_process() {
        let (durable, judged) = (Identity::durable(true), note(1, 3));
        let since = Since::At(judged.since_ms);
        let taken_over = Step::Rewrite(Note { id: RunId::sample('b'), ..next(note(1, 3)) }, since);
        assert_eq!(judge('b', &durable, &[note(1, 3)], &judged), taken_over);
        assert_eq!(judge('b', &durable, &[note(1, 4)], &judged), Step::Lose);
        assert_eq!(judge('b', &Identity::durable(false), &[note(1, 3)], &judged), Step::Lose);
        let unlogged = Note { is_logged: false, ..note(1, 3) };
        assert_eq!(judge('b', &durable, &[], &unlogged), Step::Lose);
    }

    /// What shows that may be forgotten, before the server is marked.
    #[test]
    fn a_found_loss_counts_despite_a_sound_note() {
        let found = Step::Accept { found_at: Some(NOW) };
        // It was another process's, and the log was not complete then.
        let (whole, part) = (Identity::durable(true), Identity::durable(false));
        let memories = [Memories::default(), Memories::default()];
        let judge = |process, identity, judged: &Note, now| {
            let memories = &memories[usize::from(process == 'a')];
            let (process, begun) = (RunId::sample(process), None);
            let clock_ms = Note::SEEN_MS;
            Known { process, clock_ms, identity, memories, begun }.judge(judged, now)
        };
        assert_eq!(judge('b', &part, &note(1, 3), NOW), Step::Lose);
        let taken_over = judge('b', &whole, &note(1, 3), NOW.plus_ms(5));
        let Step::Rewrite(rewritten, _) = taken_over else { panic!("{taken_over:?}") };
        let later = NOW.plus_ms(9);
        assert_eq!(judge('b', &whole, &rewritten, later), found);
        // It was promoted.
        let promoted = Identity::promoted(RunId::sample('c'));
        assert_eq!(judge('a', &promoted, &note(1, 3), NOW), Step::Lose);
        assert_eq!(judge('a', &whole, &note(1, 3), later), found);
    }

    /// The data of a replica is another server's, and so may its note be.
    #[test]
    fn a_former_replica_takes_no_note_over() {
        let memories = Memories::default();
        memories.note_replica(RunId::sample('b'), NOW);
        let identity = &Identity::durable(true);
        let known = Known {
            process: RunId::sample('b'),
            clock_ms: Note::SEEN_MS,
            identity,
            memories: &memories,
            begun: None,
        };
        assert_eq!(known.judge(&note(1, 3), NOW), Step::Lose);
        let known = Known { process: RunId::sample('c'), ..known };
        assert!(matches!(known.judge(&note(1, 3), NOW), Step::Rewrite(..)));
    }

    /// Another client may have seen a loss of memory first. Its note is then in the place of ours.
    #[test]
    fn a_memory_from_this_handshake_is_no_foreign_one() {
        let durable = Identity::durable(true);
        let seen = [note(1, 3)];
        assert_eq!(judge('a', &durable, &seen, &note(99, 4)), Step::Accept { found_at: None });
        let found_at = Some(NOW);
        assert_eq!(judge('a', &durable, &seen, &note(2, 4)), Step::Accept { found_at });
        assert_eq!(judge('a', &durable, &seen, &note(1, 2)), Step::Lose);
    }

    #[test]
    fn every_rewrite_raises_the_generation() {
        let ahead = Note { since_ms: Note::SEEN_MS + 5_000, ..note(1, 3) };
        let corrected = Step::Rewrite(next(ahead.clone()), Since::Now);
        assert_eq!(judge('a', &Identity::durable(true), &[], &ahead), corrected);
        let since = Since::At(Note::SEEN_MS - 5_000);
        let unlogged = Step::Rewrite(Note { is_logged: false, ..next(note(1, 3)) }, since);
        assert_eq!(judge('a', &Identity::durable(false), &[], &note(1, 3)), unlogged);
    }
}
