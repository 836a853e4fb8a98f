//! Many threads share one engine, and one of the waiting threads drives it.
//!
//! The driver does the work that is due for all calls. It polls the sockets with no mutex held, takes in
//! the results, and wakes exactly the threads whose calls have ended. When its own call has ended, it
//! leaves at once, and another waiting thread goes on. Some threads wait for events instead of a call of
//! their own: when there is an event, one of them is woken. A chore is slow work that is done with no mutex
//! held. The driving thread does it. Nothing in this module knows the content of a call, so a small engine
//! is enough to check all ways in which the threads can interleave.

mod contract;
mod parker;
mod state;

use std::mem;
use std::panic::{self, AssertUnwindSafe};

pub(crate) use self::contract::{Driven, Host, Turn, TurnOf};
use self::parker::{Parker, Signal};
use self::state::{Role, State};
use crate::system::sync::{Arc, AtomicUsize, Mutex, MutexGuard, Ordering, PoisonError, yield_now};

/// An engine, the threads that wait for it, and the thread that drives it.
pub(crate) struct SharedEngine<E: Driven, H> {
    shared: Mutex<State<E>>,
    host: H,
    /// Parkers that no thread uses. The mutex is never held while another one is taken.
    spare: Mutex<Vec<Arc<Parker<E::End>>>>,
    /// How many threads have been woken but do not run yet.
    waking: AtomicUsize,
}

type Guard<'a, E> = MutexGuard<'a, State<E>>;

impl<E: Driven, H: Host<E::Words>> SharedEngine<E, H> {
    pub(crate) fn new(engine: E, host: H) -> Self {
        Self {
            shared: Mutex::new(State::new(engine)),
            host,
            spare: Mutex::new(Vec::new()),
            waking: AtomicUsize::new(0),
        }
    }

    /// Begins a call under the place that it is given, and waits for its end. Meanwhile this thread may have to
    /// do chores, with no mutex held. If `chores` returns false, the thread stops and does nothing more here.
    pub(crate) fn run(
        &self,
        begin: impl FnOnce(&mut E, usize),
        chores: &mut dyn FnMut(E::Chore) -> bool,
    ) -> TurnOf<E> {
        self.begin(Role::Caller, begin, chores)
    }

    /// The same for a thread that holds nothing while it waits: it also passes on log lines.
    pub(crate) fn run_and_tell(
        &self,
        begin: impl FnOnce(&mut E, usize),
        chores: &mut dyn FnMut(E::Chore) -> bool,
    ) -> TurnOf<E> {
        self.begin(Role::Telling, begin, chores)
    }

    /// The same for a call that only waits for an event: an event ends it, too.
    pub(crate) fn await_event(
        &self,
        begin: impl FnOnce(&mut E, usize),
        chores: &mut dyn FnMut(E::Chore) -> bool,
    ) -> TurnOf<E> {
        self.begin(Role::Listener, begin, chores)
    }

    /// The same for a thread that drives whenever a driver is needed and no other thread drives.
    pub(crate) fn stand_by(
        &self,
        listens: bool,
        begin: impl FnOnce(&mut E, usize),
        chores: &mut dyn FnMut(E::Chore) -> bool,
    ) -> TurnOf<E> {
        self.begin(Role::StandBy { listens }, begin, chores)
    }

    fn begin(
        &self,
        role: Role,
        begin: impl FnOnce(&mut E, usize),
        chores: &mut dyn FnMut(E::Chore) -> bool,
    ) -> TurnOf<E> {
        let mut shared = self.lock();
        let place = shared.take_place(role);
        begin(&mut shared.engine, place);
        self.wait(shared, place, chores)
    }

    /// Does the work that is due, unless another thread drives, and takes an event if there is one. Does not wait.
    pub(crate) fn look_for_event(
        &self,
        chores: &mut dyn FnMut(E::Chore) -> bool,
    ) -> Option<E::Event> {
        self.look_for(&mut |engine| engine.next_event(), chores)
    }

    /// The same for anything that `take` may take from the engine.
    pub(crate) fn look_for<T>(
        &self,
        take: &mut dyn FnMut(&mut E) -> Option<T>,
        chores: &mut dyn FnMut(E::Chore) -> bool,
    ) -> Option<T> {
        let mut shared = self.lock();
        let mut has_looked = false;
        loop {
            shared.sort_ends();
            if let Some(taken) = take(&mut shared.engine) {
                self.go(shared);
                return Some(taken);
            }
            if let Some(chore) = shared.engine.next_chore() {
                self.go(shared);
                if !chores(chore) {
                    return None;
                }
                shared = self.lock();
                // Requests that result from the chore are sent, too.
                has_looked = false;
            } else if has_looked || shared.driven {
                if shared.driven {
                    shared.engine.rest_descriptor();
                }
                self.go(shared);
                return None;
            } else {
                has_looked = true;
                shared = self.guarded(shared, None, |shared| self.drive_once(shared));
            }
        }
    }

    /// Runs `visit` on the engine. It must not need any waiting.
    pub(crate) fn visit<T>(&self, visit: impl FnOnce(&mut E) -> T) -> T {
        let mut shared = self.lock();
        let seen = visit(&mut shared.engine);
        shared.sort_ends();
        self.leave(shared);
        seen
    }

    fn lock(&self) -> Guard<'_, E> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(
        &'a self,
        mut shared: Guard<'a, E>,
        place: usize,
        chores: &mut dyn FnMut(E::Chore) -> bool,
    ) -> TurnOf<E> {
        loop {
            shared.sort_ends();
            if let Some(turn) = shared.take_turn(place) {
                self.go(shared);
                return turn;
            }
            // Before any chore, which would have the lines kept, and nobody would tell them.
            if shared.has_words_for(place) {
                match self.do_aside(shared, place, || self.host.tell()) {
                    Some(again) => shared = again,
                    None => return Turn::Stopped,
                }
                continue;
            }
            if let Some(chore) = shared.engine.next_chore() {
                match self.do_aside(shared, place, || chores(chore)) {
                    Some(again) => shared = again,
                    None => return Turn::Stopped,
                }
                continue;
            }
            if shared.may_nap(place) {
                match self.nap(shared, place) {
                    Ok(again) => shared = again,
                    Err(end) => return Turn::Ended(end),
                }
                continue;
            }
            if !shared.driven {
                shared = self.guarded(shared, Some(place), |shared| self.drive(shared, place));
                continue;
            }
            // The driver must send the requests that this thread queued. This call may also time out before
            // the driver's poll ends.
            let wakes_driver = mem::take(&mut shared.polling);
            let parker = self.spare_parker();
            shared.park(place, Arc::clone(&parker));
            self.unlock(shared);
            if wakes_driver {
                self.host.wake();
            }
            let signal = parker.park();
            self.waking.fetch_sub(1, Ordering::Relaxed);
            self.give_back(parker);
            if let Signal::Ended(end) = signal {
                return Turn::Ended(end);
            }
            shared = self.lock();
        }
    }

    /// Sleeps, for a thread that stands by, until it is woken or until a driver is needed. A thread that
    /// drives meanwhile does all work that is due, and wakes this thread when it leaves. `Err` contains the
    /// end of this thread's call.
    fn nap<'a>(&'a self, mut shared: Guard<'a, E>, place: usize) -> Result<Guard<'a, E>, E::End> {
        let is_driven = shared.driven;
        let time = shared.engine.note_nap(is_driven);
        // Other threads may be asleep because this one was driving.
        shared.appoint_driver();
        let parker = self.spare_parker();
        shared.park(place, Arc::clone(&parker));
        self.unlock(shared);
        let mut signal = match time {
            Some(time) => parker.park_at_most(time),
            None => parker.park(),
        };
        if matches!(signal, Signal::None) {
            let mut shared = self.lock();
            if shared.take_back(place) {
                self.give_back(parker);
                return Ok(shared);
            }
            // Another thread has just begun to wake this one.
            drop(shared);
            signal = parker.park();
        }
        self.waking.fetch_sub(1, Ordering::Relaxed);
        self.give_back(parker);
        match signal {
            Signal::Ended(end) => Err(end),
            Signal::None | Signal::Look => Ok(self.lock()),
        }
    }

    /// Calls foreign code with no mutex held. `None` if this thread must not go on. If the code panics, the call is
    /// over.
    fn do_aside<'a>(
        &'a self,
        mut shared: Guard<'a, E>,
        place: usize,
        work: impl FnOnce() -> bool,
    ) -> Option<Guard<'a, E>> {
        shared.step_aside(place);
        self.go(shared);
        let goes_on = panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
            let mut shared = self.lock();
            shared.step_in(place);
            shared.break_off(place);
            self.leave(shared);
            panic::resume_unwind(panic)
        });
        if !goes_on {
            return None;
        }
        let mut shared = self.lock();
        shared.step_in(place);
        Some(shared)
    }

    /// Drives for the thread at this place, if it has one. If that panics, the other threads can go on.
    fn guarded<'a>(
        &'a self,
        shared: Guard<'a, E>,
        place: Option<usize>,
        drive: impl FnOnce(Guard<'a, E>) -> Guard<'a, E>,
    ) -> Guard<'a, E> {
        panic::catch_unwind(AssertUnwindSafe(|| drive(shared))).unwrap_or_else(|panic| {
            let mut shared = self.lock();
            (shared.driven, shared.polling) = (false, false);
            place.into_iter().for_each(|place| shared.step_aside(place));
            shared.appoint_driver();
            self.leave(shared);
            panic::resume_unwind(panic)
        })
    }

    /// Drives until there is something else for the thread at this place to do.
    fn drive<'a>(&'a self, mut shared: Guard<'a, E>, place: usize) -> Guard<'a, E> {
        shared.driven = true;
        let mut was_woken = false;
        loop {
            if was_woken || shared.has_woken_others || self.is_anybody_waking(&shared) {
                shared = self.yield_for_batch(shared);
            }
            shared.engine.advance();
            shared.sort_ends();
            if shared.has_something_for(place) || shared.may_rest(place) {
                break;
            }
            (shared, was_woken) = self.poll(shared, true);
            if shared.has_something_for(place) {
                break;
            }
        }
        shared.driven = false;
        shared
    }

    /// Drives without waiting. Everything that must be sent by the end is sent.
    fn drive_once<'a>(&'a self, mut shared: Guard<'a, E>) -> Guard<'a, E> {
        shared.driven = true;
        shared.engine.advance();
        (shared, _) = self.poll(shared, false);
        shared.engine.advance();
        shared.driven = false;
        shared
    }

    /// Polls, and takes in the results. Also returns whether another thread has woken this one.
    fn poll<'a>(&'a self, mut shared: Guard<'a, E>, waits: bool) -> (Guard<'a, E>, bool) {
        shared.engine.take_change();
        let mut watch = shared.engine.watch(waits);
        shared.polling = true;
        self.unlock(shared);
        E::poll(&mut watch);
        shared = self.lock();
        shared.polling = false;
        let was_woken = shared.engine.resume(watch);
        if was_woken {
            self.host.clear();
        }
        shared.sort_ends();
        (shared, was_woken)
    }

    /// Whether a thread has been woken, or is about to be, and does not run yet.
    fn is_anybody_waking(&self, shared: &State<E>) -> bool {
        !shared.wakes.is_empty() || self.waking.load(Ordering::Relaxed) > 0
    }

    /// Yields once before writing, so that woken threads can join the batch. A thread that was just woken
    /// tends to ask again at once. If one thread has woken the driver, there are often more. With a busy
    /// thread on every processor, this more than doubled the throughput of all threads. With idle
    /// processors, yielding costs nothing.
    fn yield_for_batch<'a>(&'a self, mut shared: Guard<'a, E>) -> Guard<'a, E> {
        shared.has_woken_others = false;
        self.unlock(shared);
        yield_now();
        self.lock()
    }

    /// Leaves the engine, at least for a while, and has another thread drive.
    fn go(&self, mut shared: Guard<'_, E>) {
        shared.appoint_driver();
        shared.has_woken_others = !shared.wakes.is_empty();
        self.leave(shared);
    }

    /// Unlocks at the end of a call. If the driver's poll may be out of date, wakes the driver.
    fn leave(&self, mut shared: Guard<'_, E>) {
        let wakes_driver = shared.engine.take_change() && mem::take(&mut shared.polling);
        self.unlock(shared);
        if wakes_driver {
            self.host.wake();
        }
    }

    /// Unlocks, and wakes threads. A woken thread finds its result in the signal, and does not have to wait
    /// for the mutex. Log lines are kept first, in their order: a woken thread passes them to the logger at
    /// the end of its call, no matter how long the driver goes on.
    fn unlock(&self, mut shared: Guard<'_, E>) {
        self.host.keep(shared.engine.take_words());
        let is_driven = shared.driven;
        shared.engine.settle_descriptor(is_driven);
        shared.rouse();
        let wakes = mem::take(&mut shared.wakes);
        drop(shared);
        if !wakes.is_empty() {
            self.waking.fetch_add(wakes.len(), Ordering::Relaxed);
            wakes.into_iter().for_each(|wake| wake.parker.unpark(wake.signal));
        }
    }

    fn spare_parker(&self) -> Arc<Parker<E::End>> {
        let spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop();
        spare.unwrap_or_else(|| Arc::new(Parker::new()))
    }

    fn give_back(&self, parker: Arc<Parker<E::End>>) {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner).push(parker);
    }
}

impl<E: Driven, H> SharedEngine<E, H> {
    /// Whether no thread is using the engine at this moment.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.shared.try_lock().is_ok() && self.spare.try_lock().is_ok()
    }

    /// The engine and the host, for a caller with exclusive access.
    pub(crate) fn get_mut(&mut self) -> (&mut E, &mut H) {
        let shared = self.shared.get_mut().unwrap_or_else(PoisonError::into_inner);
        (&mut shared.engine, &mut self.host)
    }
}
