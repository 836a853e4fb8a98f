//! Callers of one manager that want the same resource stand in line, and only the first of them asks
//! the servers.
//!
//! Who releases the lock asks for it on behalf of the first in line, right behind the release, so that
//! it changes hands within one round trip. A run of that must not keep other processes out: after a
//! while the lock is released openly, and the first in line stands back before it asks.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::clock::Moment;
use crate::error::{Error, Status};
use crate::lease::Hold;
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
    /// Whether the servers are being asked, by the first in line or on behalf of it.
    is_asking: bool,
    /// From when on the first in line may ask without a pause, since the lock was let go of.
    open_at: Option<Moment>,
    /// What the servers last said to the first in line.
    refusal: Option<Error>,
    /// Since when the lock was handed on, and nobody else had a chance.
    run_since: Moment,
    /// When another process was last seen to have the lock.
    rival_at: Option<Moment>,
}

struct Caller<S> {
    number: u64,
    standby: Option<Standby<S>>,
    /// Whether it only waits for what the first is told.
    is_curious: bool,
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
    /// It is not its turn. What it would be told, if that is known.
    Refused(Option<Error>),
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
    pub(crate) fn join(&self, resource: &Arc<[u8]>, now: Moment) -> u64 {
        let mut state = self.state();
        state.last_number += 1;
        let number = state.last_number;
        let caller = Caller { number, standby: None, is_curious: false };
        if let Some(line) = state.lines.get_mut(resource) {
            line.join(caller);
        } else {
            state.clean(now);
            state.lines.insert(Arc::clone(resource), Line::of(caller, now));
        }
        number
    }

    /// Whether the caller may ask the servers. `is_urgent`: even if this manager has the lock, and
    /// although it would be better manners to stand back.
    pub(crate) fn begin(
        &self,
        resource: &[u8],
        number: u64,
        is_urgent: bool,
        now: Moment,
    ) -> Leave {
        let mut state = self.state();
        let Some(line) = state.lines.get_mut(resource) else { return Leave::Granted };
        line.forget_ended(now);
        let stands_back = line.hold.is_some() || line.open_at.is_some_and(|it| it > now);
        if !line.is_first(number) || (stands_back && !is_urgent) {
            return Leave::Refused(line.words(now));
        }
        (line.open_at, line.is_asking, line.run_since) = (None, true, now);
        Leave::Granted
    }

    /// The servers have refused the caller. Returns who is to be told.
    pub(crate) fn refused(
        &self,
        resource: &[u8],
        number: u64,
        error: Error,
        now: Moment,
    ) -> Vec<S> {
        let mut state = self.state();
        let Some(line) = state.lines.get_mut(resource).filter(|it| it.is_first(number)) else {
            return Vec::new();
        };
        line.is_asking = false;
        if error.status() == Status::Taken && line.hold.is_none() {
            line.rival_at = Some(now);
        }
        line.refusal = Some(error);
        line.curious().collect()
    }

    /// The caller has got the lock, and leaves the line. Returns who is to be told.
    pub(crate) fn granted(&self, resource: &[u8], number: u64, hold: &Arc<Hold>) -> Vec<S> {
        let mut state = self.state();
        let Some(line) = state.lines.get_mut(resource) else { return Vec::new() };
        line.hold = Some(Arc::clone(hold));
        line.open_at = None;
        line.remove(number);
        // Whoever comes next looks by itself before long; it needs to be told only if that is too late.
        let next = line.first.as_ref().and_then(|it| it.standby.as_ref());
        let next = next.filter(|it| hold.valid_until() < it.until).map(|it| it.name);
        next.into_iter().chain(line.curious()).collect()
    }

    /// The caller gives up. Returns who is to be told.
    pub(crate) fn leave(&self, resource: &[u8], number: u64, now: Moment) -> Vec<S> {
        let mut state = self.state();
        let Some(line) = state.lines.get_mut(resource) else { return Vec::new() };
        let mut told = Vec::new();
        if line.remove(number) {
            told.extend(line.first.iter().filter_map(Caller::name).chain(line.curious()));
            if line.hold.is_none() {
                line.open_at.get_or_insert(now);
            }
        }
        if !line.is_needed(now) {
            state.lines.remove(resource);
        }
        told
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

    /// The caller waits for what the first in line is told; for nothing if nobody is asking.
    pub(crate) fn watch(
        &self,
        resource: &[u8],
        number: u64,
        (name, bid): (S, Bid),
        now: Moment,
    ) -> Moment {
        let mut state = self.state();
        let Some(line) = state.lines.get_mut(resource) else { return now };
        if line.is_first(number) || !line.is_asking {
            return now;
        }
        if let Some(caller) = line.find(number) {
            let until = Moment::NEVER;
            (caller.standby, caller.is_curious) = (Some(Standby { name, bid, until }), true);
        }
        Moment::NEVER
    }

    /// The caller stands by no more; it was told, or its time was up, and nobody asked on its behalf.
    /// Returns whether it is its turn to ask.
    pub(crate) fn stand_up(&self, resource: &[u8], number: u64, wait: Wait, now: Moment) -> bool {
        let mut state = self.state();
        let Some(line) = state.lines.get_mut(resource) else { return true };
        line.forget_ended(now);
        let is_first = line.is_first(number);
        if let Some(caller) = line.find(number) {
            (caller.standby, caller.is_curious) = (None, false);
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
                line.is_asking = true;
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
            is_asking: false,
            open_at: None,
            refusal: None,
            run_since: now,
            rival_at: None,
        }
    }

    fn join(&mut self, caller: Caller<S>) {
        match self.first {
            None => self.first = Some(caller),
            Some(_) => self.behind.push_back(caller),
        }
    }

    /// Returns whether the caller was the first. Then the one behind it is, now.
    fn remove(&mut self, number: u64) -> bool {
        if !self.is_first(number) {
            self.behind.retain(|it| it.number != number);
            return false;
        }
        (self.is_asking, self.refusal) = (false, None);
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
    /// another manager is, too. One that is being released is not before the release is on its way.
    fn forget_ended(&mut self, now: Moment) {
        if self.hold.as_ref().is_some_and(|it| it.is_over() || now >= it.valid_until()) {
            self.hold = None;
            self.open_at.get_or_insert(now);
        }
    }

    /// When a caller has to do something.
    fn due(&self, number: u64, wait: Wait, now: Moment) -> Moment {
        let due = match (&self.hold, self.open_at) {
            _ if !self.is_first(number) => now.plus_ms(LOOK_FROM_BEHIND_MS),
            (Some(hold), _) => hold.valid_until().min(now.plus_ms(LOOK_MS)),
            (None, Some(open_at)) => open_at,
            (None, None) => wait.pause_until,
        };
        due.min(wait.until)
    }

    /// Those who wait for what the first in line is told.
    fn curious(&self) -> impl Iterator<Item = S> {
        self.behind.iter().filter(|it| it.is_curious).filter_map(Caller::name)
    }

    fn has_rivals(&self, now: Moment) -> bool {
        self.rival_at.is_some_and(|it| now.ms_since(it) < RIVAL_MS)
    }

    /// What a caller is told that has no turn.
    fn words(&self, now: Moment) -> Option<Error> {
        let Some(hold) = &self.hold else { return self.refusal.clone() };
        let left_ms = hold.remaining_ms(now);
        let words = format!("held through another lease of this manager ({left_ms} ms left)");
        Some(Error::new(Status::Taken, words))
    }
}

impl<S> Line<S> {
    fn is_needed(&self, now: Moment) -> bool {
        self.first.is_some()
            || self.hold.as_ref().is_some_and(|it| now < it.valid_until())
            || self.rival_at.is_some_and(|it| now.ms_since(it) < RIVAL_MS)
    }
}
