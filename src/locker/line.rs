//! Callers of one manager that want the same resource stand in line, and only the first of them asks
//! the servers.
//!
//! Who releases the lock asks for it on behalf of the first in line, right behind the release, so that
//! it changes hands within one round trip. A run of that must not keep other processes out: after a
//! while the lock is released openly, and the first in line stands back before it asks.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::hold::Hold;
use crate::moment::Moment;
use crate::quorum::backoff::Backoff;
use crate::system::process::this_thread;
use crate::token::Token;

/// How long a lock is handed on within a manager before others get their chance: with rivals about,
/// and without. A rival that polls sees a lock that changes hands every 8 ms in the mean (see
/// [`crate::quorum::backoff::Backoff`]), so a few such runs let it in; without any the pauses
/// cost two percent of the time.
const RUN_WITH_RIVALS_MS: i64 = 40;
const RUN_MS: i64 = 200;

/// The longest that the first in line stands back then, and that a manager does which takes a
/// contended lock again right after it has released it.
pub(crate) const STAND_BACK: Duration = Duration::from_millis(8);

/// For how long a rival is remembered.
const RIVAL_MS: i64 = 250;

/// How often the first in line looks whether the lock was released through another manager, which
/// tells nobody here.
const LOOK_MS: i64 = 100;

/// How often the first in line asks the servers although this manager has the lock: they may have lost
/// it, and then it is to be had.
const ASK_HELD_MS: i64 = 1000;

/// How often those behind look whether they are the first by now.
const LOOK_FROM_BEHIND_MS: i64 = 1000;

/// How many lines there may be before those are looked for that nobody needs any more.
const LINES_MIN: usize = 64;

/// All lines of one manager. `S` names a caller that stands by at the transport.
pub(crate) struct Lines<S> {
    state: Mutex<State<S>>,
}

struct State<S> {
    lines: HashMap<Arc<[u8]>, Line<S>>,
    last_number: u64,
    clean_at: usize,
}

/// The callers that want one resource, and what is known of it.
struct Line<S> {
    first: Option<Caller<S>>,
    behind: VecDeque<Caller<S>>,
    /// The lock, while this manager has it.
    hold: Option<Arc<Hold>>,
    /// When the servers may be asked for it all the same.
    ask_held_at: Moment,
    /// Whether the servers are being asked, by the first in line or on behalf of it.
    is_asking: bool,
    /// Whether they are, although this manager has the lock.
    asks_in_vain: bool,
    /// From when on the first in line may ask without a pause, since the lock was let go of.
    open_at: Option<Moment>,
    /// Since when the lock was handed on, and nobody else had a chance.
    run_since: Moment,
    /// When another process was last seen to have the lock.
    rival_at: Option<Moment>,
    /// How far the pauses had grown of a first in line that will be back.
    backoff: Option<Backoff>,
}

struct Caller<S> {
    number: u64,
    thread: usize,
    standby: Option<Standby<S>>,
}

/// Where a caller stands.
enum Place {
    First,
    Behind,
    Apart,
}

/// A caller that waits at the transport.
#[derive(Clone, Copy)]
struct Standby<S> {
    name: S,
    /// What is to be asked on its behalf.
    bid: Bid,
    until: Moment,
}

/// What a caller would ask for.
#[derive(Clone, Copy)]
pub(crate) struct Bid {
    pub(crate) token: Token,
    pub(crate) ttl_ms: i64,
    /// The end of its time.
    pub(crate) end: Moment,
}

/// Whether a caller may ask the servers now.
pub(crate) enum Leave {
    /// It may, and is taken to do it.
    Granted,
    /// This manager has the lock, for so long.
    Held { left_ms: i64 },
    /// It is not its turn.
    NotYet,
}

/// What a caller that stands by has to wait for.
#[derive(Clone, Copy)]
pub(crate) struct Wait {
    /// The end of its pause, if it is the first and somebody else has the lock.
    pub(crate) pause_until: Moment,
    /// When it gives up in any case.
    pub(crate) until: Moment,
}

/// What becomes of the line when a lock is let go of.
pub(crate) enum Next<S> {
    /// The lock is to be asked for on behalf of the first in line.
    Ask(S, Bid),
    /// The first in line is to be told.
    Tell(S),
    Nobody,
}

impl<S: Copy> Lines<S> {
    /// A caller that wants the resource. Returns its number.
    ///
    /// One whose thread stands in that line already would wait for itself: it is a password callback's,
    /// made from within the other's call. It is left out of the line, and asks when it likes.
    pub(crate) fn join(&self, resource: &Arc<[u8]>, now: Moment) -> u64 {
        let mut state = self.state();
        state.last_number += 1;
        let number = state.last_number;
        let caller = Caller { number, thread: this_thread(), standby: None };
        if let Some(line) = state.lines.get_mut(resource) {
            line.join(caller);
        } else {
            state.clean(now);
            state.lines.insert(Arc::clone(resource), Line::of(caller, now));
        }
        number
    }

    /// Whether the caller may ask the servers. `is_urgent`: even if this manager has the lock, and
    /// although it would be better manners to stand back. `is_last`: also out of turn, for what
    /// the first in line was told may be old.
    pub(crate) fn begin(
        &self,
        resource: &[u8],
        number: u64,
        (is_urgent, is_last): (bool, bool),
        now: Moment,
    ) -> Leave {
        let mut state = self.state();
        let Some(line) = state.lines.get_mut(resource) else { return Leave::Granted };
        line.forget_ended(now);
        match line.place(number) {
            Place::First => {}
            Place::Apart => return Leave::Granted,
            Place::Behind => {
                let left_ms = line.hold.as_ref().map(|hold| hold.remaining_ms(now));
                return match left_ms {
                    Some(_) if is_last && now >= line.ask_held_at => {
                        line.ask_held_at = now.plus_ms(ASK_HELD_MS);
                        Leave::Granted
                    }
                    Some(left_ms) => Leave::Held { left_ms },
                    None if is_last => Leave::Granted,
                    None => Leave::NotYet,
                };
            }
        }
        if let Some(left_ms) = line.hold.as_ref().map(|hold| hold.remaining_ms(now))
            && !is_urgent
            && now < line.ask_held_at
        {
            return Leave::Held { left_ms };
        }
        if line.open_at.is_some_and(|it| it > now) && !is_urgent {
            return Leave::NotYet;
        }
        line.ask_held_at = now.plus_ms(ASK_HELD_MS);
        (line.open_at, line.run_since) = (None, now);
        (line.is_asking, line.asks_in_vain) = (true, line.hold.is_some());
        Leave::Granted
    }

    /// The servers have refused the caller; perhaps because somebody else has the lock.
    pub(crate) fn refused(&self, resource: &[u8], number: u64, is_taken: bool, now: Moment) {
        let mut state = self.state();
        if let Some(line) = state.lines.get_mut(resource).filter(|it| it.is_first(number)) {
            line.is_asking = false;
            if is_taken && !line.asks_in_vain && line.hold.is_none() {
                line.rival_at = Some(now);
            }
        }
    }

    /// The caller has got the lock, and leaves the line. Returns who is to be told.
    pub(crate) fn granted(&self, resource: &[u8], number: u64, hold: &Arc<Hold>) -> Option<S> {
        let mut state = self.state();
        let line = state.lines.get_mut(resource)?;
        line.hold = Some(Arc::clone(hold));
        line.ask_held_at = hold.asked_at().plus_ms(ASK_HELD_MS);
        (line.open_at, line.backoff) = (None, None);
        line.remove(number);
        // Whoever comes next looks by itself before long; it needs to be told only if that is too late.
        let next = line.first.as_ref()?.standby.as_ref();
        next.filter(|it| hold.valid_until() < it.until).map(|it| it.name)
    }

    /// The caller is about to leave the line, in the midst of a pause, and to come again. Whoever is the
    /// first then goes on with that pause, and with the backoff: it begins no new wait.
    pub(crate) fn pass_on(
        &self,
        resource: &[u8],
        number: u64,
        pause_until: Moment,
        backoff: Backoff,
    ) {
        let mut state = self.state();
        let line = state.lines.get_mut(resource);
        if let Some(line) = line.filter(|it| it.is_first(number) && !it.behind.is_empty()) {
            if line.hold.is_none() {
                line.open_at.get_or_insert(pause_until);
            }
            line.backoff.get_or_insert(backoff);
        }
    }

    /// The backoff that the caller is to go on with, if one that was the first before it has left any.
    pub(crate) fn inherit(&self, resource: &[u8], number: u64) -> Option<Backoff> {
        let mut state = self.state();
        state.lines.get_mut(resource).filter(|it| it.is_first(number))?.backoff.take()
    }

    /// The caller gives up. Returns who is to be told.
    pub(crate) fn leave(&self, resource: &[u8], number: u64, now: Moment) -> Option<S> {
        let mut state = self.state();
        let line = state.lines.get_mut(resource)?;
        let was_first = line.remove(number);
        if was_first && line.first.is_some() && line.hold.is_none() {
            line.open_at.get_or_insert(now);
        }
        let next = line.first.as_ref().filter(|_| was_first).and_then(Caller::name);
        if !line.is_needed(now) {
            state.lines.remove(resource);
        }
        next
    }

    /// The caller stands by, under that name. Returns until when.
    pub(crate) fn stand_by(
        &self,
        resource: &[u8],
        number: u64,
        (name, bid): (S, Bid),
        wait: Wait,
        now: Moment,
    ) -> Moment {
        let mut state = self.state();
        let Some(line) = state.lines.get_mut(resource) else { return now };
        line.forget_ended(now);
        let until = line.due(number, wait, now);
        if let Some(caller) = line.find(number).filter(|_| until > now) {
            caller.standby = Some(Standby { name, bid, until });
        }
        until
    }

    /// The caller stands by no more; it was told, or its time was up, and nobody asked on its behalf.
    /// Returns whether it is its turn to ask.
    pub(crate) fn stand_up(&self, resource: &[u8], number: u64, wait: Wait, now: Moment) -> bool {
        let mut state = self.state();
        let Some(line) = state.lines.get_mut(resource) else { return true };
        line.forget_ended(now);
        let is_first = line.is_first(number);
        if let Some(caller) = line.find(number) {
            caller.standby = None;
        }
        if is_first && line.is_asking {
            // Somebody was about to ask on its behalf, but came too late.
            line.is_asking = false;
            line.open_at = Some(now);
        }
        line.due(number, wait, now) <= now
    }

    /// The lock is being released, at this moment. `stand_back` says for how long who comes next
    /// should stand back, if it should.
    pub(crate) fn release(
        &self,
        hold: &Hold,
        now: Moment,
        stand_back: impl FnOnce() -> Moment,
    ) -> Next<S> {
        let mut state = self.state();
        let Some(line) = state.lines.get_mut(hold.resource()).filter(|it| it.has(hold)) else {
            return Next::Nobody;
        };
        line.hold = None;
        let has_rivals = line.has_rivals(now);
        let Some(first) = &mut line.first else {
            if has_rivals {
                line.open_at = Some(stand_back());
            } else {
                state.lines.remove(hold.resource());
            }
            return Next::Nobody;
        };
        let run_ms = if has_rivals { RUN_WITH_RIVALS_MS } else { RUN_MS };
        if now.ms_since(line.run_since) >= run_ms {
            (line.open_at, line.run_since) = (Some(stand_back()), now);
            return first.name().map_or(Next::Nobody, Next::Tell);
        }
        match first.standby.take() {
            Some(it) => {
                (line.is_asking, line.asks_in_vain) = (true, false);
                Next::Ask(it.name, it.bid)
            }
            None => {
                line.open_at = Some(now);
                Next::Nobody
            }
        }
    }

    /// The lock was lost. Returns who is to be told.
    pub(crate) fn lost(&self, hold: &Hold, now: Moment) -> Option<S> {
        let mut state = self.state();
        let line = state.lines.get_mut(hold.resource()).filter(|it| it.has(hold))?;
        (line.hold, line.open_at) = (None, Some(now));
        line.first.as_ref()?.name()
    }

    fn state(&self) -> MutexGuard<'_, State<S>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S> Lines<S> {
    /// Whether no thread is using it at this moment.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.state.try_lock().is_ok()
    }
}

impl<S> Default for Lines<S> {
    fn default() -> Self {
        let state = State { lines: HashMap::new(), last_number: 0, clean_at: LINES_MIN };
        Self { state: Mutex::new(state) }
    }
}

impl<S> State<S> {
    /// Forgets locks that ended without a release, before there are too many.
    fn clean(&mut self, now: Moment) {
        if self.lines.len() >= self.clean_at {
            self.lines.retain(|_, it| it.is_needed(now));
            self.clean_at = LINES_MIN.max(2 * self.lines.len());
        }
    }
}

impl<S: Copy> Caller<S> {
    /// Its name, if it stands by.
    fn name(&self) -> Option<S> {
        self.standby.as_ref().map(|it| it.name)
    }
}

impl<S: Copy> Line<S> {
    fn of(first: Caller<S>, now: Moment) -> Self {
        Self {
            first: Some(first),
            behind: VecDeque::new(),
            hold: None,
            ask_held_at: now,
            is_asking: false,
            open_at: None,
            asks_in_vain: false,
            run_since: now,
            rival_at: None,
            backoff: None,
        }
    }

    fn join(&mut self, caller: Caller<S>) {
        if self.callers().any(|it| it.thread == caller.thread) {
            return;
        }
        match self.first {
            None => self.first = Some(caller),
            Some(_) => self.behind.push_back(caller),
        }
    }

    fn callers(&self) -> impl Iterator<Item = &Caller<S>> {
        self.first.iter().chain(&self.behind)
    }

    fn place(&self, number: u64) -> Place {
        if self.is_first(number) {
            Place::First
        } else if self.behind.iter().any(|it| it.number == number) {
            Place::Behind
        } else {
            Place::Apart
        }
    }

    /// Returns whether the caller was the first. Then the one behind it is, now.
    fn remove(&mut self, number: u64) -> bool {
        if !self.is_first(number) {
            self.behind.retain(|it| it.number != number);
            return false;
        }
        (self.is_asking, self.asks_in_vain) = (false, false);
        self.first = self.behind.pop_front();
        true
    }

    fn is_first(&self, number: u64) -> bool {
        self.first.as_ref().is_some_and(|it| it.number == number)
    }

    fn find(&mut self, number: u64) -> Option<&mut Caller<S>> {
        self.first.iter_mut().chain(&mut self.behind).find(|it| it.number == number)
    }

    fn has(&self, hold: &Hold) -> bool {
        self.hold.as_ref().is_some_and(|it| it.token() == hold.token())
    }

    /// A lock that nobody released is free when its time is over, and one that was released through
    /// another manager, or found out to be lost, is, too. One that is being released is not before the
    /// release is on its way.
    fn forget_ended(&mut self, now: Moment) {
        if self.hold.as_ref().is_some_and(|it| it.is_lost_or_over() || now >= it.valid_until()) {
            self.hold = None;
            self.open_at.get_or_insert(now);
        }
    }

    /// When a caller has to do something.
    fn due(&self, number: u64, wait: Wait, now: Moment) -> Moment {
        let due = match (self.place(number), &self.hold, self.open_at) {
            (Place::Behind, ..) => now.plus_ms(LOOK_FROM_BEHIND_MS),
            (Place::First, Some(hold), _) => {
                hold.valid_until().min(now.plus_ms(LOOK_MS)).min(self.ask_held_at)
            }
            (Place::First, None, Some(open_at)) => open_at,
            (Place::First, None, None) | (Place::Apart, ..) => wait.pause_until,
        };
        due.min(wait.until)
    }

    fn has_rivals(&self, now: Moment) -> bool {
        self.rival_at.is_some_and(|it| now.ms_since(it) < RIVAL_MS)
    }
}

impl<S> Line<S> {
    fn is_needed(&self, now: Moment) -> bool {
        self.first.is_some()
            || self.hold.as_ref().is_some_and(|it| now < it.valid_until())
            || self.rival_at.is_some_and(|it| now.ms_since(it) < RIVAL_MS)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    const MANY: usize = 10_000;

    fn at_ms(ms: i64) -> Moment {
        Moment::from_nanos(1_000_000_000).plus_ms(ms)
    }

    /// Somebody takes the lock for 100 ms, at this time.
    fn take(lines: &Lines<u32>, resource: &Arc<[u8]>, ms: i64) -> Arc<Hold> {
        let number = lines.join(resource, at_ms(ms));
        assert!(matches!(lines.begin(resource, number, (true, true), at_ms(ms)), Leave::Granted));
        let token = Token::from_random([0; 20]);
        let hold = Arc::new(Hold::of_one_server(resource, token, (at_ms(ms), 100)));
        assert_eq!(lines.granted(resource, number, &hold), None);
        hold
    }

    fn name(number: usize) -> Arc<[u8]> {
        number.to_string().into_bytes().into()
    }

    fn count(lines: &Lines<u32>) -> usize {
        lines.state().lines.len()
    }

    #[test]
    fn a_line_is_forgotten_with_the_release() {
        let lines = Lines::default();
        for number in 0..MANY {
            let hold = take(&lines, &name(number), 0);
            let next = lines.release(&hold, at_ms(1), || unreachable!("there are no rivals"));
            assert!(matches!(next, Next::Nobody));
            assert_eq!(count(&lines), 0);
        }
    }

    #[test]
    fn a_line_is_forgotten_when_its_only_caller_gives_up() {
        let lines: Lines<u32> = Lines::default();
        for number in 0..MANY {
            let resource = name(number);
            let caller = lines.join(&resource, at_ms(0));
            assert_eq!(lines.leave(&resource, caller, at_ms(1)), None);
            assert_eq!(count(&lines), 0);
        }
    }

    #[test]
    fn locks_that_nobody_releases_are_forgotten_when_they_are_over() {
        let lines = Lines::default();
        for number in 0..MANY {
            take(&lines, &name(number), number as i64);
            // A hundred of them are held at a time.
            assert!(count(&lines) <= 4 * 100, "{} lines", count(&lines));
        }
    }

    #[test]
    fn a_rival_is_forgotten_after_a_while() {
        let lines: Lines<u32> = Lines::default();
        for number in 0..MANY {
            let (resource, now) = (name(number), at_ms(number as i64));
            let caller = lines.join(&resource, now);
            assert!(matches!(lines.begin(&resource, caller, (true, true), now), Leave::Granted));
            lines.refused(&resource, caller, true, now);
            assert_eq!(lines.leave(&resource, caller, now), None);
            assert!(lines.state().lines[&resource].has_rivals(now));
            assert!(count(&lines) <= 4 * RIVAL_MS as usize, "{} lines", count(&lines));
        }
    }

    #[test]
    fn the_pause_of_the_first_is_not_cut_short_by_one_behind_that_gives_up() {
        let (lines, resource): (Lines<u32>, _) = (Lines::default(), name(0));
        let first = lines.join(&resource, at_ms(0));
        let join = || lines.join(&resource, at_ms(0));
        // One caller of each thread.
        let behind = thread::scope(|scope| scope.spawn(join).join().unwrap());
        assert!(matches!(lines.begin(&resource, first, (false, false), at_ms(0)), Leave::Granted));
        lines.refused(&resource, first, true, at_ms(1));
        assert_eq!(lines.leave(&resource, behind, at_ms(2)), None);
        let wait = Wait { pause_until: at_ms(9), until: at_ms(1_000) };
        assert!(!lines.stand_up(&resource, first, wait, at_ms(8)));
        assert!(lines.stand_up(&resource, first, wait, at_ms(9)));
    }

    #[test]
    fn what_is_held_or_waited_for_is_not_forgotten() {
        let lines = Lines::default();
        let held = take(&lines, &name(MANY), 0);
        let waited_for = name(MANY + 1);
        lines.join(&waited_for, at_ms(0));
        for number in 0..MANY {
            take(&lines, &name(number), 0);
        }
        let state = lines.state();
        let line = &state.lines[held.resource()];
        assert!(line.hold.as_ref().is_some_and(|it| it.token() == held.token()));
        assert!(state.lines[&waited_for].first.is_some());
    }
}
