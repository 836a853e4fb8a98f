//! Requests that may set a key, and whose answers were lost with their connections.
//!
//! Such a request may still be carried out, so no other one that sets the key is sent ([`crate::protocol::quorum::soundness`]).
//! A server that was asked over a connection that broke would never be given its lock again, however long the lock is
//! kept. But a request ends with the process that got it. So when another process is met in its place, the lock is
//! told.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::protocol::command::Setter;
use crate::protocol::command::identity::RunId;

/// The requests to one server.
pub(crate) struct LostRequests(Mutex<Known>);

#[derive(Default)]
struct Known {
    /// The process that was met last.
    process: Option<RunId>,
    /// Each with the process that got it.
    setters: Vec<(RunId, Setter)>,
}

impl Default for LostRequests {
    fn default() -> Self {
        Self(Mutex::new(Known::default()))
    }
}

impl LostRequests {
    /// Notes requests to a process that will not be answered. A process that is not known may live for ever.
    pub(crate) fn add(&self, process: Option<RunId>, setters: impl Iterator<Item = Setter>) {
        let Some(process) = process else { return };
        let mut known = self.known();
        known.setters.retain(|(_, setter)| setter.matters());
        known.setters.extend(setters.map(|setter| (process, setter)));
        Self::tell(known);
    }

    /// The server at this place in the list is this process now. Tells the locks whose requests have ended with the
    /// processes before it.
    pub(crate) fn meet(&self, process: Option<RunId>) {
        let mut known = self.known();
        known.process = process;
        Self::tell(known);
    }

    fn tell(mut known: MutexGuard<'_, Known>) {
        let Some(process) = known.process else { return };
        let ended: Vec<_> = known.setters.extract_if(.., |(of, _)| *of != process).collect();
        drop(known);
        ended.iter().for_each(|(_, setter)| setter.note_end());
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::command::Told;

    fn process(letter: char) -> Option<RunId> {
        Some(RunId::sample(letter))
    }

    #[test]
    fn requests_end_when_another_process_answers() {
        let (unanswered, told) = (LostRequests::default(), Told::new());
        unanswered.meet(process('a'));
        unanswered.add(process('a'), [told.setter(1, 7)].into_iter());
        unanswered.meet(process('a'));
        // It does not say which process it is.
        unanswered.meet(None);
        assert_eq!(told.all(), []);
        unanswered.meet(process('b'));
        assert_eq!(told.all(), [(1, 7)]);
        unanswered.meet(process('a'));
        assert_eq!(told.all(), [(1, 7)], "once");
    }

    /// The connection was kept beside that to the next process.
    #[test]
    fn a_request_to_an_ended_process_has_ended() {
        let (unanswered, told) = (LostRequests::default(), Told::new());
        unanswered.meet(process('b'));
        unanswered.add(process('a'), [told.setter(0, 1), told.setter(0, 2)].into_iter());
        assert_eq!(told.all(), [(0, 1), (0, 2)]);
    }

    #[test]
    fn a_request_to_an_unknown_process_may_run_any_time() {
        let (unanswered, told) = (LostRequests::default(), Told::new());
        unanswered.add(None, [told.setter(0, 1)].into_iter());
        unanswered.meet(process('a'));
        assert_eq!(told.all(), []);
    }

    #[test]
    fn unneeded_requests_are_forgotten() {
        let unanswered = LostRequests::default();
        unanswered.meet(process('a'));
        for _ in 0..3 {
            let told = Told::new();
            unanswered.add(process('a'), (0..9).map(|number| told.setter(0, number)));
        }
        assert_eq!(unanswered.known().setters.len(), 9);
    }
}
