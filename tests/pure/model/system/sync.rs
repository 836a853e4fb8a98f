//! What threads meet by: loom's.

use std::cell::Cell;
use std::time::Duration;

pub(crate) use loom::sync::atomic::{AtomicUsize, Ordering};
pub(crate) use loom::sync::{Arc, Condvar, Mutex, MutexGuard};
pub(crate) use std::sync::PoisonError;

thread_local! {
    /// How often somebody has yielded in this test: loom's threads are coroutines of one thread.
    static YIELDS: Cell<usize> = const { Cell::new(0) };
}

/// Goes on, where loom's own would let all others go first: to go on is possible, too, and all else
/// happens where the mutex is taken again.
pub(crate) fn yield_now() {
    YIELDS.set(YIELDS.get() + 1);
}

pub(crate) fn yields() -> usize {
    YIELDS.get()
}

/// Without any time: who is to wake has to.
pub(crate) fn wait_at_most<'a, T>(
    condvar: &Condvar,
    guard: MutexGuard<'a, T>,
    _time: Duration,
) -> MutexGuard<'a, T> {
    condvar.wait(guard).unwrap_or_else(PoisonError::into_inner)
}
