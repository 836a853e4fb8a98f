//! A proxy in front of a real server that behaves like a faulty network. It delays, holds back, drops,
//! splits and joins the data that passes through it. It resets and closes connections in any way, leads to
//! another server, and sends data that nobody has sent. It counts what each connection has carried.
//!
//! Commands apply to existing and new connections, from the next byte on. One thread does all the work, and
//! ends with its owner.

mod lane;
mod link;

use std::env;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use self::lane::Rules;
use self::link::Link;
use super::ports;
use super::servers::Server;

/// A direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// From the client to the server.
    Requests,
    /// From the server to the client.
    Replies,
}

pub(crate) const BOTH: [Way; 2] = [Way::Requests, Way::Replies];

impl Way {
    /// The step for tests that interrupt a conversation with a handshake. Its requests are interrupted at
    /// every byte. Its replies contain thousands of bytes of INFO, so they are interrupted at intervals, or
    /// at every byte with REDLOCK_EVERY_BYTE in the environment. With REDLOCK_FEW, as in `make
    /// test`, both steps are longer.
    pub(crate) fn step(self) -> usize {
        let is_set = |name: &str| env::var_os(name).is_some();
        match self {
            _ if is_set("REDLOCK_EVERY_BYTE") => 1,
            Self::Requests if is_set("REDLOCK_FEW") => 5,
            Self::Replies if is_set("REDLOCK_FEW") => 33,
            Self::Requests => 1,
            Self::Replies => 11,
        }
    }
}

/// What is known of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Traffic {
    /// How many bytes the client has sent, and how many the server has sent.
    pub(crate) requests: u64,
    pub(crate) replies: u64,
    /// Whether the client has closed it, or it was reset.
    pub(crate) has_ended: bool,
}

impl Traffic {
    /// The part that only the client decides: what it has sent, and whether it has closed the connection. A
    /// reply may still arrive for a request that was sent long ago.
    pub(crate) fn of_the_client(self) -> (u64, bool) {
        (self.requests, self.has_ended)
    }
}

pub(crate) struct Proxy {
    port: u16,
    scheme: &'static str,
    shared: Arc<Shared>,
    running: Option<JoinHandle<()>>,
}

struct Shared {
    state: Mutex<State>,
    /// Writing here wakes the thread.
    bell: UnixStream,
}

struct State {
    server: String,
    rules: [Rules; 2],
    links: Vec<Link>,
    is_closing: bool,
}

impl Proxy {
    pub(crate) fn to(server: &Server) -> Self {
        Self::in_front_of(server.address(), server.scheme())
    }

    /// The server at the address need not be one of the test's servers.
    pub(crate) fn in_front_of(address: String, scheme: &'static str) -> Self {
        let bind = |_| TcpListener::bind((Ipv4Addr::LOCALHOST, ports::free())).ok();
        let listener = (0..20).find_map(bind).expect("some port is free");
        listener.set_nonblocking(true).expect("a socket can be made so");
        let port = listener.local_addr().expect("it is bound").port();
        let (bell, rung) = UnixStream::pair().expect("a pair of sockets");
        rung.set_nonblocking(true).expect("a socket can be made so");
        let state = State {
            server: address,
            rules: Default::default(),
            links: Vec::new(),
            is_closing: false,
        };
        let shared = Arc::new(Shared { state: Mutex::new(state), bell });
        let running = thread::spawn({
            let shared = Arc::clone(&shared);
            move || shared.run(&listener, rung)
        });
        Self { port, scheme, shared, running: Some(running) }
    }

    /// As in "127.0.0.1:6379".
    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// As in "redis://127.0.0.1:6379", or "rediss://127.0.0.1:6379".
    pub(crate) fn url(&self) -> String {
        format!("{}://{}", self.scheme, self.address())
    }

    /// Delays all data by at least this time and at most `most`, with values in between.
    pub(crate) fn delay(&self, way: Way, least: Duration, most: Duration) {
        self.rule(way, |it| it.delay = (least, most));
    }

    /// Holds all data back, including the end of the stream, until [`Self::flow`].
    pub(crate) fn stall(&self, way: Way) {
        self.rule(way, |it| it.is_stalled = true);
    }

    /// Forwards this many more bytes, counted from now on and over all connections. Holds back the rest
    /// until [`Self::flow`].
    pub(crate) fn stall_after(&self, way: Way, count: u64) {
        self.rule(way, |it| match count {
            0 => it.is_stalled = true,
            _ => it.stall_after = Some(count),
        });
    }

    /// Whether data in this direction is held back.
    pub(crate) fn is_holding(&self, way: Way) -> bool {
        let state = self.shared.state();
        state.rules[way as usize].is_stalled && state.links.iter().any(|it| it.has_waiting(way))
    }

    /// Forwards the data that was held back, and new data.
    pub(crate) fn flow(&self, way: Way) {
        self.rule(way, |it| (it.is_stalled, it.stall_after) = (false, None));
    }

    /// Forwards at most `size` bytes at once, with a pause after each such piece.
    pub(crate) fn cut_up(&self, way: Way, size: usize, pause: Duration) {
        self.rule(way, |it| (it.piece, it.pause) = (size, pause));
    }

    /// Forwards together what arrived within this time.
    pub(crate) fn join(&self, way: Way, time: Duration) {
        self.rule(way, |it| it.gather = time);
    }

    /// Resets the connection that carries byte `count`, counted from now on and over all connections, as
    /// soon as it has carried that byte; with 0, before it carries anything.
    pub(crate) fn reset_after(&self, way: Way, count: u64) {
        self.rule(way, |it| (it.reset_after, it.ends_gently) = (Some(count), false));
    }

    /// Resets each connection as soon as it has carried this many bytes in this direction.
    pub(crate) fn reset_each_after(&self, way: Way, count: u64) {
        self.rule(way, |it| it.reset_each_after = Some(count));
    }

    /// Like [`Self::reset_after`], but the receiver sees an orderly end of the stream.
    pub(crate) fn end_after(&self, way: Way, count: u64) {
        self.rule(way, |it| (it.reset_after, it.ends_gently) = (Some(count), true));
    }

    /// Forwards the result of this function for each piece that arrives.
    pub(crate) fn alter(&self, way: Way, alter: impl FnMut(Vec<u8>) -> Vec<u8> + Send + 'static) {
        self.rule(way, |it| it.alter = Some(Box::new(alter)));
    }

    /// From now on everything is forwarded as it arrives, including the data that was held back.
    pub(crate) fn heal(&self) {
        BOTH.into_iter().for_each(|way| self.rule(way, |it| *it = Rules::default()));
    }

    /// Sends these bytes over every connection, in the name of the sender of this direction.
    pub(crate) fn inject(&self, way: Way, bytes: &[u8]) {
        self.change(|state| {
            state.links.iter_mut().for_each(|it| it.inject(way, bytes));
        });
    }

    /// Drops the records of ended connections, for tests with very many of them.
    pub(crate) fn forget_ended(&self) {
        self.change(|state| state.links.retain(Link::is_up));
    }

    /// Resets every connection.
    pub(crate) fn reset(&self) {
        self.change(|state| state.links.iter_mut().for_each(Link::reset));
    }

    /// Tells the receiver that no more data comes in this direction. The other direction remains open.
    pub(crate) fn half_close(&self, way: Way) {
        self.change(|state| state.links.iter_mut().for_each(|it| it.half_close(way)));
    }

    /// Leaves the existing connections without a far end: sent data is lost, and nobody is told. New
    /// connections work normally.
    pub(crate) fn strand(&self) {
        self.change(|state| state.links.iter_mut().for_each(Link::strand));
    }

    /// Forwards nothing over the existing connections, although sent data is acknowledged, until
    /// [`Self::let_go`]. New connections work normally.
    pub(crate) fn hold(&self) {
        self.change(|state| state.links.iter_mut().for_each(|it| it.hold(true)));
    }

    /// Continues the connections that were held.
    pub(crate) fn let_go(&self) {
        self.change(|state| state.links.iter_mut().for_each(|it| it.hold(false)));
    }

    /// From now on it stands in front of another server. Connections to the old server are closed.
    pub(crate) fn lead_to(&self, server: &Server) {
        self.change(|state| {
            state.server = server.address();
            for way in BOTH {
                state.links.iter_mut().for_each(|it| it.half_close(way));
            }
        });
    }

    /// The connections so far, in the order of their arrival.
    pub(crate) fn connections(&self) -> Vec<Traffic> {
        self.shared.state().links.iter().map(Link::traffic).collect()
    }

    /// Whether every connection is closed at both ends, so no byte is on its way.
    pub(crate) fn is_idle(&self) -> bool {
        !self.shared.state().links.iter().any(Link::is_up)
    }

    /// How many bytes were sent in this direction, over all connections.
    pub(crate) fn sent(&self, way: Way) -> u64 {
        let count = |it: Traffic| if way == Way::Requests { it.requests } else { it.replies };
        self.connections().into_iter().map(count).sum()
    }

    /// How many bytes were forwarded in this direction, over all connections.
    pub(crate) fn handed_on(&self, way: Way) -> u64 {
        self.shared.state().links.iter().map(|it| it.handed_on(way)).sum()
    }

    fn rule(&self, way: Way, change: impl FnOnce(&mut Rules)) {
        self.change(|state| change(&mut state.rules[way as usize]));
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.shared.state());
        let _ = (&self.shared.bell).write(&[0]);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.change(|state| state.is_closing = true);
        if let Some(running) = self.running.take() {
            let _ = running.join();
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("not poisoned")
    }

    fn run(&self, listener: &TcpListener, mut rung: UnixStream) {
        let mut rings = [0; 64];
        loop {
            let (mut interests, due) = {
                let mut state = self.state();
                if state.is_closing {
                    return state.links.clear();
                }
                state.accept(listener);
                state.pump(Instant::now());
                state.interests()
            };
            interests.push(readable(listener.as_raw_fd()));
            interests.push(readable(rung.as_raw_fd()));
            wait(&mut interests, due);
            while matches!(rung.read(&mut rings), Ok(1..)) {}
        }
    }
}

impl State {
    fn accept(&mut self, listener: &TcpListener) {
        while let Ok((client, _)) = listener.accept() {
            self.links.extend(Link::new(client, &self.server).ok());
        }
    }

    fn pump(&mut self, now: Instant) {
        for link in &mut self.links {
            link.pump(&mut self.rules, now);
        }
    }

    /// What to wait for, and until when.
    fn interests(&self) -> (Vec<libc::pollfd>, Option<Instant>) {
        let interests = self.links.iter().flat_map(Link::interests).collect();
        let due = self.links.iter().filter_map(|it| it.next_due(&self.rules)).min();
        (interests, due)
    }
}

fn readable(fd: i32) -> libc::pollfd {
    libc::pollfd { fd, events: libc::POLLIN, revents: 0 }
}

/// Returns when something is ready, or due. The caller must find out what it is.
fn wait(interests: &mut [libc::pollfd], due: Option<Instant>) {
    let left = due.map(|it| it.saturating_duration_since(Instant::now()));
    // Rounded up. Otherwise the last millisecond would be spent in a busy loop.
    let ms = left.map_or(-1, |it| i32::try_from(it.as_micros().div_ceil(1000)).unwrap_or(-1));
    let count = interests.len().try_into().expect("not that many");
    // SAFETY: the pointer and the length are those of a slice that may be written to.
    let result = unsafe { libc::poll(interests.as_mut_ptr(), count, ms) };
    assert!(result >= 0 || io::Error::last_os_error().kind() == io::ErrorKind::Interrupted);
}
