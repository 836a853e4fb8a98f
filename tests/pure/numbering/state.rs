//! What three servers and two clients know.

pub(crate) const SERVERS: usize = 3;
pub(crate) const CLIENTS: usize = 2;
pub(crate) const QUORUM: u32 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct World {
    pub(crate) servers: [Server; SERVERS],
    pub(crate) clients: [Client; CLIENTS],
    pub(crate) losses: u8,
    pub(crate) rewrites: u8,
    /// How many times a client has seen that a server has lost its numbers.
    pub(crate) seen: u8,
    /// The greatest token that a client has got.
    pub(crate) greatest: u8,
    /// What the clocks show, if they are never set back. Otherwise 0.
    pub(crate) now: u8,
    pub(crate) is_wrong: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Server {
    /// The client that has the lock here.
    pub(crate) lock: Option<u8>,
    pub(crate) note: Option<Note>,
    /// The greatest note that the clients have seen of this server.
    pub(crate) known: Note,
    /// The server is a promoted copy, and its note names another server process.
    pub(crate) is_copy: bool,
    pub(crate) hash: Hash,
    /// The client that restores the numbers.
    pub(crate) restorer: Restorer,
    /// Another client's restoring write, which is still on its way.
    pub(crate) late: Option<Write>,
    /// When the guard time is over, if clocks are never set back. Otherwise 0.
    pub(crate) waits_until: u8,
}

/// The guard's note. A later note is the greater one: that is the order of the generations. A rewrite of the note
/// keeps its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Note {
    pub(crate) life: u8,
    pub(crate) rewrites: u8,
}

/// The numbers of the server. One field belongs to the resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Hash {
    /// 0: none.
    pub(crate) life: u8,
    pub(crate) field: u8,
    pub(crate) base: u8,
    pub(crate) is_by_clock: bool,
    /// The name of the loss that a client has seen here. It stays until the numbers are restored. 0: none.
    pub(crate) seen: u8,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Restorer {
    /// The servers whose numbers it has read.
    pub(crate) heard: u8,
    pub(crate) number: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Write {
    /// The note that the server must still have.
    pub(crate) note: Note,
    /// The loss that it makes good.
    pub(crate) seen: u8,
    pub(crate) number: u8,
}

/// A client acquires the lock once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Client {
    pub(crate) stage: Stage,
    /// The greatest token that any client had when this one began.
    pub(crate) floor: u8,
    pub(crate) requests: [Request; SERVERS],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Stage {
    Idle,
    Asking,
    /// `raised` of the servers `quorum` have the number.
    Raising {
        number: u8,
        quorum: u8,
        raised: u8,
        is_by_clock: bool,
    },
    Holds {
        token: u8,
    },
    GaveUp,
}

/// The request to take the lock and draw a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Request {
    /// The server has not carried it out.
    Sent,
    Vote {
        number: u8,
        is_by_clock: bool,
    },
    /// It was carried out and is no vote, or no longer matters.
    Void,
}

impl World {
    pub(crate) fn new(now: u8, is_first_lost: bool) -> Self {
        let note = Note { life: 1, rewrites: 0 };
        let server = Server {
            lock: None,
            note: Some(note),
            known: note,
            is_copy: false,
            hash: Hash { life: note.life, ..Hash::default() },
            restorer: Restorer::default(),
            late: None,
            waits_until: 0,
        };
        let client = Client { stage: Stage::Idle, floor: 0, requests: [Request::Sent; SERVERS] };
        let mut servers = [server; SERVERS];
        if is_first_lost {
            let note = Note { life: 2, ..note };
            let hash = Hash { seen: 1, ..Hash::default() };
            let late = Some(Write { note, seen: hash.seen, number: 0 });
            servers[0] = Server { note: Some(note), known: note, hash, late, ..server };
        }
        Self {
            servers,
            clients: [client; CLIENTS],
            losses: 0,
            rewrites: 0,
            seen: u8::from(is_first_lost),
            greatest: 0,
            now,
            is_wrong: false,
        }
    }

    /// Whether a client may still get its lock by a vote of this server.
    pub(crate) fn has_open_vote(&self, place: usize) -> bool {
        self.clients.iter().any(|it| it.relies_on(place))
    }
}

impl Hash {
    /// The greatest number of all resources.
    pub(crate) fn greatest(self) -> u8 {
        self.field.max(self.base)
    }
}

impl Client {
    fn relies_on(&self, place: usize) -> bool {
        match self.stage {
            Stage::Asking => matches!(self.requests[place], Request::Vote { .. }),
            Stage::Raising { quorum, .. } => quorum & 1 << place != 0,
            _ => false,
        }
    }

    /// Whether it may still get its lock.
    pub(crate) fn is_active(&self) -> bool {
        matches!(self.stage, Stage::Asking | Stage::Raising { .. })
    }

    /// Forgets the votes, which no longer matter.
    pub(crate) fn enter(&mut self, stage: Stage) {
        self.stage = stage;
        for request in &mut self.requests {
            if *request != Request::Sent {
                *request = Request::Void;
            }
        }
    }
}
