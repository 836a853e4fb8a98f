//! A server's note of its own memory, in a key without a TTL:
//! `1 run_id generation since_ms longest_ms life [words]`. A server that was restarted without its data, flushed,
//! or replaced by another has no note, or another server's note.
//!
//! - `1` is the version of this form.
//! - `generation` grows with every rewrite. So a note that is brought back (`SWAPDB`, an imported dump) is
//!   known by its lower generation, whatever the clocks show.
//! - `since_ms` is when a client first saw that nothing from before was known, in milliseconds of the server's
//!   clock. It is below 0 if the server was new then, so that nothing can have been lost.
//! - `longest_ms` is the longest TTL of the locks on the server.
//! - `life` is drawn when a client marks the server as new or as one that lost its memory. All other rewrites
//!   keep it.
//! - Each further word begins with a letter that says what it is. Words that are not known are kept:
//!   `a`: all grants of this life went into a log that is always synced;
//!   `p` and an id: the server was promoted, and this is its `master_replid2` at that time;
//!   `e` and a number: the epoch in which the server became the master, as its Sentinels say. 0 if it is missing.

use std::fmt::{self, Write};

use redis::Value;

use super::answer::failure_of;
use super::identity::{Identity, RunId};
pub use super::memory_id::MemoryId;
use super::script::script;
use crate::protocol::failure::Failure;

/// The name of the note's key. No lock may have this name.
pub const KEY: &str = "redlock:guard";

/// For how long after a server was marked as new it may belong to a deployment that is being started.
const YOUNG_MS: i64 = 2_000;

/// A note that is dated in the future by more than this was made while the server's clock was ahead.
const FUTURE_MS: i64 = 1_000;

/// Doubles, which Lua and JavaScript have, are exact up to twice this number. A greater one is no number of ours.
const NUMBER_MAX: i64 = 1 << 52;

/// The maximum length of a note.
const LENGTH_MAX: usize = 255;

const VERSION: &str = "1";

/// Reads the note. Sent behind an acquire, it tells which memory has granted the acquire. It reads one byte more
/// than a note may have.
pub(crate) fn read(prefix: &[u8]) -> Vec<u8> {
    let mut command = redis::cmd("GETRANGE");
    command.arg(key(prefix)).arg(0).arg(LENGTH_MAX).get_packed_command()
}

/// The name of the note's key on a server whose keys have this before their names.
fn key(prefix: &[u8]) -> Vec<u8> {
    [prefix, KEY.as_bytes()].concat()
}

/// The note of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub id: RunId,
    pub generation: i64,
    pub since_ms: i64,
    pub longest_ms: i64,
    pub life: MemoryId,
    /// Whether every grant of this life went into a log that is always synced.
    pub is_logged: bool,
    /// What the server's `master_replid2` was when it was marked, if it had been promoted.
    pub promotion: Option<RunId>,
    /// The epoch in which the server became the master that Sentinels watch.
    pub epoch: u64,
    /// The words of later versions of this library, each with a blank before it.
    pub more: String,
}

/// What is written as the time since when a memory is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Since {
    /// The present: nothing from before is known.
    Now,
    /// The server is new, so there was nothing before. The server itself must show that, and its clock must
    /// not be past this time. Otherwise this is the same as [`Since::Now`].
    Fresh { until_ms: i64 },
    /// Milliseconds of the server's clock, below 0 for a server that was new then.
    At(i64),
}

/// What a server has for a note, read together with its clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    /// What the clock showed, and how much more it may have shown.
    pub(crate) now_us: i64,
    pub(crate) grain_us: i64,
    pub(crate) borne: Borne,
    /// The text that was read.
    pub(crate) text: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Borne {
    Nothing,
    /// A text that is no note.
    Damaged,
    /// Something that this library must not overwrite.
    Unusable(Unusable),
    Note(Note),
}

/// What this library must not overwrite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unusable {
    /// The value of another program.
    WrongType,
    /// A note of a newer version of this library.
    Newer,
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::WrongType => {
                "key redlock:guard has the wrong type: another program uses it, delete the key"
            }
            Self::Newer => {
                "key redlock:guard was written by a newer version of this library: upgrade this client"
            }
        })
    }
}

impl Note {
    /// What the server's clock shows when a test sees a note.
    #[cfg(test)]
    pub(crate) const SEEN_MS: i64 = 60_000;

    /// A note of this process and memory. Of such a note, nothing else matters to a test.
    #[cfg(test)]
    pub(crate) fn sample(id: RunId, life: MemoryId, generation: i64) -> Self {
        let (since_ms, longest_ms, more) = (-1, 10_000, String::new());
        let (is_logged, promotion, epoch) = (false, None, 0);
        Self { id, generation, since_ms, longest_ms, life, is_logged, promotion, epoch, more }
    }

    /// The note of a memory that begins with this process. `old` is the note of the memory before it. `known` is the
    /// greatest generation of its notes that was seen, and the longest TTL that is known to be in use.
    pub(crate) fn of_beginning(
        (id, life): (RunId, MemoryId),
        old: Option<&Self>,
        (known, longest_ms): (i64, i64),
        identity: &Identity,
    ) -> Self {
        Self {
            id,
            generation: Self::generation_after(old.map_or(0, |it| it.generation).max(known)),
            since_ms: 0,
            longest_ms: old.map_or(0, |it| it.longest_ms).max(longest_ms),
            life,
            is_logged: identity.logs_all(),
            promotion: identity.promotion(),
            epoch: 0,
            more: old.map_or_else(String::new, |it| it.more.clone()),
        }
    }

    /// Whether the server was new when it was marked, so that nothing can have been lost.
    pub(crate) fn is_of_new(&self) -> bool {
        self.since_ms < 0
    }

    /// The generation of the note that replaces a note of this generation.
    pub(crate) fn generation_after(generation: i64) -> i64 {
        // Nobody rewrites a note so often. But a note with such a number may have been put there.
        if generation < NUMBER_MAX { generation + 1 } else { 1 }
    }

    /// For how long the server still belongs to a deployment that is being started, when its clock shows
    /// `now_ms`.
    pub(crate) fn young_ms(&self, now_ms: i64) -> i64 {
        let age_ms = now_ms.saturating_add(self.since_ms).max(0);
        if self.is_of_new() { YOUNG_MS.saturating_sub(age_ms).max(0) } else { 0 }
    }

    /// How long ago the memory began, when the server's clock shows `now_ms`. One less, because both values were cut to
    /// whole milliseconds.
    pub(crate) fn age_ms(&self, now_ms: i64) -> i64 {
        now_ms.saturating_sub(self.since_ms.saturating_abs()).saturating_sub(1).max(0)
    }

    /// What the time must be corrected to, if the note is dated in the future of a clock that shows `now_ms`.
    /// The clock was set back since then. The corrected note of a new server is an old one, because the
    /// deployment is not being started now.
    pub(crate) fn corrected(&self, now_ms: i64) -> Option<Since> {
        let is_ahead = self.since_ms.saturating_abs() > now_ms.saturating_add(FUTURE_MS);
        let corrected = if self.is_of_new() { Since::At(-1) } else { Since::Now };
        is_ahead.then_some(corrected)
    }

    /// The text of the note up to its time, and behind it.
    fn around_since(&self) -> (String, String) {
        let Self { id, generation, longest_ms, life, is_logged, promotion, epoch, more, .. } = self;
        let head = format!("{VERSION} {} {generation}", id.as_str());
        let mut tail = format!("{longest_ms} {}", life.as_str());
        if *is_logged {
            tail += " a";
        }
        if let Some(id) = promotion {
            let _ = write!(tail, " p{}", id.as_str());
        }
        if *epoch > 0 {
            let _ = write!(tail, " e{epoch}");
        }
        (head, tail + more)
    }

    fn parse(text: &str) -> Option<Self> {
        let number = |word: &str| word.parse().ok().filter(|it: &i64| it.abs() <= NUMBER_MAX);
        let mut words = text.strip_prefix(VERSION)?.strip_prefix(' ')?.split(' ');
        let mut note = Self {
            id: RunId::parse(words.next()?)?,
            generation: number(words.next()?).filter(|&it| it > 0)?,
            since_ms: number(words.next()?)?,
            longest_ms: number(words.next()?).filter(|&it| it >= 0)?,
            life: MemoryId::parse(words.next()?)?,
            is_logged: false,
            promotion: None,
            epoch: 0,
            more: String::new(),
        };
        for word in words {
            match word.split_at_checked(1)? {
                ("a", "") => note.is_logged = true,
                ("p", id) => note.promotion = Some(RunId::parse(id)?),
                ("e", number) => note.epoch = number.parse().ok()?,
                _ => note.more.extend([" ", word]),
            }
        }
        Some(note)
    }
}

impl Borne {
    /// The meaning of the reply to [`READ`]. None if it is no such reply, or this user may not ask.
    pub(crate) fn of(reply: &Value) -> Option<Self> {
        match reply {
            Value::BulkString(text) => Some(Self::of_text(text)),
            Value::ServerError(error) if error.code() == "WRONGTYPE" => {
                Some(Self::Unusable(Unusable::WrongType))
            }
            _ => None,
        }
    }

    fn of_text(text: &[u8]) -> Self {
        if text.is_empty() {
            return Self::Nothing;
        }
        let text = str::from_utf8(text).ok();
        if let Some(note) = text.filter(|it| it.len() <= LENGTH_MAX).and_then(Note::parse) {
            return Self::Note(note);
        }
        let version = text.and_then(|it| it.split(' ').next()?.parse::<u32>().ok());
        if version.is_some_and(|it| it > 1) {
            return Self::Unusable(Unusable::Newer);
        }
        Self::Damaged
    }
}

/// Whether this user may not read or write the note.
pub(crate) fn is_forbidden(reply: &Value) -> bool {
    let Value::ServerError(error) = reply else { return false };
    let failure = failure_of(error);
    failure.is_of_the_kind() && !failure.is_of_another_type()
}

impl Reading {
    /// What the clock showed, in whole milliseconds.
    pub(crate) fn now_ms(&self) -> i64 {
        self.now_us / 1_000
    }

    /// The same, but by now there is a value of another type.
    pub(super) fn of_another_type(&self) -> Self {
        let borne = Borne::Unusable(Unusable::WrongType);
        Self { borne, text: Vec::new(), ..*self }
    }

    /// What the server has for a note by now, according to its reply to [`mark`].
    pub(super) fn of_mark(reply: &Value) -> Result<Self, Failure> {
        let said = match reply {
            Value::ServerError(error) => return Err(failure_of(error)),
            Value::Array(said) => &said[..],
            _ => &[],
        };
        let [Value::BulkString(text), Value::Int(now_ms)] = said else {
            return Err(Failure::ProtocolError);
        };
        let now_us = now_ms.saturating_mul(1_000);
        Ok(Self { now_us, grain_us: 1_000, borne: Borne::of_text(text), text: text.clone() })
    }
}

/// Reads the clock.
pub(crate) const TIME: &[u8] = b"*1\r\n$4\r\nTIME\r\n";

/// The meaning of the reply to `TIME`, in microseconds. None if the server refused to tell.
pub(crate) fn time_us(reply: &Value) -> Result<Option<i64>, Failure> {
    let parts = match reply {
        Value::ServerError(_) => return Ok(None),
        Value::Array(parts) => parts,
        _ => return Err(Failure::ProtocolError),
    };
    let number = |part: &Value| match part {
        Value::BulkString(digits) => str::from_utf8(digits).ok()?.parse::<i64>().ok(),
        _ => None,
    };
    match &parts[..] {
        [seconds, micros] => {
            let (seconds, micros) = (number(seconds), number(micros));
            let (seconds, micros) = seconds.zip(micros).ok_or(Failure::ProtocolError)?;
            Ok(Some(seconds.saturating_mul(1_000_000).saturating_add(micros)))
        }
        _ => Err(Failure::ProtocolError),
    }
}

pub(crate) static MARK: &str = script!("mark.lua");

pub(crate) static RAISE: &str = script!("raise.lua");

/// Replaces what the server had for a note when it was read, unless it has something else by now.
pub(super) fn mark(prefix: &[u8], read: &[u8], note: &Note, since: Since) -> redis::Cmd {
    let (head, tail) = note.around_since();
    let (since, until_ms) = match since {
        Since::Now => ("now".to_owned(), 0),
        Since::Fresh { until_ms } => ("fresh".to_owned(), until_ms),
        Since::At(ms) => (ms.to_string(), 0),
    };
    let mut command = redis::cmd("EVAL");
    command
        .arg(MARK)
        .arg(1)
        .arg(key(prefix))
        .arg(read)
        .arg(head)
        .arg(since)
        .arg(tail)
        .arg(until_ms);
    command
}

/// Has the server note that a TTL of this length is in use, if it still has this memory.
pub(crate) fn raise(prefix: &[u8], life: MemoryId, ttl_ms: i64) -> Vec<u8> {
    let mut command = redis::cmd("EVAL");
    command.arg(RAISE).arg(1).arg(key(prefix)).arg(ttl_ms).arg(life.as_str());
    command.get_packed_command()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0123456789abcdef0123456789abcdef01234567";
    const LIFE: &str = "00000000000000ff";

    fn borne(text: &str) -> Option<Borne> {
        Borne::of(&Value::BulkString(text.as_bytes().to_vec()))
    }

    fn note(text: &str) -> Note {
        match borne(text) {
            Some(Borne::Note(note)) => note,
            other => panic!("{text}: {other:?}"),
        }
    }

    fn written(note: &Note) -> String {
        let (head, tail) = note.around_since();
        format!("{head} {} {tail}", note.since_ms)
    }

    #[test]
    fn a_note_survives_a_round_trip() {
        let plain = format!("1 {ID} 3 -7 9 {LIFE}");
        let (id, life) = (RunId::parse(ID).unwrap(), MemoryId::from_random(255));
        let read = note(&plain);
        assert_eq!((read.id, read.life, read.generation), (id, life, 3));
        assert_eq!((read.since_ms, read.longest_ms), (-7, 9));
        assert_eq!((read.is_logged, read.promotion, &*read.more), (false, None, ""));
        let full = format!("{plain} a p{ID} e5 later=1");
        let read = note(&full);
        assert_eq!((read.is_logged, read.promotion, read.epoch), (true, Some(id), 5));
        assert_eq!(read.more, " later=1");
        for text in [plain, full] {
            assert_eq!(written(&note(&text)), text);
        }
        assert_eq!(borne(""), Some(Borne::Nothing));
        assert_eq!(Borne::of(&Value::Okay), None);
    }

    #[test]
    fn the_key_of_the_note_has_the_prefix_of_the_server() {
        let plain = b"*4\r\n$8\r\nGETRANGE\r\n$13\r\nredlock:guard\r\n$1\r\n0\r\n$3\r\n255\r\n";
        assert_eq!(read(b""), plain);
        let words = |bytes: Vec<u8>| String::from_utf8(bytes).expect("words");
        let key = "$16\r\n{a}redlock:guard\r\n";
        assert!(words(read(b"{a}")).contains(key));
        let life = MemoryId::from_random(7);
        assert!(words(raise(b"{a}", life, 1)).contains(key));
        let note = Note::sample(RunId::sample('a'), life, 1);
        let mark = mark(b"{a}", b"", &note, Since::Now).get_packed_command();
        assert!(words(mark).contains(key));
    }

    #[test]
    fn a_malformed_note_is_damaged() {
        let good = format!("1 {ID} 3 7 9 {LIFE}");
        let great = "9".repeat(19);
        for text in [
            "x".to_owned(),
            ID.to_owned(),
            // The note of an older version.
            format!("{ID} 7 9"),
            format!("1 {ID} 3 7 9"),
            format!("1 {ID} 3 7 9 x"),
            format!("1 {ID} 0 7 9 {LIFE}"),
            format!("1 {ID} 3 7 -9 {LIFE}"),
            format!("1 {ID} {great} 7 9 {LIFE}"),
            format!("1 {ID} 3 -{great} 9 {LIFE}"),
            format!("1 {ID} 3 7 {great}0 {LIFE}"),
            format!("1 {ID} 3 7 {} {LIFE}", NUMBER_MAX + 1),
            format!("{good} "),
            format!("{good} p7"),
            format!("{good} e"),
            format!("{good} e-1"),
            format!("{good} x{}", "y".repeat(LENGTH_MAX)),
        ] {
            assert_eq!(borne(&text), Some(Borne::Damaged), "{text}");
        }
        assert_eq!(note(&good.replace(" 9 ", &format!(" {NUMBER_MAX} "))).longest_ms, NUMBER_MAX);
    }

    #[test]
    fn a_foreign_value_is_named_and_not_overwritten() {
        let wrong_type = redis::parse_redis_value(b"-WRONGTYPE no\r\n").unwrap();
        for (borne, words) in [
            (Borne::of(&wrong_type), "the wrong type"),
            (borne("2 anything"), "a newer version"),
            (borne(&format!("2 {}", "y".repeat(LENGTH_MAX))), "a newer version"),
        ] {
            let Some(Borne::Unusable(unusable)) = borne else { panic!("{borne:?}") };
            assert!(unusable.to_string().contains(words), "{unusable}");
        }
        assert!(!is_forbidden(&wrong_type));
        // A script wraps it, before Redis 7.0.
        let wrapped = b"-ERR Error running script (call to f_1): @user_script:1: WRONGTYPE no\r\n";
        assert!(!is_forbidden(&redis::parse_redis_value(wrapped).unwrap()));
        assert!(is_forbidden(&redis::parse_redis_value(b"-NOPERM no\r\n").unwrap()));
        assert_eq!(Borne::of(&redis::parse_redis_value(b"-NOPERM no\r\n").unwrap()), None);
    }

    #[test]
    fn a_new_server_is_young_for_a_while() {
        let new = note(&format!("1 {ID} 1 -7 9 {LIFE}"));
        assert!(new.is_of_new());
        assert_eq!([7, 2_006, 2_007].map(|now| new.young_ms(now)), [2_000, 1, 0]);
        assert_eq!(Note { since_ms: 7, ..new }.young_ms(7), 0);
    }

    #[test]
    fn a_note_from_the_future_is_corrected() {
        let of = |since_ms| Note { since_ms, ..note(&format!("1 {ID} 1 7 9 {LIFE}")) };
        for (since_ms, now_ms, corrected) in [
            (5_000, 4_000, None),
            (5_000, 3_999, Some(Since::Now)),
            (-5_000, 4_000, None),
            (-5_000, 3_999, Some(Since::At(-1))),
            (-1, 0, None),
        ] {
            assert_eq!(of(since_ms).corrected(now_ms), corrected, "{since_ms} {now_ms}");
        }
    }

    #[test]
    fn a_new_memory_takes_the_greatest_values() {
        let (process, life) = (RunId::parse(ID).unwrap(), MemoryId::from_random(9));
        let begin = |old: Option<&Note>, known, identity: &Identity| {
            Note::of_beginning((process, life), old, known, identity)
        };
        let old = note(&format!("1 {ID} 3 7 9000 {LIFE} a later=1"));
        let durable = Identity::durable(true);
        for (known, generation, longest_ms) in [((0, 0), 4, 9_000), ((8, 10_000), 9, 10_000)] {
            let begun = begin(Some(&old), known, &durable);
            assert_eq!((begun.generation, begun.longest_ms), (generation, longest_ms));
            assert_eq!((begun.id, begun.life, &*begun.more), (process, life, " later=1"));
        }
        let begun = begin(None, (0, 7), &durable);
        assert_eq!((begun.generation, begun.longest_ms, begun.is_logged), (1, 7, true));
        let promoted = Identity::promoted(process);
        assert_eq!(begin(None, (0, 0), &promoted).promotion, Some(process));
        assert!(!begin(None, (0, 0), &Identity::durable(false)).is_logged);
        assert!(!begin(None, (0, 0), &Identity::rewriting()).is_logged, "it is not complete yet");
    }

    #[test]
    fn a_generation_grows_and_wraps_at_the_maximum() {
        assert_eq!([1, 7].map(Note::generation_after), [2, 8]);
        assert_eq!(Note::generation_after(NUMBER_MAX - 1), NUMBER_MAX);
        assert_eq!(Note::generation_after(NUMBER_MAX), 1);
    }

    #[test]
    fn the_clock_of_a_server_is_parsed() {
        let parts = |parts: &[&str]| {
            let part = |text: &&str| Value::BulkString(text.as_bytes().to_vec());
            time_us(&Value::Array(parts.iter().map(part).collect()))
        };
        assert_eq!(parts(&["12", "345678"]), Ok(Some(12_345_678)));
        assert_eq!(parts(&["12"]), Err(Failure::ProtocolError));
        assert_eq!(parts(&["12", "x"]), Err(Failure::ProtocolError));
        assert_eq!(time_us(&Value::Okay), Err(Failure::ProtocolError));
        assert_eq!(time_us(&redis::parse_redis_value(b"-NOPERM no\r\n").unwrap()), Ok(None));
    }
}
