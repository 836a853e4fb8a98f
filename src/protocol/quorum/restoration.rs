//! How the numbers of a server that has lost them are restored from the other servers.
//!
//! A fencing token is on a quorum of servers, Q of N. If one of them has lost it, Q - 1 of the other N - 1 servers still
//! have it. So of any N - Q + 1 other servers one has it, if none of those has lost anything itself.

use super::ballot::{Ballot, Vote};

/// What a server's numbers are worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It has all numbers that it ever drew.
    Whole,
    /// They were restored by its clock, because too few servers could be read.
    ByClock,
    /// It has lost them. Attempts may still be under way for which it drew a number.
    Lost,
    /// It has lost them, and there is no such attempt any more. If this has been so for a while, its clock may stand for
    /// servers that cannot be read.
    ToRestore { may_go_by_clock: bool },
}

/// What is known of all servers.
#[derive(Clone, Debug)]
pub struct Restoring {
    ballot: Ballot,
    states: Vec<(usize, State)>,
    greatest: i64,
}

/// From where a server goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Base {
    /// The greatest number that was read.
    pub number: i64,
    /// Whether that is not enough, so that the clock must stand for what could not be read.
    pub needs_clock: bool,
    /// Whether the server must be restored again when more can be read. Until then no other server may be restored
    /// from it.
    pub is_by_clock: bool,
}

impl Restoring {
    /// Nothing is known yet.
    pub fn new(servers: usize) -> Self {
        Self { ballot: Ballot::new(servers), states: Vec::new(), greatest: 0 }
    }

    /// A server has numbers of this worth, up to this one.
    pub fn handle_numbers(&mut self, server: usize, state: State, greatest: i64) {
        self.ballot.cast(server, Vote::Yes);
        self.states.push((server, state));
        self.greatest = self.greatest.max(greatest);
    }

    /// A server gave no usable answer.
    pub fn handle_silence(&mut self, server: usize) {
        self.ballot.cast(server, Vote::Unusable);
    }

    /// From where this server goes on, if it can be restored, or restored better than it was.
    pub fn base_of(&self, server: usize) -> Option<Base> {
        let may_go_by_clock = match self.states.iter().find(|it| it.0 == server)?.1 {
            State::ToRestore { may_go_by_clock } => may_go_by_clock,
            State::ByClock => false,
            State::Whole | State::Lost => return None,
        };
        let others = self.states.iter().filter(|it| it.0 != server && it.1 == State::Whole).count();
        let is_enough = others > self.ballot.tolerance() as usize;
        // If every server was read, nothing more will ever be known.
        let is_all = self.ballot.yes() == self.ballot.servers();
        let is_by_clock = !is_enough && !is_all;
        let base = Base { number: self.greatest, needs_clock: !is_enough, is_by_clock };
        (may_go_by_clock || !is_by_clock).then_some(base)
    }

    /// Which servers have answered.
    pub fn ballot(&self) -> &Ballot {
        &self.ballot
    }
}

#[cfg(test)]
mod tests {
    use super::State::{ByClock, Lost, ToRestore, Whole};
    use super::*;

    /// From where the first server goes on. A server that is left out is silent.
    fn base(states: &[Option<State>]) -> Option<(i64, bool, bool)> {
        let mut restoring = Restoring::new(states.len());
        for (server, state) in states.iter().enumerate() {
            match state {
                Some(state) => restoring.handle_numbers(server, *state, 7 + server as i64),
                None => restoring.handle_silence(server),
            }
        }
        assert_eq!(restoring.ballot().pending(), 0);
        restoring.base_of(0).map(|it| (it.number, it.needs_clock, it.is_by_clock))
    }

    const WHOLE: Option<State> = Some(Whole);
    const LOST: Option<State> = Some(Lost);
    const DUE: Option<State> = Some(ToRestore { may_go_by_clock: false });
    const OVERDUE: Option<State> = Some(ToRestore { may_go_by_clock: true });
    const BY_CLOCK: Option<State> = Some(ByClock);

    #[test]
    fn a_restore_reads_enough_others_for_every_quorum() {
        for state in [DUE, OVERDUE, BY_CLOCK] {
            assert_eq!(base(&[state, WHOLE, WHOLE]), Some((9, false, false)));
            assert_eq!(base(&[state, WHOLE, WHOLE, WHOLE, None]), Some((10, false, false)));
            assert_eq!(base(&[state, WHOLE]), Some((8, false, false)));
        }
        // Four servers have quorums of three, so two others are enough.
        assert_eq!(base(&[DUE, WHOLE, WHOLE, None]), Some((9, false, false)));
    }

    #[test]
    fn the_clock_replaces_unreadable_counters_and_is_marked() {
        for states in [
            [OVERDUE, WHOLE, None],
            [OVERDUE, None, None],
            // Those were restored by the clock themselves.
            [OVERDUE, BY_CLOCK, None],
        ] {
            assert_eq!(base(&states).map(|it| (it.1, it.2)), Some((true, true)), "{states:?}");
        }
        assert_eq!(base(&[OVERDUE, WHOLE, WHOLE, None, None]), Some((9, true, true)));
        assert_eq!(base(&[OVERDUE, WHOLE, WHOLE, BY_CLOCK, None]), Some((10, true, true)));
        // A server that is only slow will be read soon.
        assert_eq!(base(&[DUE, WHOLE, None]), None);
        // It waits until more can be read.
        assert_eq!(base(&[BY_CLOCK, WHOLE, None]), None);
    }

    #[test]
    fn when_all_servers_were_read_nothing_is_missing() {
        for states in [
            &[DUE][..],
            &[DUE, DUE],
            &[DUE, WHOLE, DUE],
            &[DUE, WHOLE, LOST],
            &[DUE, BY_CLOCK, BY_CLOCK],
            &[BY_CLOCK, BY_CLOCK, WHOLE],
        ] {
            let greatest = 6 + states.len() as i64;
            assert_eq!(base(states), Some((greatest, true, false)), "{states:?}");
        }
    }

    #[test]
    fn whole_or_active_counters_are_left_alone() {
        assert_eq!(base(&[WHOLE, WHOLE, WHOLE]), None);
        assert_eq!(base(&[LOST, WHOLE, WHOLE]), None);
        assert_eq!(base(&[None, WHOLE, WHOLE]), None);
    }
}
