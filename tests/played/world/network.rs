//! Connections: two streams of bytes, in order and in pieces, with delays.

use std::collections::VecDeque;
use std::io;

use crate::schedules::plants::Plant;
use crate::schedules::schedule::Cut;
use crate::schedules::watch::Sight;
use crate::world::dice::Dice;
use crate::world::script::{Telling, Trip};
use crate::world::store::Session;
use crate::world::{Event, World};

/// Servers listen on ports from this one on.
pub(crate) const FIRST_PORT: u16 = 7001;

/// The numbers of bells begin here, so that they differ from those of connections.
const FIRST_BELL: usize = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Way {
    /// To the server.
    There,
    Back,
}

/// The path between one client and one server.
pub(crate) struct Wire {
    dice: Dice,
    /// Until when nothing arrives, there and back.
    pub(crate) stalled_until: [i64; 2],
    /// What happens to the next requests, if a scenario determines it.
    pub(crate) trips: VecDeque<Trip>,
    /// The same for messages that the server sends by itself.
    pub(crate) tellings: VecDeque<Telling>,
}

/// Wakes a client's caller that watches.
pub(crate) struct Bell {
    client: usize,
    has_rung: bool,
}

pub(crate) struct Connection {
    pub(crate) client: usize,
    /// The manager of the client that made it.
    pub(crate) manager: usize,
    pub(crate) server: usize,
    phase: Phase,
    pipes: [Pipe; 2],
    /// The client has closed it. Data that it has sent is still on its way.
    pub(crate) is_closed: bool,
    /// The data that the client has not read, and the end that comes after it.
    inbox: Vec<u8>,
    read: usize,
    end: Option<End>,
    /// Whether the server has accepted it.
    pub(crate) is_served: bool,
    /// The data that the server has not read, and whether the end comes after it.
    pub(crate) received: Vec<u8>,
    pub(crate) has_hung_up: bool,
    /// The server has sent its last data.
    has_said_all: bool,
    /// It has been used for more than a handshake.
    pub(crate) has_worked: bool,
    pub(crate) session: Session,
    /// The answers to acquires that are under way: each is complete after this number of bytes.
    answers: VecDeque<(usize, u64)>,
    /// The last acquire that was executed and whose answer is not complete yet.
    pub(crate) acquiring: Option<u64>,
    sent_back: usize,
    arrived_back: usize,
    /// Where the last `NOSCRIPT` ends in what the server has sent.
    pub(crate) text_wanted: usize,
    /// The requests in the data that the server has not read: their lengths, and what happens to each.
    pub(crate) trips: VecDeque<(usize, Trip)>,
    pub(crate) sight: Sight,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Connecting,
    Up,
    Refused,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Closed,
    Reset,
}

#[derive(Default)]
struct Pipe {
    under_way: VecDeque<Load>,
    /// How many bytes they are, and when the last will arrive.
    bytes: usize,
    last_at: i64,
}

enum Load {
    Bytes(Vec<u8>),
    Request(Vec<u8>, Trip),
    End(End),
}

impl Load {
    fn bytes(&self) -> usize {
        match self {
            Self::Bytes(bytes) | Self::Request(bytes, _) => bytes.len(),
            Self::End(_) => 0,
        }
    }
}

impl Wire {
    pub(crate) fn new(seed: u64, index: usize) -> Self {
        let (trips, tellings) = Default::default();
        Self { dice: Dice::of(seed, 2, index), stalled_until: [0; 2], trips, tellings }
    }
}

impl Connection {
    /// Whether it works, as far as the client can know, and all sent data has been read.
    pub(crate) fn is_idle(&self) -> bool {
        let works = self.is_served && self.has_worked && !self.is_closed && self.end.is_none();
        works && self.pipes[0].bytes == 0 && self.received.is_empty()
    }

    /// How many bytes the server has sent.
    pub(crate) fn sent_back(&self) -> usize {
        self.sent_back
    }

    /// Whether the client cannot know yet that it must send a script again, with its text.
    pub(crate) fn hides_no_script(&self) -> bool {
        let unread = self.inbox.len() - self.read;
        self.arrived_back - unread < self.text_wanted
    }

    /// Whether the client has it, and has not closed it.
    pub(crate) fn is_usable(&self) -> bool {
        self.phase == Phase::Up && !self.is_closed
    }
}

impl World {
    /// Whether the handshake of the last connection from this manager to this server is still under way.
    pub(crate) fn is_greeted(&self, (client, manager): (usize, usize), server: usize) -> bool {
        let is_it =
            |it: &&Connection| (it.client, it.manager, it.server) == (client, manager, server);
        self.connections.iter().rfind(is_it).is_some_and(|it| {
            let is_whole = it.sent_back > 0 && it.arrived_back == it.sent_back;
            !it.is_closed && it.end.is_none() && !it.has_worked && !is_whole
        })
    }

    pub(crate) fn wire(&mut self, client: usize, server: usize) -> &mut Wire {
        &mut self.wires[client * self.servers.len() + server]
    }

    /// How long the next piece takes in this direction.
    fn delay(&mut self, client: usize, server: usize, way: Way) -> i64 {
        if let Some(script) = &self.script {
            return if way == Way::There { script.usual.there } else { script.usual.back };
        }
        let wire = client * self.servers.len() + server;
        let (weather, dice) = (&self.weather, &mut self.wires[wire].dice);
        let mut delay = dice.between(weather.least, weather.most);
        if weather.slow_in > 0 && dice.once_in(weather.slow_in) {
            delay += dice.between(0, weather.slow);
        }
        delay
    }

    /// Begins to connect. Returns the number of the socket.
    pub(crate) fn connect(&mut self, port: u16) -> usize {
        let client = self.current_client().unwrap_or(0);
        let server = usize::from(port - FIRST_PORT);
        let (connection, manager) = (self.connections.len(), self.current_manager());
        let is_gone = self.clients[client].is_gone;
        self.digest.actions.add(
            self.now,
            &[client as u64, manager as u64, server as u64],
            b"opens",
        );
        self.connections.push(Connection {
            client,
            manager,
            server,
            phase: if is_gone { Phase::Refused } else { Phase::Connecting },
            pipes: Default::default(),
            is_closed: is_gone,
            inbox: Vec::new(),
            read: 0,
            end: None,
            is_served: false,
            received: Vec::new(),
            has_hung_up: false,
            has_said_all: false,
            has_worked: false,
            session: Session { connection, ..Session::default() },
            answers: VecDeque::new(),
            acquiring: None,
            sent_back: 0,
            arrived_back: 0,
            text_wanted: 0,
            trips: VecDeque::new(),
            sight: Sight::default(),
        });
        if !is_gone {
            let at = self.now
                + self.delay(client, server, Way::There)
                + self.delay(client, server, Way::Back);
            self.at(at, Event::Connected { connection });
        }
        connection
    }

    /// The server, or its system, has answered the connection request, unless nothing gets through.
    pub(crate) fn handle_connected(&mut self, connection: usize) {
        let Connection { client, server, is_closed, .. } = self.connections[connection];
        let stalled_until = self.wire(client, server).stalled_until;
        let until = stalled_until[0].max(stalled_until[1]);
        if is_closed || self.connections[connection].phase != Phase::Connecting {
            return;
        }
        if until > self.now {
            return self.at(until, Event::Connected { connection });
        }
        let is_up = self.servers[server].is_up();
        let it = &mut self.connections[connection];
        it.phase = if is_up { Phase::Up } else { Phase::Refused };
        it.is_served = is_up;
        self.say(|_| {
            let words = if is_up { "connected to" } else { "refused by" };
            format!("client {client} is {words} server {server} (#{connection})")
        });
        self.notice(client, connection);
    }

    /// Data that was held up gets through at once.
    pub(crate) fn end_stalls(&mut self) {
        for connection in 0..self.connections.len() {
            let Connection { client, server, .. } = self.connections[connection];
            let stalled_until = self.wire(client, server).stalled_until;
            if stalled_until.iter().all(|it| *it <= self.now) {
                continue;
            }
            let at = self.now + self.delay(client, server, Way::Back);
            self.at(at, Event::Connected { connection });
            for way in [Way::There, Way::Back] {
                for _ in 0..self.connections[connection].pipes[way as usize].under_way.len() {
                    self.at(at, Event::Deliver { connection, way });
                }
            }
        }
        self.wires.iter_mut().for_each(|it| it.stalled_until = [0; 2]);
    }

    pub(crate) fn has_connected(&self, socket: usize) -> io::Result<()> {
        match self.connections[socket].phase {
            Phase::Refused => Err(io::ErrorKind::ConnectionRefused.into()),
            _ => Ok(()),
        }
    }

    /// Accepts as many bytes as there is room for.
    pub(crate) fn send(&mut self, socket: usize, bytes: &[u8]) -> io::Result<usize> {
        let it = &self.connections[socket];
        if it.is_closed || it.end == Some(End::Reset) {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        let room = self.weather.room.saturating_sub(it.pipes[0].bytes);
        let taken = bytes.len().min(room);
        let now = self.now;
        self.connections[socket].sight.note_offer(bytes.len(), taken, now);
        self.digest.actions.add(now, &[socket as u64], &bytes[..taken]);
        if taken > 0 && self.is_broken(Plant::Garbles) {
            let garbled: Vec<u8> = bytes[..taken].iter().map(u8::to_ascii_lowercase).collect();
            self.transmit(socket, Way::There, &garbled);
        } else if taken > 0 && self.script.is_some() {
            self.transmit_requests(socket, &bytes[..taken]);
        } else if taken > 0 {
            self.transmit(socket, Way::There, &bytes[..taken]);
        }
        Ok(taken)
    }

    /// Sends bytes, perhaps in pieces.
    pub(crate) fn transmit(&mut self, connection: usize, way: Way, bytes: &[u8]) {
        let (client, server) =
            (self.connections[connection].client, self.connections[connection].server);
        if way == Way::Back {
            self.connections[connection].sent_back += bytes.len();
        }
        let split_in = self.weather.split_in;
        let dice = &mut self.wire(client, server).dice;
        let mut rest = bytes;
        if split_in > 0 && bytes.len() > 1 && dice.once_in(split_in) {
            let (first, second) = bytes.split_at(1 + dice.below(bytes.len() - 1));
            self.load(connection, way, Load::Bytes(first.to_vec()));
            rest = second;
        }
        self.load(connection, way, Load::Bytes(rest.to_vec()));
    }

    pub(crate) fn transmit_end(&mut self, connection: usize, way: Way, end: End) {
        let has_said_all = &mut self.connections[connection].has_said_all;
        if way == Way::There || !std::mem::replace(has_said_all, true) {
            self.load(connection, way, Load::End(end));
        }
    }

    fn load(&mut self, connection: usize, way: Way, load: Load) {
        let it = &self.connections[connection];
        let delay = self.delay(it.client, it.server, way);
        self.load_for(connection, way, load, delay);
    }

    /// Sends a request to the server, in one piece.
    pub(crate) fn load_request(&mut self, connection: usize, bytes: &[u8], trip: Trip) {
        let load = Load::Request(bytes.to_vec(), trip);
        self.load_for(connection, Way::There, load, trip.there);
    }

    /// Sends a reply back, with this delay.
    pub(crate) fn load_reply(&mut self, connection: usize, bytes: Vec<u8>, delay: i64) {
        self.connections[connection].sent_back += bytes.len();
        self.load_for(connection, Way::Back, Load::Bytes(bytes), delay);
    }

    fn load_for(&mut self, connection: usize, way: Way, load: Load, delay: i64) {
        let at = self.now.saturating_add(delay);
        let pipe = &mut self.connections[connection].pipes[way as usize];
        pipe.last_at = pipe.last_at.max(at);
        pipe.bytes += load.bytes();
        pipe.under_way.push_back(load);
        let at = pipe.last_at;
        self.at(at, Event::Deliver { connection, way });
    }

    /// The next piece arrives, unless nothing gets through.
    pub(crate) fn deliver(&mut self, connection: usize, way: Way) {
        let Connection { client, server, .. } = self.connections[connection];
        let until = self.wire(client, server).stalled_until[way as usize];
        if until > self.now {
            return self.at(until, Event::Deliver { connection, way });
        }
        let pipe = &mut self.connections[connection].pipes[way as usize];
        let Some(load) = pipe.under_way.pop_front() else { return };
        pipe.bytes -= load.bytes();
        match way {
            Way::There => self.arrive_there(connection, load),
            Way::Back => self.arrive_back(connection, load),
        }
        // There may be room again.
        self.notice(client, connection);
    }

    fn arrive_there(&mut self, connection: usize, load: Load) {
        let it = &mut self.connections[connection];
        if !it.is_served {
            // No process has this connection, and the system reports that.
            return self.transmit_end(connection, Way::Back, End::Reset);
        }
        match load {
            Load::Bytes(bytes) => it.received.extend(bytes),
            Load::Request(bytes, trip) => {
                it.trips.push_back((bytes.len(), trip));
                it.received.extend(bytes);
            }
            Load::End(_) => it.has_hung_up = true,
        }
        self.serve(connection);
    }

    fn arrive_back(&mut self, connection: usize, load: Load) {
        let it = &mut self.connections[connection];
        match load {
            _ if it.is_closed || it.end.is_some() => {}
            Load::Bytes(bytes) | Load::Request(bytes, _) => {
                if it.read == it.inbox.len() {
                    it.inbox.clear();
                    it.read = 0;
                }
                it.arrived_back += bytes.len();
                it.inbox.extend(bytes);
                self.hear(connection);
            }
            Load::End(end) => it.end = Some(end),
        }
    }

    /// The answer to an acquire will be complete after this many more bytes.
    pub(crate) fn expect_answer(&mut self, connection: usize, bytes: usize, tag: u64) {
        let it = &mut self.connections[connection];
        it.answers.push_back((it.sent_back + bytes, tag));
    }

    /// Answers may be complete now.
    fn hear(&mut self, connection: usize) {
        let it = &mut self.connections[connection];
        while let Some(&(bytes, tag)) = it.answers.front() {
            if bytes > it.arrived_back {
                return;
            }
            it.answers.pop_front();
            if let Some(token) = self.records.find(tag) {
                token.heard_at[it.server] = self.now;
            }
        }
    }

    pub(crate) fn receive(&mut self, socket: usize, room: &mut [u8]) -> io::Result<Option<usize>> {
        let it = &mut self.connections[socket];
        let unread = &it.inbox[it.read..];
        if !unread.is_empty() && !it.is_closed {
            let taken = unread.len().min(room.len());
            room[..taken].copy_from_slice(&unread[..taken]);
            it.read += taken;
            self.note_read(socket, taken);
            return Ok(Some(taken));
        }
        match it.end {
            _ if it.is_closed => Err(io::ErrorKind::ConnectionReset.into()),
            Some(End::Closed) => Ok(Some(0)),
            Some(End::Reset) => Err(io::ErrorKind::ConnectionReset.into()),
            None => Ok(None),
        }
    }

    /// The client closes its end.
    pub(crate) fn close(&mut self, socket: usize) {
        let Some(it) = self.connections.get_mut(socket) else { return };
        if std::mem::replace(&mut it.is_closed, true) || it.phase != Phase::Up {
            return;
        }
        let (client, server) = (it.client, it.server);
        self.digest.actions.add(self.now, &[socket as u64], b"closes");
        let end = if it.read < it.inbox.len() { End::Reset } else { End::Closed };
        self.clients[client].may_be_late |= it.pipes[0].bytes > 0 || !it.received.is_empty();
        self.say(|_| {
            format!("client {client} closes its connection to server {server} (#{socket})")
        });
        self.transmit_end(socket, Way::There, end);
    }

    /// What `poll` would report for a socket or a bell.
    pub(crate) fn readiness(&self, which: usize, for_writing: bool) -> libc::c_short {
        if which >= FIRST_BELL {
            let has_rung = self.bells[which - FIRST_BELL].has_rung;
            return if has_rung { libc::POLLIN } else { 0 };
        }
        let it = &self.connections[which];
        let is_readable = it.read < it.inbox.len() || it.end.is_some();
        let has_room = it.pipes[0].bytes < self.weather.room || it.end.is_some();
        match it.phase {
            Phase::Connecting => 0,
            _ if it.is_closed => libc::POLLERR | libc::POLLHUP,
            Phase::Refused => libc::POLLERR | libc::POLLHUP,
            Phase::Up if is_readable => libc::POLLIN,
            Phase::Up if for_writing && has_room => libc::POLLOUT,
            Phase::Up => 0,
        }
    }

    /// Cuts all connections of a client to a server.
    pub(crate) fn cut(&mut self, client: usize, server: usize, how: Cut) {
        for connection in 0..self.connections.len() {
            let it = &mut self.connections[connection];
            if (it.client, it.server) != (client, server) || it.phase != Phase::Up || it.is_closed {
                continue;
            }
            match how {
                Cut::HalfClose => self.transmit_end(connection, Way::Back, End::Closed),
                Cut::Reset => {
                    it.end = Some(End::Reset);
                    it.is_served = false;
                    it.received.clear();
                    it.pipes.iter_mut().for_each(|pipe| {
                        pipe.under_way.clear();
                        pipe.bytes = 0;
                    });
                    self.notice(client, connection);
                }
            }
        }
    }

    /// The client finds the connection lost, with all data that was on its way to the client.
    pub(crate) fn break_for_client(&mut self, connection: usize, end: End) {
        let it = &mut self.connections[connection];
        it.end = Some(end);
        it.pipes[Way::Back as usize] = Pipe::default();
    }

    pub(crate) fn new_bell(&mut self) -> i32 {
        let client = self.current_client().unwrap_or(0);
        self.bells.push(Bell { client, has_rung: false });
        (FIRST_BELL + self.bells.len() - 1) as i32
    }

    pub(crate) fn ring(&mut self, bell: i32) {
        let bell = bell as usize;
        let it = &mut self.bells[bell - FIRST_BELL];
        it.has_rung = true;
        let client = it.client;
        self.notice(client, bell);
    }

    pub(crate) fn silence(&mut self, bell: i32) {
        self.bells[bell as usize - FIRST_BELL].has_rung = false;
    }
}
