//! The primitives through which threads synchronize, taken from loom.

use std::cell::Cell;
use std::time::Duration;

pub(crate) use loom::sync::atomic::{AtomicUsize, Ordering};
pub(crate) use loom::sync::{Arc, Condvar, Mutex, MutexGuard};
pub(crate) use std::sync::PoisonError;

thread_local! {
    /// How often a thread has yielded in this test. Loom's threads are coroutines of one thread.
    static YIELDS: Cell<usize> = const { Cell::new(0) };
}

/// Returns at once, as a real yield may do. Loom's own yield lets all other threads run first. All other orders
/// happen where the mutex is locked again.
pub(crate) fn yield_now() {
    YIELDS.set(YIELDS.get() + 1);
}

pub(crate) fn yields() -> usize {
    YIELDS.get()
}

/// Has no timeout: a thread that should wake this one must do so.
pub(crate) fn wait_at_most<'a, T>(
    condvar: &Condvar,
    guard: MutexGuard<'a, T>,
    _time: Duration,
) -> MutexGuard<'a, T> {
    condvar.wait(guard).unwrap_or_else(PoisonError::into_inner)
}
