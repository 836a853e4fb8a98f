//! What the servers of a manager know of each other: which list entries are the same server, and whether all
//! servers are new.

use std::sync::{Arc, Mutex, PoisonError};

use super::guard::{Mode, Rules};
use crate::protocol::command::identity::{Identity, RunId};
use crate::protocol::moment::Moment;

/// The servers, by their places in the list.
pub(crate) struct ServerRegistry {
    rules: Arc<Rules>,
    state: Mutex<State>,
}

struct State {
    places: Vec<Listed>,
    /// Whether some server was not new. From then on, a server without a note has lost its memory.
    is_old: bool,
}

#[derive(Default)]
struct Listed {
    /// The server that is connected at this place.
    known: Option<Known>,
    memory: Seen,
    verdict: Option<Verdict>,
    /// The process that was last met here.
    met: Option<RunId>,
}

struct Known {
    id: RunId,
    name: String,
}

/// What has been seen of a server's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Seen {
    #[default]
    Nothing,
    /// No connection can be made.
    Unreachable,
    /// The server does not let this user read it.
    Untold,
    /// The server has no note.
    Missing,
    /// The server has a note that was just made for a new server. Until the given time, the server counts as
    /// a part of a deployment that is being started.
    Young { until: Moment },
    /// The server has a note.
    Marked,
}

/// How a server without a note must be marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// As a new server. All other servers are new, too.
    Fresh,
    /// As a server that has lost its memory.
    Lost,
}

impl ServerRegistry {
    /// A registry of so many servers.
    pub(crate) fn new(servers: usize, rules: Arc<Rules>) -> Self {
        let places = (0..servers).map(|_| Listed::default()).collect();
        Self { rules, state: Mutex::new(State { places, is_old: false }) }
    }

    pub(crate) fn rules(&self) -> &Arc<Rules> {
        &self.rules
    }

    /// Enters the server at this place. Fails with the name of another place where the same server is
    /// connected.
    pub(crate) fn enter(&self, place: usize, id: RunId, name: &str) -> Result<(), String> {
        self.with(|state| {
            let is_twin = |&(other, it): &(usize, &Listed)| {
                other != place && it.known.as_ref().is_some_and(|it| it.id == id)
            };
            let twin = state.places.iter().enumerate().find(is_twin);
            if let Some(name) = twin.and_then(|(_, it)| Some(it.known.as_ref()?.name.clone())) {
                return Err(name);
            }
            if let Some(it) = state.places.get_mut(place) {
                it.known = Some(Known { id, name: name.to_owned() });
            }
            Ok(())
        })
    }

    /// The connection to the server at this place is gone.
    pub(crate) fn leave(&self, place: usize) {
        self.with(|state| {
            let Some(it) = state.places.get_mut(place) else { return };
            let was_young = matches!(it.memory, Seen::Young { .. });
            *it = Listed { memory: Seen::Unreachable, met: it.met, ..Listed::default() };
            state.is_old |= was_young;
        });
    }

    /// Notes what was seen of the memory of the server at this place.
    pub(crate) fn note(&self, place: usize, memory: Seen) {
        self.with(|state| {
            if let Some(it) = state.places.get_mut(place) {
                it.memory = memory;
            }
            state.is_old |= memory == Seen::Marked;
        });
    }

    /// The server at this place has said that much about itself, whether its connection comes up or not. It is no new
    /// one if it is a replica or was one, because it has, or had, the place of a server of ours. Nor is it if another
    /// process was here before. Without a note later, it has lost its memory.
    pub(crate) fn meet(&self, place: usize, identity: &Identity) {
        self.with(|state| {
            state.is_old |= identity.is_replica() || identity.promotion().is_some();
            let Some(it) = state.places.get_mut(place).filter(|_| identity.run_id().is_some())
            else {
                return;
            };
            state.is_old |= it.met.is_some() && it.met != identity.run_id();
            it.met = identity.run_id();
        });
    }

    /// The server at this place stops waiting for the others.
    pub(crate) fn end_waiting(&self, place: usize) {
        self.with(|state| {
            if let Some(it) = state.places.get_mut(place) {
                it.verdict.get_or_insert(Verdict::Lost);
            }
        });
    }

    /// How the server at this place must be marked. Returns nothing if that depends on servers that were not
    /// seen yet.
    pub(crate) fn verdict(&self, place: usize, now: Moment) -> Option<Verdict> {
        let is_strict = self.is_strict();
        self.with(|state| {
            let State { places, is_old } = state;
            let verdict = places.get(place)?.verdict;
            if verdict.is_some() {
                return verdict;
            }
            let is_hopeless = |it: &Listed| match it.memory {
                Seen::Unreachable => true,
                Seen::Young { until } => now >= until,
                _ => false,
            };
            if is_strict || *is_old || places.iter().any(is_hopeless) {
                return Some(Verdict::Lost);
            }
            if places.iter().any(|it| it.memory == Seen::Nothing) {
                return None;
            }
            let missing = places.iter_mut().filter(|it| it.memory == Seen::Missing);
            missing.for_each(|it| it.verdict = Some(Verdict::Fresh));
            *is_old = true;
            Some(Verdict::Fresh)
        })
    }

    /// When [`Self::verdict`] returns something at the latest, as far as that is known now.
    pub(crate) fn verdict_at(&self, place: usize) -> Moment {
        let is_strict = self.is_strict();
        self.with(|State { places, is_old }| {
            let has_one = places.get(place).is_some_and(|it| it.verdict.is_some());
            let any = |memory| places.iter().any(|it| it.memory == memory);
            let is_clear = any(Seen::Unreachable) || !any(Seen::Nothing);
            if has_one || is_strict || *is_old || is_clear {
                return Moment::from_nanos(0);
            }
            let young = places.iter().filter_map(|it| match it.memory {
                Seen::Young { until } => Some(until),
                _ => None,
            });
            young.fold(Moment::NEVER, Moment::min)
        })
    }

    fn is_strict(&self) -> bool {
        self.rules.mode() == Mode::Strict
    }

    fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Moment = Moment::from_nanos(1_000_000_000_000);
    const SOON: Moment = NOW.plus_ms(1);

    fn of(memories: &[Seen]) -> ServerRegistry {
        let server_registry = ServerRegistry::new(memories.len(), Arc::default());
        memories
            .iter()
            .enumerate()
            .for_each(|(place, &memory)| server_registry.note(place, memory));
        server_registry
    }

    #[test]
    fn one_server_has_one_place() {
        let server_registry = of(&[Seen::Nothing; 4]);
        assert_eq!(server_registry.enter(1, RunId::sample('a'), "localhost:1"), Ok(()));
        assert_eq!(server_registry.enter(0, RunId::sample('b'), "localhost:0"), Ok(()));
        assert_eq!(
            server_registry.enter(2, RunId::sample('a'), "127.0.0.1:1"),
            Err("localhost:1".to_owned())
        );
        // The server connects again, and then it is another process.
        assert_eq!(server_registry.enter(1, RunId::sample('a'), "localhost:1"), Ok(()));
        assert_eq!(server_registry.enter(1, RunId::sample('c'), "localhost:1"), Ok(()));
        assert_eq!(server_registry.enter(2, RunId::sample('a'), "127.0.0.1:1"), Ok(()));
        server_registry.leave(2);
        server_registry.leave(7);
        assert_eq!(server_registry.enter(3, RunId::sample('a'), "::1:1"), Ok(()));
    }

    #[test]
    fn servers_are_new_only_together() {
        use Seen::{Marked, Missing, Nothing, Unreachable, Untold, Young};
        let verdict = |memories: &[Seen]| {
            let registry = of(memories);
            let is_due = registry.verdict_at(0) <= NOW;
            let verdict = registry.verdict(0, NOW);
            assert_eq!(is_due, verdict.is_some(), "{memories:?}");
            assert!(verdict.is_none() || registry.verdict_at(0) <= NOW, "it stays");
            verdict
        };
        assert_eq!(of(&[Missing, Nothing, Young { until: SOON }]).verdict_at(0), SOON);
        assert_eq!(of(&[Missing, Nothing]).verdict_at(0), Moment::NEVER);
        assert_eq!(verdict(&[Missing]), Some(Verdict::Fresh));
        assert_eq!(verdict(&[Missing, Untold, Missing]), Some(Verdict::Fresh));
        assert_eq!(verdict(&[Missing, Young { until: SOON }]), Some(Verdict::Fresh));
        assert_eq!(verdict(&[Missing, Young { until: NOW }]), Some(Verdict::Lost));
        assert_eq!(verdict(&[Missing, Missing, Nothing]), None);
        assert_eq!(verdict(&[Missing, Marked, Nothing]), Some(Verdict::Lost));
        assert_eq!(verdict(&[Missing, Unreachable, Nothing]), Some(Verdict::Lost));
    }

    #[test]
    fn a_deployment_is_new_once() {
        let server_registry = of(&[Seen::Missing; 2]);
        assert_eq!(server_registry.verdict(0, NOW), Some(Verdict::Fresh));
        // The other server is new as well, however late it comes.
        server_registry.note(0, Seen::Young { until: SOON });
        assert_eq!(server_registry.verdict(1, NOW), Some(Verdict::Fresh));
        server_registry.leave(1);
        server_registry.note(1, Seen::Missing);
        assert_eq!(server_registry.verdict(1, NOW), Some(Verdict::Lost));
        // A server whose connection was lost is not new either.
        let server_registry = of(&[Seen::Young { until: SOON }, Seen::Young { until: SOON }]);
        server_registry.leave(0);
        server_registry.note(0, Seen::Missing);
        assert_eq!(server_registry.verdict(0, NOW), Some(Verdict::Lost));
    }

    /// It may have been a primary whose memory is lost, and may come back without a note.
    #[test]
    fn with_a_replica_no_server_is_new() {
        for identity in [Identity::replica(), Identity::promoted(RunId::sample('d'))] {
            let server_registry = of(&[Seen::Missing, Seen::Young { until: SOON }]);
            server_registry.meet(1, &identity);
            assert_eq!(server_registry.verdict(0, NOW), Some(Verdict::Lost));
        }
    }

    /// Its connection may not have come up before the restart.
    #[test]
    fn a_server_that_was_restarted_is_not_new() {
        for (again, verdict) in [('a', Verdict::Fresh), ('b', Verdict::Lost)] {
            let server_registry = of(&[Seen::Missing]);
            server_registry.meet(0, &Identity::of_process(RunId::sample('a')));
            server_registry.leave(0);
            server_registry.meet(0, &Identity::default());
            server_registry.meet(0, &Identity::of_process(RunId::sample(again)));
            server_registry.note(0, Seen::Missing);
            assert_eq!(server_registry.verdict(0, NOW), Some(verdict), "{again}");
        }
    }

    #[test]
    fn a_server_that_stops_waiting_has_lost_its_memory() {
        let server_registry = of(&[Seen::Missing, Seen::Nothing]);
        assert_eq!(server_registry.verdict(0, NOW), None);
        server_registry.end_waiting(0);
        assert_eq!(server_registry.verdict(0, NOW), Some(Verdict::Lost));
        // It was known to be new before that.
        let server_registry = of(&[Seen::Missing, Seen::Missing]);
        assert_eq!(server_registry.verdict(0, NOW), Some(Verdict::Fresh));
        server_registry.end_waiting(1);
        assert_eq!(server_registry.verdict(1, NOW), Some(Verdict::Fresh));
    }

    #[test]
    fn in_strict_mode_no_server_is_new() {
        let server_registry = of(&[Seen::Missing]);
        server_registry.rules().set(Mode::Strict, 0, 0);
        assert_eq!(server_registry.verdict(0, NOW), Some(Verdict::Lost));
    }
}
