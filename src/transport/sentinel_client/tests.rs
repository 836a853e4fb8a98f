//! A client and Sentinels that say what a test wants, at the times that the test gives. No clock is read.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use super::*;
use crate::system::socket::{poll, watch};

const WITHIN_MS: i64 = 1_000;

/// An answer of Redis Sentinel, and what it publishes.
const MASTER: &str = "*2\r\n$9\r\n127.0.0.1\r\n$1\r\n7\r\n";
const SUBSCRIBED: &str = "*3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n";
const PONG: &str = "*2\r\n$4\r\npong\r\n$0\r\n\r\n";

/// These tests need sockets of this machine, and the library is also compiled for a simulated world.
const IS_PLAYED: bool = matches!(env!("CARGO_CRATE_NAME").as_bytes(), b"played" | b"hostile");

fn at(ms: i64) -> Moment {
    Moment::from_nanos(1_000_000_000_000).plus_ms(ms)
}

fn master() -> Address {
    Address::of("127.0.0.1", 7).expect("a place")
}

fn moved_to(port: u16) -> String {
    let text = format!("m 127.0.0.1 7 127.0.0.1 {port}");
    format!("*3\r\n$7\r\nmessage\r\n$14\r\n+switch-master\r\n${}\r\n{text}\r\n", text.len())
}

/// A client, and two Sentinels.
struct Play {
    client: SentinelClient,
    sentinels: [TcpListener; 2],
}

/// The connection to a Sentinel, as that Sentinel sees it.
struct Sentinel(TcpStream);

impl Play {
    fn new() -> Self {
        let sentinels = [0, 1].map(|_| TcpListener::bind("127.0.0.1:0").expect("a port"));
        let [one, other] = sentinels.each_ref().map(|it| it.local_addr().expect("an address"));
        let (parsed, _) = Sentinels::parse(&format!("{one},{other}/m")).expect("two Sentinels");
        let client = SentinelClient::new(&Arc::new(parsed), false, &Arc::default());
        Self { client, sentinels }
    }

    /// A client that listens to the first Sentinel since the beginning.
    fn listening() -> (Self, Sentinel) {
        let mut play = Self::new();
        play.client.begin(WITHIN_MS, at(0));
        let mut sentinel = play.accept(0, at(0));
        sentinel.say(&[MASTER, SUBSCRIBED]);
        assert_eq!(play.found(at(0)), Ok(master()));
        assert!(matches!(play.client.state, State::Listening(..)));
        (play, sentinel)
    }

    /// The connection that the client makes to this Sentinel, and has sent its question over.
    fn accept(&mut self, which: usize, now: Moment) -> Sentinel {
        let (stream, _) = self.sentinels[which].accept().expect("a connection");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("it can be set");
        let mut sentinel = Sentinel(stream);
        while !matches!(self.client.state, State::Asking(..)) {
            self.wait();
            assert_eq!(self.client.advance(now), None);
        }
        sentinel.hears("+switch-master\r\n");
        sentinel
    }

    /// Waits until the client's socket is ready.
    fn wait(&self) {
        let interest = self.client.interest().expect("a socket");
        let mut watched = [watch(interest.fd, interest.for_writing)];
        poll(&mut watched, at(20_000), at(0));
    }

    fn found(&mut self, now: Moment) -> Found {
        for _ in 0..100 {
            if let Some(found) = self.client.advance(now) {
                return found;
            }
            self.wait();
        }
        panic!("it finds nothing");
    }

    fn listen(&mut self, now_ms: i64) -> bool {
        self.client.listen(Some(&master()), WITHIN_MS, at(now_ms))
    }
}

impl Sentinel {
    fn say(&mut self, words: &[&str]) {
        self.0.write_all(words.concat().as_bytes()).expect("it is sent");
    }

    /// Reads until this has come.
    fn hears(&mut self, end: &str) {
        let (mut heard, mut byte) = (String::new(), [0]);
        while !heard.ends_with(end) {
            self.0.read_exact(&mut byte).expect("more is sent");
            heard.push(char::from(byte[0]));
        }
    }
}

#[test]
fn a_silent_sentinel_is_pinged_and_then_left() {
    if IS_PLAYED {
        return;
    }
    let (mut play, mut sentinel) = Play::listening();
    assert!(!play.listen(SILENCE_MS) && play.client.pinged_at.is_none());
    for pinged_ms in [1_001, 2_011] {
        assert!(!play.listen(pinged_ms));
        sentinel.hears("PING\r\n");
        sentinel.say(&[PONG]);
        play.wait();
        assert!(!play.listen(pinged_ms + 9) && play.client.pinged_at.is_none());
    }
    assert!(!play.listen(3_021));
    sentinel.hears("PING\r\n");
    assert!(!play.listen(3_021 + SILENCE_MS));
    assert!(matches!(play.client.state, State::Listening(..)));
    // The other one may know more.
    assert!(!play.listen(3_022 + SILENCE_MS));
    assert_eq!(play.client.current, 1);
    play.accept(1, at(3_022 + SILENCE_MS));
}

#[test]
fn the_last_of_two_messages_counts() {
    if IS_PLAYED {
        return;
    }
    for (ports, has_moved) in [([8, 7], false), ([7, 8], true)] {
        let (mut play, mut sentinel) = Play::listening();
        sentinel.say(&ports.map(moved_to).each_ref().map(String::as_str));
        play.wait();
        assert_eq!(play.listen(10), has_moved, "{ports:?}");
    }
}

#[test]
fn a_closed_sentinel_is_replaced_unless_it_announced() {
    if IS_PLAYED {
        return;
    }
    let (mut play, mut sentinel) = Play::listening();
    sentinel.say(&[&moved_to(8)]);
    drop(sentinel);
    play.wait();
    assert!(play.listen(10));
    let (mut play, sentinel) = Play::listening();
    drop(sentinel);
    play.wait();
    assert!(!play.listen(10));
    assert_eq!(play.client.current, 1);
    play.accept(1, at(10)).say(&[MASTER, SUBSCRIBED]);
    assert_eq!(play.found(at(10)), Ok(master()));
    // The next search begins with the one that has answered.
    play.client.begin(WITHIN_MS, at(20));
    assert_eq!(play.client.current, 1);
}

#[test]
fn a_sentinel_without_pushes_is_polled() {
    if IS_PLAYED {
        return;
    }
    let mut play = Play::new();
    play.client.begin(WITHIN_MS, at(0));
    play.accept(0, at(0)).say(&[MASTER, "-NOPERM no\r\n"]);
    assert_eq!(play.found(at(0)), Ok(master()));
    assert!(!play.listen(PAUSE_MS - 1) && matches!(play.client.state, State::Idle { .. }));
    assert!(!play.listen(PAUSE_MS) && !matches!(play.client.state, State::Idle { .. }));
    let mut sentinel = play.accept(0, at(PAUSE_MS));
    // Nobody has looked for the answer meanwhile, so its time begins anew.
    assert!(!play.listen(PAUSE_MS + 10 * WITHIN_MS));
    assert_eq!(play.client.current, 0);
    sentinel.say(&[MASTER, SUBSCRIBED]);
    play.wait();
    assert!(!play.listen(PAUSE_MS + 10 * WITHIN_MS + 1));
    assert!(matches!(play.client.state, State::Listening(..)));
}

#[test]
fn each_sentinel_has_its_share_of_the_time() {
    if IS_PLAYED {
        return;
    }
    let mut play = Play::new();
    for began_ms in [0, 2_000] {
        play.client.begin(WITHIN_MS, at(began_ms));
        assert!(play.client.said.is_empty());
        assert_eq!(play.client.next_due(), at(began_ms + WITHIN_MS / 2));
        let which = play.client.current;
        play.accept(which, at(began_ms));
        assert_eq!(play.client.advance(at(began_ms + WITHIN_MS / 2)), None);
        assert_eq!((play.client.said.len(), play.client.current), (1, 1 - which));
    }
}
