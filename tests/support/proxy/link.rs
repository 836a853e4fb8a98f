//! One connection through the proxy.

use std::io;
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use super::lane::{Lane, Rules, Step};
use super::{BOTH, Traffic, Way};

pub(super) struct Link {
    /// The client's end and the server's; `None` once both directions have ended.
    ends: Option<[TcpStream; 2]>,
    lanes: [Lane; 2],
    is_stranded: bool,
    is_held: bool,
}

impl Link {
    pub(super) fn new(client: TcpStream, server: &str) -> io::Result<Self> {
        let ends = [client, TcpStream::connect(server)?];
        for end in &ends {
            end.set_nodelay(true)?;
            end.set_nonblocking(true)?;
        }
        Ok(Self { ends: Some(ends), lanes: Default::default(), is_stranded: false, is_held: false })
    }

    pub(super) fn traffic(&self) -> Traffic {
        let [requests, replies] = BOTH.map(|way| self.lanes[way as usize].read);
        let has_ended = self.ends.is_none() || self.lanes[Way::Requests as usize].has_ended;
        Traffic { requests, replies, has_ended }
    }

    pub(super) fn is_up(&self) -> bool {
        self.ends.is_some()
    }

    /// How many bytes were forwarded in this direction.
    pub(super) fn handed_on(&self, way: Way) -> u64 {
        self.lanes[way as usize].handed_on
    }

    /// Whether bytes wait to be forwarded in this direction.
    pub(super) fn has_waiting(&self, way: Way) -> bool {
        self.is_up() && self.lanes[way as usize].has_waiting()
    }

    pub(super) fn inject(&mut self, way: Way, bytes: &[u8]) {
        if self.ends.is_some() {
            self.lanes[way as usize].push(bytes.to_vec(), Instant::now());
        }
    }

    /// Closes both ends so that both receive an error.
    pub(super) fn reset(&mut self) {
        self.ends.take().into_iter().flatten().for_each(reset);
    }

    pub(super) fn half_close(&mut self, way: Way) {
        if let Some(ends) = &self.ends {
            self.lanes[way as usize].is_shut = true;
            let _ = sink(ends, way).shutdown(Shutdown::Write);
        }
    }

    pub(super) fn strand(&mut self) {
        self.is_stranded = true;
        self.lanes.iter_mut().for_each(Lane::drop_all);
    }

    /// Forwards nothing until it is released again.
    pub(super) fn hold(&mut self, is_held: bool) {
        self.is_held = is_held;
    }

    /// Forwards all data that can be forwarded.
    pub(super) fn pump(&mut self, rules: &mut [Rules; 2], now: Instant) {
        if self.is_held {
            return;
        }
        for way in BOTH {
            let Some(ends) = &self.ends else { return };
            let (lane, rules) = (&mut self.lanes[way as usize], &mut rules[way as usize]);
            lane.fill(source(ends, way), rules, now);
            if self.is_stranded {
                lane.drop_all();
            } else if lane.drain(sink(ends, way), rules, now) == Step::Broken {
                return self.reset();
            }
        }
        if self.is_over() {
            self.ends = None;
        }
    }

    /// What to wait for.
    pub(super) fn interests(&self) -> Vec<libc::pollfd> {
        let Some(ends) = self.ends.as_ref().filter(|_| !self.is_held) else { return Vec::new() };
        let mut interests = Vec::new();
        for way in BOTH {
            let lane = &self.lanes[way as usize];
            let (source, sink) = (source(ends, way).as_raw_fd(), sink(ends, way).as_raw_fd());
            let wanted =
                [(!lane.has_ended, source, libc::POLLIN), (lane.is_full, sink, libc::POLLOUT)];
            let wanted = wanted.into_iter().filter(|it| it.0);
            interests.extend(wanted.map(|(_, fd, events)| libc::pollfd { fd, events, revents: 0 }));
        }
        interests
    }

    pub(super) fn next_due(&self, rules: &[Rules; 2]) -> Option<Instant> {
        self.ends.as_ref().filter(|_| !self.is_held)?;
        BOTH.into_iter()
            .filter_map(|it| self.lanes[it as usize].next_due(&rules[it as usize]))
            .min()
    }

    fn is_over(&self) -> bool {
        let is_left = self.is_stranded && self.lanes[Way::Requests as usize].has_ended;
        is_left || self.lanes.iter().all(|it| it.is_shut)
    }
}

fn source(ends: &[TcpStream; 2], way: Way) -> &TcpStream {
    &ends[way as usize]
}

fn sink(ends: &[TcpStream; 2], way: Way) -> &TcpStream {
    &ends[1 - way as usize]
}

/// Closing a socket that does not linger resets its connection.
fn reset(end: TcpStream) {
    let _ = socket2::SockRef::from(&end).set_linger(Some(Duration::ZERO));
}
