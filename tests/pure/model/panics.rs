//! After a driver panics, the other threads can go on.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::engine::{Needs, Trap};
use super::stage::{Actor, Stage, play};
use super::world::{Name, World};

#[test]
fn a_panic_before_sending_harms_no_other_thread() {
    unharmed(|| play_trap(Trap::Advance));
}

#[test]
fn a_panic_while_polling_harms_no_other_thread() {
    unharmed(|| play_trap(Trap::Rest));
}

#[test]
fn a_panic_among_the_answers_harms_no_other_thread() {
    unharmed(|| play_trap(Trap::Resume));
}

fn play_trap(trap: Trap) {
    play(Some(3), move || {
        let mut stage = Stage::with_trap(World::quick(), Some(trap));
        let panics = Arc::new(AtomicUsize::new(0));
        for name in 1..3 {
            let panics = Arc::clone(&panics);
            stage.enter(move |it| run(it, name, &panics));
        }
        run(stage.me(), 3, &panics);
        assert!(stage.close_after_panic() <= 1, "calls that have not ended");
        assert_eq!(panics.load(Ordering::Relaxed), 1, "the first who drives panics, and no other");
    });
}

fn run(actor: &Actor, name: Name, panics: &AtomicUsize) {
    let outcome = panic::catch_unwind(AssertUnwindSafe(|| actor.run(name, Needs::Answer)));
    if let Err(panic) = outcome {
        if !panic.is::<Trap>() {
            panic::resume_unwind(panic);
        }
        panics.fetch_add(1, Ordering::Relaxed);
    }
}

/// Runs `body` in a thread that is already panicking. A guard that is dropped by a panic poisons its mutex.
/// Unlike a std mutex, a loom mutex cannot be locked after that. A guard that was taken during a panic poisons
/// nothing. Loom's threads are coroutines of this thread.
fn unharmed(body: fn()) {
    struct OnDrop<'a>(fn(), &'a Cell<Option<thread::Result<()>>>);

    impl Drop for OnDrop<'_> {
        fn drop(&mut self) {
            self.1.set(Some(panic::catch_unwind(self.0)));
        }
    }

    // The first run of `play` sets the panic hook. A panicking thread cannot do that.
    play(None, || ());
    let outcome = Cell::new(None);
    let _ = panic::catch_unwind(AssertUnwindSafe(|| {
        let _runs = OnDrop(body, &outcome);
        panic::resume_unwind(Box::new(()));
    }));
    if let Some(Err(panic)) = outcome.take() {
        panic::resume_unwind(panic);
    }
}
