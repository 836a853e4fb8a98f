//! The smallest engine that can be driven. Its calls wait for an answer, for their timeout, or for another
//! thread that ends them.

use std::collections::VecDeque;
use std::mem;
use std::panic;
use std::sync::Arc;
use std::time::Duration;

use super::driver::Driven;
use super::world::{Name, World};

pub(super) struct Fake {
    world: Arc<World>,
    /// Indexed by place.
    calls: Vec<Option<Call>>,
    unsent: Vec<Name>,
    ended: VecDeque<(usize, Name)>,
    /// The places of the threads that wait for events.
    listeners: Vec<usize>,
    events: VecDeque<Name>,
    chores: VecDeque<Name>,
    /// Calls that no thread waits for.
    submitted: Vec<Name>,
    /// Calls that a thread has ended before they began.
    called_off: Vec<Name>,
    changed: bool,
    words: Words,
    /// True between [`Driven::watch`] and [`Driven::resume`].
    is_watched: bool,
    /// Where the next driver panics.
    trap: Option<Trap>,
    pub(super) counts: Counts,
}

/// How often each of these has happened.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) advances: usize,
    pub(super) panics: usize,
    pub(super) ends: usize,
    pub(super) places: usize,
}

struct Call {
    name: Name,
    needs: Needs,
}

/// What ends a call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Needs {
    Answer,
    /// The call ends when its request is sent. It needs no answer.
    Sending,
    /// The call's timeout, which has passed as soon as a thread checks it.
    Time,
    /// Another thread ends the call during a visit.
    Word,
    /// The call has already ended when it begins.
    Nothing,
    /// A thread does a chore and brings the result.
    Chore,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Trap {
    Advance,
    Rest,
    Resume,
}

/// The number of calls that have ended and were not reported yet.
pub(super) type Words = usize;

pub(super) struct Watch {
    world: Arc<World>,
    something_is_due: bool,
    panics: bool,
    answers: Vec<Name>,
    was_woken: bool,
}

impl Fake {
    pub(super) fn new(world: Arc<World>, trap: Option<Trap>) -> Self {
        Self {
            world,
            calls: Vec::new(),
            unsent: Vec::new(),
            ended: VecDeque::new(),
            listeners: Vec::new(),
            events: VecDeque::new(),
            chores: VecDeque::new(),
            submitted: Vec::new(),
            called_off: Vec::new(),
            changed: false,
            words: 0,
            is_watched: false,
            trap,
            counts: Counts::default(),
        }
    }

    pub(super) fn begin(&mut self, place: usize, name: Name, needs: Needs) {
        if self.calls.len() <= place {
            self.calls.resize_with(place + 1, || None);
            self.counts.places = self.calls.len();
        }
        assert!(self.calls[place].is_none(), "the place has another call");
        self.calls[place] = Some(Call { name, needs });
        match needs {
            Needs::Answer => self.unsent.push(name),
            Needs::Word if !self.called_off.contains(&name) => {}
            Needs::Sending | Needs::Time => {}
            Needs::Chore => {
                self.chores.push_back(name);
                self.changed = true;
            }
            Needs::Word | Needs::Nothing => self.end(name),
        }
    }

    /// Ends a call now, or as soon as it begins.
    pub(super) fn call_off(&mut self, name: Name) {
        if self.calls.iter().flatten().any(|it| it.name == name) {
            self.end(name);
        } else {
            self.called_off.push(name);
        }
    }

    fn end(&mut self, name: Name) {
        let mut calls = self.calls.iter_mut().enumerate();
        let found = calls.find(|(_, it)| it.as_ref().is_some_and(|it| it.name == name));
        if let Some((place, call)) = found {
            *call = None;
            self.ended.push_back((place, name));
            self.words += 1;
            self.counts.ends += 1;
            self.changed = true;
        } else if let Some(at) = self.submitted.iter().position(|&it| it == name) {
            self.submitted.swap_remove(at);
            self.events.push_back(name);
            self.changed = true;
        }
    }

    /// Begins a call that no thread waits for. Its end is an event.
    pub(super) fn submit(&mut self, name: Name, needs: Needs) {
        match needs {
            Needs::Answer => self.unsent.push(name),
            Needs::Nothing => self.events.push_back(name),
            Needs::Chore => self.chores.push_back(name),
            _ => unreachable!("no scene submits it"),
        }
        self.submitted.push(name);
        self.changed = true;
    }

    /// The thread at this place waits for an event, or until `needs` ends the wait.
    pub(super) fn listen(&mut self, place: usize, name: Name, needs: Needs) {
        self.begin(place, name, needs);
        self.listeners.push(place);
    }

    /// The chore of this call is done.
    pub(super) fn bring(&mut self, name: Name) {
        self.end(name);
    }

    /// Reads the answers that have arrived, without driving.
    pub(super) fn look(&mut self) {
        let answers = self.world.receive();
        answers.into_iter().for_each(|it| self.end(it));
    }

    /// How many calls have not ended.
    pub(super) fn count_open(&self) -> usize {
        self.calls.iter().flatten().count()
    }

    fn end_all(&mut self, needs: Needs) {
        while let Some(name) = self.first_that(needs) {
            self.end(name);
        }
    }

    fn first_that(&self, needs: Needs) -> Option<Name> {
        self.calls.iter().flatten().find(|it| it.needs == needs).map(|it| it.name)
    }

    fn fall_into(&mut self, trap: Trap) {
        if self.trap == Some(trap) {
            self.trap = None;
            self.counts.panics += 1;
            panic::resume_unwind(Box::new(trap));
        }
    }
}

impl Driven for Fake {
    type End = Name;
    type Event = Name;
    type Chore = Name;
    type Watch = Watch;
    type Words = Words;

    fn advance(&mut self) {
        assert!(!self.is_watched, "two threads drive");
        self.counts.advances += 1;
        self.fall_into(Trap::Advance);
        self.world.send(&mut self.unsent);
        self.end_all(Needs::Sending);
    }

    fn watch(&mut self, waits: bool) -> Watch {
        assert!(!mem::replace(&mut self.is_watched, true), "two threads drive");
        let panics = self.trap.take_if(|it| *it == Trap::Rest).is_some();
        if panics {
            self.counts.panics += 1;
            self.is_watched = false;
        }
        Watch {
            world: Arc::clone(&self.world),
            something_is_due: !waits || self.first_that(Needs::Time).is_some(),
            panics,
            answers: Vec::new(),
            was_woken: false,
        }
    }

    fn poll(watch: &mut Watch) {
        if watch.panics {
            panic::resume_unwind(Box::new(Trap::Rest));
        }
        watch.was_woken = watch.world.wait(watch.something_is_due, &mut watch.answers);
    }

    fn resume(&mut self, watch: Watch) -> bool {
        assert!(mem::replace(&mut self.is_watched, false), "two threads drive");
        watch.answers.into_iter().for_each(|it| self.end(it));
        self.fall_into(Trap::Resume);
        self.end_all(Needs::Time);
        watch.was_woken
    }

    fn next_end(&mut self) -> Option<(usize, Name)> {
        self.ended.pop_front()
    }

    fn has_event(&self) -> bool {
        !self.events.is_empty()
    }

    fn next_event(&mut self) -> Option<Name> {
        self.events.pop_front()
    }

    fn has_chore(&self) -> bool {
        !self.chores.is_empty()
    }

    fn next_chore(&mut self) -> Option<Name> {
        self.chores.pop_front()
    }

    fn withdraw(&mut self, place: usize) {
        self.listeners.retain(|&it| it != place);
        self.calls[place] = None;
    }

    fn end_call(&mut self, place: usize) {
        self.calls[place] = None;
    }

    fn discard(&mut self, _end: Name) {}

    /// True if a submitted call has not ended, or a call waits for its timeout.
    fn needs_driver(&mut self) -> bool {
        !self.submitted.is_empty() || self.first_that(Needs::Time).is_some()
    }

    fn note_nap(&mut self, _is_driven: bool) -> Option<Duration> {
        None
    }

    fn is_due_earlier(&mut self) -> bool {
        self.needs_driver()
    }

    fn settle_descriptor(&mut self, _is_driven: bool) {}

    fn rest_descriptor(&mut self) {}

    fn take_change(&mut self) -> bool {
        mem::take(&mut self.changed)
    }

    fn has_words(&self) -> bool {
        self.words > 0
    }

    fn take_words(&mut self) -> Words {
        // A panic may happen between the end of a call and its report. Then the next thread reports it.
        assert!(self.ended.is_empty() || self.counts.panics > 0, "an end that is kept back");
        mem::take(&mut self.words)
    }
}
