//! What threads meet by. A test gives the same code others, which try every way to meet.

pub(crate) use std::sync::atomic::{AtomicUsize, Ordering};
pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
pub(crate) use std::thread::yield_now;
