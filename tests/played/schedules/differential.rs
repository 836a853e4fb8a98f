//! The servers that are played beside a real one: the same commands to both, and the same replies,
//! byte for byte. Only what is left of a TTL may differ, by as long as the exchange took.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::command::guard::{MARK, RAISE};
use crate::command::several::waking::{ENROL_SCRIPT, RELEASE_SCRIPT};
use crate::command::shared::{acquire, enrol, extend, inspect, intend, release};
use crate::command::waking::{
    ENROL, ENROL_PERMITS, LEAVE, LEAVE_PERMITS, LEAVE_SLOT, RELEASE_AND_WAKE, RELEASE_PERMITS,
    RELEASE_SLOT,
};
use crate::command::{
    acquire_fenced, inspect_permits, raise_fence, release_permits, several, take_permit,
};
use crate::support::product::product;
use crate::support::{Server, wait_until};
use crate::world::commands::{EXTEND, RELEASE};
use crate::world::dice::Dice;
use crate::world::store::{Dialect, Memory, Refusal, Session, Store, tag};

const SEQUENCES: u64 = 60;
const COMMANDS: usize = 60;
const KEYS: [&str; 3] = ["a", "b", "c"];
const TOKENS: [&str; 3] =
    ["1111111111111111111111111111111111111111", "2222222222222222222222222222222222222222", ""];

/// The key of the note that a server bears of its memory, and what the server that is played takes for the time of
/// day, in milliseconds: long ago.
const NOTE: &str = "redlock:guard";
const PLAYED_MS: i64 = 1_000_000_000_000;

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
        pair.store.lines.clear();
        pair.store.intents.clear();
        pair.ask(&["FLUSHALL"]);
    }
}

/// What the scripts do that mark a server, and that raise the longest TTL: from every note that there may be.
#[test]
fn the_notes_that_are_played_are_those_of_a_real_server() {
    const IDS: [&str; 2] =
        ["1111111111111111111111111111111111111111", "2222222222222222222222222222222222222222"];
    let server = Server::start();
    let mut pair = Pair::new(&server, None);
    pair.store.memory = Some(Memory::of(0));
    let [own, other] = IDS;
    let notes = [
        String::new(),
        format!("{own} 5 7000"),
        format!("{own} -5 7000"),
        format!("{other} 5 7000"),
        format!("{other} -5 7000"),
        format!("{other} 5"),
        "nothing of ours".to_owned(),
    ];
    let far = i64::MAX / 1_000;
    let marks = [("lost", 0), ("fresh", far), ("fresh", 1), ("kept", 0)];
    for note in &notes {
        for (how, until) in marks {
            for longest in ["3000", "9000"] {
                let until = until.to_string();
                pair.compare_notes(note, &["EVAL", MARK, "1", NOTE, own, longest, how, &until]);
            }
        }
        for ttl in ["3000", "9000"] {
            pair.compare_notes(note, &["EVAL", RAISE, "1", NOTE, ttl]);
        }
    }
}

/// Lines of a resource that is taken and released again and again, where random commands would seldom meet.
#[test]
fn the_lines_that_are_played_are_those_of_a_real_server() {
    let server = Server::start();
    let mut pair = Pair::new(&server, None);
    let mut dice = Dice::new(1);
    let mut told = 0;
    for _ in 0..400 {
        if dice.once_in(3) {
            let ttl = &*pair.ttl(&mut dice);
            pair.compare(&["SET", "a", TOKENS[0], "PX", ttl, "NX"]);
        }
        let token = TOKENS[usize::from(dice.once_in(8))];
        told += pair.step_in_line(&mut dice, "a", token);
    }
    assert!(told > 20, "{told} were told");
}

/// Readers of a resource, and a writer that waits for them or has it: joined, extended, left and looked at again and again.
#[test]
fn the_readers_that_are_played_are_those_of_a_real_server() {
    let server = Server::start();
    let mut pair = Pair::new(&server, None);
    let mut dice = Dice::new(2);
    let (mut told, mut joined) = (0, 0);
    for _ in 0..40 {
        for _ in 0..60 {
            let (told_now, has_joined) = pair.step_shared(&mut dice);
            (told, joined) = (told + told_now, joined + usize::from(has_joined));
        }
        pair.store.lines.clear();
        pair.store.intents.clear();
        pair.ask(&["FLUSHALL"]);
        pair.store.keys.clear();
        pair.ttls = 0;
    }
    assert!(told > 20 && joined > 100, "{told} were told, {joined} have joined");
}

#[test]
fn so_are_the_lines_of_those_who_wait_for_permits_and_for_two_keys() {
    let server = Server::start();
    let mut pair = Pair::new(&server, None);
    let mut dice = Dice::new(1);
    let mut told = 0;
    for _ in 0..1_200 {
        let key = dice.pick(&KEYS);
        if dice.once_in(2) {
            let ttl = &*pair.ttl(&mut dice);
            pair.compare(&["SET", key, TOKENS[0], "PX", ttl, "NX"]);
        }
        let token = TOKENS[usize::from(dice.once_in(8))];
        told += pair.step_in_other_lines(&mut dice, token);
    }
    assert!(told > 20, "{told} were told");
}

/// A request to join the readers that is carried out late finds what has been set since, with a longer TTL.
#[test]
fn who_joins_readers_once_more_keeps_what_he_has() {
    let server = Server::start();
    let mut pair = Pair::new(&server, None);
    let script = acquire::SCRIPT;
    let has = |token| ["EVAL", inspect::SCRIPT, "2", "a", "a:r", token, "127", "9000000"];
    for (token, ttl, least) in [
        (TOKENS[0], "900000", 800_000),
        (TOKENS[0], "100000", 800_000),
        (TOKENS[1], "200000", 100_000),
        (TOKENS[0], "2000000", 1_900_000),
        (TOKENS[1], "100000", 100_000),
    ] {
        pair.compare(&["EVAL", script, "3", "a", "a:r", "a:i", token, ttl, "500"]);
        pair.compare(&has(token));
        pair.compare(&["PTTL", "a"]);
        let said = super::differential::pair(&pair.ask(&has(token))).expect("two numbers");
        assert!(said.0 == 1 && said.1 > least, "{said:?} after {ttl}");
    }
}

/// What stands on a server that nobody of ours has left so: that is not played.
#[test]
fn readers_that_are_over_or_left_alone_are_none() {
    const NEVER: &str = "315360000000";
    let server = Server::start();
    let mut pair = Pair::new(&server, None);
    let number_of = |pair: &mut Pair, words: &[&str]| number(&pair.ask(words)).expect("a number");
    let join = |ttl| ["EVAL", acquire::SCRIPT, "3", "a", "a:r", "a:i", TOKENS[0], ttl, "500"];
    let extend = ["EVAL", extend::SCRIPT, "2", "a", "a:r", TOKENS[1], "50000", NEVER];
    let release = |token| ["EVAL", release::SCRIPT, "2", "a", "a:r", token, NEVER];

    // Those of a resource that is gone are none of the next.
    pair.ask(&["ZADD", "a:r", "9000000000000", TOKENS[1]]);
    assert_eq!(number_of(&mut pair, &join("60000")), 1);
    assert_eq!(number_of(&mut pair, &["ZCARD", "a:r"]), 1);

    // One that is over stands there until another joins.
    pair.ask(&["ZADD", "a:r", "5", TOKENS[1]]);
    assert_eq!(super::differential::pair(&pair.ask(&extend)), Some((0, -2)));
    assert_eq!(number_of(&mut pair, &release(TOKENS[1])), 0);
    pair.ask(&["ZADD", "a:r", "5", TOKENS[1]]);
    assert_eq!(number_of(&mut pair, &join("70000")), 1);
    assert_eq!(number_of(&mut pair, &["ZCARD", "a:r"]), 1);

    // All readers were deleted: the next has an end all the same.
    pair.ask(&["PEXPIRE", "a", "900000"]);
    pair.ask(&["DEL", "a:r"]);
    assert_eq!(number_of(&mut pair, &join("60000")), 1);
    for key in ["a", "a:r"] {
        let left_ms = number_of(&mut pair, &["PTTL", key]);
        assert!((1..=60_000).contains(&left_ms), "{key}: {left_ms}");
    }

    // The last that leaves does not wait for one that is over.
    pair.ask(&["ZADD", "a:r", "5", TOKENS[1]]);
    assert_eq!(number_of(&mut pair, &release(TOKENS[0])), 1);
    assert_eq!(number_of(&mut pair, &["EXISTS", "a", "a:r"]), 0);

    // And tells who waits that it was the last.
    assert_eq!(number_of(&mut pair, &join("60000")), 1);
    pair.ask(&["ZADD", "a:r", "5", TOKENS[1]]);
    pair.ask(&["ZADD", "a:w", "3", THERE]);
    let keys = ["EVAL", release::WAKING_SCRIPT, "4", "a", "a:r", "a:w", "a:i"];
    assert_eq!(number_of(&mut pair, &[&keys[..], &[TOKENS[0], NEVER]].concat()), 2);
    pair.hear();
}

/// Where the first in line is a reader, those right behind it are told, too, and no writer.
#[test]
fn readers_in_line_are_told_together() {
    let server = Server::start();
    let mut pair = Pair::new(&server, None);
    let line = ["ZADD", "a:w", "1.5", THERE, "2.5", "gone", "3", "a writer", "4.5", "behind it"];
    pair.ask(&line);
    pair.ask(&["SET", "a", TOKENS[0], "PX", "60000"]);
    let release = ["EVAL", RELEASE_AND_WAKE, "2", "a", "a:w", TOKENS[0]];
    assert_eq!(number(&pair.ask(&release)), Some(2));
    pair.hear();
    assert_eq!(number(&pair.ask(&["ZCARD", "a:w"])), Some(2));
    let release = ["EVAL", RELEASE_SCRIPT, "2", "a", "a:w", TOKENS[0], "1", "1"];
    pair.ask(&["DEL", "a:w"]);
    pair.ask(&line);
    pair.ask(&["SET", "a", TOKENS[0], "PX", "60000"]);
    assert_eq!(super::differential::pair(&pair.ask(&release)), Some((1, 2)));
    pair.hear();
    assert_eq!(number(&pair.ask(&["ZCARD", "a:w"])), Some(2));
}

/// Two keys with fencing tokens: numbers that no clock bounds.
#[test]
fn the_tokens_of_two_keys_are_drawn_and_raised_as_by_a_real_server() {
    const SPREAD: &str = "4000000000000000";
    let server = Server::start();
    let mut pair = Pair::new(&server, None);
    let mut dice = Dice::new(1);
    let [a, b, _] = KEYS;
    let counters = [&*format!("{a}:f"), &*format!("{b}:f")];
    for _ in 0..300 {
        let (token, number) = (dice.pick(&TOKENS), dice.between(1, 6).to_string());
        let ttl = &*pair.ttl(&mut dice);
        let keys = ["4", a, b, counters[0], counters[1], token];
        match dice.below(4) {
            0 => pair.compare(&["EVAL", RELEASE, "1", dice.pick(&[a, b]), token]),
            1 => {
                let words = ["EVAL", several::raise::SCRIPT];
                pair.compare(&[&words[..], &keys, &[&number, "3600000"]].concat());
            }
            _ => {
                let words = ["EVAL", several::fenced::SCRIPT];
                pair.compare(&[&words[..], &keys, &[ttl, &number, SPREAD, "3600000"]].concat());
            }
        }
    }
}

/// Whatever a client proposes, the number is near the clock of the server that draws it; and beyond the one before.
#[test]
fn the_number_that_is_drawn_is_near_the_servers_clock() {
    let server = Server::start();
    let mut pair = Pair::new(&server, None);
    let clock_us = |pair: &mut Pair| {
        let said = pair.ask(&["EVAL", "local t=redis.call('TIME') return t[1]*1000000+t[2]", "0"]);
        number(&said).expect("a number")
    };
    for (nth, (ahead_us, least_us, most_us)) in [
        (0, 0, 0),
        (-700_000, -700_000, -700_000),
        (700_000, 700_000, 700_000),
        (-i64::from(i32::MAX), -1_000_000, -1_000_000),
        (i64::from(i32::MAX), 1_000_000, 1_000_000),
    ]
    .into_iter()
    .enumerate()
    {
        let (key, before) = (nth.to_string(), clock_us(&mut pair));
        let (counter, proposed) = (format!("{key}:f"), (before + ahead_us).to_string());
        let script = acquire_fenced::SCRIPT;
        let words = ["EVAL", script, "2", &key, &counter, "t", "60000", &proposed, "1000000"];
        let mut draw = |key| {
            let mut words = words;
            words[3] = key;
            let said = pair.ask(&[&words[..], &["3600000"]].concat());
            super::differential::pair(&said).expect("two numbers")
        };
        let (granted, drawn) = draw(&key);
        let (_, next) = draw("another");
        let after = clock_us(&mut pair);
        assert_eq!(granted, 1);
        let is_clamped = ahead_us.abs() > 1_000_000;
        let least = before + least_us;
        let most = if is_clamped { after + most_us } else { before + most_us };
        assert!(
            (least..=most).contains(&drawn),
            "{ahead_us}: {drawn} between {before} and {after}"
        );
        assert!(next > drawn, "{next} after {drawn}");
        pair.ask(&["DEL", "another"]);
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

/// The channel of the waiter that is there, and the number of its connection.
const THERE: &str = "there";
const LISTENER: usize = 1;

struct Pair {
    real: TcpStream,
    /// Who listens to the channel.
    listener: TcpStream,
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
        let mut store = Store::new(Dialect::Plain, -1, password);
        store.channels.listeners.push((tag(THERE.as_bytes()), LISTENER));
        let (session, began) = (Session::default(), Instant::now());
        let listener = listen(server, password);
        let (refusal, ttls, slowest_ms) = (None, 0, 0);
        let mut pair = Self { real, listener, store, session, began, refusal, ttls, slowest_ms };
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
        match dice.below(50) {
            36..=41 => self.step_permits(dice, token, ttl),
            42..=45 => drop(self.step_in_line(dice, key, token)),
            46..=49 => drop(self.step_in_other_lines(dice, token)),
            24..=29 => self.step_fenced(dice, key, token, ttl),
            30..=35 => self.step_several(dice, token, ttl),
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

    /// Both bear this note, or none, and are sent this: they say the same, and bear the same then, where the clocks
    /// that they show are taken for the same.
    fn compare_notes(&mut self, note: &str, words: &[&str]) {
        let memory = self.store.memory.as_mut().expect("it tells of its memory");
        memory.note = (!note.is_empty()).then(|| note.as_bytes().into());
        match note {
            "" => self.ask(&["DEL", NOTE]),
            _ => self.ask(&["SET", NOTE, note]),
        };
        let (mut real, mut played) = (Vec::new(), Vec::new());
        for words in [words, &["GETRANGE", NOTE, "0", "127"]] {
            real.extend(self.ask(words));
            let bytes: Vec<&[u8]> = words.iter().map(|it| it.as_bytes()).collect();
            self.store.execute(&mut self.session, &bytes, PLAYED_MS, &mut played);
        }
        // Nothing else has so many digits that are no name of a process.
        let without_clock = |said: &[u8]| -> Vec<String> {
            let said = String::from_utf8_lossy(said).into_owned();
            let words = said.split(['\r', '\n', ' ', ':']).filter(|it| !it.starts_with('$'));
            words.map(|it| shown(it).unwrap_or(it).to_owned()).collect()
        };
        let (real, played) = (without_clock(&real), without_clock(&played));
        assert_eq!(real, played, "{note:?} {words:?}: what is real, and what is played");
    }

    /// Numbers that no clock bounds: those of the two servers show other times.
    fn step_fenced(&mut self, dice: &mut Dice, key: &str, token: &str, ttl: &str) {
        const SPREAD: &str = "4000000000000000";
        let counter = format!("{key}:f");
        let number = dice.between(1, 6).to_string();
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

    /// The keys are slots of a semaphore, and what stands there of others is a permit that somebody has.
    fn step_permits(&mut self, dice: &mut Dice, token: &str, ttl: &str) {
        let slot = dice.between(1, 3).to_string();
        let (script, rest) = match dice.below(6) {
            0 | 1 => (take_permit::SCRIPT, vec![token, ttl, &slot, "3"]),
            2 => (take_permit::SCRIPT, vec![token, ttl, &slot, "1"]),
            3 => (release_permits::SCRIPT, vec![token, "0"]),
            4 => (release_permits::SCRIPT, vec![token, &slot]),
            _ => (inspect_permits::SCRIPT, vec!["128"]),
        };
        let slots = ["EVAL", script, "3", KEYS[0], KEYS[1], KEYS[2]];
        self.compare(&[&slots[..], &rest].concat());
    }

    /// Of two waiters one has waited for longer than anybody is believed to have, and hears nothing; the other is there,
    /// and will have come in a while, so that its turn is never before the other's.
    fn step_in_line(&mut self, dice: &mut Dice, key: &str, token: &str) -> usize {
        const WAITERS: [(&str, &str); 2] = [("gone", "0"), (THERE, "9000000000000000")];
        let (line, (channel, since)) = (format!("{key}:w"), dice.pick(&WAITERS));
        match dice.below(4) {
            0 | 1 => self.compare(&["EVAL", ENROL, "2", key, &line, channel, since, "100000"]),
            2 => self.compare(&["EVAL", LEAVE, "2", key, &line, channel]),
            _ => self.compare(&["EVAL", RELEASE_AND_WAKE, "2", key, &line, token]),
        }
        self.told()
    }

    /// The same of those who wait for a permit of a semaphore, whose slots are the keys, or for two keys at once.
    fn step_in_other_lines(&mut self, dice: &mut Dice, token: &str) -> usize {
        const WAITERS: [(&str, &str); 2] = [("gone", "0"), (THERE, "9000000000000000")];
        let ((channel, since), [a, b, c]) = (dice.pick(&WAITERS), KEYS);
        let (of_a, of_b, ttl) = (&*format!("{a}:w"), &*format!("{b}:w"), "100000");
        let (all, one, other) = (["4", a, b, of_a, of_b], ["3", a, b, of_a], ["3", a, b, of_b]);
        let four = ["4", a, b, c, of_a];
        let slot = ["3", b, of_b, of_a];
        let stays = dice.pick(&["0", "1", "3"]);
        let words: Vec<&str> = match dice.below(12) {
            0 => [&["EVAL", ENROL_PERMITS][..], &four, &[channel, since, ttl]].concat(),
            1 => [&["EVAL", LEAVE_PERMITS][..], &four, &[channel]].concat(),
            2 | 3 => [&["EVAL", RELEASE_PERMITS][..], &four, &[token, stays]].concat(),
            4 => [&["EVAL", RELEASE_SLOT][..], &slot, &[token]].concat(),
            5 => [&["EVAL", LEAVE_SLOT][..], &slot, &[channel]].concat(),
            6 => {
                [&["EVAL", ENROL_SCRIPT][..], &all, &[channel, since, ttl, "2", "1", "2"]].concat()
            }
            7 => [&["EVAL", ENROL_SCRIPT][..], &one, &[channel, since, ttl, "2", "1"]].concat(),
            8 => [&["EVAL", ENROL_SCRIPT][..], &other, &[channel, since, ttl, "2", "2"]].concat(),
            9 => [&["EVAL", RELEASE_SCRIPT][..], &other, &[token, "2", "2"]].concat(),
            _ => [&["EVAL", RELEASE_SCRIPT][..], &all, &[token, "2", "1", "2"]].concat(),
        };
        self.compare(&words);
        self.told()
    }

    /// What is told goes to one that listens, and names the key. Returns how much was told.
    fn told(&mut self) -> usize {
        let said = std::mem::take(&mut self.store.channels.said);
        let count = said.len();
        for (connection, push) in said {
            assert_eq!(connection, LISTENER);
            let told = self.hear();
            let is_same = push.strip_prefix(b">").zip(told.strip_prefix(b"*"));
            assert!(is_same.is_some_and(|it| it.0 == it.1), "{:?}", String::from_utf8_lossy(&told));
        }
        count
    }

    /// One of the scripts about readers. Returns how many were told something, and whether a reader has joined.
    fn step_shared(&mut self, dice: &mut Dice) -> (usize, bool) {
        const NEVER: &str = "315360000000";
        let (key, readers, line, intent) = ("a", "a:r", "a:w", "a:i");
        let (token, ttl) = (TOKENS[dice.below(2)], &*self.ttl(dice));
        let (channel, since) = dice.pick(&[("gone", "0"), (THERE, "9000000000000000")]);
        // A word that outlives this test.
        let word = "200000000";
        let longest = "300000000";
        match dice.below(16) {
            0..=3 => {
                let join = ["EVAL", acquire::SCRIPT, "3", key, readers, intent, token, ttl];
                self.compare(&[&join[..], &[longest]].concat());
                return (0, self.store.keys.iter().any(|it| it.is_reader));
            }
            4 => self.compare(&["EVAL", extend::SCRIPT, "2", key, readers, token, ttl, NEVER]),
            5 => self.compare(&["EVAL", extend::SCRIPT, "2", key, readers, token, "0", NEVER]),
            6 => self.compare(&["EVAL", release::SCRIPT, "2", key, readers, token, NEVER]),
            7 | 8 => {
                let keys = ["4", key, readers, line, intent, token, NEVER];
                self.compare(&[&["EVAL", release::WAKING_SCRIPT][..], &keys].concat());
            }
            9 => self.compare(&["EVAL", inspect::SCRIPT, "2", key, readers, token, "128", NEVER]),
            10 if dice.once_in(2) => {
                self.compare(&["EVAL", intend::SCRIPT, "2", key, intent, word]);
            }
            10 => self.compare(&["EVAL", RELEASE, "1", intent, "redlock:writer"]),
            11 | 12 => {
                let keys = ["3", key, line, intent, channel, since, "100000", longest];
                self.compare(&[&["EVAL", enrol::SCRIPT][..], &keys].concat());
            }
            13 => self.compare(&["EVAL", ENROL, "2", key, line, channel, since, "100000"]),
            14 if dice.once_in(2) => self.compare(&["EVAL", LEAVE, "2", key, line, channel]),
            14 => self.compare(&["EVAL", RELEASE_AND_WAKE, "2", key, line, token]),
            _ if dice.once_in(2) => self.compare(&["SET", key, token, "PX", ttl, "NX"]),
            _ => self.compare(&["ZCARD", readers]),
        }
        (self.told(), false)
    }

    /// What the one that listens is told by the real server.
    fn hear(&mut self) -> Vec<u8> {
        let (mut told, mut byte) = (Vec::new(), [0]);
        while !told.ends_with(b"\r\n") || told.windows(2).filter(|it| it == b"\r\n").count() < 7 {
            self.listener.read_exact(&mut byte).expect("it is told");
            told.push(byte[0]);
        }
        told
    }

    /// Two keys at once, in either order.
    fn step_several(&mut self, dice: &mut Dice, token: &str, ttl: &str) {
        let one = dice.pick(&KEYS);
        let others: Vec<&str> = KEYS.into_iter().filter(|it| *it != one).collect();
        let other = dice.pick(&others);
        let script = dice.pick(&[
            several::acquire::SCRIPT,
            several::acquire::SCRIPT,
            several::repair::SCRIPT,
            several::extend::SCRIPT,
            several::extend::SCRIPT,
            several::release::SCRIPT,
        ]);
        let words = ["EVAL", script, "2", one, other, token, ttl];
        let is_without_ttl = script == several::release::SCRIPT
            || script == several::extend::SCRIPT && dice.once_in(2);
        self.compare(&words[..if is_without_ttl { 6 } else { 7 }]);
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
            (None, None) if triple(&real).is_some() => {
                let (real, played) = (triple(&real), triple(&played));
                real.zip(played).is_some_and(|(real, played)| {
                    let is_left = real.1 == played.1 || is_near(real.1, played.1);
                    (real.0, real.2) == (played.0, played.2) && is_left
                })
            }
            (None, None) if real.starts_with(b"*") && numbers(&real).is_empty() => {
                let (real, played) = (parts(&real), parts(&played));
                let is_same = |it: (&String, &String)| match (it.0.parse(), it.1.parse()) {
                    // Numbers of slots are less than any time.
                    (Ok(real @ 1_000_i64..), Ok(played)) => is_near(real, played),
                    _ => it.0 == it.1,
                };
                real.len() == played.len() && real.iter().zip(&played).all(is_same)
            }
            (None, None) if real.starts_with(b"*") => {
                let (real, played) = (numbers(&real), numbers(&played));
                let is_drawn = words[1] == acquire_fenced::SCRIPT && real.first() == Some(&1);
                // The second is a time.
                // Of two keys that end at about the same time either is the last: the time says that it is one that is.
                let is_one_of_two = [several::fenced::SCRIPT, several::acquire::SCRIPT]
                    .contains(&words[1])
                    && real.iter().chain(&played).all(|it| *it > 0);
                let is_alike = |place: usize| {
                    let (real, played) = (real[place], played[place]);
                    real == played
                        || place == 1 && !is_drawn && is_near(real, played)
                        || place == 0 && is_one_of_two
                };
                let is_array = !real.is_empty() && real.len() == played.len();
                is_array && (0..real.len()).all(is_alike)
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

/// A connection that listens to the channel.
fn listen(server: &Server, password: Option<&str>) -> TcpStream {
    let mut listener = TcpStream::connect(server.address()).expect("it is up");
    listener.set_read_timeout(Some(Duration::from_secs(20))).expect("it can be set");
    let log_in = password.map_or(String::new(), |it| format!("AUTH {it}\r\n"));
    let request = format!("{log_in}SUBSCRIBE {THERE}\r\n");
    listener.write_all(request.as_bytes()).expect("it listens");
    let (mut said, mut byte) = (Vec::new(), [0]);
    while !said.ends_with(b":1\r\n") {
        listener.read_exact(&mut byte).expect("it answers");
        said.push(byte[0]);
    }
    listener
}

/// Whether a number is what a clock shows, or less than nothing by as much.
fn shown(word: &str) -> Option<&'static str> {
    let ms: i64 = word.parse().ok().filter(|_| word.len() < 20)?;
    match ms {
        PLAYED_MS.. => Some("now"),
        _ if ms <= -PLAYED_MS => Some("-now"),
        _ => None,
    }
}

/// Whether that is all of a reply; an array is one of numbers, and of texts without ends of lines.
fn is_whole(reply: &[u8]) -> bool {
    if let Some(rest) = reply.strip_prefix(b"*") {
        let text = String::from_utf8_lossy(rest);
        let mut lines = text.split("\r\n");
        let count = lines.next().and_then(|it| it.parse().ok());
        let texts = text.split("\r\n").filter(|it| it.starts_with('$')).count();
        let ends = text.matches("\r\n").count();
        return count.is_some_and(|it: usize| ends == it + 1 + texts);
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

/// The numbers and the texts of an array, in their order.
fn parts(reply: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(reply);
    let lines = text.split("\r\n").filter(|it| !it.starts_with(['$', '*']));
    lines.map(|it| it.trim_start_matches(':').to_owned()).collect()
}

/// An array of numbers; empty if it is none.
fn numbers(reply: &[u8]) -> Vec<i64> {
    let Ok(text) = std::str::from_utf8(reply) else { return Vec::new() };
    let numbers: Option<Vec<i64>> = text
        .split_terminator("\r\n")
        .skip(1)
        .map(|it| it.strip_prefix(':').and_then(|it| it.parse().ok()))
        .collect();
    numbers.filter(|it| text == shape(it)).unwrap_or_default()
}

fn shape(numbers: &[i64]) -> String {
    let all: String = numbers.iter().map(|it| format!(":{it}\r\n")).collect();
    format!("*{}\r\n{all}", numbers.len())
}

/// An array of two numbers.
fn pair(reply: &[u8]) -> Option<(i64, i64)> {
    let numbers = std::str::from_utf8(reply.strip_prefix(b"*2\r\n:")?).ok()?;
    let (first, second) = numbers.split_once("\r\n:")?;
    Some((first.parse().ok()?, second.strip_suffix("\r\n")?.parse().ok()?))
}

/// An array of three numbers.
fn triple(reply: &[u8]) -> Option<(i64, i64, i64)> {
    let numbers = std::str::from_utf8(reply.strip_prefix(b"*3\r\n:")?).ok()?;
    let mut numbers = numbers.strip_suffix("\r\n")?.split("\r\n:");
    let mut next = || numbers.next()?.parse().ok();
    Some((next()?, next()?, next()?))
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
