//! Which server has voted what.

/// The most servers that a ballot can count: one bit each.
pub const SERVERS_MAX: usize = 64;

/// How an answer counts in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vote {
    /// The server did, or has, what was asked.
    Yes,
    /// The server answered, but did not do, or does not have, what was asked.
    No,
    /// The server gave no usable answer.
    Unusable,
}

/// The votes of one round, one for each server.
#[derive(Clone, Debug)]
pub struct Ballot {
    servers: u32,
    yes: u64,
    no: u64,
    unusable: u64,
}

impl Ballot {
    /// An empty ballot. The quorum counts all servers that are configured, up or down.
    pub fn new(servers: usize) -> Self {
        debug_assert!((1..=SERVERS_MAX).contains(&servers));
        let servers = u32::try_from(servers).unwrap_or(u32::MAX);
        Self { servers, yes: 0, no: 0, unusable: 0 }
    }

    /// Counts the vote of a server. A later vote replaces an earlier one.
    pub fn cast(&mut self, server: usize, vote: Vote) {
        self.withdraw(server);
        let bit = 1 << server;
        match vote {
            Vote::Yes => self.yes |= bit,
            Vote::No => self.no |= bit,
            Vote::Unusable => self.unusable |= bit,
        }
    }

    /// Takes a vote back. The server then counts as one that has not answered yet.
    pub fn withdraw(&mut self, server: usize) {
        let others = !(1 << server);
        self.yes &= others;
        self.no &= others;
        self.unusable &= others;
    }

    /// How many servers there are.
    pub fn servers(&self) -> u32 {
        self.servers
    }

    /// How many of them are a quorum: more than half.
    pub fn quorum(&self) -> u32 {
        self.servers / 2 + 1
    }

    /// How many servers may fail to agree before a quorum is out of reach.
    pub fn tolerance(&self) -> u32 {
        self.servers - self.quorum()
    }

    /// How many voted yes.
    pub fn yes(&self) -> u32 {
        self.yes.count_ones()
    }

    /// How many voted no.
    pub fn no(&self) -> u32 {
        self.no.count_ones()
    }

    /// How many gave no usable answer.
    pub fn unusable(&self) -> u32 {
        self.unusable.count_ones()
    }

    /// Whether every vote so far is a yes.
    pub fn is_unopposed(&self) -> bool {
        self.no | self.unusable == 0
    }

    /// Whether a server has voted yes.
    pub fn has_agreed(&self, server: usize) -> bool {
        self.yes & (1 << server) != 0
    }

    /// Whether a server has not answered yet.
    pub fn is_pending(&self, server: usize) -> bool {
        (self.yes | self.no | self.unusable) & (1 << server) == 0
    }

    /// How many have not answered yet.
    pub fn pending(&self) -> u32 {
        self.servers - self.yes() - self.no() - self.unusable()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quorum_is_more_than_half() {
        let of = |servers| (Ballot::new(servers).quorum(), Ballot::new(servers).tolerance());
        assert_eq!([1, 2, 3, 4, 5, 7].map(of), [(1, 0), (2, 0), (2, 1), (3, 1), (3, 2), (4, 3)]);
    }

    #[test]
    fn a_vote_counts_once_and_can_be_withdrawn() {
        let mut ballot = Ballot::new(64);
        ballot.cast(63, Vote::No);
        assert!(!ballot.is_pending(63) && ballot.is_pending(62));
        ballot.cast(63, Vote::Yes);
        assert!(!ballot.is_pending(63) && ballot.is_pending(62));
        assert!(ballot.has_agreed(63) && !ballot.has_agreed(62));
        ballot.cast(0, Vote::Unusable);
        assert_eq!(ballot.servers(), 64);
        assert_eq!((ballot.yes(), ballot.no(), ballot.unusable()), (1, 0, 1));
        ballot.withdraw(63);
        assert_eq!((ballot.yes(), ballot.pending()), (0, 63));
        assert!(ballot.is_pending(63) && !ballot.is_pending(0));
        assert!(!ballot.has_agreed(63) && !ballot.has_agreed(0));
    }
}
