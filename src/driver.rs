//! Many threads share one engine, and one of those that wait drives it.
//!
//! The driver does what is due for all calls, polls the sockets with no mutex held, takes in what
//! has happened, and wakes exactly those threads whose calls have ended. When its own call has ended,
//! it leaves at once, and another waiting thread goes on. Nothing here knows what a call is about:
//! so a small engine is enough to check every way in which the threads can meet.

use crate::system::sync::{
    Arc, AtomicUsize, Condvar, Mutex, MutexGuard, Ordering, PoisonError, yield_now,
};
use std::mem;
use std::panic::{self, AssertUnwindSafe};

/// What is driven, by one thread at a time.
pub(crate) trait Driven {
    /// What a call ends with.
    type End;
    /// What there is to wait for.
    type Watch;
    /// What there is to say.
    type Words;

    /// Does what is due.
    fn advance(&mut self);

    /// What to wait for now.
    fn watch(&mut self) -> Self::Watch;

    /// Waits for it, or until [`Host::wake`]. No mutex is held.
    fn poll(watch: &mut Self::Watch);

    /// Takes in what has happened meanwhile. Returns whether somebody has called
    /// [`Host::wake`].
    fn resume(&mut self, watch: Self::Watch) -> bool;

    /// A call that has ended, by its place. It is not told of twice.
    fn next_end(&mut self) -> Option<(usize, Self::End)>;

    /// Whether something has changed, since this was asked last, that a polling driver does not know of.
    fn take_change(&mut self) -> bool;

    /// What there is to say.
    fn take_words(&mut self) -> Self::Words;
}

/// What the threads do beside the engine.
pub(crate) trait Host<W> {
    /// Ends the polling of the driver, or the next one if it has not begun.
    fn wake(&self);

    /// The driver has noticed [`Self::wake`].
    fn clear(&self);

    /// Keeps log lines until a thread that holds no mutex tells them. Called with the mutex held: it calls
    /// nobody.
    fn keep(&self, words: W);
}

/// An engine, the threads that wait for it, and one that drives.
pub(crate) struct SharedEngine<E: Driven, H> {
    shared: Mutex<State<E>>,
    host: H,
    /// Parkers that no thread uses. The mutex is never held while another one is taken.
    spare: Mutex<Vec<Arc<Parker<E::End>>>>,
    /// How many threads have been woken and do not run yet.
    waking: AtomicUsize,
}

struct State<E: Driven> {
    engine: E,
    /// Whether a thread drives, and whether it polls at this moment.
    driven: bool,
    polling: bool,
    /// Whether the last driver woke other threads when it left.
    has_woken_others: bool,
    places: Vec<Place<E::End>>,
    /// Places that no call has.
    free: Vec<usize>,
    /// Those to be woken as soon as nothing is held.
    wakes: Vec<Wake<E::End>>,
}

/// A call, as far as the threads are concerned.
struct Place<T> {
    end: Option<T>,
    sleeper: Option<Arc<Parker<T>>>,
}

/// Where one thread waits until it is given a signal.
struct Parker<T> {
    signal: Mutex<Signal<T>>,
    wake: Condvar,
}

enum Signal<T> {
    None,
    /// Nobody drives: have a look.
    Drive,
    Ended(T),
}

struct Wake<T> {
    parker: Arc<Parker<T>>,
    signal: Signal<T>,
}

type Guard<'a, E> = MutexGuard<'a, State<E>>;

impl<E: Driven, H: Host<E::Words>> SharedEngine<E, H> {
    pub(crate) fn new(engine: E, host: H) -> Self {
        let shared = State {
            engine,
            driven: false,
            polling: false,
            has_woken_others: false,
            places: Vec::new(),
            free: Vec::new(),
            wakes: Vec::new(),
        };
        Self {
            shared: Mutex::new(shared),
            host,
            spare: Mutex::new(Vec::new()),
            waking: AtomicUsize::new(0),
        }
    }

    /// Begins a call, under the place that it is given, and waits for its end.
    pub(crate) fn run(&self, begin: impl FnOnce(&mut E, usize)) -> E::End {
        let mut shared = self.lock();
        let place = shared.take_place();
        begin(&mut shared.engine, place);
        self.wait(shared, place)
    }

    /// Does something to the engine that needs no waiting.
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

    fn wait<'a>(&'a self, mut shared: Guard<'a, E>, place: usize) -> E::End {
        loop {
            shared.sort_ends();
            if let Some(end) = shared.take_end(place) {
                shared.appoint_driver();
                shared.has_woken_others = !shared.wakes.is_empty();
                self.leave(shared);
                return end;
            }
            if !shared.driven {
                shared = self.drive_or_give_up(shared, place);
                continue;
            }
            // The driver has to send what we queued, and our time may be up before its own.
            let wakes_driver = mem::take(&mut shared.polling);
            let parker = self.spare_parker();
            shared.places[place].sleeper = Some(Arc::clone(&parker));
            self.unlock(shared);
            if wakes_driver {
                self.host.wake();
            }
            let signal = parker.park();
            self.waking.fetch_sub(1, Ordering::Relaxed);
            self.give_back(parker);
            if let Signal::Ended(end) = signal {
                return end;
            }
            shared = self.lock();
        }
    }

    /// Drives. If that panics, the other threads can go on.
    fn drive_or_give_up<'a>(&'a self, shared: Guard<'a, E>, place: usize) -> Guard<'a, E> {
        panic::catch_unwind(AssertUnwindSafe(|| self.drive(shared, place))).unwrap_or_else(
            |panic| {
                let mut shared = self.lock();
                (shared.driven, shared.polling) = (false, false);
                shared.appoint_driver();
                self.leave(shared);
                panic::resume_unwind(panic)
            },
        )
    }

    /// Drives until the call has ended.
    fn drive<'a>(&'a self, mut shared: Guard<'a, E>, place: usize) -> Guard<'a, E> {
        shared.driven = true;
        let mut was_woken = false;
        loop {
            if was_woken || shared.has_woken_others || self.is_anybody_waking(&shared) {
                shared = self.yield_for_batch(shared);
            }
            shared.engine.advance();
            shared.sort_ends();
            if shared.has_ended(place) {
                break;
            }
            shared.engine.take_change();
            let mut watch = shared.engine.watch();
            shared.polling = true;
            self.unlock(shared);
            E::poll(&mut watch);
            shared = self.lock();
            shared.polling = false;
            was_woken = shared.engine.resume(watch);
            if was_woken {
                self.host.clear();
            }
            shared.sort_ends();
            if shared.has_ended(place) {
                break;
            }
        }
        shared.driven = false;
        shared
    }

    /// Whether a thread has been woken, or is about to be, that does not run yet.
    fn is_anybody_waking(&self, shared: &State<E>) -> bool {
        !shared.wakes.is_empty() || self.waking.load(Ordering::Relaxed) > 0
    }

    /// Yields once before writing, so that woken threads can join the batch: a thread that was just woken
    /// tends to ask again at once, and where one thread has woken the driver there are often more. With
    /// a busy thread on every processor this more than doubled the throughput of all threads; with idle
    /// processors, to yield costs nothing.
    fn yield_for_batch<'a>(&'a self, mut shared: Guard<'a, E>) -> Guard<'a, E> {
        shared.has_woken_others = false;
        self.unlock(shared);
        yield_now();
        self.lock()
    }

    /// Unlocks at the end of a call. What the driver polls for may be out of date: then it is woken.
    fn leave(&self, mut shared: Guard<'_, E>) {
        let wakes_driver = shared.engine.take_change() && mem::take(&mut shared.polling);
        self.unlock(shared);
        if wakes_driver {
            self.host.wake();
        }
    }

    /// A woken thread finds its result in the signal, and need not wait for the mutex. Log lines are kept
    /// first, in their order: a woken thread tells them at the end of its call, however long the driver
    /// goes on.
    fn unlock(&self, mut shared: Guard<'_, E>) {
        self.host.keep(shared.engine.take_words());
        let wakes = mem::take(&mut shared.wakes);
        drop(shared);
        if !wakes.is_empty() {
            self.waking.fetch_add(wakes.len(), Ordering::Relaxed);
            wakes.into_iter().for_each(|wake| wake.parker.unpark(wake.signal));
        }
    }

    fn spare_parker(&self) -> Arc<Parker<E::End>> {
        let spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop();
        spare.unwrap_or_else(|| {
            Arc::new(Parker { signal: Mutex::new(Signal::None), wake: Condvar::new() })
        })
    }

    fn give_back(&self, parker: Arc<Parker<E::End>>) {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner).push(parker);
    }
}

impl<E: Driven, H> SharedEngine<E, H> {
    /// Whether no thread is using it at this moment.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.shared.try_lock().is_ok() && self.spare.try_lock().is_ok()
    }

    /// What there is inside, for who has it alone.
    pub(crate) fn get_mut(&mut self) -> (&mut E, &mut H) {
        let shared = self.shared.get_mut().unwrap_or_else(PoisonError::into_inner);
        (&mut shared.engine, &mut self.host)
    }
}

impl<E: Driven> State<E> {
    fn take_place(&mut self) -> usize {
        self.free.pop().unwrap_or_else(|| {
            self.places.push(Place { end: None, sleeper: None });
            self.places.len() - 1
        })
    }

    /// Brings ends to the threads that wait for them.
    fn sort_ends(&mut self) {
        while let Some((place, end)) = self.engine.next_end() {
            match self.places[place].sleeper.take() {
                Some(parker) => {
                    self.wakes.push(Wake { parker, signal: Signal::Ended(end) });
                    self.free.push(place);
                }
                None => self.places[place].end = Some(end),
            }
        }
    }

    fn has_ended(&self, place: usize) -> bool {
        self.places[place].end.is_some()
    }

    fn take_end(&mut self, place: usize) -> Option<E::End> {
        let end = self.places[place].end.take()?;
        self.free.push(place);
        Some(end)
    }

    /// If no thread drives, has one of those that wait do it.
    fn appoint_driver(&mut self) {
        if !self.driven
            && let Some(parker) = self.places.iter_mut().find_map(|place| place.sleeper.take())
        {
            self.wakes.push(Wake { parker, signal: Signal::Drive });
        }
    }
}

impl<T> Parker<T> {
    fn park(&self) -> Signal<T> {
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

    fn unpark(&self, signal: Signal<T>) {
        *self.signal.lock().unwrap_or_else(PoisonError::into_inner) = signal;
        self.wake.notify_one();
    }
}
