//! What the scripts do at their edges, on a real server. Random commands seldom get there.

use super::pair::{NOTE, Pair, THERE};
use super::{KEYS, TOKENS};
use crate::protocol::command::guard::MARK;
use crate::protocol::command::identity::PROMOTION;
use crate::protocol::command::several;
use crate::protocol::command::several::waking::ENROL_SCRIPT;
use crate::protocol::command::shared::{acquire, enrol, inspect, intend, release};
use crate::protocol::command::waking::{ENROL, ENROL_PERMITS, RELEASE_AND_WAKE};
use crate::support::{Server, wait_until};

const SHARED: &str = "redlock:shared";

/// A server, and a listener to the channel [`THERE`].
struct Real(Pair);

impl Real {
    fn new(server: &Server) -> Self {
        Self(Pair::new(server, None))
    }

    fn ask(&mut self, words: &[&str]) -> String {
        String::from_utf8_lossy(&self.0.ask(words)).replace("\r\n", " ").trim_end().to_owned()
    }

    fn eval(&mut self, script: &str, keys: &[&str], arguments: &[&str]) -> String {
        let count = keys.len().to_string();
        self.ask(&[&["EVAL", script, &count], keys, arguments].concat())
    }

    /// The number in a reply that is a number, or a text that is one.
    fn number(&mut self, words: &[&str]) -> i64 {
        let said = self.ask(words);
        let digits = said.rsplit(' ').next().unwrap_or_default();
        digits.trim_start_matches(':').parse().unwrap_or_else(|_| panic!("{words:?}: {said}"))
    }

    /// What the clock shows, in microseconds.
    fn now_us(&mut self) -> i64 {
        let said = self.ask(&["TIME"]);
        let parts: Vec<i64> = said.split(' ').filter_map(|it| it.parse().ok()).collect();
        parts[0] * 1_000_000 + parts[1]
    }
}

/// Each script that adds a waiter to a line: its keys, and its arguments behind the usual three. The line is `w`.
fn enrolling() -> [(&'static str, &'static [&'static str], &'static [&'static str]); 4] {
    [
        (ENROL, &["a", "w"], &[]),
        (ENROL_PERMITS, &["a", "w"], &[]),
        (ENROL_SCRIPT, &["a", "w"], &["1", "1"]),
        (enrol::SCRIPT, &["a", "w", "a:i"], &["500"]),
    ]
}

/// The time since when a waiter waits decides about its place. A wrong clock must not bring a waiter before all
/// others, or behind them.
#[test]
fn the_start_of_a_wait_is_believed_within_the_clock() {
    let server = Server::start();
    let mut real = Real::new(&server);
    for (script, keys, more) in enrolling() {
        let half = if script == enrol::SCRIPT { ".5" } else { "" };
        real.ask(&["SET", "a", TOKENS[0]]);
        let before = real.now_us();
        let own = (before - 7_654_321).to_string();
        for since in ["0", "9000000000000000", &own] {
            real.ask(&["DEL", "w"]);
            let said = real.eval(script, keys, &[&["c", since, "60000"], more].concat());
            assert!(said.contains(":-1"), "it has no end: {said}");
            let score = real.ask(&["ZSCORE", "w", "c"]);
            let score = score.rsplit(' ').next().expect("a score").to_owned();
            let whole: i64 = score.split('.').next().unwrap_or_default().parse().expect("a time");
            let now = real.now_us();
            match since {
                "0" => {
                    assert!((before - 600_000_000..=now - 600_000_000).contains(&whole), "{score}")
                }
                own_one if own_one == own => assert_eq!(score, own.clone() + half),
                _ => assert!((before + 1_000_000..=now + 1_000_000).contains(&whole), "{score}"),
            }
            let ends_ms = real.number(&["PTTL", "w"]);
            assert!((1..=60_000).contains(&ends_ms), "{ends_ms}");
        }
    }
}

#[test]
fn readers_behind_a_writer_are_not_woken_with_it() {
    let server = Server::start();
    let mut real = Real::new(&server);
    for script in [RELEASE_AND_WAKE, several::waking::RELEASE_SCRIPT] {
        real.ask(&["SET", "a", TOKENS[0]]);
        real.ask(&["ZADD", "w", "5", THERE, "6.5", "reader"]);
        let arguments = [TOKENS[0], "1", "1"];
        let count = if script == RELEASE_AND_WAKE { 1 } else { 3 };
        real.eval(script, &["a", "w"], &arguments[..count]);
        assert_eq!(real.ask(&["ZRANGE", "w", "0", "-1"]), "*1 $6 reader");
        real.ask(&["DEL", "w"]);
    }
}

#[test]
fn readers_without_ttl_get_none() {
    let server = Server::start();
    let mut real = Real::new(&server);
    real.ask(&["SET", "a", SHARED]);
    real.ask(&["ZADD", "a:r", "9000000000000", TOKENS[0], "8000000000000", TOKENS[1]]);
    assert_eq!(real.eval(acquire::SCRIPT, &["a", "a:r", "a:i"], &["c", "1000", "500"]), ":1");
    assert_eq!(real.number(&["PTTL", "a"]), -1);
    // One that does not end last has no say in when the others end.
    assert_eq!(real.eval(release::SCRIPT, &["a", "a:r"], &[TOKENS[1], "9000"]), ":1");
    assert_eq!(real.number(&["PTTL", "a"]), -1);
}

#[test]
fn a_long_lived_foreign_announcement_is_ignored() {
    let server = Server::start();
    let mut real = Real::new(&server);
    real.ask(&["SET", "a:i", "x", "PX", "60000"]);
    assert_eq!(real.eval(acquire::SCRIPT, &["a", "a:r", "a:i"], &["c", "9000", "500"]), ":1");
    assert_eq!(real.eval(intend::SCRIPT, &["a", "a:i"], &["500"]), ":0");
    assert_eq!(real.ask(&["GET", "a:i"]), "$1 x");
}

#[test]
fn expired_readers_do_not_count() {
    let server = Server::start();
    let mut real = Real::new(&server);
    real.ask(&["SET", "a", SHARED, "PX", "60000"]);
    real.ask(&["ZADD", "a:r", "1000", TOKENS[0], "2000", "x", "9000000000000", TOKENS[1]]);
    let said = real.eval(inspect::SCRIPT, &["a", "a:r"], &[TOKENS[0], "127", "90000"]);
    assert!(said.starts_with("*3 :0 :") && said.ends_with(" :1"), "{said}");
    // The resource is taken as long as it says so.
    real.ask(&["ZREM", "a:r", TOKENS[1]]);
    let said = real.eval(inspect::SCRIPT, &["a", "a:r"], &[TOKENS[0], "127", "90000"]);
    assert!(said.starts_with("*3 :0 :") && said.ends_with(" :1"), "{said}");
}

#[test]
fn a_reader_counts_until_its_second_is_over() {
    let server = Server::start();
    let mut real = Real::new(&server);
    // Until all of it happens within the second in which it began.
    wait_until("a second is long enough", || {
        let began = real.now_us() / 1_000_000;
        real.ask(&["SET", "a", SHARED, "PX", "60000"]);
        real.ask(&["ZADD", "a:r", &format!("{began}998"), "x"]);
        real.eval(acquire::SCRIPT, &["a", "a:r", "a:i"], &["c", "9000", "500"]);
        let is_there = real.ask(&["ZSCORE", "a:r", "x"]) != "$-1";
        let is_one_second = real.now_us() / 1_000_000 == began;
        assert!(is_there || !is_one_second);
        real.ask(&["DEL", "a", "a:r"]);
        is_one_second
    });
}

#[test]
fn a_blocking_key_is_left_alone_and_a_permanent_one_is_named() {
    let server = Server::start();
    let mut real = Real::new(&server);
    real.ask(&["RPUSH", "b", "x"]);
    let said = real.eval(several::repair::SCRIPT, &KEYS[..2], &[TOKENS[0], "9000"]);
    assert_eq!((said, real.ask(&["TYPE", "b"])), ("*2 :2 :-1".to_owned(), "+list".to_owned()));
    real.ask(&["SET", "a", "x", "PX", "60000"]);
    real.ask(&["SET", "c", "x", "PX", "90000"]);
    let said = real.eval(several::acquire::SCRIPT, &KEYS, &[TOKENS[0], "9000"]);
    assert_eq!(said, "*2 :2 :-1");
}

/// It was not told yet that the resource is free, so nobody else need be told in its place.
#[test]
fn a_change_of_line_wakes_nobody_in_the_old_line() {
    let server = Server::start();
    let mut real = Real::new(&server);
    real.ask(&["SET", "a", "x"]);
    real.ask(&["ZADD", "b:w", "5", "c", "6", THERE]);
    let arguments = ["c", "0", "60000", "2", "1", "2"];
    real.eval(ENROL_SCRIPT, &["a", "b", "a:w", "b:w"], &arguments);
    assert_eq!(real.ask(&["ZRANGE", "b:w", "0", "-1"]), format!("*1 ${} {THERE}", THERE.len()));
}

/// Marks the server as new, if it is. Returns whether it is marked as new.
fn is_new(real: &mut Real) -> bool {
    real.ask(&["DEL", NOTE]);
    let far = (i64::MAX / 1_000).to_string();
    let said = real.eval(MARK, &[NOTE], &["", "head", "fresh", "tail", &far]);
    assert!(said.contains("head ") && said.contains(" tail"), "{said}");
    said.contains("head -")
}

#[test]
fn a_present_or_former_replica_is_not_new() {
    for word in ["REPLICAOF", "SLAVEOF"] {
        let server = Server::start();
        let mut real = Real::new(&server);
        assert!(is_new(&mut real));
        real.ask(&[word, "127.0.0.1", "1"]);
        real.ask(&[word, "NO", "ONE"]);
        assert!(!is_new(&mut real), "{word}");
        // It may have been a replica of which nothing else is left to see.
        let server = Server::start();
        let mut real = Real::new(&server);
        real.ask(&[word, "NO", "ONE"]);
        assert!(!is_new(&mut real), "{word}");
    }
    let primary = Server::start_with(&["--repl-diskless-sync-delay", "0"]);
    let server = Server::start();
    let mut real = Real::new(&server);
    real.ask(&["REPLICAOF", "127.0.0.1", &primary.port().to_string()]);
    wait_until("replica", || real.ask(&["INFO", "replication"]).contains("master_link_status:up"));
    real.ask(&["REPLICAOF", "NO", "ONE"]);
    real.ask(&["CONFIG", "RESETSTAT"]);
    assert!(!is_new(&mut real));
    let told = real.ask(&["INFO", "replication"]);
    let id = told.split("master_replid2:").nth(1).and_then(|it| it.split(' ').next());
    let said = real.ask(&["EVAL", PROMOTION, "0"]);
    assert_eq!(said.rsplit(' ').next(), id);
}
