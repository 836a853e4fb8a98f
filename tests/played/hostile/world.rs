//! The world of one run: its time, its dice, and the connections to the [`Peer`].
//!
//! Time advances only where the library waits and nothing else happens. All data on a connection is judged
//! on its way ([`Judge`]).

use std::cell::RefCell;
use std::io;
use std::os::fd::RawFd;

use crate::judge::Judge;
use crate::memory;
use crate::peer::{Peer, Silent};
use crate::protocol::moment::Moment;
use crate::system::socket::Watched;

/// The descriptor of all wakers. The numbers of connections follow it.
pub(crate) const BELL: RawFd = 1000;
const FIRST: RawFd = BELL + 1;

/// The longest single wait, as in src/system/socket.rs.
const STEP_NS: i64 = 60_000_000_000;

/// The cost of a call's first wait, if it ends at once. Later waits cost more and more. So a caller that
/// allows no pause between its tries reaches the end of its time, although answers take no time here.
const TICK_NS: i64 = 1_000;

/// More waits than any call needs.
const WAITS_MAX: u32 = 20_000;

pub(crate) struct World {
    now: i64,
    dice: u64,
    waits: u32,
    pub(crate) rung: bool,
    pub(crate) connections: Vec<Connection>,
    /// Servers that ignore all connections that are made from now on.
    pub(crate) frozen: Vec<usize>,
    peer: Box<dyn Peer>,
}

/// One connection. The near end is the library's, the far end is the peer's.
pub(crate) struct Connection {
    /// The server at the far end.
    pub(crate) server: usize,
    /// When it is, or was, established.
    made_at: i64,
    /// The data that the peer will send, each with its time, and the data that can be received already.
    pub(crate) to_come: Vec<(i64, Vec<u8>)>,
    there: Vec<u8>,
    /// The peer sends nothing after `to_come`.
    pub(crate) ends: bool,
    /// The data that the client sent and the peer has not read.
    pub(crate) heard: Vec<u8>,
    pub(crate) judge: Judge,
    pub(crate) is_closed: bool,
    /// Sent data is only acknowledged: the far end does not read it.
    pub(crate) is_ignored: bool,
}

/// How much may be sent to a far end that does not read.
const ROOM: usize = 256 * 1024;

thread_local! {
    static WORLD: RefCell<World> = RefCell::new(World::new(Box::new(Silent)));
}

/// Begins a run.
pub(crate) fn begin(peer: impl Peer + 'static) {
    with(|world| *world = World::new(Box::new(peer)));
}

/// Ends the run: nothing of it stays in memory.
pub(crate) fn end() {
    begin(Silent);
}

pub(crate) fn with<T>(body: impl FnOnce(&mut World) -> T) -> T {
    memory::uncounted(|| WORLD.with_borrow_mut(body))
}

pub(crate) fn now() -> Moment {
    with(|world| Moment::from_nanos(world.now))
}

pub(crate) fn fd(connection: usize) -> RawFd {
    FIRST + RawFd::try_from(connection).expect("not so many")
}

/// Asks the peer for a connection to this place.
pub(crate) fn connect(place: &str) -> io::Result<usize> {
    with(|world| {
        let (server, delay_ms) =
            world.peer.accept(place).ok_or(io::ErrorKind::ConnectionRefused)?;
        world.connections.push(Connection {
            server,
            made_at: world.now.saturating_add(i64::from(delay_ms) * 1_000_000),
            to_come: Vec::new(),
            there: Vec::new(),
            ends: false,
            heard: Vec::new(),
            judge: Judge::default(),
            is_closed: false,
            is_ignored: world.frozen.contains(&server),
        });
        Ok(world.connections.len() - 1)
    })
}

impl World {
    fn new(peer: Box<dyn Peer>) -> Self {
        Self {
            now: 1_000_000_000_000,
            dice: 0x9E37_79B9_7F4A_7C15,
            waits: 0,
            rung: false,
            connections: Vec::new(),
            frozen: Vec::new(),
            peer,
        }
    }

    /// A random byte.
    pub(crate) fn roll(&mut self) -> u8 {
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 7;
        self.dice ^= self.dice << 17;
        (self.dice >> 32) as u8
    }

    pub(crate) fn pass_ms(&mut self, ms: i64) {
        self.now += ms * 1_000_000;
    }

    /// A call begins, and gets its full number of waits again.
    pub(crate) fn begin_call(&mut self) {
        self.waits = 0;
    }

    pub(crate) fn is_writable(&self, connection: usize) -> bool {
        let it = &self.connections[connection];
        it.made_at <= self.now && it.has_room()
    }

    pub(crate) fn send(&mut self, connection: usize, bytes: &[u8]) -> io::Result<usize> {
        let it = &mut self.connections[connection];
        let bytes = &bytes[..if it.has_room() { bytes.len() } else { 0 }];
        it.judge.hear(bytes);
        it.heard.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    pub(crate) fn receive(
        &mut self,
        connection: usize,
        room: &mut [u8],
    ) -> io::Result<Option<usize>> {
        self.serve();
        let it = &mut self.connections[connection];
        let length = it.there.len().min(room.len());
        if length == 0 {
            return Ok(it.has_ended().then_some(0));
        }
        room[..length].copy_from_slice(&it.there[..length]);
        it.there.drain(..length);
        it.judge.say(&room[..length]);
        Ok(Some(length))
    }

    pub(crate) fn close(&mut self, connection: usize) {
        // A connection of an earlier run may be closed late.
        if let Some(it) = self.connections.get_mut(connection) {
            it.is_closed = true;
        }
    }

    /// Waits until one of the descriptors is ready, or until then.
    pub(crate) fn wait(&mut self, watched: &mut [Watched], until: Moment) {
        self.waits += 1;
        assert!(self.waits < WAITS_MAX, "a call does not end");
        let until = until.as_nanos().min(self.now + STEP_NS);
        loop {
            self.serve();
            let mut is_any = false;
            for it in &mut *watched {
                it.revents = i16::from(self.is_ready(it));
                is_any |= it.revents != 0;
            }
            if is_any || self.now >= until {
                let waits = i64::from(self.waits);
                self.now += TICK_NS * (1 + waits * waits / 1_000);
                return;
            }
            let next = self.connections.iter().filter_map(|it| it.next_event(self.now)).min();
            self.now = next.map_or(until, |it| it.min(until));
        }
    }

    /// The current locks, with the connections that asked for them. A lock is left out if the server has
    /// denied having it.
    pub(crate) fn locked(&self) -> Vec<(usize, Vec<u8>)> {
        let mut locked = Vec::new();
        for (server, token) in self.peer.locked(self.now) {
            let asked = |it: &Connection| it.server == server && it.judge.may_have_locked(&token);
            let place = self.connections.iter().position(asked);
            locked.extend(place.map(|place| (place, token)));
        }
        locked
    }

    fn is_ready(&self, watched: &Watched) -> bool {
        if watched.fd == BELL {
            return self.rung;
        }
        let Ok(index) = usize::try_from(watched.fd - FIRST) else { return false };
        let it = &self.connections[index];
        let is_writable = watched.for_writing && it.made_at <= self.now && it.has_room();
        is_writable || !it.there.is_empty() || it.has_ended()
    }

    /// Lets the peer process the data that it was sent.
    pub(crate) fn serve(&mut self) {
        let now = self.now;
        let is_served = |it: &&mut Connection| !it.is_ignored && it.made_at <= now;
        // A client's request is executed, even if the client is no longer there to receive the answer.
        let is_left = |it: &Connection| !it.is_closed || !it.heard.is_empty();
        for it in self.connections.iter_mut().filter(is_served).filter(|it| is_left(it)) {
            self.peer.serve(it, now);
            // Whether or not anybody reads it.
            it.arrive(now);
        }
    }
}

impl Connection {
    fn arrive(&mut self, now: i64) {
        while self.to_come.first().is_some_and(|it| it.0 <= now) {
            self.there.append(&mut self.to_come.remove(0).1);
        }
    }

    fn has_room(&self) -> bool {
        !self.is_ignored || self.heard.len() < ROOM
    }

    /// Whether the client has received everything that the peer has sent so far.
    pub(crate) fn is_heard(&self) -> bool {
        self.to_come.is_empty() && self.there.is_empty()
    }

    /// Whether both ends are in agreement, as far as either can tell.
    pub(crate) fn is_well(&self) -> bool {
        !self.is_closed && !self.ends && !self.is_ignored && self.judge.end.is_none()
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ends && self.is_heard()
    }

    fn next_event(&self, now: i64) -> Option<i64> {
        let next = if self.made_at > now { self.made_at } else { self.to_come.first()?.0 };
        (!self.is_closed).then_some(next)
    }
}
