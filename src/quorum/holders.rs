//! Does anybody hold a resource? One value that stands on a quorum says so.

use super::ballot::{Ballot, Vote};
use crate::moment::Moment;

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
    /// Each value, and when it ends on each of the servers that have it.
    values: Vec<(Vec<u8>, Vec<Moment>)>,
    finding: Option<Finding>,
}

impl Holders {
    /// A count in which no server has answered yet.
    pub fn new(servers: usize) -> Self {
        Self { ballot: Ballot::new(servers), values: Vec::new(), finding: None }
    }

    /// Counts a server that has this value until then, or none. Returns whether it is decided.
    pub fn handle_value(&mut self, server: usize, value: Option<(Vec<u8>, Moment)>) -> bool {
        self.ballot.cast(server, if value.is_some() { Vote::Yes } else { Vote::No });
        if let Some((value, until)) = value {
            match self.values.iter_mut().find(|(known, _)| *known == value) {
                Some((_, ends)) => ends.push(until),
                None => self.values.push((value, vec![until])),
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

    /// Until when a quorum has the value that stands on one, if it is neither extended nor released.
    pub fn locked_until(&self) -> Option<Moment> {
        let quorum = self.ballot.quorum() as usize;
        let (_, ends) = self.values.iter().find(|(_, ends)| ends.len() >= quorum)?;
        let mut ends = ends.clone();
        ends.sort_unstable_by(|one, other| other.cmp(one));
        ends.get(quorum - 1).copied()
    }

    /// Whether a quorum has this value.
    pub fn has(&self, value: &[u8]) -> bool {
        let quorum = self.ballot.quorum() as usize;
        self.values.iter().any(|(known, ends)| known == value && ends.len() >= quorum)
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
        let most = self.values.iter().map(|(_, ends)| ends.len()).max().unwrap_or(0);
        let most = u32::try_from(most).unwrap_or(u32::MAX);
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

    const END: Moment = Moment::from_nanos(9_000_000);

    fn take(servers: usize, values: &[Option<&str>]) -> Option<Finding> {
        let mut holders = Holders::new(servers);
        for (server, value) in values.iter().enumerate() {
            holders.handle_value(server, value.map(|it| (it.as_bytes().to_vec(), END)));
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
    fn a_value_is_there_if_it_stands_on_a_quorum() {
        let mut holders = Holders::new(3);
        holders.handle_value(0, Some((b"a".to_vec(), END)));
        assert!(!holders.has(b"a") && !holders.has(b"b"));
        holders.handle_value(1, Some((b"b".to_vec(), END)));
        holders.handle_value(2, Some((b"a".to_vec(), END)));
        assert!(holders.has(b"a") && !holders.has(b"b"));
    }

    #[test]
    fn silence_is_no_answer() {
        let mut holders = Holders::new(3);
        assert!(!holders.handle_silence(0));
        assert!(!holders.handle_value(1, Some((b"a".to_vec(), END))));
        assert!(holders.handle_value(2, Some((b"a".to_vec(), END))));
        assert_eq!(holders.finding(), Some(Finding::Locked));
        let mut holders = Holders::new(3);
        holders.handle_silence(0);
        assert!(holders.handle_silence(1));
        assert_eq!(holders.finding(), Some(Finding::Unreachable));
    }

    #[test]
    fn a_lock_ends_when_no_quorum_has_it_any_more() {
        let until = |holders: &mut Holders, ends: &[(&str, i64)]| {
            for (server, &(value, ms)) in ends.iter().enumerate() {
                let end = Moment::from_nanos(0).plus_ms(ms);
                holders.handle_value(server, Some((value.as_bytes().to_vec(), end)));
            }
            holders.locked_until().map(|it| it.ms_since(Moment::from_nanos(0)))
        };
        assert_eq!(until(&mut Holders::new(3), &[("a", 5), ("a", 7)]), Some(5));
        assert_eq!(until(&mut Holders::new(3), &[("b", 5), ("a", 7), ("a", 9)]), Some(7));
        assert_eq!(until(&mut Holders::new(3), &[("a", 9), ("a", 5), ("a", 7)]), Some(7));
        assert_eq!(until(&mut Holders::new(5), &[("a", 5), ("a", 7)]), None);
        let mut forever = Holders::new(1);
        forever.handle_value(0, Some((b"a".to_vec(), Moment::NEVER)));
        assert_eq!(forever.locked_until(), Some(Moment::NEVER));
    }
}
