//! Does anybody hold a resource? Somebody does if a quorum has one value.
//!
//! If readers hold a resource, a mark stands in place of a token. While the holder of an exclusive lock turns
//! it into a shared one, some servers still have its token and others have the mark. Together they may be a
//! quorum. Whether the mark stands for that holder must be asked.

use super::ballot::{Ballot, Vote};
use crate::protocol::moment::Moment;

/// Keys of one lock that end within this time are as good as equal. Servers get a request one after the other, and their
/// answers take their time.
const SPREAD_MS: i64 = 50;

/// What was found out about the holders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// A quorum has one value.
    Locked,
    /// A quorum answered, and no value is on a quorum.
    Free,
    /// No value is on a quorum, but one is if the mark of readers is counted with it.
    Mixed,
    /// Too few servers answered.
    Unreachable,
}

/// The values that the servers have.
#[derive(Clone, Debug)]
pub struct Holders {
    ballot: Ballot,
    /// The value that servers have if readers hold the resource.
    mark: Option<&'static [u8]>,
    /// Each value, and when it ends on each of the servers that have it.
    values: Vec<(Vec<u8>, Vec<Moment>)>,
    finding: Option<Finding>,
}

impl Holders {
    /// A count in which no server has answered yet.
    pub fn new(servers: usize) -> Self {
        Self { ballot: Ballot::new(servers), mark: None, values: Vec::new(), finding: None }
    }

    /// The same count for a resource that readers may hold. Servers then have this mark.
    pub fn with_mark(self, mark: &'static [u8]) -> Self {
        Self { mark: Some(mark), ..self }
    }

    /// Counts a server that has this value until the given moment, or no value. Returns whether the count is
    /// decided.
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

    /// Counts a server that gave no usable answer. Returns whether the count is decided.
    pub fn handle_silence(&mut self, server: usize) -> bool {
        self.ballot.cast(server, Vote::Unusable);
        self.decide()
    }

    /// What was found, if the count is decided.
    pub fn finding(&self) -> Option<Finding> {
        self.finding
    }

    /// Until when a quorum has the same value, if the lock is neither extended nor released.
    pub fn locked_until(&self) -> Option<Moment> {
        self.ends()?.get(self.ballot.quorum() as usize - 1).copied()
    }

    /// When the value that a quorum has ends on each server, the latest end first.
    fn ends(&self) -> Option<Vec<Moment>> {
        let quorum = self.ballot.quorum() as usize;
        let (_, ends) = self.values.iter().find(|(_, ends)| ends.len() >= quorum)?;
        let mut ends = ends.clone();
        ends.sort_unstable_by(|one, other| other.cmp(one));
        Some(ends)
    }

    /// Whether the servers that have not answered cannot change [`Self::locked_until`] by more than a moment.
    pub fn is_end_sure(&self) -> bool {
        let Some(ends) = self.ends() else { return true };
        let (last, pending) = (self.ballot.quorum() as usize - 1, self.ballot.pending() as usize);
        // Each of these servers may have the value for longer than the servers that were heard.
        let is_close = |first: usize| ends[first] <= ends[last].plus_ms(SPREAD_MS);
        pending == 0 || last.checked_sub(pending).is_some_and(is_close)
    }

    /// Whether a quorum has this value.
    pub fn has(&self, value: &[u8]) -> bool {
        let quorum = self.ballot.quorum() as usize;
        self.values.iter().any(|(known, ends)| known == value && ends.len() >= quorum)
    }

    /// The values that are on a quorum together with the mark of readers.
    pub fn mixed(&self) -> impl Iterator<Item = &[u8]> {
        let (quorum, marks) = (self.ballot.quorum() as usize, self.marks());
        let of_one = move |it: &&(Vec<u8>, Vec<Moment>)| marks + it.1.len() >= quorum;
        self.others().filter(move |it| marks > 0 && of_one(it)).map(|(value, _)| &**value)
    }

    /// Whether servers that gave no usable answer may complete a quorum that has one value, or the mark.
    pub fn may_be_locked(&self) -> bool {
        let most = self.values.iter().map(|(_, ends)| ends.len()).max().unwrap_or(0);
        let silent = (self.ballot.pending() + self.ballot.unusable()) as usize;
        most > 0 && most + silent >= self.ballot.quorum() as usize
    }

    fn marks(&self) -> usize {
        let of_readers = self.values.iter().find(|(value, _)| Some(&**value) == self.mark);
        of_readers.map_or(0, |(_, ends)| ends.len())
    }

    fn others(&self) -> impl Iterator<Item = &(Vec<u8>, Vec<Moment>)> {
        self.values.iter().filter(|(value, _)| Some(&**value) != self.mark)
    }

    /// The votes so far. Yes: the server has a value. No: it has none.
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
        let (ballot, number) = (&self.ballot, |it| u32::try_from(it).unwrap_or(u32::MAX));
        let most_others = self.others().map(|(_, ends)| ends.len()).max().unwrap_or(0);
        let most = number(most_others.max(self.marks()));
        let most_mixed = number(most_others + self.marks());
        let to_come = ballot.pending() + ballot.unusable();
        if most >= ballot.quorum() {
            Some(Finding::Locked)
        } else if ballot.unusable() > ballot.tolerance() {
            Some(Finding::Unreachable)
        } else if most_mixed + to_come < ballot.quorum() {
            Some(Finding::Free)
        } else if most_mixed >= ballot.quorum() && most + ballot.pending() < ballot.quorum() {
            Some(Finding::Mixed)
        } else if ballot.pending() == 0 {
            // The silent servers may complete a quorum that has the value.
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

    fn count(servers: usize) -> Holders {
        Holders::new(servers).with_mark(b"mark")
    }

    fn take(servers: usize, values: &[Option<&str>]) -> Option<Finding> {
        let mut holders = count(servers);
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
    fn a_value_and_a_reader_mark_on_a_quorum_are_mixed() {
        let (mark, a, b) = (Some("mark"), Some("a"), Some("b"));
        assert_eq!(take(3, &[mark, a]), None);
        assert_eq!(take(3, &[mark, a, None]), Some(Finding::Mixed));
        assert_eq!(take(3, &[mark, a, b]), Some(Finding::Mixed));
        assert_eq!(take(3, &[mark, a, mark]), Some(Finding::Locked));
        assert_eq!(take(3, &[mark, None, None]), Some(Finding::Free));
        assert_eq!(take(5, &[mark, a, None, None]), None);
        assert_eq!(take(5, &[mark, a, None, None, a]), Some(Finding::Mixed));
        assert_eq!(take(5, &[mark, a, None, None, b]), Some(Finding::Free));
        let mut holders = count(3);
        for (server, value) in ["mark", "a", "b"].into_iter().enumerate() {
            holders.handle_value(server, Some((value.as_bytes().to_vec(), END)));
        }
        assert_eq!(holders.mixed().collect::<Vec<_>>(), [b"a", b"b"]);
        assert!(!holders.may_be_locked());
        // Not a value that is on a quorum without any mark, and not a value that is on too few servers even
        // with the mark.
        for (value, servers) in [("a", 3), ("mark", 5)] {
            let mut holders = count(servers);
            for (server, value) in ["a", value].into_iter().enumerate() {
                holders.handle_value(server, Some((value.as_bytes().to_vec(), END)));
            }
            assert_eq!(holders.mixed().count(), 0);
        }
    }

    #[test]
    fn a_silent_server_may_complete_a_mixed_quorum() {
        let mut holders = count(3);
        holders.handle_silence(0);
        holders.handle_value(1, Some((b"a".to_vec(), END)));
        assert!(holders.handle_value(2, Some((b"mark".to_vec(), END))));
        assert_eq!(holders.finding(), Some(Finding::Mixed));
        assert!(holders.may_be_locked());
        let mut holders = count(5);
        holders.handle_silence(0);
        holders.handle_value(1, Some((b"a".to_vec(), END)));
        holders.handle_value(2, Some((b"mark".to_vec(), END)));
        holders.handle_value(3, None);
        assert!(holders.handle_value(4, None));
        assert_eq!(holders.finding(), Some(Finding::Unreachable));
    }

    #[test]
    fn a_value_exists_if_a_quorum_has_it() {
        let mut holders = count(3);
        holders.handle_value(0, Some((b"a".to_vec(), END)));
        assert!(!holders.has(b"a") && !holders.has(b"b"));
        holders.handle_value(1, Some((b"b".to_vec(), END)));
        holders.handle_value(2, Some((b"a".to_vec(), END)));
        assert!(holders.has(b"a") && !holders.has(b"b"));
    }

    #[test]
    fn silent_servers_do_not_count() {
        let mut holders = count(3);
        assert!(!holders.handle_silence(0));
        assert!(!holders.handle_value(1, Some((b"a".to_vec(), END))));
        assert!(holders.handle_value(2, Some((b"a".to_vec(), END))));
        assert_eq!(holders.finding(), Some(Finding::Locked));
        let mut holders = count(3);
        holders.handle_silence(0);
        assert!(holders.handle_silence(1));
        assert_eq!(holders.finding(), Some(Finding::Unreachable));
        assert!(!holders.may_be_locked(), "nobody has said that it is");
    }

    /// The end is the same, whichever servers answer first.
    #[test]
    fn the_end_is_final_when_no_answer_can_change_it() {
        let sure = |servers, ends: &[i64]| {
            let mut holders = count(servers);
            for (server, &ms) in ends.iter().enumerate() {
                let end = Moment::from_nanos(0).plus_ms(ms * 100);
                match ms {
                    0 => holders.handle_value(server, None),
                    1 => holders.handle_silence(server),
                    _ => holders.handle_value(server, Some((b"a".to_vec(), end))),
                };
            }
            holders.is_end_sure()
        };
        assert!(!sure(3, &[9, 5]) && !sure(3, &[5, 9]));
        assert!(sure(3, &[9, 9]) && sure(3, &[9, 5, 7]));
        // The last server does not have it, or cannot say.
        assert!(sure(3, &[9, 5, 0]) && sure(3, &[9, 5, 1]));
        assert!(!sure(5, &[9, 7, 7]) && !sure(5, &[9, 9, 7]) && sure(5, &[7, 7, 7]));
        assert!(sure(5, &[9, 7, 7, 7]) && !sure(5, &[9, 8, 7, 5]));
        assert!(sure(1, &[5]) && sure(3, &[0, 0]), "nothing is held");
        for (spread_ms, is_sure) in [(SPREAD_MS, true), (SPREAD_MS + 1, false)] {
            let mut holders = count(3);
            for (server, ms) in [(0, 1_000), (1, 1_000 + spread_ms)] {
                let end = Moment::from_nanos(0).plus_ms(ms);
                holders.handle_value(server, Some((b"a".to_vec(), end)));
            }
            assert_eq!(holders.is_end_sure(), is_sure);
        }
    }

    #[test]
    fn a_lock_ends_when_it_loses_its_quorum() {
        let until = |holders: &mut Holders, ends: &[(&str, i64)]| {
            for (server, &(value, ms)) in ends.iter().enumerate() {
                let end = Moment::from_nanos(0).plus_ms(ms);
                holders.handle_value(server, Some((value.as_bytes().to_vec(), end)));
            }
            holders.locked_until().map(|it| it.ms_since(Moment::from_nanos(0)))
        };
        assert_eq!(until(&mut count(3), &[("a", 5), ("a", 7)]), Some(5));
        assert_eq!(until(&mut count(3), &[("b", 5), ("a", 7), ("a", 9)]), Some(7));
        assert_eq!(until(&mut count(3), &[("a", 9), ("a", 5), ("a", 7)]), Some(7));
        assert_eq!(until(&mut count(5), &[("a", 5), ("a", 7)]), None);
        let mut forever = count(1);
        forever.handle_value(0, Some((b"a".to_vec(), Moment::NEVER)));
        assert_eq!(forever.locked_until(), Some(Moment::NEVER));
    }
}
