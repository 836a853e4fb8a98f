//! Where a server may be reached: the addresses behind its name, and which of them to try next.

use std::net::SocketAddr;

use super::endpoint::Place;
use crate::moment::Moment;

/// How long the system's resolver is left alone after it was asked: ten times as long as it took,
/// within these bounds.
const REST_MIN_MS: i64 = 1_000;
const REST_MAX_MS: i64 = 60_000;

#[derive(Debug)]
pub(super) struct Addresses {
    list: Vec<SocketAddr>,
    next: usize,
    /// All were tried in vain: the name may have moved to others.
    stale: bool,
    look_up_at: Moment,
    looking_up: bool,
}

impl Addresses {
    pub(super) fn of(place: &Place) -> Self {
        let list = match place {
            Place::Address(address) => vec![*address],
            Place::Name(..) | Place::Path(_) => Vec::new(),
        };
        let look_up_at = Moment::from_nanos(0);
        Self { list, next: 0, stale: false, look_up_at, looking_up: false }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// How many share the time for connecting.
    pub(super) fn count(&self) -> usize {
        self.list.len().max(1)
    }

    pub(super) fn current(&self) -> Option<SocketAddr> {
        self.list.get(self.next).copied()
    }

    /// Goes on to the next. Returns whether there is one that was not tried yet.
    pub(super) fn try_next(&mut self) -> bool {
        self.next += 1;
        if self.next < self.list.len() {
            return true;
        }
        self.next = 0;
        self.stale = true;
        false
    }

    /// Whether the name is to be looked up now. If so, the result is expected.
    pub(super) fn begin_look_up(&mut self, now: Moment) -> bool {
        let wanted = self.list.is_empty() || self.stale;
        let begins = wanted && !self.looking_up && now >= self.look_up_at;
        self.looking_up |= begins;
        begins
    }

    pub(super) fn is_looked_up(&self) -> bool {
        self.looking_up
    }

    /// The result of a look-up. Returns whether there are other addresses now than before.
    pub(super) fn end_look_up(
        &mut self,
        found: Option<Vec<SocketAddr>>,
        began: Moment,
        now: Moment,
    ) -> bool {
        let rest_ms = (now.ms_since(began) * 10).clamp(REST_MIN_MS, REST_MAX_MS);
        self.looking_up = false;
        self.look_up_at = now.plus_ms(rest_ms);
        let Some(list) = found else { return false };
        self.stale = false;
        let are_new = self.list != list;
        if are_new {
            (self.list, self.next) = (list, 0);
        }
        are_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Moment = Moment::from_nanos(1_000_000_000_000);

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    #[test]
    fn a_name_is_looked_up_once_and_again_when_all_addresses_failed() {
        let mut addresses = Addresses::of(&Place::Name("h".to_owned(), 1));
        assert!(addresses.begin_look_up(NOW));
        assert!(!addresses.begin_look_up(NOW), "one look-up at a time");
        assert!(addresses.end_look_up(Some(vec![address(1), address(2)]), NOW, NOW));
        let later = NOW.plus_ms(REST_MAX_MS);
        assert!(!addresses.begin_look_up(later), "these may do");
        assert!(addresses.try_next());
        assert_eq!(addresses.current(), Some(address(2)));
        assert!(!addresses.try_next());
        assert_eq!(addresses.current(), Some(address(1)), "they stay until others are known");
        assert!(!addresses.begin_look_up(NOW), "the resolver rests");
        assert!(addresses.begin_look_up(later));
        assert!(!addresses.end_look_up(None, later, later));
        assert_eq!(addresses.count(), 2);
    }
}
