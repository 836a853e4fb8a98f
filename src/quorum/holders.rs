//! Does anybody hold a resource? One value that stands on a quorum says so.
//!
//! A lock that is becoming a shared one has the mark of readers on some servers, and its holder's value on others. So
//! where readers have it counts for every value.

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
    /// The value that says that there are readers.
    readers: &'static [u8],
    finding: Option<Finding>,
}

impl Holders {
    /// A count in which no server has answered yet.
    pub fn new(servers: usize, readers: &'static [u8]) -> Self {
        Self { ballot: Ballot::new(servers), values: Vec::new(), readers, finding: None }
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
        let mut ends = self.each().find(|ends| ends.len() >= quorum)?;
        ends.sort_unstable_by(|one, other| other.cmp(one));
        ends.get(quorum - 1).copied()
    }

    /// When each value ends, where it stands or readers are.
    fn each(&self) -> impl Iterator<Item = Vec<Moment>> + '_ {
        let is_readers = |value: &Vec<u8>| value == self.readers;
        let readers = self.values.iter().find(|it| is_readers(&it.0));
        let of_readers = readers.map_or(&[][..], |it| &it.1);
        self.values.iter().map(move |(value, ends)| match is_readers(value) {
            true => ends.clone(),
            false => [ends, of_readers].concat(),
        })
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
        let most = self.each().map(|ends| ends.len()).max().unwrap_or(0);
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

    fn new(servers: usize) -> Holders {
        Holders::new(servers, b"readers")
    }

    fn take(servers: usize, values: &[Option<&str>]) -> Option<Finding> {
        let mut holders = new(servers);
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
    fn a_lock_that_is_becoming_a_shared_one_is_there_all_the_time() {
        let [free, ours, readers] = [None, Some("a"), Some("readers")];
        assert_eq!(take(3, &[ours, readers]), Some(Finding::Locked));
        assert_eq!(take(3, &[readers, readers]), Some(Finding::Locked));
        assert_eq!(take(5, &[ours, Some("b"), readers, readers, free]), Some(Finding::Locked));
        assert_eq!(take(3, &[readers, free, free]), Some(Finding::Free));
        assert_eq!(take(5, &[ours, Some("b"), readers, free, free]), Some(Finding::Free));
    }

    #[test]
    fn a_value_is_there_if_it_stands_on_a_quorum() {
        let mut holders = new(3);
        holders.handle_value(0, Some((b"a".to_vec(), END)));
        assert!(!holders.has(b"a") && !holders.has(b"b"));
        holders.handle_value(1, Some((b"b".to_vec(), END)));
        holders.handle_value(2, Some((b"a".to_vec(), END)));
        assert!(holders.has(b"a") && !holders.has(b"b"));
    }

    #[test]
    fn silence_is_no_answer() {
        let mut holders = new(3);
        assert!(!holders.handle_silence(0));
        assert!(!holders.handle_value(1, Some((b"a".to_vec(), END))));
        assert!(holders.handle_value(2, Some((b"a".to_vec(), END))));
        assert_eq!(holders.finding(), Some(Finding::Locked));
        let mut holders = new(3);
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
        assert_eq!(until(&mut new(3), &[("a", 5), ("a", 7)]), Some(5));
        assert_eq!(until(&mut new(3), &[("b", 5), ("a", 7), ("a", 9)]), Some(7));
        assert_eq!(until(&mut new(3), &[("a", 9), ("a", 5), ("a", 7)]), Some(7));
        assert_eq!(until(&mut new(5), &[("a", 5), ("a", 7)]), None);
        let mut forever = new(1);
        forever.handle_value(0, Some((b"a".to_vec(), Moment::NEVER)));
        assert_eq!(forever.locked_until(), Some(Moment::NEVER));
    }
}
