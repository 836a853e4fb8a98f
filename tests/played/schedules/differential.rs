//! The servers that are played beside a real one: the same commands to both, and the same replies,
//! byte for byte. Only what is left of a TTL may differ, by as long as the exchange took.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::command::{acquire_fenced, raise_fence};
use crate::support::product::product;
use crate::support::{Server, wait_until};
use crate::world::commands::{EXTEND, RELEASE};
use crate::world::dice::Dice;
use crate::world::store::{Dialect, Refusal, Session, Store};

const SEQUENCES: u64 = 60;
const COMMANDS: usize = 60;
const KEYS: [&str; 3] = ["a", "b", "c"];
const TOKENS: [&str; 3] =
    ["1111111111111111111111111111111111111111", "2222222222222222222222222222222222222222", ""];

/// By how many milliseconds the clocks may differ besides.
const GRAIN_MS: i64 = 3;

#[test]
fn the_servers_that_are_played_answer_as_a_real_one() {
    let (open, locked) = (Server::start(), Server::start_with(&["--requirepass", "p"]));
    for seed in 0..SEQUENCES {
        let (server, password) = if seed % 5 == 0 { (&locked, Some("p")) } else { (&open, None) };
        let mut pair = Pair::new(server, password);
        let mut dice = Dice::new(seed);
        for _ in 0..COMMANDS {
            pair.step(&mut dice);
        }
        // For the next.
        pair.refuse(None);
        pair.store.counters.clear();
        pair.ask(&["FLUSHALL"]);
    }
}

/// What a server says of its own commands when their arguments lack.
#[test]
fn the_dialects_that_are_played_are_those_that_the_library_knows() {
    for (dialect, knows) in [(Dialect::Delex, "DELEX"), (Dialect::Delifeq, "DELIFEQ")] {
        let mut store = Store::new(dialect, 0, None);
        for name in ["DELEX", "DELIFEQ"] {
            let mut out = Vec::new();
            store.execute(&mut Session::default(), &[name.as_bytes()], 0, &mut out);
            let said = String::from_utf8(out).expect("words");
            assert_eq!(said.contains("wrong number of arguments"), name == knows, "{said}");
        }
    }
}

struct Pair {
    real: TcpStream,
    store: Store,
    session: Session,
    began: Instant,
    refusal: Option<Refusal>,
    ttls: i64,
    /// How long the longest exchange took: so much later the real server may have set a key.
    slowest_ms: i64,
}

impl Pair {
    fn new(server: &Server, password: Option<&'static str>) -> Self {
        let real = TcpStream::connect(server.address()).expect("it is up");
        real.set_read_timeout(Some(Duration::from_secs(20))).expect("it can be set");
        let store = Store::new(Dialect::Plain, -1, password);
        let (session, began) = (Session::default(), Instant::now());
        let mut pair = Self { real, store, session, began, refusal: None, ttls: 0, slowest_ms: 0 };
        if password.is_some() {
            for words in [&["PING"][..], &["AUTH", "wrong"], &["GET", "a"], &["AUTH", "p"]] {
                pair.compare(words);
            }
        }
        pair.store.dialect = pair.dialect();
        pair
    }

    fn dialect(&mut self) -> Dialect {
        let mut knows = |name| {
            let said = self.ask(&[name]);
            String::from_utf8_lossy(&said).contains("wrong number")
        };
        match (knows("DELEX"), knows("DELIFEQ")) {
            (true, _) => Dialect::Delex,
            (_, true) => Dialect::Delifeq,
            _ => Dialect::Plain,
        }
    }

    fn step(&mut self, dice: &mut Dice) {
        let (key, token, ttl) = (dice.pick(&KEYS), dice.pick(&TOKENS), &*self.ttl(dice));
        match dice.below(30) {
            24..=29 => self.step_fenced(dice, key, token, ttl),
            0..=5 => self.compare(&["SET", key, token, "PX", ttl, "NX"]),
            6..=9 => self.compare(&["EVAL", EXTEND, "1", key, token, ttl]),
            10..=13 => match self.store.dialect {
                Dialect::Delifeq if dice.once_in(2) => self.compare(&["DELIFEQ", key, token]),
                Dialect::Delex if dice.once_in(2) => self.compare(&["DELEX", key, "IFEQ", token]),
                _ => self.compare(&["EVAL", RELEASE, "1", key, token]),
            },
            14 | 15 => self.compare(&["GETRANGE", key, "0", "127"]),
            16 | 17 => self.compare(&["PTTL", key]),
            18 if dice.once_in(2) => self.compare(&["DEL", key]),
            18 => self.compare(&["PEXPIRE", key, ttl]),
            19 if self.refusal != Some(Refusal::ReadOnly) => self.let_expire(key),
            20 => self.compare(dice.pick(&[
                &["PING"][..],
                &["DELEX"],
                &["DELIFEQ"],
                &["SELECT", "99"],
            ])),
            21 => self.compare(dice.pick(&[
                &["SET", "a", "x", "PX", "0", "NX"][..],
                &["SET", "a", "x", "PX", "no"],
                &["SET", "a", "x", "PX"],
                &["SET", "a"],
                &["GETRANGE", "a", "0"],
                &["PTTL"],
                &["AUTH", "nobody"],
            ])),
            22 => self.compare(&["SELECT", dice.pick(&["0", "2"])]),
            19 => {}
            _ => self.refuse(dice.pick(&[
                None,
                None,
                Some(Refusal::Oom),
                Some(Refusal::ReadOnly),
                Some(Refusal::NoPerm),
                Some(Refusal::NoPermLook),
            ])),
        }
    }

    /// Numbers that no clock bounds: those of the two servers show other times.
    fn step_fenced(&mut self, dice: &mut Dice, key: &str, token: &str, ttl: &str) {
        const SPREAD: &str = "4000000000000000";
        let counter = format!("{key}:f");
        let number = dice.between(1, 5_000).to_string();
        match dice.below(3) {
            0 => {
                let (script, counter_ttl) = (raise_fence::SCRIPT, "3600000");
                self.compare(&["EVAL", script, "2", key, &counter, token, &number, counter_ttl]);
            }
            _ => self.compare(&[
                "EVAL",
                acquire_fenced::SCRIPT,
                "2",
                key,
                &counter,
                token,
                ttl,
                &number,
                SPREAD,
                "3600000",
            ]),
        }
    }

    /// No two are so near to each other that a delay could make one less than the other.
    fn ttl(&mut self, dice: &mut Dice) -> String {
        self.ttls += 60_000;
        (if dice.once_in(2) { 100_000_000 + self.ttls } else { 100_000_000 - self.ttls })
            .to_string()
    }

    /// Has both refuse in the same way.
    fn refuse(&mut self, refusal: Option<Refusal>) {
        for (this, on, off) in [
            (Refusal::Oom, "CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0"),
            (Refusal::ReadOnly, "REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE"),
            (Refusal::NoPerm, "ACL SETUSER default -set", "ACL SETUSER default +set"),
            (Refusal::NoPermLook, "ACL SETUSER default -pttl", "ACL SETUSER default +pttl"),
        ] {
            let (was, is) = (self.refusal == Some(this), refusal == Some(this));
            if was != is {
                let command = if is { on } else { off };
                let said = self.ask(&command.split(' ').collect::<Vec<_>>());
                assert!(said.starts_with(b"+OK"), "{command}: {}", String::from_utf8_lossy(&said));
            }
        }
        (self.refusal, self.store.refusal) = (refusal, refusal);
    }

    /// Waits until a key has expired on the real server, and as long for the other.
    fn let_expire(&mut self, key: &str) {
        self.compare(&["PEXPIRE", key, "1"]);
        let since = Instant::now();
        wait_until("the key expires", || {
            let said = self.ask(&["GET", key]);
            since.elapsed() > Duration::from_millis(5) && said == b"$-1\r\n"
        });
        self.compare(&["GETRANGE", key, "0", "127"]);
    }

    fn compare(&mut self, words: &[&str]) {
        let before = self.now_ms();
        let real = self.ask(words);
        self.slowest_ms = self.slowest_ms.max(self.now_ms() - before);
        let mut played = Vec::new();
        let bytes: Vec<&[u8]> = words.iter().map(|it| it.as_bytes()).collect();
        self.store.execute(&mut self.session, &bytes, before, &mut played);
        let is_time = words[0] == "PTTL";
        let is_near = |real: i64, played: i64| {
            real.min(played) >= 0 && (played - real).abs() <= self.slowest_ms + GRAIN_MS
        };
        let is_same = match (number(&real), number(&played)) {
            (Some(real), Some(played)) if is_time => real == played || is_near(real, played),
            (None, None) if real.starts_with(b"*") => {
                let (real, played) = (pair(&real), pair(&played));
                let is_drawn =
                    words[1] == acquire_fenced::SCRIPT && real.is_some_and(|it| it.0 == 1);
                real == played
                    || !is_drawn
                        && real.zip(played).is_some_and(|(real, played)| {
                            real.0 == played.0 && is_near(real.1, played.1)
                        })
            }
            // How a refusal is worded is the server's affair: the library goes by its first word.
            _ if real.starts_with(b"-") && (self.refusal.is_some() || product().is_before_7()) => {
                code(&real) == code(&played) || is_wrapped(&real, code(&played))
            }
            _ => real == played,
        };
        let (real, played) = (String::from_utf8_lossy(&real), String::from_utf8_lossy(&played));
        let refusal = self.refusal;
        assert!(is_same, "{words:?} ({refusal:?}): {real:?} is real, and {played:?} is played");
    }

    fn now_ms(&self) -> i64 {
        self.began.elapsed().as_millis() as i64
    }

    /// What the real server says, as it says it.
    fn ask(&mut self, words: &[&str]) -> Vec<u8> {
        let mut request = format!("*{}\r\n", words.len());
        for word in words {
            request.push_str(&format!("${}\r\n{word}\r\n", word.len()));
        }
        self.real.write_all(request.as_bytes()).expect("it listens");
        let (mut reply, mut room) = (Vec::new(), [0; 4096]);
        while !is_whole(&reply) {
            let read = self.real.read(&mut room).expect("it answers");
            assert!(read > 0, "it has closed the connection");
            reply.extend_from_slice(&room[..read]);
        }
        reply
    }
}

/// Whether that is all of a reply; an array is one of numbers.
fn is_whole(reply: &[u8]) -> bool {
    if let Some(rest) = reply.strip_prefix(b"*") {
        let text = String::from_utf8_lossy(rest);
        let (lines, count) = (text.matches("\r\n").count(), text.split("\r\n").next());
        return count.and_then(|it| it.parse().ok()).is_some_and(|it: usize| lines == it + 1);
    }
    let Some(line) = reply.windows(2).position(|it| it == b"\r\n") else { return false };
    match (reply[0], std::str::from_utf8(&reply[1..line]).ok().and_then(|it| it.parse().ok())) {
        (b'$', Some(length @ 0..)) => reply.len() as i64 == line as i64 + 2 + length + 2,
        _ => reply.len() == line + 2,
    }
}

fn number(reply: &[u8]) -> Option<i64> {
    let digits = reply.strip_prefix(b":")?.strip_suffix(b"\r\n")?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// An array of two numbers.
fn pair(reply: &[u8]) -> Option<(i64, i64)> {
    let numbers = std::str::from_utf8(reply.strip_prefix(b"*2\r\n:")?).ok()?;
    let (first, second) = numbers.split_once("\r\n:")?;
    Some((first.parse().ok()?, second.strip_suffix("\r\n")?.parse().ok()?))
}

/// Before Redis 7.0 an error in a script is one of the script, and has the other within.
fn is_wrapped(real: &[u8], code: &[u8]) -> bool {
    let words = String::from_utf8_lossy(real);
    product().is_before_7()
        && words.starts_with("-ERR Error running script")
        && words.contains(&*format!(" {} ", String::from_utf8_lossy(code)))
}

/// The first word of an error.
fn code(reply: &[u8]) -> &[u8] {
    reply.split(|it| *it == b' ').next().unwrap_or_default()
}
