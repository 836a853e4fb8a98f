//! A place where a thread sleeps until it is given a signal.

use std::mem;
use std::time::Duration;

use crate::system::sync::{Arc, Condvar, Mutex, PoisonError, wait_at_most};

/// The place where one thread waits.
pub(super) struct Parker<T> {
    signal: Mutex<Signal<T>>,
    wake: Condvar,
}

pub(super) enum Signal<T> {
    None,
    /// There may be something to do: the thread must look.
    Look,
    Ended(T),
}

/// A thread that must be woken as soon as no mutex is held.
pub(super) struct Wake<T> {
    pub(super) parker: Arc<Parker<T>>,
    pub(super) signal: Signal<T>,
}

impl<T> Parker<T> {
    pub(super) fn new() -> Self {
        Self { signal: Mutex::new(Signal::None), wake: Condvar::new() }
    }

    pub(super) fn park(&self) -> Signal<T> {
        let mut signal = self.signal.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match mem::replace(&mut *signal, Signal::None) {
                Signal::None => {
                    signal = self.wake.wait(signal).unwrap_or_else(PoisonError::into_inner);
                }
                given => return given,
            }
        }
    }

    /// The same, for at most `time`. If that is over, there may be no signal.
    pub(super) fn park_at_most(&self, time: Duration) -> Signal<T> {
        let signal = self.signal.lock().unwrap_or_else(PoisonError::into_inner);
        let mut signal = match *signal {
            Signal::None => wait_at_most(&self.wake, signal, time),
            _ => signal,
        };
        mem::replace(&mut *signal, Signal::None)
    }

    pub(super) fn unpark(&self, signal: Signal<T>) {
        *self.signal.lock().unwrap_or_else(PoisonError::into_inner) = signal;
        self.wake.notify_one();
    }
}
