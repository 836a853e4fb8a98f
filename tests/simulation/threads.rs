//! Threads of a client, of which one at a time runs: each goes on until it waits for something, and
//! then whoever plays the world lets the next one run. So the same script always plays the same,
//! and calls of one client run into each other as those of threads do.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use crate::world::{MS, World};

/// What a thread waits for.
struct Sleep {
    until: i64,
    is_done: Box<dyn Fn(&World) -> bool>,
}

/// What a thread says when it stops.
enum Word {
    Sleeps(Sleep),
    Ended(thread::Result<()>),
}

/// Something that is given to another thread by one that stands still from then on.
struct Handed<T>(T);

// SAFETY: of all the threads of a world, and the one that plays it, only one runs at a time, and they
// hand over by channels: so nothing in a world is ever touched by two at once.
unsafe impl<T> Send for Handed<T> {}

impl<T> Handed<T> {
    fn take(self) -> T {
        self.0
    }
}

/// A thread, as the one that plays the world knows it.
struct Played {
    go: Sender<()>,
    words: Receiver<Handed<Word>>,
    sleep: Sleep,
}

/// The same, as the thread knows itself.
struct Me {
    go: Receiver<()>,
    words: Sender<Handed<Word>>,
}

thread_local! {
    static ME: RefCell<Option<Me>> = const { RefCell::new(None) };
}

impl Me {
    /// Stops until it may go on.
    fn say(&self, word: Word) {
        let _ = self.words.send(Handed(word));
        self.stand();
    }

    /// If the world ends meanwhile, for something was found wrong, it stays where it is for ever:
    /// nothing of that world must be touched any more.
    fn stand(&self) {
        while self.go.recv().is_err() {
            thread::park();
        }
    }
}

/// Whether it is one of these threads that asks.
pub(crate) fn is_played() -> bool {
    ME.with_borrow(Option::is_some)
}

/// Stops this thread until it is done, or until then.
pub(crate) fn sleep(world: &World, until: i64, is_done: impl Fn(&World) -> bool + 'static) {
    if world.now() >= until || is_done(world) {
        return;
    }
    if until < i64::MAX {
        // Time passes only to when something is due.
        world.at(until, |_| {});
    }
    let sleep = Sleep { until, is_done: Box::new(is_done) };
    ME.with_borrow(|me| me.as_ref().expect("it is played").say(Word::Sleeps(sleep)));
}

/// All threads of a world, in the order in which they were started.
#[derive(Default)]
pub(crate) struct Threads {
    played: RefCell<BTreeMap<usize, Played>>,
    started: Cell<usize>,
}

impl Threads {
    /// Lets all run that have something to do, until none has.
    pub(crate) fn play(&self, world: &World) {
        loop {
            let is_ready = |it: &Played| world.now() >= it.sleep.until || (it.sleep.is_done)(world);
            let ready = self.played.borrow().iter().find(|it| is_ready(it.1)).map(|it| *it.0);
            let Some(number) = ready else { return };
            let mut thread = self.played.borrow_mut().remove(&number).expect("it is there");
            thread.go.send(()).expect("it stands and waits");
            match thread.words.recv().expect("it says something at its end").take() {
                Word::Sleeps(sleep) => {
                    thread.sleep = sleep;
                    self.played.borrow_mut().insert(number, thread);
                }
                Word::Ended(end) => end.unwrap_or_else(|panic| resume_unwind(panic)),
            }
        }
    }
}

/// A thread that stands before its first step.
fn stand(body: impl FnOnce() + 'static, sleep: Sleep) -> Played {
    let (go, may_go) = channel();
    let (say, words) = channel();
    let body = Handed((body, Me { go: may_go, words: say }));
    thread::spawn(move || {
        let (body, me) = body.take();
        me.stand();
        let last = me.words.clone();
        ME.set(Some(me));
        let end = catch_unwind(AssertUnwindSafe(body));
        let _ = last.send(Handed(Word::Ended(end)));
    });
    Played { go, words, sleep }
}

impl World {
    /// Has something done on a thread of its own, so much later.
    pub(crate) fn thread(&self, after_ms: i64, body: impl FnOnce() + 'static) {
        let until = self.now() + after_ms * MS;
        self.at(until, |_| {});
        let thread = stand(body, Sleep { until, is_done: Box::new(|_| false) });
        let number = self.threads.started.get();
        self.threads.started.set(number + 1);
        self.threads.played.borrow_mut().insert(number, thread);
    }

    /// Lets time pass until all threads have ended, which they have to within so long.
    #[track_caller]
    pub(crate) fn end_threads(&self, within_ms: i64) {
        let has_ended = |world: &Self| world.threads.played.borrow().is_empty();
        self.wait(self.now() + within_ms * MS, has_ended);
        assert!(has_ended(self), "threads are still at it after {within_ms} ms");
    }
}
