//! The thread that a program may ask for. It drives when a driver is needed and no other thread drives. It
//! may also pass on events.

use std::mem::ManuallyDrop;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::fork::ForkMutex;
use crate::manager::event::Event;
use crate::manager::runtime::Runtime;
use crate::protocol::error::{Error, Status};
use crate::protocol::moment::Moment;
use crate::system::process::{Generation, this_process, this_thread};
use crate::system::thread::{self, Thread};

/// The receiver of events. It can use the runtime to release a lock that nobody wants.
pub(crate) type EventSink = Arc<dyn Fn(Event, &Runtime) + Send + Sync>;

/// No process.
const NOBODY: Generation = 0;

/// Whether the thread is wanted, and the receiver of its events.
#[derive(Default)]
pub(crate) struct Background {
    /// The process in which the thread is wanted but does not run, as far as can be told without the mutex.
    is_lacking: AtomicU64,
    /// The number of the running thread among all threads, once it runs.
    number: AtomicUsize,
    /// How many changes the thread has to hear of. It takes the mutex only after a change. The thread loops
    /// all the time, and a child that was forked while the thread held the mutex could never take it.
    changes: AtomicU64,
    state: ForkMutex<State>,
}

#[derive(Default)]
struct State {
    /// The process in which the thread was asked for, and the process in which it runs. A forked child has none.
    wanted: Generation,
    running: Generation,
    /// The running thread. A thread of the parent is never looked at, because its child has no such thread.
    thread: ManuallyDrop<Option<Thread>>,
    sink: Option<EventSink>,
}

/// What the thread knows of the state, and the number of changes at that time.
struct Known {
    changes: u64,
    sink: Option<EventSink>,
}

impl Background {
    /// Asks for the thread. It starts with the first call that asks servers.
    pub(crate) fn want(&self) -> Result<(), Error> {
        let mut state = self.state.lock()?;
        if state.wanted != this_process() {
            state.wanted = this_process();
            self.note_change(&state);
        }
        Ok(())
    }

    /// Ends the thread. Waits until it has ended; `rouse` wakes it for that.
    pub(crate) fn end(&self, rouse: impl FnOnce()) -> Result<(), Error> {
        let mut state = self.state.lock()?;
        state.wanted = NOBODY;
        self.note_change(&state);
        let thread = if state.running == this_process() { state.thread.take() } else { None };
        let is_it = self.number.load(Ordering::Relaxed) == this_thread();
        drop(state);
        rouse();
        // The thread does not wait for itself.
        if let Some(thread) = thread.filter(|_| !is_it) {
            thread::await_end(thread);
        }
        Ok(())
    }

    /// Changes the receiver of events. The old one is dropped with no mutex held, because it is foreign code.
    pub(crate) fn set_sink(&self, sink: Option<EventSink>) -> Result<(), Error> {
        let mut state = self.state.lock()?;
        let old = std::mem::replace(&mut state.sink, sink);
        self.note_change(&state);
        drop(state);
        drop(old);
        Ok(())
    }

    /// Whether this process has asked for the thread.
    pub(crate) fn is_wanted(&self) -> bool {
        self.state.lock().is_ok_and(|state| state.wanted == this_process())
    }

    /// Whether there is a thread that passes on all events, even when it ends.
    pub(crate) fn tells_events(&self) -> bool {
        let state = self.state.lock();
        state.is_ok_and(|state| state.running == this_process() && state.sink.is_some())
    }

    /// Starts the thread, if it is wanted and does not run.
    pub(crate) fn start_if_lacking(self: &Arc<Self>, runtime: &Arc<Runtime>) -> Result<(), Error> {
        if self.is_lacking.load(Ordering::Relaxed) != this_process() {
            return Ok(());
        }
        let mut state = self.state.lock()?;
        if !state.is_lacking() {
            return Ok(());
        }
        let (background, its_runtime) = (Arc::clone(self), Arc::clone(runtime));
        let known = self.known(&state);
        let started = thread::start("redlock", move || background.serve(&its_runtime, known));
        let thread = started.map_err(|error| {
            Error::new(Status::Internal, format!("cannot start a thread: {error}"))
        })?;
        state.running = this_process();
        state.thread = ManuallyDrop::new(Some(thread));
        self.note(&state);
        Ok(())
    }

    /// The body of the thread.
    fn serve(&self, runtime: &Arc<Runtime>, mut known: Known) {
        self.number.store(this_thread(), Ordering::Relaxed);
        // A fault in this thread must not end it, because the calls of other threads depend on it.
        while self.goes_on(runtime.is_abandoned(), &mut known) {
            let serve = AssertUnwindSafe(|| serve_once(runtime, known.sink.as_ref()));
            let _ = panic::catch_unwind(serve);
            if !runtime.is_ours() {
                // A callback has forked, and this is the child.
                return;
            }
        }
        // The manager or the thread has come to its end: the receiver gets the events of all operations
        // that have ended.
        if let Some(sink) = known.sink {
            while let Ok(Some(event)) = Event::next(runtime, Moment::from_nanos(0)) {
                sink(event.in_time(runtime), runtime);
            }
        }
    }

    /// Whether the thread is still wanted. Updates `known`. If the thread is not wanted, it is no longer
    /// the thread of the process.
    fn goes_on(&self, is_abandoned: bool, known: &mut Known) -> bool {
        if !is_abandoned && self.changes.load(Ordering::Acquire) == known.changes {
            return true;
        }
        let Ok(mut state) = self.state.lock() else { return false };
        let old = std::mem::replace(known, self.known(&state));
        let goes_on = state.wanted == this_process() && !is_abandoned;
        if !goes_on {
            // If no thread waits for its end, the system frees it by itself.
            state.thread.take();
            state.running = NOBODY;
            self.number.store(0, Ordering::Relaxed);
            self.note(&state);
        }
        drop(state);
        // The old sink is foreign code.
        drop(old);
        goes_on
    }

    fn known(&self, state: &State) -> Known {
        Known { changes: self.changes.load(Ordering::Relaxed), sink: state.sink.clone() }
    }

    /// Notes a change that the thread has to hear of. The mutex is held.
    fn note_change(&self, state: &State) {
        self.changes.fetch_add(1, Ordering::Release);
        self.note(state);
    }

    fn note(&self, state: &State) {
        let process = if state.is_lacking() { state.wanted } else { NOBODY };
        self.is_lacking.store(process, Ordering::Relaxed);
    }
}

fn serve_once(runtime: &Arc<Runtime>, sink: Option<&EventSink>) {
    let event = Event::while_standing_by(runtime, sink.is_some());
    runtime.look_up_due_aside();
    if let (Some(sink), Some(event)) = (sink, event) {
        sink(event.in_time(runtime), runtime);
    }
    runtime.tell();
}

impl State {
    fn is_lacking(&self) -> bool {
        self.wanted == this_process() && self.running != this_process()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If the thread held the mutex, a child forked at that moment could never ask for anything again.
    #[test]
    fn the_background_thread_locks_only_for_news() {
        let background = Background::default();
        background.want().unwrap();
        let mut known = background.known(&background.state.lock().unwrap());
        let taken = background.state.lock().unwrap();
        assert!(background.goes_on(false, &mut known));
        drop(taken);
        background.want().unwrap();
        let taken = background.state.lock().unwrap();
        assert!(background.goes_on(false, &mut known), "that it is wanted is no news");
        drop(taken);
        background.set_sink(Some(Arc::new(|_, _| {}))).unwrap();
        assert!(background.goes_on(false, &mut known));
        assert!(known.sink.is_some());
        background.end(|| {}).unwrap();
        assert!(!background.goes_on(false, &mut known));
    }
}
