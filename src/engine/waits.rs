//! The threads that wait for an event, or for the end of a submitted call, until some moment.

use super::timers::Timers;
use crate::protocol::moment::Moment;

/// The waits, by the places of the threads.
#[derive(Default)]
pub(super) struct Waits {
    threads: Vec<Option<Wait>>,
    timers: Timers,
}

/// The wait of one thread.
#[derive(Clone, Copy)]
pub(super) struct Wait {
    until: Moment,
    /// The place of the operation that the thread waits for. None if it waits for any event.
    pub(super) operation: Option<usize>,
}

impl Waits {
    /// The thread at this place waits until then.
    pub(super) fn add(&mut self, thread: usize, until: Moment, operation: Option<usize>) {
        if self.threads.len() <= thread {
            self.threads.resize(thread + 1, None);
        }
        self.threads[thread] = Some(Wait { until, operation });
        let (threads, count) = (&self.threads, self.threads.len());
        self.timers.note(thread, until, count, |thread| end_of(threads, thread));
    }

    /// All waits that have a limit end now.
    pub(super) fn hurry(&mut self) {
        for thread in 0..self.threads.len() {
            if let Some(wait) = self.threads[thread].filter(|wait| wait.until != Moment::NEVER) {
                self.add(thread, Moment::from_nanos(0), wait.operation);
            }
        }
    }

    /// Whether no thread waits.
    pub(super) fn is_empty(&self) -> bool {
        self.threads.iter().all(Option::is_none)
    }

    /// The thread at this place no longer waits.
    pub(super) fn remove(&mut self, thread: usize) -> Option<Wait> {
        self.threads.get_mut(thread)?.take()
    }

    /// When the next wait ends.
    pub(super) fn next_due(&mut self) -> Moment {
        let threads = &self.threads;
        self.timers.next(|thread| end_of(threads, thread))
    }

    /// A thread whose wait is over.
    pub(super) fn take_due(&mut self, now: Moment) -> Option<(usize, Wait)> {
        let threads = &self.threads;
        let thread = self.timers.take_due(now, |thread| end_of(threads, thread))?;
        Some((thread, self.remove(thread)?))
    }

    /// A thread that waits for any event.
    pub(super) fn take_listener(&mut self) -> Option<usize> {
        let listens = |wait: &Option<Wait>| wait.is_some_and(|wait| wait.operation.is_none());
        let thread = self.threads.iter().position(listens)?;
        self.remove(thread).map(|_| thread)
    }
}

fn end_of(threads: &[Option<Wait>], thread: usize) -> Moment {
    threads.get(thread).copied().flatten().map_or(Moment::NEVER, |wait| wait.until)
}
