//! Does anybody hold a resource? One value that stands on a quorum says so.

use super::ballot::{Ballot, Vote};

/// What was found out about the holders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// One value stands on a quorum.
    Locked,
    /// A quorum answered, and no value stands on one.
    Free,
    /// Too few servers answered.
    Unreachable,
}

/// The values that the servers have.
#[derive(Clone, Debug)]
pub struct Holders {
    ballot: Ballot,
    values: Vec<(Vec<u8>, u32)>,
    finding: Option<Finding>,
}

impl Holders {
    /// A count in which no server has answered yet.
    pub fn new(servers: usize) -> Self {
        Self { ballot: Ballot::new(servers), values: Vec::new(), finding: None }
    }

    /// Counts a server that has this value, or none. Returns whether it is decided.
    pub fn handle_value(&mut self, server: usize, value: Option<Vec<u8>>) -> bool {
        self.ballot.cast(server, if value.is_some() { Vote::Yes } else { Vote::No });
        if let Some(value) = value {
            match self.values.iter_mut().find(|(known, _)| *known == value) {
                Some((_, count)) => *count += 1,
                None => self.values.push((value, 1)),
            }
        }
        self.decide()
    }

    /// Counts a server that gave no usable answer. Returns whether it is decided.
    pub fn handle_silence(&mut self, server: usize) -> bool {
        self.ballot.cast(server, Vote::Unusable);
        self.decide()
    }

    /// What was found, if it is decided.
    pub fn finding(&self) -> Option<Finding> {
        self.finding
    }

    /// Who has answered: yes, a value; no, none.
    pub fn ballot(&self) -> &Ballot {
        &self.ballot
    }

    fn decide(&mut self) -> bool {
        if self.finding.is_none() {
            self.finding = self.find();
        }
        self.finding.is_some()
    }

    fn find(&self) -> Option<Finding> {
        let ballot = &self.ballot;
        let most = self.values.iter().map(|&(_, count)| count).max().unwrap_or(0);
        if most >= ballot.quorum() {
            Some(Finding::Locked)
        } else if ballot.unusable() > ballot.tolerance() {
            Some(Finding::Unreachable)
        } else if most + ballot.pending() + ballot.unusable() < ballot.quorum() {
            Some(Finding::Free)
        } else if ballot.pending() == 0 {
            // Those that are silent may make a quorum of those that have it.
            Some(Finding::Unreachable)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(servers: usize, values: &[Option<&str>]) -> Option<Finding> {
        let mut holders = Holders::new(servers);
        for (server, value) in values.iter().enumerate() {
            holders.handle_value(server, value.map(|it| it.as_bytes().to_vec()));
        }
        holders.finding()
    }

    #[test]
    fn one_value_on_a_quorum_is_a_lock() {
        assert_eq!(take(3, &[Some("a"), Some("a")]), Some(Finding::Locked));
        assert_eq!(take(3, &[Some("a"), Some("b"), Some("c")]), Some(Finding::Free));
        assert_eq!(take(4, &[Some("a"), Some("a"), Some("b")]), None);
        assert_eq!(take(4, &[Some("a"), Some("a"), None, None]), Some(Finding::Free));
        assert_eq!(take(5, &[None, None, None]), Some(Finding::Free));
    }

    #[test]
    fn silence_is_no_answer() {
        let mut holders = Holders::new(3);
        assert!(!holders.handle_silence(0));
        assert!(!holders.handle_value(1, Some(b"a".to_vec())));
        assert!(holders.handle_value(2, Some(b"a".to_vec())));
        assert_eq!(holders.finding(), Some(Finding::Locked));
        let mut holders = Holders::new(3);
        holders.handle_silence(0);
        assert!(holders.handle_silence(1));
        assert_eq!(holders.finding(), Some(Finding::Unreachable));
    }
}
