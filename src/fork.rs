//! The effects of a fork on memory that another thread was using.
//!
//! A child process has one thread: the one that called fork. A mutex that another thread of the parent held
//! at that moment stays locked in the child for ever, and the data that it guards may be half changed. So a
//! thread that takes a mutex which may have come through a fork first checks the process. It never waits in
//! a process other than the one that used the mutex last.

use std::mem;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;

use crate::protocol::error::{Error, Status};
use crate::system::process::{Generation, this_process};

/// A mutex that a forked child can take, unless its parent was using the value inside. In that case the
/// child leaves the value alone for ever, and does not even free it.
#[derive(Debug)]
pub(crate) struct ForkMutex<T> {
    /// The process that used it last.
    process: AtomicU64,
    /// Empty only while it is dropped.
    inner: Mutex<Option<T>>,
}

impl<T> ForkMutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { process: AtomicU64::new(this_process()), inner: Mutex::new(Some(value)) }
    }

    /// Waits for the mutex. A child whose parent was using it during the fork gets [`Status::Forked`] instead.
    pub(crate) fn lock(&self) -> Result<ForkGuard<'_, T>, Error> {
        let process = this_process();
        // Two threads of a child may be the first to come here, at the same time. The one that finds the mutex
        // taken waits for the other to store the process, which it does at once. The wait is short: on a busy
        // machine each try may cost a time slice, and perhaps this process has no thread that holds the mutex.
        for _ in 0..30 {
            if self.process.load(Ordering::Acquire) == process {
                return Ok(ForkGuard(self.inner.lock().unwrap_or_else(PoisonError::into_inner)));
            }
            match self.inner.try_lock() {
                Ok(guard) => return Ok(self.adopt(process, guard)),
                Err(TryLockError::Poisoned(guard)) => {
                    return Ok(self.adopt(process, guard.into_inner()));
                }
                Err(TryLockError::WouldBlock) => thread::yield_now(),
            }
        }
        Err(Error::new(Status::Forked, "the parent process was using it when it forked"))
    }

    /// Takes the mutex unless another thread holds it.
    pub(crate) fn try_lock(&self) -> Result<Option<ForkGuard<'_, T>>, Error> {
        let process = this_process();
        let is_ours = self.is_ours();
        match self.inner.try_lock() {
            Ok(guard) => Ok(Some(self.adopt(process, guard))),
            Err(TryLockError::Poisoned(guard)) => Ok(Some(self.adopt(process, guard.into_inner()))),
            Err(TryLockError::WouldBlock) if is_ours => Ok(None),
            // If no thread of this process holds the mutex, this waits only for a short time.
            Err(TryLockError::WouldBlock) => self.lock().map(|_| None),
        }
    }

    /// Whether this process was the last to use it.
    pub(crate) fn is_ours(&self) -> bool {
        self.process.load(Ordering::Acquire) == this_process()
    }

    fn adopt<'a>(&self, process: Generation, guard: MutexGuard<'a, Option<T>>) -> ForkGuard<'a, T> {
        self.process.store(process, Ordering::Release);
        ForkGuard(guard)
    }
}

impl<T: Default> Default for ForkMutex<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> Drop for ForkMutex<T> {
    fn drop(&mut self) {
        let is_stuck = matches!(self.inner.try_lock(), Err(TryLockError::WouldBlock));
        if is_stuck {
            mem::forget(self.inner.get_mut().unwrap_or_else(PoisonError::into_inner).take());
        }
    }
}

/// The value of a [`ForkMutex`], with the mutex held.
#[derive(Debug)]
pub(crate) struct ForkGuard<'a, T>(MutexGuard<'a, Option<T>>);

impl<T> Deref for ForkGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().unwrap_or_else(|| unreachable!("it is empty only while it is dropped"))
    }
}

impl<T> DerefMut for ForkGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_mut().unwrap_or_else(|| unreachable!("it is empty only while it is dropped"))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_free_mutex_of_another_process_is_adopted() {
        let mutex = ForkMutex::new(7);
        mutex.process.store(0, Ordering::Release);
        assert_eq!(*mutex.lock().unwrap(), 7);
        assert_eq!(mutex.process.load(Ordering::Acquire), this_process());
    }

    #[test]
    fn a_mutex_held_by_another_process_is_refused() {
        let mutex = ForkMutex::new(7);
        let _held = mutex.inner.lock().unwrap();
        mutex.process.store(0, Ordering::Release);
        assert_eq!(mutex.lock().unwrap_err().status(), Status::Forked);
    }

    #[test]
    fn drop_leaves_a_mutex_in_use_alone() {
        let value = Arc::new(());
        let mutex = ForkMutex::new(Arc::clone(&value));
        mem::forget(mutex.inner.lock().unwrap());
        drop(mutex);
        assert_eq!(Arc::strong_count(&value), 2);
        drop(ForkMutex::new(Arc::clone(&value)));
        assert_eq!(Arc::strong_count(&value), 2);
    }
}
