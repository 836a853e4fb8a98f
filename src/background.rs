//! The thread that a program may ask for: it drives when nobody else does and somebody has to, and it may tell
//! events.

use std::mem::ManuallyDrop;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Status};
use crate::fork::ForkMutex;
use crate::moment::Moment;
use crate::runtime::Runtime;
use crate::submitted::Event;
use crate::system::process::{Generation, this_process, this_thread};
use crate::system::thread::{self, Thread};

/// Who is told events. What comes along has a lock released that nobody wants.
pub(crate) type EventSink = Arc<dyn Fn(Event, &Runtime) + Send + Sync>;

/// No process.
const NOBODY: Generation = 0;

/// Whether there is to be such a thread, and who is told events by it.
#[derive(Default)]
pub(crate) struct Background {
    /// The process in which there is to be one and is none, as far as can be told without the mutex.
    is_lacking: AtomicU64,
    state: ForkMutex<State>,
}

#[derive(Default)]
struct State {
    /// The processes in which it was asked for, and in which it runs: a forked child has none.
    wanted: Generation,
    running: Generation,
    /// The one that runs. That of a parent is never looked at: its child has no such thread.
    thread: ManuallyDrop<Option<Thread>>,
    /// Its name among threads, once it runs.
    number: usize,
    sink: Option<EventSink>,
}

impl Background {
    /// There is to be a thread from now on. It begins with the first call that asks servers.
    pub(crate) fn want(&self) -> Result<(), Error> {
        let mut state = self.state.lock()?;
        state.wanted = this_process();
        self.note(&state);
        Ok(())
    }

    /// There is to be none any more. Waits until the one that there is has ended, for which `rouse` wakes it.
    pub(crate) fn end(&self, rouse: impl FnOnce()) -> Result<(), Error> {
        let mut state = self.state.lock()?;
        state.wanted = NOBODY;
        self.note(&state);
        let thread = if state.running == this_process() { state.thread.take() } else { None };
        let is_it = state.number == this_thread();
        drop(state);
        rouse();
        // It does not wait for itself.
        if let Some(thread) = thread.filter(|_| !is_it) {
            thread::await_end(thread);
        }
        Ok(())
    }

    /// Changes who is told. The old one is dropped with nothing held: it is somebody else's code.
    pub(crate) fn set_sink(&self, sink: Option<EventSink>) -> Result<(), Error> {
        let old = std::mem::replace(&mut self.state.lock()?.sink, sink);
        drop(old);
        Ok(())
    }

    /// Whether there is a thread that tells all events, also at its end.
    pub(crate) fn tells_events(&self) -> bool {
        let state = self.state.lock();
        state.is_ok_and(|state| state.running == this_process() && state.sink.is_some())
    }

    /// Starts the thread, if there is to be one and is none.
    pub(crate) fn start_if_lacking(self: &Arc<Self>, runtime: &Arc<Runtime>) -> Result<(), Error> {
        if self.is_lacking.load(Ordering::Relaxed) != this_process() {
            return Ok(());
        }
        let mut state = self.state.lock()?;
        if !state.is_lacking() {
            return Ok(());
        }
        let (background, its_runtime) = (Arc::clone(self), Arc::clone(runtime));
        let started = thread::start("redlock", move || background.serve(&its_runtime));
        let thread = started.map_err(|error| {
            Error::new(Status::Internal, format!("the system gave no thread: {error}"))
        })?;
        state.running = this_process();
        state.thread = ManuallyDrop::new(Some(thread));
        self.note(&state);
        Ok(())
    }

    /// What the thread does.
    fn serve(&self, runtime: &Arc<Runtime>) {
        if let Ok(mut state) = self.state.lock() {
            state.number = this_thread();
        }
        // A fault of this thread's is no reason to end it: the calls of others depend on it.
        while self.goes_on(runtime) {
            let serve = AssertUnwindSafe(|| self.serve_once(runtime));
            let _ = panic::catch_unwind(serve);
            if !runtime.is_ours() {
                // A callback has forked, and this is the child.
                return;
            }
        }
        // The manager is gone, or the thread is: who is told events hears of all that has ended.
        if let Ok(Some(sink)) = self.state.lock().map(|state| state.sink.clone()) {
            while let Ok(Some(event)) = runtime.next_event(Moment::from_nanos(0)) {
                sink(event, runtime);
            }
        }
    }

    fn serve_once(&self, runtime: &Arc<Runtime>) {
        let Ok(sink) = self.state.lock().map(|state| state.sink.clone()) else { return };
        let event = runtime.stand_by(sink.is_some());
        if let (Some(sink), Some(event)) = (sink, event) {
            sink(event, runtime);
        }
        runtime.tell();
    }

    /// Whether the thread is wanted still. If not, it is none from now on.
    fn goes_on(&self, runtime: &Runtime) -> bool {
        let Ok(mut state) = self.state.lock() else { return false };
        if state.wanted == this_process() && !runtime.is_abandoned() {
            return true;
        }
        // Where nobody waits for its end, the system frees it by itself.
        state.thread.take();
        (state.running, state.number) = (NOBODY, 0);
        self.note(&state);
        false
    }

    fn note(&self, state: &State) {
        let process = if state.is_lacking() { state.wanted } else { NOBODY };
        self.is_lacking.store(process, Ordering::Relaxed);
    }
}

impl State {
    fn is_lacking(&self) -> bool {
        self.wanted == this_process() && self.running != this_process()
    }
}
