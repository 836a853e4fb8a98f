//! What the arbiters, the owners and two clients know.

use crate::rules::{Mistake, Start};

pub(crate) const ARBITERS: usize = 3;
pub(crate) const CLIENTS: usize = 2;
pub(crate) const OWNERS: usize = 2;
pub(crate) const PLAIN: usize = 2;
pub(crate) const EPOCHS: usize = 4;

/// In an even epoch, the first node is the owner. In an odd one, it is the second node.
pub(crate) type Epoch = u8;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct World {
    pub(crate) arbiters: [Arbiter; ARBITERS],
    /// For each epoch, the arbiters that have ever named it. A majority counts as all of them.
    pub(crate) named: [Set; EPOCHS],
    /// The greatest epoch to which an owner was promoted.
    pub(crate) promoted: Epoch,
    pub(crate) owners: [Owner; OWNERS],
    pub(crate) plain: [Keys; PLAIN],
    pub(crate) clients: [Client; CLIENTS],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Arbiter {
    pub(crate) epoch: Epoch,
}

/// A node that is an owner, or was one and does not know that another one was promoted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Owner {
    pub(crate) keys: Keys,
    /// The note that was written since the node was promoted.
    pub(crate) note: Option<Note>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Keys {
    pub(crate) lock: Option<Lock>,
    /// Whether the clock of the server is a tick ahead.
    pub(crate) has_drifted: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Lock {
    pub(crate) client: u8,
    pub(crate) left: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Note {
    /// 0 if notes have no epochs.
    pub(crate) epoch: Epoch,
    /// It is not counted further than to the age from which the owner votes.
    pub(crate) age: u8,
}

/// A client takes the lock, extends it and takes it again, as often as it likes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Client {
    pub(crate) round: Option<Round>,
    pub(crate) request: Option<Request>,
    /// How long it still holds the lock.
    pub(crate) holds: u8,
    /// Whether its clock is a tick behind.
    pub(crate) has_drifted: bool,
}

/// The answers of the arbiters that name one epoch. If a majority of them does, the round is a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Round {
    pub(crate) epoch: Epoch,
    /// A majority counts as all of them.
    pub(crate) answers: Set,
    pub(crate) age: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Request {
    pub(crate) age: u8,
    pub(crate) to_owner: ToOwner,
    /// The plain voters that have granted it.
    pub(crate) plain: Set,
}

/// What became of the request to the voter that is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum ToOwner {
    Sent {
        node: u8,
    },
    /// It was granted, and the note behind it was old enough. The client has not judged it yet.
    Granted {
        node: u8,
        note: Epoch,
    },
    Counted,
    Void,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Set(pub(crate) u8);

pub(crate) const ALL: Set = Set((1 << ARBITERS) - 1);

impl World {
    /// The first node has been the owner for a long time.
    pub(crate) fn new(start: &Start) -> Self {
        let keys = Keys { lock: None, has_drifted: false };
        let note = Some(Note { epoch: 0, age: start.age_of_vote() });
        let client = Client { round: None, request: None, holds: 0, has_drifted: false };
        let mut named = [Set::default(); EPOCHS];
        named[0] = ALL;
        Self {
            arbiters: [Arbiter { epoch: 0 }; ARBITERS],
            named,
            promoted: 0,
            owners: [Owner { keys, note }, Owner { keys, note: None }],
            plain: [keys; PLAIN],
            clients: [client; CLIENTS],
        }
    }

    /// Forgets what can no longer be of use.
    pub(crate) fn settle(&mut self, start: &Start) {
        for client in &mut self.clients {
            client.settle(start);
        }
    }

    pub(crate) fn has_two_holders(&self) -> bool {
        self.clients.iter().all(|it| it.holds > 0)
    }
}

/// The place of the node that is the owner in this epoch.
pub(crate) fn node_of(epoch: Epoch) -> usize {
    usize::from(epoch % 2)
}

impl Client {
    fn settle(&mut self, start: &Start) {
        if let Some(request) = self.request {
            let is_refused = request.to_owner == ToOwner::Void && !start.has_plain_voters;
            if request.has_quorum(start) || is_refused || request.age >= start.hold {
                self.request = None;
            }
        }
        let age = self.request.map_or(0, |it| it.age);
        self.round = self.round.filter(|it| it.age <= age + start.lead);
    }
}

impl Round {
    pub(crate) fn is_lease(&self) -> bool {
        self.answers == ALL
    }

    /// Whether its age grows with time.
    pub(crate) fn grows_old(&self, start: &Start) -> bool {
        self.is_lease() || !start.makes(Mistake::AgeFromTheAnswer)
    }
}

impl Request {
    pub(crate) fn has_quorum(&self, start: &Start) -> bool {
        let votes = self.plain.len() + u32::from(self.to_owner == ToOwner::Counted);
        votes >= if start.has_plain_voters { 2 } else { 1 }
    }
}

impl Set {
    pub(crate) fn has(self, place: usize) -> bool {
        self.0 & 1 << place != 0
    }

    pub(crate) fn with(self, place: usize) -> Self {
        Self(self.0 | 1 << place)
    }

    pub(crate) fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// The same set, or that of all arbiters if it is a majority.
    pub(crate) fn rounded(self, start: &Start) -> Self {
        if self.len() >= start.majority() { ALL } else { self }
    }

    pub(crate) fn swap(&mut self, one: usize, other: usize) {
        if self.has(one) != self.has(other) {
            self.0 ^= 1 << one | 1 << other;
        }
    }
}
