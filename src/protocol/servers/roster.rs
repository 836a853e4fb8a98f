//! The servers of one manager, in its order, and their places in another manager's list.

use std::ops::Deref;
use std::sync::Arc;

use super::endpoint::Endpoint;
use crate::protocol::server_set::ServerSet;

/// All servers of a manager. A server is identified by its place and its database, whichever manager's list
/// it is in.
#[derive(Clone, Debug)]
pub struct Roster(Arc<[Endpoint]>);

impl Roster {
    /// The servers in this order.
    pub fn new(endpoints: Vec<Endpoint>) -> Self {
        Self(Arc::from(endpoints))
    }

    /// The quorum: the smallest number that is more than half of the servers.
    pub fn quorum(&self) -> u32 {
        u32::try_from(self.len() / 2 + 1).unwrap_or(u32::MAX)
    }

    /// The places of these servers in another list. Returns nothing if the other list does not have the same
    /// servers.
    pub fn places_in(&self, other: &Self) -> Option<Places> {
        let is_same = |(mine, theirs): (&Endpoint, &Endpoint)| mine.has_same_keys(theirs);
        if self.len() != other.len() {
            None
        } else if Arc::ptr_eq(&self.0, &other.0) || self.iter().zip(other.iter()).all(is_same) {
            Some(Places(None))
        } else {
            let place = |mine: &Endpoint| {
                let place = other.iter().position(|theirs| mine.has_same_keys(theirs))?;
                u8::try_from(place).ok()
            };
            let places: Option<Arc<[u8]>> = self.iter().map(place).collect();
            Some(Places(Some(places?)))
        }
    }
}

impl Deref for Roster {
    type Target = [Endpoint];

    fn deref(&self) -> &[Endpoint] {
        &self.0
    }
}

/// The places of the servers of one list in another list. Holds nothing if both lists are the same.
#[derive(Clone, Debug)]
pub struct Places(Option<Arc<[u8]>>);

impl Places {
    /// Whether both lists have the same order.
    pub fn is_same(&self) -> bool {
        self.0.is_none()
    }

    /// The place in the other list of the server at this place in this list.
    pub fn place_there(&self, here: usize) -> usize {
        self.0.as_ref().map_or(here, |places| usize::from(places[here]))
    }

    /// Converts a set of servers from places in this list to places in the other list.
    pub fn there(&self, here: ServerSet) -> ServerSet {
        if self.is_same() {
            return here;
        }
        here.iter().map(|place| self.place_there(place)).collect()
    }

    /// Converts a set of servers from places in the other list to places in this list.
    pub fn here(&self, there: ServerSet) -> ServerSet {
        let Some(places) = &self.0 else { return there };
        let is_one = |here: &usize| there.contains(self.place_there(*here));
        (0..places.len()).filter(is_one).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roster(ports: &[i32]) -> Roster {
        let endpoint = |&port: &i32| Endpoint::parse("127.0.0.1", port).unwrap();
        Roster::new(ports.iter().map(endpoint).collect())
    }

    #[test]
    fn the_order_of_the_servers_does_not_matter() {
        let places = roster(&[3, 1, 2]).places_in(&roster(&[1, 2, 3])).unwrap();
        assert!(!places.is_same());
        assert_eq!([0, 1, 2].map(|here| places.place_there(here)), [2, 0, 1]);
        let first = ServerSet::default().with(0);
        assert_eq!(places.there(first), ServerSet::default().with(2));
        assert_eq!(places.here(places.there(first)), first);
        assert!(roster(&[1, 2]).places_in(&roster(&[1, 2])).unwrap().is_same());
    }

    #[test]
    fn different_servers_are_not_confused() {
        assert!(roster(&[1, 2, 3]).places_in(&roster(&[1, 2, 4])).is_none());
        assert!(roster(&[1, 2, 3]).places_in(&roster(&[1, 2])).is_none());
        assert!(roster(&[1, 2]).places_in(&roster(&[1, 2, 3])).is_none());
        let url = |url: &str| Roster::new(vec![Endpoint::parse(url, 0).unwrap()]);
        let first = url("redis://h");
        assert!(url("redis://h/1").places_in(&first).is_none());
        assert!(url("redis://user:password@h/0").places_in(&first).is_some());
    }
}
