//! The interface of an engine that can be driven, and of the host around the driving threads.

use std::time::Duration;

/// An engine, driven by one thread at a time.
pub(crate) trait Driven {
    /// The result of a call.
    type End;
    /// Information for the threads that ask for events.
    type Event;
    /// Work to do with no mutex held.
    type Chore;
    /// What the driver waits for.
    type Watch;
    /// Log lines.
    type Words;

    /// Does the work that is due.
    fn advance(&mut self);

    /// What to wait for now. If `waits` is false, the poll returns at once.
    fn watch(&mut self, waits: bool) -> Self::Watch;

    /// Waits for it, or until [`Host::wake`] is called. No mutex is held.
    fn poll(watch: &mut Self::Watch);

    /// Takes in what has happened meanwhile. Returns whether a thread has called [`Host::wake`].
    fn resume(&mut self, watch: Self::Watch) -> bool;

    /// A call that has ended, by its place. Each end is returned once.
    fn next_end(&mut self) -> Option<(usize, Self::End)>;

    /// Whether there is an event to take.
    fn has_event(&self) -> bool;

    /// Takes the next event. Each event is returned once.
    fn next_event(&mut self) -> Option<Self::Event>;

    /// Whether there is a chore.
    fn has_chore(&self) -> bool;

    /// Takes the next chore. The caller must do it now.
    fn next_chore(&mut self) -> Option<Self::Chore>;

    /// The thread at this place no longer waits for an event.
    fn withdraw(&mut self, place: usize);

    /// Ends the call of the thread at this place at once.
    fn end_call(&mut self, place: usize);

    /// Undoes what a call has brought whose thread did not live to get its end.
    fn discard(&mut self, end: Self::End);

    /// Whether a thread must drive even if it has no waiting call: something must be sent, answers must
    /// come, or something is due.
    fn needs_driver(&mut self) -> bool;

    /// How long until a driver is needed at the latest, if nothing happens before. `None` means never, or
    /// that another thread drives anyway. The moment is remembered for [`Self::is_due_earlier`].
    fn note_nap(&mut self, is_driven: bool) -> Option<Duration>;

    /// Whether a driver is needed before the nap that was last noted is over.
    fn is_due_earlier(&mut self) -> bool;

    /// Whether something has changed, since the last call of this function, that a polling driver does not know.
    fn take_change(&mut self) -> bool;

    /// Updates the readiness descriptor. The mutex is about to be unlocked, and perhaps no thread drives
    /// from now on.
    fn settle_descriptor(&mut self, is_driven: bool);

    /// A thread has looked, and found nothing, while another one drives. The readiness descriptor must not be
    /// readable for what that one does, or an event loop would look again and again.
    fn rest_descriptor(&mut self);

    /// Whether there are log lines.
    fn has_words(&self) -> bool;

    /// Takes the log lines.
    fn take_words(&mut self) -> Self::Words;
}

/// What the threads need beside the engine.
pub(crate) trait Host<W> {
    /// Ends the driver's poll, or its next poll if it has not begun.
    fn wake(&self);

    /// Resets [`Self::wake`]: the driver has noticed it.
    fn clear(&self);

    /// Passes the kept log lines to the logger. Called with no mutex held, because the logger is foreign code. Returns
    /// false in a child that was forked meanwhile.
    fn tell(&self) -> bool;

    /// Keeps log lines until a thread that holds no mutex passes them to the logger. Called with the mutex
    /// held, so it must not call any foreign code.
    fn keep(&self, words: W);
}

/// What a waiting thread gets.
pub(crate) enum Turn<T, V> {
    /// Its call has ended.
    Ended(T),
    /// It takes an event.
    Event(V),
    /// It must return at once, because its chore says so.
    Stopped,
}

/// How a wait for an engine ends.
pub(crate) type TurnOf<E> = Turn<<E as Driven>::End, <E as Driven>::Event>;
