//! Compares the simulated servers with a real one. Both get the same commands, and the replies must be the
//! same, byte for byte. Only a remaining TTL may differ, by the duration of the exchange.

mod edges;
mod pair;
mod replies;
mod steps;

use self::pair::{NOTE, Pair, THERE};
use self::replies::number;
use crate::protocol::command::fence::KEY as FENCE;
use crate::protocol::command::guard::{MARK, RAISE};
use crate::protocol::command::several::waking::RELEASE_SCRIPT;
use crate::protocol::command::shared::{acquire, extend, inspect, release};
use crate::protocol::command::waking::RELEASE_AND_WAKE;
use crate::protocol::command::{
    acquire_with_token, raise_fence, read_fences, restore_fences, several,
};
use crate::support::Server;
use crate::world::commands::RELEASE;
use crate::world::dice::Dice;
use crate::world::store::{Dialect, Memory, Session, Store};

const SEQUENCES: u64 = 60;
const COMMANDS: usize = 60;
const KEYS: [&str; 3] = ["a", "b", "c"];
const TOKENS: [&str; 3] =
    ["1111111111111111111111111111111111111111", "2222222222222222222222222222222222222222", ""];

/// What a client knows of a server's memory: nothing, or one of these.
const MEMORIES: [&str; 3] = ["----------------", "00000000000000aa", "00000000000000bb"];

#[test]
fn simulated_servers_answer_like_a_real_one() {
    let (open, locked) = (Server::start(), Server::start_with(&["--requirepass", "p"]));
    for seed in 0..SEQUENCES {
        let (server, password) = if seed % 5 == 0 { (&locked, Some("p")) } else { (&open, None) };
        let mut pair = Pair::new(server, password);
        let mut dice = Dice::new(seed);
        for _ in 0..COMMANDS {
            pair.step(&mut dice);
        }
        // Prepare for the next round.
        pair.refuse(None);
        pair.store.fences.clear();
        pair.store.lines.clear();
        pair.store.intents.clear();
        pair.ask(&["FLUSHALL"]);
    }
}

/// Compares the scripts that mark a server, and that raise the longest TTL, for every possible note.
#[test]
fn simulated_notes_match_a_real_server() {
    const IDS: [&str; 2] =
        ["1111111111111111111111111111111111111111", "2222222222222222222222222222222222222222"];
    let server = Server::start();
    let mut pair = Pair::new(&server, None);
    pair.store.memory = Some(Memory::of(0));
    let [own, other] = IDS;
    let [life, another] = ["00000000000000aa", "00000000000000bb"];
    let notes = [
        String::new(),
        format!("1 {own} 3 5 7000 {life}"),
        format!("1 {own} 3 -5 7000 {life} a p{other} later"),
        format!("1 {other} 3 -5 7000 {another}"),
        format!("{other} 5"),
        "nothing of ours".to_owned(),
    ];
    let (head, tail) = (format!("1 {own} 4"), format!("9000 {life} a"));
    let far = (i64::MAX / 1_000).to_string();
    let marks = [("now", "0"), ("fresh", &far), ("fresh", "1"), ("-1", "0"), ("77", "0")];
    for note in &notes {
        for judged in &notes {
            for (since, until) in marks {
                let words = ["EVAL", MARK, "1", NOTE, judged, &head, since, &tail, until];
                pair.compare_notes(note, &words);
            }
        }
        for (ttl, life) in [("3000", life), ("7000", life), ("9000", life), ("9000", another)] {
            pair.compare_notes(note, &["EVAL", RAISE, "1", NOTE, ttl, life]);
        }
    }
}

/// Wait queues of a resource that is taken and released again and again. Random commands would seldom meet
/// there.
#[test]
fn simulated_lines_match_a_real_server() {
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

/// Readers of a resource, and a writer that waits for them or holds the resource. They join, extend, leave
/// and look again and again.
#[test]
fn simulated_readers_match_a_real_server() {
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
fn simulated_lines_for_permits_and_two_keys_match() {
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

/// A request to join the readers that is carried out late finds an entry that has been set since, with a
/// longer TTL.
#[test]
fn a_reader_that_joins_again_keeps_its_ttl() {
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
        let said = replies::pair(&pair.ask(&has(token))).expect("two numbers");
        assert!(said.0 == 1 && said.1 > least, "{said:?} after {ttl}");
    }
}

/// States of a server that this library never leaves behind. They are not simulated.
#[test]
fn expired_or_orphaned_readers_do_not_count() {
    const NEVER: &str = "315360000000";
    let server = Server::start();
    let mut pair = Pair::new(&server, None);
    let number_of = |pair: &mut Pair, words: &[&str]| number(&pair.ask(words)).expect("a number");
    let join = |ttl| ["EVAL", acquire::SCRIPT, "3", "a", "a:r", "a:i", TOKENS[0], ttl, "500"];
    let extend = ["EVAL", extend::SCRIPT, "2", "a", "a:r", TOKENS[1], "50000", NEVER];
    let release = |token| ["EVAL", release::SCRIPT, "2", "a", "a:r", token, NEVER];

    // Readers of a resource that is gone do not count for the next lock.
    pair.ask(&["ZADD", "a:r", "9000000000000", TOKENS[1]]);
    assert_eq!(number_of(&mut pair, &join("60000")), 1);
    assert_eq!(number_of(&mut pair, &["ZCARD", "a:r"]), 1);

    // An expired reader remains in the set until another one joins.
    pair.ask(&["ZADD", "a:r", "5", TOKENS[1]]);
    assert_eq!(replies::pair(&pair.ask(&extend)), Some((0, -2)));
    assert_eq!(number_of(&mut pair, &release(TOKENS[1])), 0);
    pair.ask(&["ZADD", "a:r", "5", TOKENS[1]]);
    assert_eq!(number_of(&mut pair, &join("70000")), 1);
    assert_eq!(number_of(&mut pair, &["ZCARD", "a:r"]), 1);

    // All readers were deleted. The next reader has an end nevertheless.
    pair.ask(&["PEXPIRE", "a", "900000"]);
    pair.ask(&["DEL", "a:r"]);
    assert_eq!(number_of(&mut pair, &join("60000")), 1);
    for key in ["a", "a:r"] {
        let left_ms = number_of(&mut pair, &["PTTL", key]);
        assert!((1..=60_000).contains(&left_ms), "{key}: {left_ms}");
    }

    // The last reader that leaves does not wait for an expired one.
    pair.ask(&["ZADD", "a:r", "5", TOKENS[1]]);
    assert_eq!(number_of(&mut pair, &release(TOKENS[0])), 1);
    assert_eq!(number_of(&mut pair, &["EXISTS", "a", "a:r"]), 0);

    // It also tells a waiting client that it was the last one.
    assert_eq!(number_of(&mut pair, &join("60000")), 1);
    pair.ask(&["ZADD", "a:r", "5", TOKENS[1]]);
    pair.ask(&["ZADD", "a:w", "3", THERE]);
    let keys = ["EVAL", release::WAKING_SCRIPT, "4", "a", "a:r", "a:w", "a:i"];
    assert_eq!(number_of(&mut pair, &[&keys[..], &[TOKENS[0], NEVER]].concat()), 2);
    pair.hear();
}

/// If the first in the queue is a reader, the readers right behind it are told, too, and no writer is.
#[test]
fn readers_in_line_are_woken_together() {
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
    assert_eq!(replies::pair(&pair.ask(&release)), Some((1, 2)));
    pair.hear();
    assert_eq!(number(&pair.ask(&["ZCARD", "a:w"])), Some(2));
}

/// Two keys with fencing tokens, with numbers that no clock limits.
#[test]
fn simulated_tokens_of_two_keys_match_a_real_server() {
    const SPREAD: &str = "4000000000000000";
    let server = Server::start();
    let mut pair = Pair::new(&server, None);
    let mut dice = Dice::new(1);
    let [a, b, _] = KEYS;
    for _ in 0..300 {
        let (token, number) = (dice.pick(&TOKENS), dice.between(1, 6).to_string());
        let ttl = &*pair.ttl(&mut dice);
        let keys = ["3", a, b, FENCE, token];
        let rest = ["7", dice.pick(&["7", "8"]), dice.pick(&MEMORIES)];
        match dice.below(4) {
            0 => pair.compare(&["EVAL", RELEASE, "1", dice.pick(&[a, b]), token]),
            1 => {
                let words = ["EVAL", raise_fence::SCRIPT];
                pair.compare(&[&words[..], &keys, &[&number], &rest].concat());
            }
            _ => {
                let words = ["EVAL", several::fence::SCRIPT];
                pair.compare(&[&words[..], &keys, &[ttl, &number, SPREAD], &rest].concat());
            }
        }
    }
}

/// The numbers of a server are lost, read and restored, again and again.
#[test]
fn simulated_restores_match_a_real_server() {
    const SPREAD: &str = "4000000000000000";
    let server = Server::start();
    let mut pair = Pair::new(&server, None);
    pair.store.memory = Some(Memory::of(0));
    let own = "1111111111111111111111111111111111111112";
    let mut dice = Dice::new(3);
    for _ in 0..600 {
        let (life, noted) = (dice.pick(&MEMORIES[1..]), dice.pick(&MEMORIES[1..]));
        let number = &*dice.between(1, 9).to_string();
        let note = format!("1 {own} {} -5 7000 {noted}", dice.pick(&["3", "3", "4"]));
        let words = match dice.below(7) {
            0 | 1 => {
                let (clock, mark) = dice.pick(&[("0", "0"), ("5", "0"), ("5", "1")]);
                if dice.once_in(2) {
                    pair.see_numbers_lost("5");
                }
                let script = restore_fences::SCRIPT;
                let rest = [clock, SPREAD, mark, dice.pick(&["5", "5", "6"])];
                [&["EVAL", script, "2", FENCE, NOTE, "3", life, number], &rest[..]].concat()
            }
            2 => vec!["EVAL", read_fences::SCRIPT, "1", FENCE, dice.pick(&MEMORIES)],
            3 => vec!["EVAL", read_fences::SCRIPT, "1", FENCE, life],
            4 if dice.once_in(4) => {
                pair.forget_numbers();
                continue;
            }
            4 => {
                let script = raise_fence::SCRIPT;
                vec!["EVAL", script, "2", "a", FENCE, "t", number, dice.pick(&["7", "8"]), life]
            }
            _ => {
                pair.ask(&["DEL", "a"]);
                pair.store.keys.clear();
                let script = acquire_with_token::SCRIPT;
                let field = dice.pick(&["7", "8"]);
                vec!["EVAL", script, "2", "a", FENCE, "t", "60000", number, SPREAD, field, life]
            }
        };
        pair.compare_numbers(&note, &words);
    }
}

/// A server is marked as new, or as one that has lost its memory, or its note is rewritten.
#[test]
fn counters_of_a_new_server_belong_to_its_memory() {
    let server = Server::start();
    let mut pair = Pair::new(&server, None);
    pair.store.memory = Some(Memory::of(0));
    let life = MEMORIES[1];
    let tail = format!("9000 {life} a");
    let far = (i64::MAX / 1_000).to_string();
    let head = "1 1111111111111111111111111111111111111112 4";
    let read = ["EVAL", read_fences::SCRIPT, "1", FENCE, life];
    for (since, knows) in [("fresh", true), ("now", false), ("77", false)] {
        pair.forget_numbers();
        // This was seen long ago.
        pair.see_numbers_lost("5");
        pair.compare_notes("", &["EVAL", MARK, "1", NOTE, "", head, since, &tail, &far]);
        let said = replies::numbers(&pair.ask(&read));
        let is_long_ago = since == "77";
        assert_eq!(said[0] == 1, knows, "{since} {said:?}");
        assert_eq!(said[2] > 1_000_000, is_long_ago, "{since} {said:?}");
        if !is_long_ago {
            pair.compare_numbers("", &read);
        }
    }
}

/// Whatever a client proposes, the number is near the clock of the server that draws it, and greater than
/// the previous number.
#[test]
fn a_drawn_number_is_near_the_clock_of_the_server() {
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
        let (field, proposed) = (nth.to_string(), (before + ahead_us).to_string());
        let script = acquire_with_token::SCRIPT;
        let words = ["EVAL", script, "2", &key, FENCE, "t", "60000", &proposed, "1000000"];
        let mut draw = |key| {
            let mut words = words;
            words[3] = key;
            let said = pair.ask(&[&words[..], &[&field, MEMORIES[0]]].concat());
            replies::pair(&said).expect("two numbers")
        };
        let (granted, drawn) = draw(&key);
        let (_, next) = draw("another");
        let after = clock_us(&mut pair);
        assert_eq!(granted, -5);
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

/// What a server says of its own commands when arguments are missing.
#[test]
fn simulated_dialects_are_known_to_the_library() {
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
