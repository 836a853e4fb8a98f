//! Which server of a manager is which server process: one that stands in the list under two names has one vote.

use crate::command::identity::RunId;
use crate::system::sync::{Mutex, PoisonError};

/// The servers that are connected, by their places in the list.
pub(crate) struct Lineup(Mutex<Vec<Option<Known>>>);

struct Known {
    id: RunId,
    name: String,
}

impl Default for Lineup {
    fn default() -> Self {
        Self(Mutex::new(Vec::new()))
    }
}

impl Lineup {
    /// The server at this place is this one. Fails with the name of another place that is the same one.
    pub(super) fn enter(&self, place: usize, id: RunId, name: &str) -> Result<(), String> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_twin = |&(other, it): &(usize, &Option<Known>)| {
            other != place && it.as_ref().is_some_and(|it| it.id == id)
        };
        if let Some((_, Some(twin))) = known.iter().enumerate().find(is_twin) {
            return Err(twin.name.clone());
        }
        if known.len() <= place {
            known.resize_with(place + 1, || None);
        }
        known[place] = Some(Known { id, name: name.to_owned() });
        Ok(())
    }

    /// There is no connection to the server at this place any more.
    pub(super) fn leave(&self, place: usize) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(it) = known.get_mut(place) {
            *it = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(letter: char) -> RunId {
        RunId::parse(&format!("{letter}{}", "0".repeat(39))).expect("an id")
    }

    #[test]
    fn one_server_has_one_place() {
        let lineup = Lineup::default();
        assert_eq!(lineup.enter(1, id('a'), "localhost:1"), Ok(()));
        assert_eq!(lineup.enter(0, id('b'), "localhost:0"), Ok(()));
        assert_eq!(lineup.enter(2, id('a'), "127.0.0.1:1"), Err("localhost:1".to_owned()));
        // It connects again, and it has become another.
        assert_eq!(lineup.enter(1, id('a'), "localhost:1"), Ok(()));
        assert_eq!(lineup.enter(1, id('c'), "localhost:1"), Ok(()));
        assert_eq!(lineup.enter(2, id('a'), "127.0.0.1:1"), Ok(()));
        lineup.leave(2);
        lineup.leave(7);
        assert_eq!(lineup.enter(3, id('a'), "::1:1"), Ok(()));
    }
}
