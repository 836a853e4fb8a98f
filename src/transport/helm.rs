//! Whose turn it is: many threads share one engine, and one of those that wait drives it.
//!
//! The driver does what is due for everybody, waits for the world with nothing held, takes in what
//! has happened, and wakes exactly those whose calls have ended. When its own has, it leaves at once,
//! and another of the waiting goes on. Nothing here knows what a call is about: an engine of three
//! lines does for checking every way in which the threads can meet.

use crate::system::sync::{
    Arc, AtomicUsize, Condvar, Mutex, MutexGuard, Ordering, PoisonError, yield_now,
};
use std::mem;
use std::panic::{self, AssertUnwindSafe};

/// What is driven, by one thread at a time.
pub(super) trait Engine {
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

    /// Waits for it, or until somebody rings. Nothing is held.
    fn rest(watch: &mut Self::Watch);

    /// Takes in what has happened meanwhile. Returns whether somebody has rung.
    fn resume(&mut self, watch: Self::Watch) -> bool;

    /// A call that has ended, by its place. It is not told of twice.
    fn next_end(&mut self) -> Option<(usize, Self::End)>;

    /// Whether something has changed, since this was asked last, that who rests does not know of.
    fn take_change(&mut self) -> bool;

    /// What there is to say.
    fn take_words(&mut self) -> Self::Words;
}

/// What the threads do beside the engine.
pub(super) trait Around<W> {
    /// Ends the rest of the driver, or the next one if it has not begun.
    fn ring(&self);

    /// Takes the ringing for heard.
    fn silence(&self);

    /// Keeps it for who says it when nothing is held any more. Here something is: it calls nobody.
    fn keep(&self, words: W);
}

/// An engine, the threads that wait for it, and one that drives.
pub(super) struct Helm<E: Engine, A> {
    shared: Mutex<Shared<E>>,
    around: A,
    /// Seats that nobody sleeps on. The mutex is never held while another one is taken.
    spare: Mutex<Vec<Arc<Seat<E::End>>>>,
    /// How many threads have been woken and do not run yet.
    stirring: AtomicUsize,
}

struct Shared<E: Engine> {
    engine: E,
    /// Whether a thread drives, and whether it rests at this moment.
    driven: bool,
    resting: bool,
    /// Whether the last who left the helm woke others.
    has_company: bool,
    places: Vec<Place<E::End>>,
    /// Places that no call has.
    free: Vec<usize>,
    /// Those to be woken as soon as nothing is held.
    wakes: Vec<Wake<E::End>>,
}

/// A call, as far as the threads are concerned.
struct Place<T> {
    end: Option<T>,
    sleeper: Option<Arc<Seat<T>>>,
}

/// Where one thread sleeps until it is given a signal.
struct Seat<T> {
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
    seat: Arc<Seat<T>>,
    signal: Signal<T>,
}

type Guard<'a, E> = MutexGuard<'a, Shared<E>>;

impl<E: Engine, A: Around<E::Words>> Helm<E, A> {
    pub(super) fn new(engine: E, around: A) -> Self {
        let shared = Shared {
            engine,
            driven: false,
            resting: false,
            has_company: false,
            places: Vec::new(),
            free: Vec::new(),
            wakes: Vec::new(),
        };
        Self {
            shared: Mutex::new(shared),
            around,
            spare: Mutex::new(Vec::new()),
            stirring: AtomicUsize::new(0),
        }
    }

    /// Begins a call, under the place that it is given, and waits for its end.
    pub(super) fn run(&self, begin: impl FnOnce(&mut E, usize)) -> E::End {
        let mut shared = self.lock();
        let place = shared.take_place();
        begin(&mut shared.engine, place);
        self.wait(shared, place)
    }

    /// Does something to the engine that needs no waiting.
    pub(super) fn visit<T>(&self, visit: impl FnOnce(&mut E) -> T) -> T {
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
                shared.appoint();
                shared.has_company = !shared.wakes.is_empty();
                self.leave(shared);
                return end;
            }
            if !shared.driven {
                shared = self.drive_or_resign(shared, place);
                continue;
            }
            // What we queued is to be sent now, and our time may be up before the driver's.
            let rings = mem::take(&mut shared.resting);
            let seat = self.spare_seat();
            shared.places[place].sleeper = Some(Arc::clone(&seat));
            self.unlock(shared);
            if rings {
                self.around.ring();
            }
            let signal = seat.sleep();
            self.stirring.fetch_sub(1, Ordering::Relaxed);
            self.give_back(seat);
            if let Signal::Ended(end) = signal {
                return end;
            }
            shared = self.lock();
        }
    }

    /// Drives; if that panics, leaves the others able to go on.
    fn drive_or_resign<'a>(&'a self, shared: Guard<'a, E>, place: usize) -> Guard<'a, E> {
        panic::catch_unwind(AssertUnwindSafe(|| self.drive(shared, place))).unwrap_or_else(
            |panic| {
                let mut shared = self.lock();
                (shared.driven, shared.resting) = (false, false);
                shared.appoint();
                self.leave(shared);
                panic::resume_unwind(panic)
            },
        )
    }

    /// Drives until the call has ended.
    fn drive<'a>(&'a self, mut shared: Guard<'a, E>, place: usize) -> Guard<'a, E> {
        shared.driven = true;
        let mut has_rung = false;
        loop {
            if has_rung || shared.has_company || self.is_stirring(&shared) {
                shared = self.gather(shared);
            }
            shared.engine.advance();
            shared.sort_ends();
            if shared.has_ended(place) {
                break;
            }
            shared.engine.take_change();
            let mut watch = shared.engine.watch();
            shared.resting = true;
            self.unlock(shared);
            E::rest(&mut watch);
            shared = self.lock();
            shared.resting = false;
            has_rung = shared.engine.resume(watch);
            if has_rung {
                self.around.silence();
            }
            shared.sort_ends();
            if shared.has_ended(place) {
                break;
            }
        }
        shared.driven = false;
        shared
    }

    /// Whether somebody has been woken, or is about to be, who does not run yet.
    fn is_stirring(&self, shared: &Shared<E>) -> bool {
        !shared.wakes.is_empty() || self.stirring.load(Ordering::Relaxed) > 0
    }

    /// Lets those run who are about to ask for something, so that all of it is sent in one go: who
    /// has just been woken tends to come back at once, and where one has rung there are often more.
    /// With a thread that wants to run on every processor this more than doubled what the threads
    /// get done; with idle processors, to yield is to go on.
    fn gather<'a>(&'a self, mut shared: Guard<'a, E>) -> Guard<'a, E> {
        shared.has_company = false;
        self.unlock(shared);
        yield_now();
        self.lock()
    }

    /// Unlocks at the end of a call. The driver may rest because of what is no longer so, or not know
    /// what to wait for: then it is told.
    fn leave(&self, mut shared: Guard<'_, E>) {
        let rings = shared.engine.take_change() && mem::take(&mut shared.resting);
        self.unlock(shared);
        if rings {
            self.around.ring();
        }
    }

    /// Who is woken finds everything in the signal, and need not wait for the mutex. What there is to say
    /// is kept first, and in the order in which it came up: who is woken says it at the end of its call,
    /// however long the driver goes on.
    fn unlock(&self, mut shared: Guard<'_, E>) {
        self.around.keep(shared.engine.take_words());
        let wakes = mem::take(&mut shared.wakes);
        drop(shared);
        if !wakes.is_empty() {
            self.stirring.fetch_add(wakes.len(), Ordering::Relaxed);
            wakes.into_iter().for_each(|it| it.seat.wake(it.signal));
        }
    }

    fn spare_seat(&self) -> Arc<Seat<E::End>> {
        let spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop();
        spare.unwrap_or_else(|| {
            Arc::new(Seat { signal: Mutex::new(Signal::None), wake: Condvar::new() })
        })
    }

    fn give_back(&self, seat: Arc<Seat<E::End>>) {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner).push(seat);
    }
}

impl<E: Engine, A> Helm<E, A> {
    /// Whether no thread is using it at this moment.
    pub(super) fn is_at_rest(&self) -> bool {
        self.shared.try_lock().is_ok() && self.spare.try_lock().is_ok()
    }

    /// What there is inside, for who has it alone.
    pub(super) fn get_mut(&mut self) -> (&mut E, &mut A) {
        let shared = self.shared.get_mut().unwrap_or_else(PoisonError::into_inner);
        (&mut shared.engine, &mut self.around)
    }
}

impl<E: Engine> Shared<E> {
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
                Some(seat) => {
                    self.wakes.push(Wake { seat, signal: Signal::Ended(end) });
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

    /// If nobody drives, has one of those that sleep do it.
    fn appoint(&mut self) {
        if !self.driven
            && let Some(seat) = self.places.iter_mut().find_map(|it| it.sleeper.take())
        {
            self.wakes.push(Wake { seat, signal: Signal::Drive });
        }
    }
}

impl<T> Seat<T> {
    fn sleep(&self) -> Signal<T> {
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

    fn wake(&self, signal: Signal<T>) {
        *self.signal.lock().unwrap_or_else(PoisonError::into_inner) = signal;
        self.wake.notify_one();
    }
}
