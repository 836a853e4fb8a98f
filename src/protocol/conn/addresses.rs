//! The addresses of a server's name, and which of them to try next.

use std::net::SocketAddr;

use super::ask_schedule::AskSchedule;
use crate::protocol::moment::Moment;
use crate::protocol::servers::address::Address;

#[derive(Debug)]
pub(crate) struct Addresses {
    list: Vec<SocketAddr>,
    next: usize,
    /// All addresses were tried in vain, so the name may have other addresses now.
    stale: bool,
    look_up: AskSchedule,
    /// When the name was last looked up.
    looked_up_at: Option<Moment>,
}

/// How long a server must be down before its name is looked up although nobody lacks the server. A restart on the
/// same machine takes less.
const DOWN_MS: i64 = 2_000;

/// The longest pause between two such look-ups.
const PAUSE_MAX_MS: i64 = 60_000;

impl Addresses {
    pub(crate) fn of(place: &Address) -> Self {
        let list = match place {
            Address::Ip(address) => vec![*address],
            Address::Name(..) | Address::Path(_) => Vec::new(),
        };
        Self { list, ..Self::unknown() }
    }

    /// The addresses of a server whose place is not known yet.
    pub(crate) fn unknown() -> Self {
        let look_up = AskSchedule::new();
        Self { list: Vec::new(), next: 0, stale: false, look_up, looked_up_at: None }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = SocketAddr> {
        self.list.iter().copied()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// How many addresses share the time for connecting.
    pub(crate) fn count(&self) -> usize {
        self.list.len().max(1)
    }

    pub(crate) fn current(&self) -> Option<SocketAddr> {
        self.list.get(self.next).copied()
    }

    /// Goes on to the next address. Returns whether there is one that was not tried yet.
    pub(crate) fn try_next(&mut self) -> bool {
        self.next += 1;
        if self.next < self.list.len() {
            return true;
        }
        self.next = 0;
        self.stale = true;
        false
    }

    /// Whether to look up the name now. If so, the caller must report the result.
    pub(crate) fn begin_look_up(&mut self, now: Moment) -> bool {
        (self.list.is_empty() || self.stale) && self.look_up.begin(now)
    }

    /// The same for a server that has been down since then, and that nobody lacks so far.
    pub(crate) fn begin_look_up_of_lost(&mut self, down_since: Moment, now: Moment) -> bool {
        now >= self.look_up_of_lost_at(down_since) && self.look_up.begin(now)
    }

    /// When to look up the name of a server that has been down since then. The server may have moved. The pauses
    /// grow, because it may also stay down for days.
    pub(crate) fn look_up_of_lost_at(&self, down_since: Moment) -> Moment {
        let at = match self.looked_up_at.filter(|&at| at > down_since) {
            None => down_since.plus_ms(DOWN_MS),
            Some(at) => at.plus_ms((at.ms_since(down_since) / 2).min(PAUSE_MAX_MS)),
        };
        at.max(self.look_up.next_at())
    }

    pub(crate) fn is_looked_up(&self) -> bool {
        self.look_up.is_under_way()
    }

    /// The result of a look-up. Returns whether the addresses have changed.
    pub(crate) fn end_look_up(
        &mut self,
        found: Option<Vec<SocketAddr>>,
        began: Moment,
        now: Moment,
    ) -> bool {
        self.look_up.end(began, now);
        self.looked_up_at = Some(now);
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
    use crate::protocol::conn::ask_schedule::REST_MAX_MS;

    const NOW: Moment = Moment::from_nanos(1_000_000_000_000);

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    #[test]
    fn a_name_is_looked_up_again_when_all_addresses_failed() {
        let mut addresses = Addresses::of(&Address::Name("h".to_owned(), 1));
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

    #[test]
    fn look_ups_of_a_dead_server_become_rarer() {
        let mut addresses = Addresses::of(&Address::Name("h".to_owned(), 1));
        let found = || Some(vec![address(1)]);
        assert!(addresses.begin_look_up(NOW));
        assert_eq!(addresses.look_up_of_lost_at(NOW), Moment::NEVER, "that is under way");
        addresses.end_look_up(found(), NOW, NOW);
        let down_since = NOW.plus_ms(10);
        let mut look_up = |after_ms: i64| {
            let at = down_since.plus_ms(after_ms);
            assert_eq!(addresses.look_up_of_lost_at(down_since), at);
            assert!(!addresses.begin_look_up_of_lost(down_since, at.plus_ms(-1)));
            assert!(addresses.begin_look_up_of_lost(down_since, at));
            addresses.end_look_up(found(), at, at);
        };
        [2_000, 3_000, 4_500, 6_750, 10_125].into_iter().for_each(&mut look_up);
        let hours = down_since.plus_ms(10_000_000);
        assert!(addresses.begin_look_up_of_lost(down_since, hours));
        // The resolver took long: it rests for ten times as long, within its bounds.
        addresses.end_look_up(None, hours.plus_ms(-100), hours);
        assert_eq!(addresses.look_up_of_lost_at(down_since), hours.plus_ms(PAUSE_MAX_MS));
        assert_eq!(addresses.look_up_of_lost_at(hours), hours.plus_ms(DOWN_MS), "another time");
    }
}
