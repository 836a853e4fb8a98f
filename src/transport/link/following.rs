//! How a link finds a master that Sentinels watch, and leaves it when another server becomes the master.

use super::{Change, Link, State};
use crate::moment::Moment;
use crate::transport::addresses::Addresses;
use crate::transport::place::Place;

/// The Sentinels must say where the master is within 1 / this part of the connect timeout.
const SEARCH_PART: i64 = 2;

impl Link {
    /// Connects to the place in the URL, or to the place that the Sentinels give.
    pub(super) fn connect(&mut self, now: Moment) -> Option<Change> {
        self.tried_at = Some(now);
        let within_ms = self.search_ms();
        let Some(sentinel_client) = &mut self.sentinel_client else { return self.dial(now) };
        sentinel_client.begin(within_ms, now);
        self.state = State::Searching;
        self.search(now)
    }

    /// Goes on with asking the Sentinels, if a search is under way.
    pub(super) fn search(&mut self, now: Moment) -> Option<Change> {
        let found = self.sentinel_client.as_mut()?.advance(now)?;
        self.state = State::Down;
        match found {
            Ok(place) => {
                if self.master.as_ref() != Some(&place) {
                    self.addresses = Addresses::of(&place);
                    self.master = Some(place);
                }
                self.dial(now)
            }
            Err(why) => Some(self.give_up(why.into(), now)),
        }
    }

    /// If the connection is up, checks whether it still leads to the master, according to the Sentinel whose
    /// news this link follows.
    pub(in crate::transport) fn follow(&mut self, now: Moment) -> Option<Change> {
        let within_ms = self.search_ms();
        let (true, Some(sentinel_client)) = (self.is_up(), &mut self.sentinel_client) else {
            return None;
        };
        if !sentinel_client.listen(self.master.as_ref(), within_ms, now) {
            return None;
        }
        self.break_off("failover: the Sentinels report another master", now)
    }

    /// Whether Sentinels give the server's place.
    pub(in crate::transport) fn is_followed(&self) -> bool {
        self.sentinel_client.is_some()
    }

    /// The server's place, as far as it is known.
    pub(super) fn target(&self) -> Option<&Place> {
        self.endpoint.place().or(self.master.as_ref())
    }

    /// The server's name for people. It includes the address if the name itself does not.
    pub(in crate::transport) fn name(&self) -> String {
        match (self.endpoint.sentinels(), self.addresses.current()) {
            (Some(sentinels), Some(address)) => format!("{} ({address})", sentinels.master()),
            _ => self.endpoint.to_string(),
        }
    }

    /// The reason why the master cannot be used, with its address.
    pub(super) fn of_master(&self, why: String) -> String {
        match (&self.sentinel_client, self.addresses.current()) {
            (Some(_), Some(address)) => format!("{address}: {why}"),
            _ => why,
        }
    }

    fn search_ms(&self) -> i64 {
        self.timeouts.connect_ms() / SEARCH_PART
    }
}
