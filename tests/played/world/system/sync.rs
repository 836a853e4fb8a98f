//! Synchronization between the callers of one client. They pause where the system's threads would sleep.

pub(crate) use std::sync::atomic::{AtomicUsize, Ordering};
pub(crate) use std::sync::{Arc, PoisonError};

use std::ops::{Deref, DerefMut};
use std::sync::{self, LockResult, TryLockError, TryLockResult};
use std::time::Duration;

use crate::world::turns;

pub(crate) struct Mutex<T> {
    inner: sync::Mutex<T>,
    /// How many callers wait for it.
    waiting: AtomicUsize,
}

pub(crate) struct MutexGuard<'a, T> {
    mutex: &'a Mutex<T>,
    /// `None` once it is released.
    inner: Option<sync::MutexGuard<'a, T>>,
}

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { inner: sync::Mutex::new(value), waiting: AtomicUsize::new(0) }
    }

    pub(crate) fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        turns::take_turns();
        loop {
            match self.try_lock() {
                Err(TryLockError::WouldBlock) => {
                    self.waiting.fetch_add(1, Ordering::Relaxed);
                    turns::wait_for(self.name());
                    self.waiting.fetch_sub(1, Ordering::Relaxed);
                }
                Ok(guard) => return Ok(guard),
                Err(TryLockError::Poisoned(guard)) => return Err(guard),
            }
        }
    }

    pub(crate) fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        let guard = |inner| MutexGuard { mutex: self, inner: Some(inner) };
        match self.inner.try_lock() {
            Ok(inner) => Ok(guard(inner)),
            Err(TryLockError::WouldBlock) => Err(TryLockError::WouldBlock),
            Err(TryLockError::Poisoned(inner)) => Ok(guard(inner.into_inner())),
        }
    }

    pub(crate) fn get_mut(&mut self) -> LockResult<&mut T> {
        self.inner.get_mut()
    }

    fn name(&self) -> usize {
        (&raw const *self).addr()
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.inner.as_ref().expect("it is let go of only when it is dropped")
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.inner.as_mut().expect("it is let go of only when it is dropped")
    }
}

impl<T> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        self.inner = None;
        if self.mutex.waiting.load(Ordering::Relaxed) > 0 {
            turns::signal(self.mutex.name());
        }
    }
}

pub(crate) struct Condvar {
    /// Without this field it would have no address of its own.
    _place: u8,
}

impl Condvar {
    pub(crate) fn new() -> Self {
        Self { _place: 0 }
    }

    pub(crate) fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
        let mutex = guard.mutex;
        drop(guard);
        turns::wait_for((&raw const *self).addr());
        mutex.lock()
    }

    pub(crate) fn notify_one(&self) {
        turns::signal((&raw const *self).addr());
    }
}

pub(crate) fn yield_now() {
    turns::take_turns();
}

/// There is no thread on standby in this world.
pub(crate) fn wait_at_most<'a, T>(
    condvar: &Condvar,
    guard: MutexGuard<'a, T>,
    _time: Duration,
) -> MutexGuard<'a, T> {
    condvar.wait(guard).unwrap_or_else(PoisonError::into_inner)
}
