//! What there is to drive, and what the threads that do it have around them.

use std::time::Duration;

/// What is driven, by one thread at a time.
pub(crate) trait Driven {
    /// What a call ends with.
    type End;
    /// What is told to whoever asks for events.
    type Event;
    /// Something to be done with no mutex held.
    type Chore;
    /// What there is to wait for.
    type Watch;
    /// What there is to say.
    type Words;

    /// Does what is due.
    fn advance(&mut self);

    /// What to wait for now; for nothing if this is only a look.
    fn watch(&mut self, waits: bool) -> Self::Watch;

    /// Waits for it, or until [`Host::wake`]. No mutex is held.
    fn poll(watch: &mut Self::Watch);

    /// Takes in what has happened meanwhile. Returns whether somebody has called
    /// [`Host::wake`].
    fn resume(&mut self, watch: Self::Watch) -> bool;

    /// A call that has ended, by its place. It is not told of twice.
    fn next_end(&mut self) -> Option<(usize, Self::End)>;

    /// Whether there is an event to be told.
    fn has_event(&self) -> bool;

    /// The next event. It is not told twice.
    fn next_event(&mut self) -> Option<Self::Event>;

    /// Whether there is a chore.
    fn has_chore(&self) -> bool;

    /// The next chore, for whoever does it now.
    fn next_chore(&mut self) -> Option<Self::Chore>;

    /// The thread at this place waits no longer.
    fn withdraw(&mut self, place: usize);

    /// Whether a thread has to drive that no call waits for: something is to be sent, answers are to come, or
    /// something is due.
    fn needs_driver(&mut self) -> bool;

    /// How long until that is so at the latest, if nothing happens before; none if never, or if somebody drives
    /// anyway. Kept in mind for [`Self::is_due_earlier`].
    fn note_nap(&mut self, is_driven: bool) -> Option<Duration>;

    /// Whether a thread has to drive before the nap is over that was noted last.
    fn is_due_earlier(&mut self) -> bool;

    /// Whether something has changed, since this was asked last, that a polling driver does not know of.
    fn take_change(&mut self) -> bool;

    /// The mutex is about to be free; perhaps nobody drives from now on.
    fn settle_descriptor(&mut self, is_driven: bool);

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

/// What a thread has waited for.
pub(crate) enum Turn<T, V> {
    /// Its call has ended.
    Ended(T),
    /// It is given an event.
    Event(V),
    /// It is to go away at once: the chore that it did says so.
    Stopped,
}

/// How a wait of an engine ends.
pub(crate) type TurnOf<E> = Turn<<E as Driven>::End, <E as Driven>::Event>;
