//! A server's note of its own memory, in a key without a TTL: `run_id since_ms longest_ms`. A server that was
//! restarted without its data, flushed, or replaced by another has no note, or another server's note.
//!
//! `since_ms` is when a client first saw that nothing from before was known, in milliseconds of the server's
//! clock. It is below 0 if the server was new then, so that nothing can have been lost. `longest_ms` is the
//! longest TTL of the locks on the server.

use redis::Value;

use super::answer::failure_of;
use super::identity::RunId;
use super::script::script;
use crate::failure::Failure;

/// The name of the note's key. No lock may have this name.
pub const KEY: &str = "redlock:guard";

/// For how long after a server was marked as new it may belong to a deployment that is being started.
const YOUNG_MS: i64 = 2_000;

/// Reads the note. Sent behind an acquire, it tells which memory has granted the acquire.
pub(crate) const READ: &[u8] =
    b"*4\r\n$8\r\nGETRANGE\r\n$13\r\nredlock:guard\r\n$1\r\n0\r\n$3\r\n127\r\n";

/// The note of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    pub id: RunId,
    pub since_ms: i64,
    pub longest_ms: i64,
}

/// How to mark a server that has no note of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// Nothing from before is known.
    Lost,
    /// There was nothing before. Not valid after this time on the server's clock.
    Fresh { until_ms: i64 },
    /// Another process wrote the data, and none of it is missing.
    Kept,
}

/// What a server has for a note, read together with its clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    /// What the clock showed, and how much more it may have shown.
    pub(crate) now_us: i64,
    pub(crate) grain_us: i64,
    pub(crate) note: Borne,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Borne {
    Nothing,
    /// Something that no client of this library has written.
    Gibberish,
    Note(Note),
}

impl Note {
    /// Whether the server was new when it was marked, so that nothing can have been lost.
    pub(crate) fn is_of_new(&self) -> bool {
        self.since_ms < 0
    }

    /// For how long the server still belongs to a deployment that is being started, when its clock shows
    /// `now_ms`.
    pub(crate) fn young_ms(&self, now_ms: i64) -> i64 {
        let age_ms = now_ms.saturating_add(self.since_ms).max(0);
        if self.is_of_new() { YOUNG_MS.saturating_sub(age_ms).max(0) } else { 0 }
    }

    fn parse(text: &[u8]) -> Option<Self> {
        let mut words = str::from_utf8(text).ok()?.split(' ');
        let id = RunId::parse(words.next()?)?;
        let (since_ms, longest_ms) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        words.next().is_none().then_some(Self { id, since_ms, longest_ms })
    }
}

impl Borne {
    /// The meaning of the reply to [`READ`]. None if it is no such reply, or the server refused the request.
    pub(crate) fn of(reply: &Value) -> Option<Self> {
        match reply {
            Value::BulkString(text) if text.is_empty() => Some(Self::Nothing),
            Value::BulkString(text) => Some(Note::parse(text).map_or(Self::Gibberish, Self::Note)),
            _ => None,
        }
    }
}

/// Whether this user may not read or write the note.
pub(crate) fn is_forbidden(reply: &Value) -> bool {
    matches!(reply, Value::ServerError(error) if failure_of(error).is_of_the_kind())
}

impl Reading {
    /// What the clock showed, in whole milliseconds.
    pub(crate) fn now_ms(&self) -> i64 {
        self.now_us / 1_000
    }

    /// What [`mark`] has written for this server, according to its reply.
    pub(super) fn of_mark(id: RunId, reply: &Value) -> Result<Self, Failure> {
        match reply {
            Value::ServerError(error) => Err(failure_of(error)),
            Value::Array(said) => match said[..] {
                [Value::Int(since_ms), Value::Int(longest_ms), Value::Int(now_ms)] => {
                    let now_us = now_ms.saturating_mul(1_000);
                    let note = Borne::Note(Note { id, since_ms, longest_ms });
                    Ok(Self { now_us, grain_us: 1_000, note })
                }
                _ => Err(Failure::ProtocolError),
            },
            _ => Err(Failure::ProtocolError),
        }
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

/// Gives the server a note of its own.
pub(super) fn mark(id: RunId, longest_ms: i64, mark: Mark) -> redis::Cmd {
    let (how, until_ms) = match mark {
        Mark::Lost => ("lost", 0),
        Mark::Fresh { until_ms } => ("fresh", until_ms),
        Mark::Kept => ("kept", 0),
    };
    let mut command = redis::cmd("EVAL");
    command.arg(MARK).arg(1).arg(KEY).arg(id.as_str()).arg(longest_ms).arg(how).arg(until_ms);
    command
}

/// Has the server note that a TTL of this length is in use.
pub(crate) fn raise(ttl_ms: i64) -> Vec<u8> {
    let mut command = redis::cmd("EVAL");
    command.arg(RAISE).arg(1).arg(KEY).arg(ttl_ms);
    command.get_packed_command()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0123456789abcdef0123456789abcdef01234567";

    fn note(text: &str) -> Option<Borne> {
        Borne::of(&Value::BulkString(text.as_bytes().to_vec()))
    }

    #[test]
    fn a_note_is_read_as_it_is_written() {
        let id = RunId::parse(ID).unwrap();
        let written = Note { id, since_ms: -7, longest_ms: 9 };
        assert_eq!(note(&format!("{ID} -7 9")), Some(Borne::Note(written)));
        assert!(written.is_of_new());
        assert_eq!([7, 2_006, 2_007].map(|now| written.young_ms(now)), [2_000, 1, 0]);
        assert_eq!(Note { since_ms: 7, ..written }.young_ms(7), 0);
        assert_eq!(note(""), Some(Borne::Nothing));
        for other in ["x", ID, &format!("{ID} 7"), &format!("{ID} 7 9 1"), &format!("{ID} 7 x")] {
            assert_eq!(note(other), Some(Borne::Gibberish), "{other}");
        }
        assert_eq!(Borne::of(&Value::Okay), None);
        let read = redis::cmd("GETRANGE").arg(KEY).arg(0).arg(127).get_packed_command();
        assert_eq!(READ, read);
    }

    #[test]
    fn a_clock_is_read() {
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
