//! The round for a permit of a semaphore: which slot was taken, or which one can still be taken.
//!
//! Every slot is an ordinary lock, so a permit is taken when a quorum has one slot with our token. Counting the
//! free slots server by server would not be enough: with two permits on three servers, three clients could each
//! be given a majority.

use super::ballot::{Ballot, Vote};
use super::tally::Outcome;
use crate::protocol::moment::Moment;

/// Slots of a semaphore: one bit each.
pub type SlotBits = [u64; 4];

/// One round over all servers.
#[derive(Clone, Debug)]
pub struct Permits {
    /// How many slots there are.
    of: u16,
    /// The slot that comes first if several are equally good.
    first: u16,
    /// From this moment on it is too late to take a permit.
    valid_until: Moment,
    /// Yes: the server has given us a slot.
    ballot: Ballot,
    /// What each server has said, also after the round was decided: the slot that it gave us, and the slots
    /// that are taken there.
    said: Vec<(usize, Option<u16>, SlotBits)>,
    outcome: Option<Outcome>,
    /// How many servers had answered when the round was decided.
    counted: usize,
}

impl Permits {
    /// A round in which no server has answered yet, for a lock that is valid until then.
    pub fn new(of: u16, first: u16, valid_until: Moment, servers: usize) -> Self {
        let (ballot, said) = (Ballot::new(servers), Vec::new());
        Self { of, first, valid_until, ballot, said, outcome: None, counted: 0 }
    }

    /// Counts a server that has given us this slot, or none. These slots are taken there. Returns whether the
    /// round is decided.
    pub fn handle_slots(
        &mut self,
        server: usize,
        got: Option<u16>,
        taken: SlotBits,
        now: Moment,
    ) -> bool {
        self.said.push((server, got, taken));
        self.cast(server, if got.is_some() { Vote::Yes } else { Vote::No }, now)
    }

    /// Counts a server that gave no usable answer. Returns whether the round is decided.
    pub fn handle_silence(&mut self, server: usize, now: Moment) -> bool {
        self.cast(server, Vote::Unusable, now)
    }

    /// How the round ended, if it has. It is also refused if another slot can still be taken: see
    /// [`Self::next`].
    pub fn outcome(&self) -> Option<Outcome> {
        self.outcome
    }

    /// The slot that most servers have given us, and these servers: one bit for each.
    pub fn leader(&self) -> Option<(u16, u64)> {
        let best = self.best(|slot| (self.ours(slot), 0), 1)?;
        let has = |&&(_, got, _): &&(usize, Option<u16>, SlotBits)| got == Some(best);
        Some((best, self.counted().filter(has).fold(0, |servers, it| servers | 1 << it.0)))
    }

    /// The slot that can still be taken, if there is one, by moving there on servers that have given us another
    /// slot or none. The others are not asked to move, because they may still give us any slot.
    pub fn next(&self) -> Option<u16> {
        if self.outcome != Some(Outcome::Refused) {
            return None;
        }
        let reach = |slot| {
            let reach = self.ours(slot) + self.free(slot);
            if reach < self.ballot.quorum() { (0, 0) } else { (self.ours(slot) + 1, reach) }
        };
        self.best(reach, 1)
    }

    /// The slot that each server has given us, for all servers that have answered, even if the answer did not
    /// count.
    pub fn given(&self) -> impl Iterator<Item = (usize, Option<u16>)> {
        self.said.iter().map(|&(server, got, _)| (server, got))
    }

    /// How many slots are free on a server that has answered.
    pub fn free_on(&self, server: usize) -> Option<u32> {
        let said = self.said.iter().find(|it| it.0 == server)?;
        let taken: u32 = said.2.iter().map(|bits| bits.count_ones()).sum();
        Some(u32::from(self.of).saturating_sub(taken))
    }

    /// How many slots there are.
    pub fn of(&self) -> u16 {
        self.of
    }

    /// The votes so far. Yes: the server has given us a slot. No: it has given us none.
    pub fn ballot(&self) -> &Ballot {
        &self.ballot
    }

    fn cast(&mut self, server: usize, vote: Vote, now: Moment) -> bool {
        if self.outcome.is_none() {
            self.ballot.cast(server, vote);
            self.counted = self.said.len();
            self.outcome = self.decide(now);
        }
        self.outcome.is_some()
    }

    fn decide(&self, now: Moment) -> Option<Outcome> {
        let (quorum, pending) = (self.ballot.quorum(), self.ballot.pending());
        let most = self.leader().map_or(0, |(slot, _)| self.ours(slot));
        if most >= quorum {
            return Some(if now < self.valid_until { Outcome::Reached } else { Outcome::TooLate });
        }
        if most + pending >= quorum {
            return None;
        }
        // No slot is on a quorum, because of other clients or because too few servers answered. See
        // `Tally::out_of_reach`.
        let (no, unusable) = (self.ballot.no(), self.ballot.unusable());
        let tolerance = self.ballot.tolerance();
        if unusable > tolerance {
            Some(Outcome::Unreachable)
        } else if no > tolerance || unusable + pending <= tolerance {
            Some(Outcome::Refused)
        } else {
            None
        }
    }

    fn counted(&self) -> impl Iterator<Item = &(usize, Option<u16>, SlotBits)> {
        self.said.iter().take(self.counted)
    }

    fn ours(&self, slot: u16) -> u32 {
        count(self.counted().filter(|it| it.1 == Some(slot)))
    }

    fn free(&self, slot: u16) -> u32 {
        count(self.counted().filter(|it| it.1 != Some(slot) && !contains(&it.2, slot)))
    }

    /// The slot with the greatest worth, which must be at least `least`. Of equal slots, the first from `first`
    /// on.
    fn best(&self, worth: impl Fn(u16) -> (u32, u32), least: u32) -> Option<u16> {
        let mut best: Option<((u32, u32), u16)> = None;
        for slot in (self.first..self.of).chain(0..self.first.min(self.of)) {
            let worth = worth(slot);
            if worth.0 >= least && best.is_none_or(|(most, _)| worth > most) {
                best = Some((worth, slot));
            }
        }
        best.map(|(_, slot)| slot)
    }
}

fn contains(slots: &SlotBits, slot: u16) -> bool {
    slots[usize::from(slot) / 64] & (1 << (slot % 64)) != 0
}

fn count<T>(items: impl Iterator<Item = T>) -> u32 {
    u32::try_from(items.count()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const END: Moment = Moment::from_nanos(1_000);
    const BEFORE: Moment = Moment::from_nanos(999);

    fn bits(slots: impl IntoIterator<Item = u16>) -> SlotBits {
        let mut bits = SlotBits::default();
        slots.into_iter().for_each(|slot| bits[usize::from(slot) / 64] |= 1 << (slot % 64));
        bits
    }

    /// What a server says: the slot that it gave us, and the slots that others have. None if the server is
    /// silent.
    type Said<'a> = Option<(Option<u16>, &'a [u16])>;

    fn play(of: u16, servers: usize, said: &[Said<'_>]) -> Permits {
        let mut permits = Permits::new(of, 0, END, servers);
        assert_eq!(permits.of(), of);
        for (server, said) in said.iter().enumerate() {
            match *said {
                Some((got, others)) => {
                    let taken = bits(others.iter().copied().chain(got));
                    permits.handle_slots(server, got, taken, BEFORE);
                }
                None => {
                    permits.handle_silence(server, BEFORE);
                }
            }
        }
        permits
    }

    fn outcome(of: u16, servers: usize, said: &[Said<'_>]) -> (Option<Outcome>, Option<u16>) {
        let permits = play(of, servers, said);
        (permits.outcome(), permits.next())
    }

    const REFUSED: Option<Outcome> = Some(Outcome::Refused);

    #[test]
    fn one_slot_on_a_quorum_is_a_permit() {
        let permits = play(3, 3, &[Some((Some(1), &[0])), Some((Some(1), &[]))]);
        assert_eq!(permits.outcome(), Some(Outcome::Reached));
        assert_eq!(permits.leader(), Some((1, 0b11)));
        let mut late = Permits::new(3, 0, END, 1);
        assert!(late.handle_slots(0, Some(2), bits([2]), END));
        assert_eq!(late.outcome(), Some(Outcome::TooLate));
    }

    #[test]
    fn different_slots_are_no_permit_but_one_can_become_it() {
        // Each server has given another slot, and on each the other slot is free.
        let (first, second) = (Some((Some(0), &[][..])), Some((Some(1), &[][..])));
        assert_eq!(outcome(2, 3, &[first, second]), (None, None));
        assert_eq!(outcome(2, 3, &[first, second, first]).0, Some(Outcome::Reached));
        // The third server has no free slot. The first slot is as good as the second, and comes first.
        assert_eq!(outcome(2, 3, &[first, second, Some((None, &[0, 1]))]), (REFUSED, Some(0)));
        // Another client has the first slot on the second server.
        let other = Some((Some(1), &[0][..]));
        assert_eq!(outcome(2, 3, &[first, other, Some((None, &[0, 1]))]), (REFUSED, Some(1)));
        let both = [Some((Some(0), &[1][..])), other, Some((None, &[0, 1][..]))];
        assert_eq!(outcome(2, 3, &both), (REFUSED, None));
    }

    #[test]
    fn a_move_goes_to_the_most_granted_slot() {
        let said = [Some((Some(0), &[][..])), Some((Some(3), &[])), Some((Some(3), &[]))];
        let rest = [Some((Some(1), &[][..])), Some((Some(2), &[][..]))];
        let all: Vec<Said<'_>> = said.into_iter().chain(rest).collect();
        assert_eq!(outcome(4, 5, &all), (REFUSED, Some(3)));
        // That slot cannot be taken, because it is taken on the other servers.
        let blocked =
            [Some((Some(1), &[3][..])), Some((Some(2), &[3][..])), Some((Some(1), &[3][..]))];
        let all: Vec<Said<'_>> = said[1..].iter().copied().chain(blocked).collect();
        assert_eq!(outcome(4, 5, &all), (REFUSED, Some(1)));
    }

    /// Slot 70 is taken on all servers but one, and slot 6, which has the same bit in another word, is free.
    #[test]
    fn slots_beyond_64_are_distinct() {
        let others: Vec<u16> = (0..100).filter(|it| ![6, 70].contains(it)).collect();
        let without_6: Vec<u16> = others.iter().copied().chain([70]).collect();
        let (got_70, none) = (Some((Some(70), &others[..])), Some((None, &without_6[..])));
        let permits = play(100, 3, &[got_70, none, none]);
        assert!(permits.free(6) > 0 && permits.free(70) == 0);
    }

    #[test]
    fn full_servers_refuse_and_silent_ones_are_unreachable() {
        let full = Some((None, &[0, 1][..]));
        assert_eq!(outcome(2, 3, &[full, full]), (REFUSED, None));
        assert_eq!(outcome(2, 3, &[None, None]), (Some(Outcome::Unreachable), None));
        assert_eq!(outcome(2, 3, &[full, None]), (None, None));
        assert_eq!(outcome(2, 3, &[full, None, full]), (REFUSED, None));
        assert_eq!(outcome(2, 3, &[full, None, None]), (Some(Outcome::Unreachable), None));
        // Half of an even number of servers is enough to refuse it.
        assert_eq!(outcome(2, 4, &[full, full]), (REFUSED, None));
    }

    #[test]
    fn free_slots_are_counted_per_server() {
        let permits = play(3, 3, &[Some((None, &[0, 1, 2])), None, Some((None, &[1]))]);
        assert_eq!([0, 1, 2].map(|it| permits.free_on(it)), [Some(0), None, Some(2)]);
    }

    #[test]
    fn the_rotation_decides_between_equal_slots() {
        for first in 0..3 {
            let mut permits = Permits::new(3, first, END, 3);
            for slot in 0..3 {
                permits.handle_slots(usize::from(slot), Some(slot), bits([slot]), BEFORE);
            }
            assert_eq!(permits.next(), Some(first));
        }
    }

    /// Whatever three servers say of two slots, and in whatever order.
    #[test]
    fn every_round_ends_and_a_permit_needs_a_quorum() {
        let mut words: Vec<Said<'_>> = vec![None];
        for others in [&[][..], &[0], &[1], &[0, 1]] {
            words.push(Some((None, others)));
            let free = (0..2).filter(|slot| !others.contains(slot));
            words.extend(free.map(|slot| Some((Some(slot), others))));
        }
        for a in &words {
            for b in &words {
                for c in &words {
                    let permits = play(2, 3, &[*a, *b, *c]);
                    let outcome = permits.outcome().expect("all have answered");
                    let has = |slot| permits.given().filter(|it| it.1 == Some(slot)).count() >= 2;
                    assert_eq!(outcome == Outcome::Reached, has(0) || has(1), "{a:?} {b:?} {c:?}");
                    if let Some(slot) = permits.next() {
                        let can = |said: &&Said<'_>| said.is_some_and(|it| !it.1.contains(&slot));
                        let can = [a, b, c].into_iter().copied().filter(|it| can(&it)).count();
                        assert!(can >= 2, "{slot}: {a:?} {b:?} {c:?}");
                    }
                }
            }
        }
    }
}
