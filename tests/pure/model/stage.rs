//! Plays scenes: threads share one engine. When all threads have left, the stage checks what must be true.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use loom::model::Builder;
use loom::thread::{self, JoinHandle};

use super::driver::{Host, SharedEngine, Turn};
use super::engine::{Counts, Fake, Needs, Trap, Words};
use super::world::{Name, World};
use crate::system::sync;

/// A name that no scene uses.
const LAST: Name = 99;

/// Plays a scene in every order in which its threads can run. With a bound, plays every order with at most that
/// many preemptions.
pub(super) fn play(preemption_bound: Option<usize>, scene: impl Fn() + Send + Sync + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = preemption_bound;
    builder.check(scene);
}

pub(super) struct Stage {
    actor: Actor,
    /// The threads that nobody has joined yet. `entered` counts all threads that entered.
    threads: Vec<JoinHandle<()>>,
    entered: usize,
}

/// A thread's access to the stage.
#[derive(Clone)]
pub(super) struct Actor {
    engine: Arc<SharedEngine<Fake, Surroundings>>,
    world: Arc<World>,
    kept: Arc<AtomicUsize>,
}

pub(super) struct Surroundings {
    world: Arc<World>,
    /// The number of ends that were kept for reporting so far.
    kept: Arc<AtomicUsize>,
}

impl Stage {
    pub(super) fn new(world: World) -> Self {
        Self::with_trap(world, None)
    }

    /// With a trap, the first thread that drives panics there.
    pub(super) fn with_trap(world: World, trap: Option<Trap>) -> Self {
        let (world, kept) = (Arc::new(world), Arc::default());
        let host = Surroundings { world: Arc::clone(&world), kept: Arc::clone(&kept) };
        let engine = Arc::new(SharedEngine::new(Fake::new(Arc::clone(&world), trap), host));
        Self { actor: Actor { engine, world, kept }, threads: Vec::new(), entered: 0 }
    }

    /// Starts a thread that plays `part`.
    pub(super) fn enter(&mut self, part: impl FnOnce(&Actor) + 'static) {
        let actor = self.actor.clone();
        self.entered += 1;
        self.threads.push(thread::spawn(move || part(&actor)));
    }

    /// The actor of the thread that set up the stage.
    pub(super) fn me(&self) -> &Actor {
        &self.actor
    }

    /// Waits until the earliest entered thread that is left has ended.
    pub(super) fn await_first(&mut self) {
        self.threads.remove(0).join().expect("it does not panic");
    }

    /// Waits until all threads have ended, and checks the final state.
    pub(super) fn close(self) {
        assert_eq!(self.close_after_panic(), 0, "a call that has not ended");
    }

    /// Waits until all threads have ended.
    pub(super) fn finish(&mut self) {
        while !self.threads.is_empty() {
            self.await_first();
        }
    }

    /// Like [`Self::close`], for a scene in which this many events were delivered.
    pub(super) fn close_with(mut self, _events: usize) {
        self.finish();
        self.close();
    }

    /// Like [`Self::close`], but returns how many calls have not ended.
    pub(super) fn close_after_panic(mut self) -> usize {
        while !self.threads.is_empty() {
            self.await_first();
        }
        assert!(self.actor.engine.is_at_rest(), "somebody has not let go");
        self.play_the_end();
        let mut shared = Arc::into_inner(self.actor.engine).expect("nobody else has it");
        let (engine, host) = shared.get_mut();
        let counts = engine.counts;
        assert!(counts.places <= self.entered + 1, "a place that nobody gave back");
        assert_eq!(host.kept.load(Ordering::Relaxed), counts.ends, "something that nobody kept");
        engine.count_open()
    }

    /// A thread that is alone waits for no other thread, and does nothing twice.
    fn play_the_end(&self) {
        let before = (sync::yields(), self.count());
        self.actor.run(LAST, Needs::Nothing);
        assert_eq!(self.count().advances, before.1.advances, "a call that has ended drives");
        self.actor.run(LAST, Needs::Time);
        assert_eq!(self.count().advances, before.1.advances + 1, "a call that has ended drives on");
        assert_eq!(sync::yields(), before.0, "somebody is thought to be waking up");
    }

    fn count(&self) -> Counts {
        self.actor.engine.visit(|engine| engine.counts)
    }
}

impl Actor {
    /// Makes a call. The call must end with its own result. By then, its end must have been kept for reporting.
    /// It does not matter which thread kept it, or whether another thread still drives.
    pub(super) fn run(&self, name: Name, needs: Needs) {
        let before = self.kept.load(Ordering::Relaxed);
        let mut chores = |chore| self.do_chore(chore);
        let begin = |engine: &mut Fake, place| engine.begin(place, name, needs);
        // Some of the threads pass on log lines while they wait.
        let turn = match name % 2 {
            0 => self.engine.run_and_tell(begin, &mut chores),
            _ => self.engine.run(begin, &mut chores),
        };
        let Turn::Ended(end) = turn else { panic!("{name} is given what it did not wait for") };
        assert_eq!(end, name, "the end of another call");
        assert!(self.kept.load(Ordering::Relaxed) > before, "an end that nobody tells of");
    }

    /// Begins a call without waiting for anything.
    pub(super) fn submit(&self, name: Name, needs: Needs) {
        self.visit(|engine| engine.submit(name, needs));
    }

    /// Waits for an event, or until the wait with this name ends.
    pub(super) fn listen(&self, name: Name, needs: Needs) -> Option<Name> {
        let begin = |engine: &mut Fake, place| engine.listen(place, name, needs);
        match self.engine.await_event(begin, &mut |chore| self.do_chore(chore)) {
            Turn::Event(event) => Some(event),
            Turn::Ended(end) => {
                assert_eq!(end, name, "the end of another wait");
                None
            }
            Turn::Stopped => panic!("nobody has stopped it"),
        }
    }

    /// Stands by until the wait with this name ends. If `listens`, also stops when there is an event.
    pub(super) fn stand_by(&self, name: Name, listens: bool) -> Option<Name> {
        let begin = |engine: &mut Fake, place| engine.listen(place, name, Needs::Word);
        match self.engine.stand_by(listens, begin, &mut |chore| self.do_chore(chore)) {
            Turn::Event(event) => Some(event),
            Turn::Ended(end) => {
                assert_eq!(end, name, "the end of another wait");
                None
            }
            Turn::Stopped => panic!("nobody has stopped it"),
        }
    }

    /// Looks for an event without waiting.
    pub(super) fn look(&self) -> Option<Name> {
        self.engine.look_for_event(&mut |chore| self.do_chore(chore))
    }

    /// Like [`Self::look`], but stops as soon as it has done a chore.
    pub(super) fn look_until_a_chore(&self) -> Option<Name> {
        self.engine.look_for_event(&mut |chore| {
            self.do_chore(chore);
            false
        })
    }

    fn do_chore(&self, chore: Name) -> bool {
        self.visit(|engine| engine.bring(chore));
        true
    }

    pub(super) fn visit(&self, visit: impl FnOnce(&mut Fake)) {
        self.engine.visit(visit);
    }

    pub(super) fn call_off(&self, name: Name) {
        self.visit(|engine| engine.call_off(name));
    }

    /// Plays the world's part: answers this request when it arrives.
    pub(super) fn answer(&self, name: Name) {
        self.world.answer(name);
    }
}

impl Host<Words> for Surroundings {
    fn wake(&self) {
        self.world.wake();
    }

    fn clear(&self) {
        self.world.silence();
    }

    fn tell(&self) -> bool {
        true
    }

    fn keep(&self, words: Words) {
        self.kept.fetch_add(words, Ordering::Relaxed);
    }
}
