//! Whether a server's grant is a vote. After the server lost its memory, it is none until every lock that the
//! server knew of has expired.
//!
//! The same holds for a server whose clock was set forward (`clocks.rs`).
//!
//! A server that forgets a lock may grant it to another client while the first holder still holds it. So each
//! server has a note of its own memory (`command::guard`). The note is read when a connection begins, and
//! again behind each acquire. A grant counts if the note is the same as when this connection began, and is
//! old enough.

use std::borrow::Cow;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, AtomicU64, Ordering};

use super::clocks::Step;
use super::memories::{Memories, Verdict};
use crate::protocol::command::NotedMemory;
use crate::protocol::command::guard::{Borne, MemoryId, Note};
use crate::protocol::command::identity::{RoleTold, RunId};
use crate::protocol::failure::Failure;
use crate::protocol::moment::Moment;
use crate::protocol::quorum::validity::Drift;
use crate::protocol::refusal::Refusal;

/// The protection against servers that forget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Everything that is described here.
    On,
    /// The same, but a deployment that seems new is treated as one that has forgotten everything.
    Strict,
    /// No protection. Servers that evict keys are accepted as well.
    Off,
    /// Servers are not asked for notes. The user guarantees that no server ever forgets.
    Durable,
}

/// The rules for all servers of a manager. They can be changed while connections are in use. What a server is
/// asked changes with later connections.
#[derive(Debug)]
pub struct Rules {
    mode: AtomicI32,
    /// The longest TTL in use anywhere, as far as the user has said.
    longest_ms: AtomicI64,
    cap_ms: AtomicI64,
    /// The longest TTL that was noted on any server.
    noted_ms: AtomicI64,
    drift: AtomicU64,
    /// Whether the warning about locks that are not guarded to their end was given.
    has_warned: AtomicBool,
}

impl Rules {
    /// No shorter TTL is assumed to be in use.
    const LEAST_MS: i64 = 3_000;

    /// The maximum time that a server is left without a vote, by default: 10 minutes.
    const CAP_MS: i64 = 600_000;

    /// Sets all of it, in milliseconds. 0 for a time means the default.
    pub fn set(&self, mode: Mode, longest_ms: i64, cap_ms: i64) {
        let cap_ms = if cap_ms == 0 { Self::CAP_MS } else { cap_ms.max(Self::LEAST_MS) };
        self.mode.store(mode as i32, Ordering::Relaxed);
        self.longest_ms.store(longest_ms, Ordering::Relaxed);
        self.cap_ms.store(cap_ms, Ordering::Relaxed);
    }

    /// Sets how much clocks may differ.
    pub fn set_drift(&self, drift: Drift) {
        self.drift.store(drift.factor().to_bits(), Ordering::Relaxed);
    }

    pub fn mode(&self) -> Mode {
        let mode = self.mode.load(Ordering::Relaxed);
        let known = [Mode::On, Mode::Strict, Mode::Off, Mode::Durable];
        known.into_iter().find(|&it| it as i32 == mode).unwrap_or(Mode::On)
    }

    /// Whether servers are asked for their notes.
    pub(crate) fn are_kept(&self) -> bool {
        matches!(self.mode(), Mode::On | Mode::Strict)
    }

    /// The longest TTL in use, as far as it is known.
    pub(crate) fn longest_ms(&self) -> i64 {
        let noted_ms = self.noted_ms.load(Ordering::Relaxed);
        noted_ms.max(self.longest_ms.load(Ordering::Relaxed)).min(self.cap_ms())
    }

    /// For how long after a loss of memory the server's grants for a lock of this TTL are no votes.
    pub(crate) fn wait_ms(&self, ttl_ms: i64) -> i64 {
        let wait_ms = ttl_ms.max(self.longest_ms()).max(Self::LEAST_MS).min(self.cap_ms());
        // The server's clock and ours may each be fast by this much. This also holds for ours if the user
        // takes the servers' clocks for exact. Each clock shows whole milliseconds.
        let drift = self.drift();
        wait_ms + 2 * drift.share_ms(wait_ms) + 2
    }

    /// How much longer a server waits whose predecessor may grant locks for this long after it was deposed. As for
    /// [`Self::wait_ms`], each clock may be fast.
    pub(crate) fn lead_ms(&self, lead_ms: i64) -> i64 {
        lead_ms + 2 * self.drift().share_ms(lead_ms) + 2
    }

    /// The warning, given once, about a lock that is not guarded to its end.
    pub fn warning(&self, ttl_ms: i64) -> Option<String> {
        let cap_ms = self.cap_ms();
        let is_due = ttl_ms > cap_ms && self.are_kept();
        (is_due && !self.has_warned.swap(true, Ordering::Relaxed)).then(|| {
            format!(
                "the restart guard covers only {cap_ms} ms of a lock with a TTL of {ttl_ms} ms: \
                 use a shorter TTL or a greater cap of the guard"
            )
        })
    }

    /// By how much clocks may differ in speed: at least by what the Redlock page allows for.
    pub(crate) fn drift(&self) -> Drift {
        let factor = f64::from_bits(self.drift.load(Ordering::Relaxed));
        Drift::new(factor.max(Drift::DEFAULT.factor())).unwrap_or(Drift::DEFAULT)
    }

    fn cap_ms(&self) -> i64 {
        self.cap_ms.load(Ordering::Relaxed)
    }

    /// A server has this for a note. Whether its grants are votes or not, it tells how long TTLs are.
    pub(crate) fn hear(&self, borne: &Borne) {
        if let Borne::Note(note) = borne {
            self.learn(note);
        }
    }

    fn learn(&self, note: &Note) {
        self.noted_ms.fetch_max(note.longest_ms, Ordering::Relaxed);
    }
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            mode: AtomicI32::new(Mode::On as i32),
            longest_ms: AtomicI64::new(0),
            cap_ms: AtomicI64::new(Self::CAP_MS),
            noted_ms: AtomicI64::new(0),
            drift: AtomicU64::new(Drift::DEFAULT.factor().to_bits()),
            has_warned: AtomicBool::new(false),
        }
    }
}

/// What is known of the memory behind a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Guard {
    /// What the note said when the connection began. Nothing if the server has no note.
    life: Option<Life>,
    /// When, at the latest, the server lost its memory. Its grants are no votes until long enough after that.
    lost_at: Option<Moment>,
    /// Whether the server does not let this user ask or note everything.
    is_blind: bool,
    /// What it has refused, if that is known.
    refusal: Option<Refusal>,
    /// What else to report about the server although its grants are votes.
    caveat: &'static str,
    /// For how much longer than the longest lock it has no vote after a loss.
    lead_ms: i64,
}

#[derive(Clone, Copy, Debug)]
struct Life {
    process: RunId,
    id: MemoryId,
    /// Of the note that was last read: its generation and its longest TTL.
    read: (i64, i64),
    /// The promotion that its note knows of.
    promotion: Option<RunId>,
    /// When the server last showed that it was no replica. Not known after it refused a request as a replica.
    primary_at: Option<Moment>,
    /// Whether it has been a replica, so that its data is another server's.
    was_replica: bool,
    /// The longest TTL that the server has noted or was told to note.
    longest_ms: i64,
    /// Whether this user may have a TTL noted.
    may_note: bool,
}

/// The memory is not the one with which the connection began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Forgotten;

impl fmt::Display for Forgotten {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the server lost its data")
    }
}

impl Guard {
    /// A server that has shown so recently that it is a primary cannot have been a replica since: it would have
    /// got all data of its primary, and have been promoted again.
    const ROLE_MS: i64 = 50;

    /// The guard of a server whose note cannot be read.
    pub(crate) fn blind(refusal: Option<Refusal>) -> Self {
        Self { is_blind: true, refusal, ..Self::default() }
    }

    /// The same for a server that lost its memory at this time at the latest, if it did.
    pub(crate) fn with_loss(self, lost_at: Option<Moment>) -> Self {
        Self { lost_at: self.lost_at.max(lost_at), ..self }
    }

    /// The guard of a server whose note and clock were received at `now`. This manager has found at `found_at`
    /// that the memory was another one before.
    pub(crate) fn of(
        note: &Note,
        clock_ms: i64,
        found_at: Option<Moment>,
        now: Moment,
        rules: &Rules,
    ) -> Self {
        rules.learn(note);
        let &Note { id: process, generation, longest_ms, life: id, .. } = note;
        let (promotion, primary_at) = (note.promotion, Some(now));
        let (read, may_note) = ((generation, longest_ms), true);
        let was_replica = false;
        let life =
            Life { process, id, read, promotion, primary_at, was_replica, longest_ms, may_note };
        let noted_at = (!note.is_of_new()).then(|| now.plus_ms(-note.age_ms(clock_ms)));
        Self { life: Some(life), lost_at: noted_at.max(found_at), ..Self::default() }
    }

    /// Whether the note must be read behind an acquire.
    pub(crate) fn reads(&self) -> bool {
        self.life.is_some()
    }

    /// The server's process and its memory, if its note is read.
    pub(crate) fn source(&self) -> Option<(RunId, MemoryId)> {
        self.life.as_ref().map(|life| (life.process, life.id))
    }

    /// The server's memory and the generation of the note that names it, if its note is read.
    pub(crate) fn noted(&self) -> Option<NotedMemory> {
        self.life.as_ref().map(|it| NotedMemory { life: it.id, generation: it.read.0 })
    }

    /// Whether the server must be asked for its role before it is asked for a vote. It may have been a replica
    /// since it last answered. Then its memory is that of another server, and may contain the same note.
    pub(crate) fn asks_role(&self, now: Moment) -> bool {
        let is_known = |at: Moment| now.ms_since(at) < Self::ROLE_MS;
        self.life.as_ref().is_some_and(|life| !life.primary_at.is_some_and(is_known))
    }

    /// Notes what the server has said of its role. Fails if it is a replica, or was promoted since its note was made.
    pub(crate) fn note_role(&mut self, told: RoleTold) -> Result<(), Forgotten> {
        let Some(life) = &self.life else { return Ok(()) };
        match told {
            RoleTold::Nothing => self.is_blind = true,
            RoleTold::Replica => return Err(Forgotten),
            RoleTold::Primary { promotion }
                if !life.was_replica && (promotion.is_none() || promotion == life.promotion) => {}
            RoleTold::Primary { .. } => return Err(Forgotten),
        }
        Ok(())
    }

    /// The server has said in its handshake, after this time, that it is a primary.
    pub(crate) fn primary_since(mut self, at: Moment) -> Self {
        if let Some(life) = &mut self.life {
            life.primary_at = Some(at);
        }
        self
    }

    /// The server is asked for its role at this time. What it is asked behind that counts only if it is a primary still.
    pub(crate) fn role_asked(&mut self, at: Moment) {
        if let Some(life) = &mut self.life {
            life.primary_at = life.primary_at.max(Some(at));
        }
    }

    /// The server has done something as a primary that it was asked for at this time. The answer may have been on
    /// its way for long, so the time when it was heard says nothing. Nor does it say that the server is *still* a
    /// primary if it has shown nothing for too long before: only the question for its role does.
    pub(crate) fn note_primary(&mut self, asked_at: Moment) {
        if !self.asks_role(asked_at) {
            self.role_asked(asked_at);
        }
    }

    /// The server has refused a request as a replica.
    pub(crate) fn note_replica(&mut self) {
        if let Some(life) = &mut self.life {
            (life.primary_at, life.was_replica) = (None, true);
        }
    }

    /// The TTL that must be noted for a memory before a request that leaves a key for `ttl_ms`, if any. A longer one that
    /// other servers have noted is passed on, because this server may know of locks that it has forgotten.
    pub(crate) fn raises(&mut self, ttl_ms: i64, rules: &Rules) -> Option<(MemoryId, i64)> {
        let life = self.life.as_mut()?;
        let ttl_ms = ttl_ms.min(rules.cap_ms()).max(rules.longest_ms());
        (life.may_note && ttl_ms > life.longest_ms).then(|| {
            life.longest_ms = ttl_ms;
            (life.id, ttl_ms)
        })
    }

    /// This user may not have a longer TTL noted, so that step is left out.
    pub(crate) fn leave_out_notes(&mut self) {
        if let Some(life) = &mut self.life {
            (life.may_note, self.is_blind) = (false, true);
        }
    }

    /// This user may not read the note any more.
    pub(crate) fn go_blind(&mut self) {
        (self.life, self.is_blind) = (None, true);
    }

    /// Checks what was read behind a granted acquire. Fails if the grant came from another memory. A later note
    /// of the same memory has another TTL, or a corrected time, which says nothing new to this connection.
    pub(crate) fn check(
        &mut self,
        borne: Option<&Borne>,
        memories: &Memories,
        now: Moment,
        rules: &Rules,
    ) -> Result<(), Forgotten> {
        let Some(life) = &mut self.life else { return Ok(()) };
        let Some(borne) = borne else { return Err(Forgotten) };
        rules.hear(borne);
        let note = match borne {
            Borne::Note(note) if (note.id, note.life) == (life.process, life.id) => note,
            other => {
                memories.note_end(life.id, now);
                if let Borne::Note(note) = other {
                    memories.judge(note, now);
                }
                return Err(Forgotten);
            }
        };
        let read = (note.generation, note.longest_ms);
        if read != life.read {
            if memories.judge(note, now) == Verdict::Older {
                return Err(Forgotten);
            }
            life.read = read;
        }
        life.longest_ms = note.longest_ms;
        Ok(())
    }

    /// Learns from what was read behind an acquire that was not granted. The server may lose this note before
    /// it grants anything. Fails if it has lost a later one. A note of another memory is compared with later ones.
    pub(crate) fn learn(
        &mut self,
        borne: Option<&Borne>,
        memories: &Memories,
        now: Moment,
        rules: &Rules,
    ) -> Result<(), Forgotten> {
        let (Some(life), Some(borne)) = (&mut self.life, borne) else { return Ok(()) };
        rules.hear(borne);
        let Borne::Note(note) = borne else {
            memories.note_end(life.id, now);
            return Err(Forgotten);
        };
        let is_same = (note.id, note.life) == (life.process, life.id);
        let read = (note.generation, note.longest_ms);
        if is_same && read == life.read {
            return Ok(());
        }
        if memories.judge(note, now) == Verdict::Older {
            return Err(Forgotten);
        }
        life.read = if is_same { read } else { (0, 0) };
        if is_same {
            life.longest_ms = note.longest_ms;
        }
        Ok(())
    }

    /// Why a grant for this TTL that was asked for at `asked_at` is no vote.
    pub(crate) fn objection(
        &self,
        ttl_ms: i64,
        step: Option<Step>,
        asked_at: Moment,
        now: Moment,
        rules: &Rules,
    ) -> Option<Failure> {
        let is_noted =
            |life: &Life| !life.may_note || life.longest_ms >= ttl_ms.min(rules.cap_ms());
        if !self.life.as_ref().is_none_or(is_noted) {
            return Some(Failure::Unnoted);
        }
        let step = step.filter(|_| self.life.is_some());
        let lost = self.lost_at.map(|at| (at, None));
        let stepped = step.map(|Step { at, ms }| (at, Some(ms)));
        let (at, stepped_ms) = lost.into_iter().chain(stepped).max_by_key(|it| it.0)?;
        let counts_at = at.plus_ms(rules.wait_ms(ttl_ms) + self.lead_ms);
        let ago_s = now.ms_since(at) / 1_000;
        let left_s = (now.ms_until(counts_at) + 999) / 1_000;
        (asked_at < counts_at).then_some(match stepped_ms {
            Some(by_ms) => Failure::Stepped { by_ms, ago_s, left_s },
            None => Failure::Forgot { ago_s, left_s },
        })
    }

    /// Why the server's grants would be no votes now, whatever the TTL.
    pub(crate) fn doubt(&self, step: Option<Step>, now: Moment, rules: &Rules) -> Option<Failure> {
        self.objection(0, step, now, now, rules)
    }

    /// Whether a loss of the server's memory is not noticed, because it does not let this user ask for what shows it.
    pub(crate) fn is_blind(&self) -> bool {
        self.is_blind
    }

    /// What to report about the server although its grants are votes.
    pub(crate) fn caveat(&self) -> Cow<'static, str> {
        if !self.is_blind {
            return Cow::Borrowed(self.caveat);
        }
        let refusal = self.refusal.map_or_else(String::new, |it| format!(" ({it})"));
        Cow::Owned(format!(
            "not guarded against restarts: the user needs +info +time +getrange +eval ~redlock:guard{refusal}"
        ))
    }

    /// The server does not let this user ask for its role, so a promotion is not seen.
    pub(crate) fn without_role(self) -> Self {
        Self { is_blind: true, ..self }
    }

    /// A deposed predecessor of the server may have granted locks for this long.
    pub(crate) fn with_lead(self, lead_ms: i64) -> Self {
        Self { lead_ms, ..self }
    }

    pub(crate) fn lead_ms(&self) -> i64 {
        self.lead_ms
    }

    pub(crate) fn with_caveat(self, caveat: &'static str) -> Self {
        Self { caveat, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::command::guard::Unusable;

    const NOW: Moment = Moment::from_nanos(1_000_000_000_000);

    fn note(since_ms: i64) -> Note {
        Note { since_ms, ..Note::sample(RunId::sample('a'), MemoryId::from_random(7), 1) }
    }

    /// The guard of a server that has this note.
    fn guard(since_ms: i64, found_at: Option<Moment>) -> Guard {
        Guard::of(&note(since_ms), Note::SEEN_MS, found_at, NOW, &Rules::default())
    }

    /// How many milliseconds after [`NOW`] a request for a lock of 10 s must be sent to get a vote.
    fn counts_after(guard: &Guard, step: Option<Step>, rules: &Rules) -> i64 {
        let counts = |ms: &i64| {
            let asked_at = NOW.plus_ms(*ms);
            guard.objection(10_000, step, asked_at, asked_at, rules).is_none()
        };
        (0..=60_000).find(counts).expect("it counts at last")
    }

    /// After 10 s, and 1 % of that for each of the two clocks, which show whole milliseconds.
    const WAIT_MS: i64 = 10_202;

    #[test]
    fn the_later_of_a_loss_and_a_step_counts() {
        let rules = Rules::default();
        // The note is 5 s old.
        let lost = guard(Note::SEEN_MS - 5_000 - 1, None);
        assert_eq!(counts_after(&lost, None, &rules), WAIT_MS - 5_000);
        for (step_ms, left_ms) in [(-9_000, WAIT_MS - 5_000), (-2_000, WAIT_MS - 2_000)] {
            let step = Step { at: NOW.plus_ms(step_ms), ms: 70 };
            assert_eq!(counts_after(&lost, Some(step), &rules), left_ms, "{step_ms}");
            let why = lost.objection(10_000, Some(step), NOW, NOW, &rules);
            let is_of_step = matches!(why, Some(Failure::Stepped { by_ms: 70, .. }));
            assert_eq!(is_of_step, step_ms == -2_000, "{why:?}");
        }
    }

    /// For a second, with the drift of both clocks.
    #[test]
    fn a_deposed_predecessor_makes_the_wait_longer() {
        let rules = Rules::default();
        let lost = guard(-1, Some(NOW)).with_lead(rules.lead_ms(1_000));
        assert_eq!(counts_after(&lost, None, &rules), WAIT_MS + 1_022);
    }

    #[test]
    fn a_loss_starts_at_the_later_of_note_and_discovery() {
        let rules = Rules::default();
        for (found_ms, left_ms) in [(-9_000, WAIT_MS - 5_000), (-2_000, WAIT_MS - 2_000)] {
            let lost = guard(Note::SEEN_MS - 5_000 - 1, Some(NOW.plus_ms(found_ms)));
            assert_eq!(counts_after(&lost, None, &rules), left_ms, "{found_ms}");
        }
        // A new server has lost nothing, as far as its note says.
        assert_eq!(counts_after(&guard(-1, None), None, &rules), 0);
        assert_eq!(counts_after(&guard(-1, Some(NOW)), None, &rules), WAIT_MS);
    }

    #[test]
    fn only_a_longer_drift_changes_the_wait() {
        for (factor, left_ms) in [(0.0, WAIT_MS), (0.05, 11_002)] {
            let rules = Rules::default();
            rules.set_drift(Drift::new(factor).unwrap());
            assert_eq!(counts_after(&guard(-1, Some(NOW)), None, &rules), left_ms, "{factor}");
        }
    }

    #[test]
    fn the_bound_of_the_wait_has_a_minimum() {
        let rules = Rules::default();
        for (cap_ms, left_ms) in [(1, 3_062), (5_000, 5_102), (0, WAIT_MS)] {
            rules.set(Mode::On, 0, cap_ms);
            assert_eq!(counts_after(&guard(-1, Some(NOW)), None, &rules), left_ms, "{cap_ms}");
        }
    }

    #[test]
    fn a_ttl_above_the_bound_is_noted_up_to_the_bound() {
        let (rules, mut guard) = (Rules::default(), guard(-1, None));
        rules.set(Mode::On, 0, 20_000);
        let life = MemoryId::from_random(7);
        assert_eq!(guard.raises(50_000, &rules), Some((life, 20_000)));
        assert_eq!(guard.raises(50_000, &rules), None);
        assert_eq!(guard.objection(50_000, None, NOW, NOW, &rules), None);
    }

    #[test]
    fn a_promotion_is_new_unless_it_is_in_the_note() {
        let promoted = Note { promotion: Some(RunId::sample('b')), ..note(-1) };
        let mut guard = Guard::of(&promoted, Note::SEEN_MS, None, NOW, &Rules::default());
        assert_eq!(
            guard.note_role(RoleTold::Primary { promotion: Some(RunId::sample('b')) }),
            Ok(())
        );
        assert_eq!(guard.note_role(RoleTold::Primary { promotion: None }), Ok(()));
        assert_eq!(
            guard.note_role(RoleTold::Primary { promotion: Some(RunId::sample('c')) }),
            Err(Forgotten)
        );
    }

    #[test]
    fn a_step_of_an_unguarded_server_is_ignored() {
        let step = Some(Step { at: NOW, ms: 70 });
        for unguarded in [Guard::default(), Guard::blind(None)] {
            assert_eq!(unguarded.objection(10_000, step, NOW, NOW, &Rules::default()), None);
        }
    }

    /// A request was written, and asked for the role. Then the answer to an earlier one is read.
    #[test]
    fn an_old_answer_does_not_repeat_the_role_question() {
        let mut guard = guard(-1, None);
        guard.role_asked(NOW.plus_ms(100));
        guard.note_primary(NOW);
        assert!(!guard.asks_role(NOW.plus_ms(149)));
        assert!(guard.asks_role(NOW.plus_ms(150)));
    }

    /// It may have been a replica in between. A release, say, asks for no role.
    #[test]
    fn an_answer_after_a_long_silence_does_not_replace_the_role_question() {
        let mut guard = guard(-1, None);
        guard.note_primary(NOW.plus_ms(49));
        assert!(!guard.asks_role(NOW.plus_ms(98)), "it has shown it all the time");
        guard.note_primary(NOW.plus_ms(99));
        assert!(guard.asks_role(NOW.plus_ms(100)));
        guard.role_asked(NOW.plus_ms(100));
        assert!(!guard.asks_role(NOW.plus_ms(101)));
    }

    /// Behind a grant, and behind a refusal.
    #[test]
    fn a_missing_note_ends_its_memory() {
        let rules = Rules::default();
        for reads in [Guard::check, Guard::learn] {
            for gone in [Borne::Nothing, Borne::Damaged, Borne::Unusable(Unusable::WrongType)] {
                let (mut guard, memories) = (guard(-1, None), Memories::default());
                memories.judge(&note(-1), NOW);
                let later = NOW.plus_ms(1);
                assert_eq!(
                    reads(&mut guard, Some(&gone), &memories, later, &rules),
                    Err(Forgotten)
                );
                assert_eq!(memories.judge(&note(-1), later), Verdict::Older);
                assert_eq!(memories.lost_at(), Some(later));
            }
        }
    }

    #[test]
    fn an_older_note_is_refused_after_a_later_one() {
        let (mut guard, memories, rules) = (guard(-1, None), Memories::default(), Rules::default());
        memories.judge(&note(-1), NOW);
        let mut check = |generation| {
            let borne = Borne::Note(Note { generation, ..note(-1) });
            guard.check(Some(&borne), &memories, NOW, &rules)
        };
        assert_eq!([1, 2, 1].map(&mut check), [Ok(()), Ok(()), Err(Forgotten)]);
    }
}
