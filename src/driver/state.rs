//! The state that the threads share: the engine, which thread drives it, and what each thread waits for.

use super::contract::{Driven, Turn, TurnOf};
use super::parker::{Parker, Signal, Wake};
use crate::system::sync::Arc;

pub(super) struct State<E: Driven> {
    pub(super) engine: E,
    /// Whether a thread drives, and whether it polls at this moment.
    pub(super) driven: bool,
    pub(super) polling: bool,
    /// Whether the last driver woke other threads when it left.
    pub(super) has_woken_others: bool,
    places: Vec<ThreadSlot<E::End>>,
    /// Places that no call uses.
    free: Vec<usize>,
    /// How many threads that wait for events are awake. Each of them looks for an event before it sleeps.
    listeners_awake: usize,
    /// The place of a standby thread that sleeps.
    standing_by: Option<usize>,
    /// The threads to wake as soon as no mutex is held.
    pub(super) wakes: Vec<Wake<E::End>>,
}

/// A thread and its call.
struct ThreadSlot<T> {
    role: Role,
    end: Option<T>,
    sleeper: Option<Arc<Parker<T>>>,
}

/// What a thread waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// The end of its call.
    Caller,
    /// The same. Its caller holds nothing meanwhile, so it passes on log lines while it waits.
    Telling,
    /// An event, or the end of its call, whichever comes first.
    Listener,
    /// The end of its call. Meanwhile it drives whenever a driver is needed and no other thread drives. It
    /// may wait for events, too.
    StandBy { listens: bool },
}

impl Role {
    fn listens(self) -> bool {
        matches!(self, Self::Listener | Self::StandBy { listens: true })
    }

    /// Whether the thread passes on log lines while it waits. Other threads do so when they have returned.
    fn tells(self) -> bool {
        self != Self::Caller
    }

    fn stands_by(self) -> bool {
        matches!(self, Self::StandBy { .. })
    }
}

impl<E: Driven> State<E> {
    pub(super) fn new(engine: E) -> Self {
        Self {
            engine,
            driven: false,
            polling: false,
            has_woken_others: false,
            places: Vec::new(),
            free: Vec::new(),
            listeners_awake: 0,
            standing_by: None,
            wakes: Vec::new(),
        }
    }

    pub(super) fn take_place(&mut self, role: Role) -> usize {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(ThreadSlot { role, end: None, sleeper: None });
            self.places.len() - 1
        });
        self.places[place].role = role;
        self.step_in(place);
        place
    }

    /// Hands ends to the threads that wait for them. If there are events and no waiting thread is awake to
    /// take them, wakes one.
    pub(super) fn sort_ends(&mut self) {
        while let Some((place, end)) = self.engine.next_end() {
            match self.take_sleeper(place) {
                Some(parker) => {
                    self.wakes.push(Wake { parker, signal: Signal::Ended(end) });
                    self.free.push(place);
                }
                None => self.places[place].end = Some(end),
            }
        }
        if self.listeners_awake == 0 && self.engine.has_event() {
            self.wake_one(|place| place.role.listens());
        }
    }

    /// Called when the mutex is about to be unlocked. If no thread drives and a driver is needed, wakes the
    /// standby thread.
    pub(super) fn rouse(&mut self) {
        let Some(place) = self.standing_by.filter(|_| !self.driven) else { return };
        // A thread that is woken to look will drive, or will call this function again.
        let is_looked_after = self.wakes.iter().any(|wake| matches!(wake.signal, Signal::Look));
        if !is_looked_after && (self.engine.has_chore() || self.engine.is_due_earlier()) {
            self.wake(place);
        }
    }

    /// Whether the thread at this place must stop driving and do something else.
    pub(super) fn has_something_for(&self, place: usize) -> bool {
        let ThreadSlot { role, end, .. } = &self.places[place];
        end.is_some()
            || self.engine.has_chore()
            || role.listens() && self.engine.has_event()
            || self.has_words_for(place)
    }

    /// Whether the thread at this place must pass on log lines.
    pub(super) fn has_words_for(&self, place: usize) -> bool {
        self.places[place].role.tells() && self.engine.has_words()
    }

    /// Whether the thread at this place may sleep: it stands by, and another thread drives or no driver is needed.
    pub(super) fn may_nap(&mut self, place: usize) -> bool {
        self.places[place].role.stands_by() && (self.driven || !self.engine.needs_driver())
    }

    /// Whether the thread at this place, which drives, may stop: it stands by, and no driver is needed.
    pub(super) fn may_rest(&mut self, place: usize) -> bool {
        self.places[place].role.stands_by() && !self.engine.needs_driver()
    }

    /// The thread at this place was not woken: its time was up. Returns whether no other thread has begun
    /// to wake it.
    pub(super) fn take_back(&mut self, place: usize) -> bool {
        let is_asleep = self.take_sleeper(place).is_some();
        if is_asleep {
            self.step_in(place);
        }
        is_asleep
    }

    /// The result that the thread at this place waits for, if it has come. The place is then free for
    /// another thread.
    pub(super) fn take_turn(&mut self, place: usize) -> Option<TurnOf<E>> {
        if let Some(end) = self.places[place].end.take() {
            self.step_aside(place);
            self.free.push(place);
            return Some(Turn::Ended(end));
        }
        let role = self.places[place].role;
        if !role.listens() {
            return None;
        }
        let event = self.engine.next_event()?;
        self.withdraw(place);
        Some(Turn::Event(event))
    }

    /// The thread at this place no longer waits.
    fn withdraw(&mut self, place: usize) {
        self.step_aside(place);
        self.engine.withdraw(place);
        self.places[place].end = None;
        self.free.push(place);
        self.sort_ends();
    }

    /// The thread at this place leaves without the end of its call, because of a panic. The place is free only when no
    /// end can come for it any more.
    pub(super) fn break_off(&mut self, place: usize) {
        self.engine.end_call(place);
        self.sort_ends();
        if let Some(end) = self.places[place].end.take() {
            self.engine.discard(end);
        }
        self.withdraw(place);
    }

    /// The thread at this place goes to sleep.
    pub(super) fn park(&mut self, place: usize, parker: Arc<Parker<E::End>>) {
        self.step_aside(place);
        self.places[place].sleeper = Some(parker);
        if self.places[place].role.stands_by() {
            self.standing_by = Some(place);
        }
    }

    /// The thread at this place is awake and looks for its result before it sleeps.
    pub(super) fn step_in(&mut self, place: usize) {
        self.listeners_awake += usize::from(self.places[place].role.listens());
    }

    /// The thread at this place does not look for its result, for now.
    pub(super) fn step_aside(&mut self, place: usize) {
        self.listeners_awake -= usize::from(self.places[place].role.listens());
    }

    /// If no thread drives, wakes one of the waiting threads to drive.
    pub(super) fn appoint_driver(&mut self) {
        if !self.driven {
            self.wake_one(|place| !place.role.stands_by());
        }
    }

    fn wake_one(&mut self, may_be: impl Fn(&ThreadSlot<E::End>) -> bool) {
        let is_asleep = |place: &ThreadSlot<E::End>| place.sleeper.is_some() && may_be(place);
        if let Some(place) = self.places.iter().position(is_asleep) {
            self.wake(place);
        }
    }

    /// Wakes the thread that sleeps at this place, to look for something to do.
    fn wake(&mut self, place: usize) {
        if let Some(parker) = self.take_sleeper(place) {
            self.step_in(place);
            self.wakes.push(Wake { parker, signal: Signal::Look });
        }
    }

    fn take_sleeper(&mut self, place: usize) -> Option<Arc<Parker<E::End>>> {
        if self.standing_by == Some(place) {
            self.standing_by = None;
        }
        self.places[place].sleeper.take()
    }
}
