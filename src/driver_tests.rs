//! An engine that is controlled by the test, and a standby thread. `tests/pure/model` checks the orders in
//! which threads can interleave. These tests check that no unnecessary work is done.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::driver::{Driven, Host, SharedEngine, Turn};

#[derive(Default)]
struct Fake {
    /// How often a thread must wait for answers that no thread waits for.
    work: usize,
    /// How long a thread naps, and the number of the nap with which its call ends.
    nap: Duration,
    naps: usize,
    last_nap: usize,
    /// The place of the standby thread.
    place: usize,
    ended: Vec<usize>,
    changed: bool,
    has_words: bool,
    chores: usize,
    /// What was done, in order.
    done: Vec<Did>,
    /// Runs while the next driver polls.
    meanwhile: Meanwhile,
}

type Meanwhile = Option<Box<dyn FnOnce() + Send>>;

#[derive(Debug, PartialEq, Eq)]
enum Did {
    Advance,
    Poll,
    Nap,
}

/// How much telling the logger adds to the count.
const TOLD: usize = 1_000;

/// Counts how often the driver was woken, and how often the logger was told.
impl Host<()> for Arc<AtomicUsize> {
    fn wake(&self) {
        self.fetch_add(1, Ordering::Relaxed);
    }

    fn clear(&self) {}

    fn tell(&self) -> bool {
        self.fetch_add(TOLD, Ordering::Relaxed);
        true
    }

    fn keep(&self, (): ()) {}
}

impl Driven for Fake {
    type End = ();
    type Event = ();
    type Chore = ();
    type Watch = Meanwhile;
    type Words = ();

    fn advance(&mut self) {
        self.done.push(Did::Advance);
    }

    fn watch(&mut self, _waits: bool) -> Meanwhile {
        assert!(self.work > 0, "there is nothing to wait for");
        self.done.push(Did::Poll);
        self.meanwhile.take()
    }

    fn poll(watch: &mut Meanwhile) {
        watch.take().into_iter().for_each(|happens| happens());
    }

    fn resume(&mut self, _: Meanwhile) -> bool {
        self.work -= 1;
        false
    }

    fn next_end(&mut self) -> Option<(usize, ())> {
        self.ended.pop().map(|place| (place, ()))
    }

    fn has_event(&self) -> bool {
        false
    }

    fn next_event(&mut self) -> Option<()> {
        None
    }

    fn has_chore(&self) -> bool {
        self.chores > 0
    }

    fn next_chore(&mut self) -> Option<()> {
        self.chores = self.chores.checked_sub(1)?;
        Some(())
    }

    fn withdraw(&mut self, _place: usize) {}

    fn end_call(&mut self, _place: usize) {}

    fn discard(&mut self, (): ()) {}

    fn needs_driver(&mut self) -> bool {
        self.work > 0
    }

    fn note_nap(&mut self, _is_driven: bool) -> Option<Duration> {
        self.done.push(Did::Nap);
        self.naps += 1;
        if self.naps == self.last_nap {
            self.ended.push(self.place);
        }
        Some(self.nap)
    }

    fn is_due_earlier(&mut self) -> bool {
        false
    }

    fn take_change(&mut self) -> bool {
        mem::take(&mut self.changed)
    }

    fn settle_descriptor(&mut self, _is_driven: bool) {}

    fn rest_descriptor(&mut self) {}

    fn has_words(&self) -> bool {
        self.has_words
    }

    fn take_words(&mut self) {
        self.has_words = false;
    }
}

type Shared = SharedEngine<Fake, Arc<AtomicUsize>>;

/// A thread stands by until its call ends.
fn stand_by(shared: &Shared, listens: bool) {
    let begin = |engine: &mut Fake, place| engine.place = place;
    assert!(matches!(shared.stand_by(listens, begin, &mut |()| true), Turn::Ended(())));
}

#[test]
fn a_standby_thread_drives_when_needed_and_else_naps() {
    for listens in [true, false] {
        let shared = Shared::new(Fake { work: 2, last_nap: 2, ..Fake::default() }, Arc::default());
        stand_by(&shared, listens);
        let done = shared.visit(|engine| mem::take(&mut engine.done));
        let drives = [Did::Advance, Did::Poll, Did::Advance, Did::Poll, Did::Advance];
        // The first nap ends by itself. With the second nap, the call ends.
        assert_eq!(done, drives.into_iter().chain([Did::Nap, Did::Nap]).collect::<Vec<_>>());
        assert!(shared.is_at_rest());
    }
}

/// A server is lost, and its password is asked for to connect again. Nobody else tells the logger.
#[test]
fn a_standby_thread_calls_the_logger_despite_a_chore() {
    let told = Arc::<AtomicUsize>::default();
    let engine = Fake { has_words: true, chores: 1, last_nap: 1, ..Fake::default() };
    let shared = Shared::new(engine, Arc::clone(&told));
    let begin = |engine: &mut Fake, place| engine.place = place;
    let mut chores = 0;
    shared.stand_by(true, begin, &mut |()| {
        chores += 1;
        true
    });
    assert_eq!((chores, told.load(Ordering::Relaxed) / TOLD), (1, 1));
}

#[test]
fn a_nap_lasts_until_a_wake_up() {
    let engine = Fake { nap: Duration::from_secs(3_600), ..Fake::default() };
    let shared = Shared::new(engine, Arc::default());
    let naps = || {
        thread::yield_now();
        shared.visit(|engine| engine.naps)
    };
    thread::scope(|scope| {
        let sleeper = scope.spawn(|| stand_by(&shared, false));
        while naps() == 0 && !sleeper.is_finished() {}
        // Meanwhile the thread has this many chances to wake up.
        for _ in 0..1_000 {
            naps();
        }
        shared.visit(|engine| engine.ended.push(engine.place));
    });
    // A thread may wake for no reason, but this is rare.
    assert!((1..10).contains(&naps()), "{}", naps());
}

#[test]
fn the_driver_is_at_rest_without_visitors() {
    let shared = Shared::new(Fake::default(), Arc::default());
    assert!(shared.is_at_rest());
    shared.visit(|_| assert!(!shared.is_at_rest()));
    assert!(shared.is_at_rest());
}

#[test]
fn a_visitor_wakes_the_polling_thread_after_a_change() {
    let wakes = Arc::<AtomicUsize>::default();
    let shared = Arc::new(Shared::new(Fake::default(), Arc::clone(&wakes)));
    let visit = {
        let (shared, wakes) = (Arc::clone(&shared), Arc::clone(&wakes));
        move |changed| {
            shared.visit(|engine| engine.changed = changed);
            wakes.load(Ordering::Relaxed)
        }
    };
    assert_eq!([visit(true), visit(false)], [0, 0], "nobody polls");
    let while_polling = visit.clone();
    let meanwhile = move || assert_eq!([false, true, true].map(while_polling), [0, 1, 1]);
    shared.visit(|engine| {
        engine.meanwhile = Some(Box::new(meanwhile));
        (engine.work, engine.last_nap) = (1, 1);
    });
    stand_by(&shared, false);
    assert_eq!(visit(true), 1, "it polls no longer");
}
