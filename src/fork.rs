//! What a fork does to memory that another thread had locked.
//!
//! A child process has one thread: the one that called fork. A mutex that another thread of the
//! parent held at that moment stays locked in the child for ever. So whoever takes a mutex that
//! may have come through a fork looks at the process first, and never waits in a process other
//! than the one that used the mutex last.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::{process, thread};

use crate::error::{Error, Status};

/// The process that this code runs in.
pub(crate) fn this_process() -> u32 {
    process::id()
}

/// A mutex that a forked child can take, unless its parent was using what is inside.
#[derive(Debug, Default)]
pub(crate) struct ForkMutex<T> {
    /// The process that used it last.
    process: AtomicU32,
    inner: Mutex<T>,
}

impl<T> ForkMutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { process: AtomicU32::new(this_process()), inner: Mutex::new(value) }
    }

    /// Waits for the mutex. A child whose parent was in the middle of using it gets
    /// [`Status::Forked`] instead.
    pub(crate) fn lock(&self) -> Result<MutexGuard<'_, T>, Error> {
        let process = this_process();
        // Two threads of a child may come here first together: the one that finds the mutex taken
        // waits for the other to write the process down, which it does at once.
        for _ in 0..1000 {
            if self.process.load(Ordering::Acquire) == process {
                return Ok(self.inner.lock().unwrap_or_else(PoisonError::into_inner));
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

    fn adopt<'a>(&self, process: u32, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.process.store(process, Ordering::Release);
        guard
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mutex_of_another_process_is_adopted_when_it_is_free() {
        let mutex = ForkMutex::new(7);
        mutex.process.store(0, Ordering::Release);
        assert_eq!(*mutex.lock().unwrap(), 7);
        assert_eq!(mutex.process.load(Ordering::Acquire), this_process());
    }

    #[test]
    fn a_mutex_that_another_process_holds_is_not_waited_for() {
        let mutex = ForkMutex::new(7);
        let _held = mutex.inner.lock().unwrap();
        mutex.process.store(0, Ordering::Release);
        assert_eq!(mutex.lock().unwrap_err().status(), Status::Forked);
    }
}
