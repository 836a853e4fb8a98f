//! The primitives through which threads synchronize. A test gives the same code others, which try all ways
//! to interleave.

pub(crate) use std::sync::atomic::{AtomicUsize, Ordering};
pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
pub(crate) use std::thread::yield_now;

use std::time::Duration;

/// Waits until it is notified, or for at most `time`. May also return for no reason.
pub(crate) fn wait_at_most<'a, T>(
    condvar: &Condvar,
    guard: MutexGuard<'a, T>,
    time: Duration,
) -> MutexGuard<'a, T> {
    condvar.wait_timeout(guard, time).unwrap_or_else(PoisonError::into_inner).0
}
