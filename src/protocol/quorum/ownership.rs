//! Which server has the place of a voter whose owner changes, and since when that is known: the owner's lease.
//!
//! *Arbiters* (Sentinels) say who the owner is, with an epoch that grows with each change. A majority of all arbiters
//! that names the same owner and epoch is a *lease*. It is as old as the oldest question that it needs. An owner that
//! was deposed, and does not know that, can grant locks for ever. Its grants count only if a lease was asked for at most
//! [`LEAD_MS`] before they were, and its successor votes only when so much more time has passed. Two majorities have an
//! arbiter in common, whose epoch only grows, so no lease on the old owner is younger than the note of the new one.
//! The model `tests/pure/ownership` goes through all that can happen.

use crate::protocol::moment::Moment;

/// How much earlier than a request the question for a lease may be sent, in milliseconds. It is the bound on what a
/// deposed owner adds to the time that its successor must wait, so a larger one costs time after each failover. A
/// smaller one would cost more questions: one is sent a little more often than this while locks are taken.
pub const LEAD_MS: i64 = 1_000;

/// An owner, by its place, and the epoch in which it became that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner<P> {
    pub place: P,
    pub epoch: u64,
}

/// What an arbiter has said: who the owner is, and how many other arbiters it knows. The question was sent at
/// `asked_at`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word<P> {
    pub owner: Owner<P>,
    pub others: usize,
    pub asked_at: Moment,
}

/// A majority has named this owner. All of its answers were asked for at this time or later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnerLease<P> {
    pub owner: Owner<P>,
    pub asked_at: Moment,
}

/// How many arbiters name the same owner at most, how many must, and how many there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Support {
    pub named: usize,
    pub needed: usize,
    pub of: usize,
}

/// What is known of the arbiters, by their places in a list. `I` tells one arbiter from another.
pub struct Ownership<P, I> {
    /// How many arbiters the program has named.
    listed: usize,
    arbiters: Vec<Arbiter<P, I>>,
}

struct Arbiter<P, I> {
    /// Not known of an arbiter that does not say it.
    id: Option<I>,
    word: Option<Word<P>>,
    /// The greatest epoch that it has named.
    greatest: u64,
}

impl<P, I> Arbiter<P, I> {
    fn new() -> Self {
        Self { id: None, word: None, greatest: 0 }
    }
}

impl<P: Clone + PartialEq, I: Copy + PartialEq> Ownership<P, I> {
    pub fn new(listed: usize) -> Self {
        let mut it = Self { listed, arbiters: Vec::new() };
        (0..listed).for_each(|_| it.add());
        it
    }

    /// One more arbiter is asked, which another one has named.
    pub fn add(&mut self) {
        self.arbiters.push(Arbiter::new());
    }

    /// Another arbiter is asked instead of the one at this place, which is gone.
    pub fn replace(&mut self, which: usize) {
        if let Some(it) = self.arbiters.get_mut(which) {
            *it = Arbiter::new();
        }
    }

    /// The arbiter at this place says who it is.
    pub fn identify(&mut self, which: usize, id: Option<I>) {
        if let Some(it) = self.arbiters.get_mut(which) {
            it.id = id;
        }
    }

    /// Whether the arbiter at this place has said that it is this one.
    pub fn is(&self, which: usize, id: I) -> bool {
        self.arbiters.get(which).is_some_and(|it| it.id == Some(id))
    }

    /// The arbiter at this place has said this. An epoch that is lower than one that it has named before says that the
    /// arbiter has forgotten, so what it says counts no more until it has learnt that again.
    pub fn hear(&mut self, which: usize, word: Word<P>) {
        let Some(it) = self.arbiters.get_mut(which) else { return };
        if word.owner.epoch < it.greatest {
            it.word = None;
            return;
        }
        it.greatest = word.owner.epoch;
        it.word = Some(word);
    }

    /// What this arbiter has said last, if that counts.
    pub fn word(&self, which: usize) -> Option<&Word<P>> {
        self.arbiters.get(which)?.word.as_ref()
    }

    /// The lease on the owner that a majority names. If two were named by a majority (which takes arbiters that do not
    /// know of each other), the one with the greater epoch.
    pub fn lease(&self) -> Option<OwnerLease<P>> {
        let needed = self.needed();
        let leases = self.counted().filter_map(|word| {
            let mut asked: Vec<Moment> =
                self.votes_for(&word.owner).map(|it| it.asked_at).collect();
            asked.sort_unstable_by(|one, other| other.cmp(one));
            let asked_at = *asked.get(needed - 1)?;
            Some(OwnerLease { owner: word.owner.clone(), asked_at })
        });
        leases.max_by_key(|it| (it.owner.epoch, it.asked_at))
    }

    /// How many arbiters have named the same owner, of those that were asked at this time or later.
    pub fn support_since(&self, since: Moment) -> Support {
        let votes =
            |word: &Word<P>| self.votes_for(&word.owner).filter(|it| it.asked_at >= since).count();
        let named = self.counted().map(votes).max().unwrap_or(0);
        Support { named, needed: self.needed(), of: self.count() }
    }

    /// Whether a later answer was given by an arbiter that is in the list once more.
    fn is_repeated(&self, which: usize) -> bool {
        let it = &self.arbiters[which];
        let asked_at = |it: &Arbiter<P, I>| it.word.as_ref().map(|word| word.asked_at);
        let is_better = |(other, twin): (usize, &Arbiter<P, I>)| {
            let is_same = other != which && twin.id == it.id;
            is_same && (asked_at(twin), other) > (asked_at(it), which)
        };
        self.arbiters.iter().enumerate().any(is_better)
    }

    /// What each arbiter has said. Those that do not say who they are may be one and the same.
    fn counted(&self) -> impl Iterator<Item = &Word<P>> {
        let each = self.arbiters.iter().enumerate();
        each.filter(|(which, _)| !self.is_repeated(*which)).filter_map(|(_, it)| it.word.as_ref())
    }

    fn votes_for<'a>(&'a self, owner: &'a Owner<P>) -> impl Iterator<Item = &'a Word<P>> {
        self.counted().filter(move |it| it.owner == *owner)
    }

    /// How many arbiters there are: as many as the program has named, or as one of them knows.
    fn count(&self) -> usize {
        let known = self.counted().map(|it| it.others.saturating_add(1)).max();
        known.unwrap_or(0).max(self.listed)
    }

    fn needed(&self) -> usize {
        self.count() / 2 + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Moment {
        Moment::from_nanos(0).plus_ms(ms)
    }

    fn word(place: char, epoch: u64, others: usize, asked_ms: i64) -> Word<char> {
        Word { owner: Owner { place, epoch }, others, asked_at: at(asked_ms) }
    }

    /// What arbiters have said, by their places.
    fn of(words: &[Option<Word<char>>]) -> Ownership<char, usize> {
        let mut ownership = Ownership::new(words.len());
        for (which, word) in words.iter().enumerate() {
            ownership.identify(which, Some(which));
            word.iter().for_each(|it| ownership.hear(which, it.clone()));
        }
        ownership
    }

    fn lease(words: &[Option<Word<char>>]) -> Option<(char, u64, i64)> {
        let lease = of(words).lease()?;
        Some((lease.owner.place, lease.owner.epoch, lease.asked_at.ms_since(at(0))))
    }

    #[test]
    fn a_lease_is_as_old_as_the_oldest_question_that_it_needs() {
        let say = |ms| Some(word('a', 1, 2, ms));
        assert_eq!(lease(&[say(5), say(9), say(7)]), Some(('a', 1, 7)));
        assert_eq!(lease(&[say(5), None, say(7)]), Some(('a', 1, 5)));
        assert_eq!(lease(&[say(5), None, None]), None);
        assert_eq!(lease(&[Some(word('a', 1, 0, 3))]), Some(('a', 1, 3)));
    }

    #[test]
    fn a_majority_names_the_same_owner_and_epoch() {
        let a = |epoch, ms| Some(word('a', epoch, 2, ms));
        assert_eq!(lease(&[a(1, 1), a(3, 2), Some(word('b', 2, 2, 3))]), None);
        assert_eq!(lease(&[a(1, 1), a(3, 2), a(3, 3)]), Some(('a', 3, 2)));
        assert_eq!(lease(&[a(1, 1), Some(word('b', 1, 2, 2)), None]), None);
    }

    /// The URL may name some of them, and one may not have heard of all others.
    #[test]
    fn the_majority_is_that_of_all_arbiters() {
        let say = |others, ms| Some(word('a', 1, others, ms));
        assert_eq!(lease(&[say(0, 1), None, None]), None, "three are named");
        assert_eq!(lease(&[say(4, 1), say(0, 2)]), None, "one knows four others");
        assert_eq!(lease(&[say(2, 1), say(2, 2)]), Some(('a', 1, 1)));
        let mut more = of(&[say(4, 1), say(4, 2)]);
        more.add();
        more.identify(2, Some(2));
        more.hear(2, word('a', 1, 4, 3));
        assert_eq!(more.lease().map(|it| it.asked_at), Some(at(1)));
        assert_eq!(more.support_since(at(2)), Support { named: 2, needed: 3, of: 5 });
    }

    #[test]
    fn an_arbiter_that_has_forgotten_does_not_count() {
        let mut ownership = of(&[Some(word('b', 2, 2, 1)), Some(word('b', 2, 2, 2)), None]);
        ownership.hear(0, word('a', 1, 2, 3));
        assert_eq!((ownership.lease(), ownership.word(0)), (None, None));
        ownership.hear(2, word('a', 0, 2, 3));
        assert_eq!(ownership.lease(), None);
        ownership.hear(0, word('b', 2, 2, 4));
        assert_eq!(ownership.lease().map(|it| it.asked_at), Some(at(2)));
    }

    #[test]
    fn an_arbiter_under_two_names_counts_once() {
        let say = |ms| Some(word('a', 1, 2, ms));
        for (ids, asked_ms) in [
            ([Some(1), Some(1), Some(2)], Some(3)),
            ([Some(1), Some(1), None], Some(3)),
            // They may be one.
            ([Some(1), None, None], Some(3)),
            ([None, None, None], None),
            ([Some(7), Some(7), Some(7)], None),
        ] {
            let mut ownership = of(&[say(4), say(3), say(5)]);
            ids.into_iter().enumerate().for_each(|(which, id)| ownership.identify(which, id));
            let lease = ownership.lease().map(|it| it.asked_at);
            let expected = asked_ms.map(|_| at(4));
            assert_eq!(lease, expected, "{ids:?}");
        }
    }
}
