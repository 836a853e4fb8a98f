//! Sets of servers.

/// A set of servers, by their places in a manager's list: one bit per server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerSet(u64);

impl ServerSet {
    /// The first `count` servers of the list.
    pub fn first(count: usize) -> Self {
        if count < 64 { Self((1 << count) - 1) } else { Self(u64::MAX) }
    }

    /// This set with one more server.
    #[must_use]
    pub fn with(self, server: usize) -> Self {
        Self(self.0 | 1 << server)
    }

    /// The servers of this set and of another set.
    #[must_use]
    pub fn plus(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// This set without one server.
    #[must_use]
    pub fn without(self, server: usize) -> Self {
        Self(self.0 & !(1 << server))
    }

    /// This set without the servers of another set.
    #[must_use]
    pub fn minus(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    /// The servers of this set and of another set.
    #[must_use]
    pub fn union(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// The number of servers in the set.
    pub fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Whether the server is in the set.
    pub fn contains(self, server: usize) -> bool {
        self.0 & (1 << server) != 0
    }

    /// Whether the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The servers of the set, in the order of the list.
    pub fn iter(self) -> Iter {
        Iter(self.0)
    }

    /// The bits, one per server.
    pub(crate) fn bits(self) -> u64 {
        self.0
    }

    /// The set of the servers with these bits.
    pub(crate) fn from_bits(bits: u64) -> Self {
        Self(bits)
    }
}

impl FromIterator<usize> for ServerSet {
    fn from_iter<I: IntoIterator<Item = usize>>(servers: I) -> Self {
        servers.into_iter().fold(Self::default(), Self::with)
    }
}

/// The places that are not visited yet.
#[derive(Clone, Debug)]
pub struct Iter(u64);

impl Iterator for Iter {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        let server = self.0.trailing_zeros() as usize;
        // Clears the lowest bit.
        self.0 &= self.0 - 1;
        Some(server)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(servers: &[usize]) -> ServerSet {
        servers.iter().copied().collect()
    }

    #[test]
    fn a_server_set_is_ordered() {
        let some = set(&[63, 0, 5, 5]);
        assert_eq!(some.iter().collect::<Vec<_>>(), [0, 5, 63]);
        assert!((0..64).all(|server| some.contains(server) == [0, 5, 63].contains(&server)));
        assert_eq!(some.iter().collect::<ServerSet>(), some);
        assert_eq!(some, ServerSet::default().with(5).with(63).with(0));
        assert_eq!(ServerSet::from_bits(some.bits()), some);
    }

    #[test]
    fn servers_are_added_and_removed() {
        let some = set(&[1, 2, 3]);
        assert_eq!(some.with(2), some);
        assert_eq!(some.without(2), set(&[1, 3]));
        assert_eq!(some.without(4), some);
        assert_eq!(some.minus(set(&[0, 1, 3, 4])), set(&[2]));
        assert!(some.minus(some).is_empty() && !some.is_empty());
        assert_eq!(some.minus(ServerSet::default()), some);
    }

    #[test]
    fn a_server_set_has_room_for_64_servers() {
        assert!(ServerSet::first(0).is_empty());
        assert_eq!(ServerSet::first(3), set(&[0, 1, 2]));
        assert_eq!(ServerSet::first(64).bits(), u64::MAX);
        assert_eq!(ServerSet::first(64).iter().count(), 64);
    }
}
