//! Where one reply ends in a stream of them. The redis crate then reads it; this makes sure
//! that there is a whole one, and that it is of a size that a server of ours has reason to send: a
//! hostile or foreign one must not make us keep, or allocate, what it merely announces.

use std::fmt;

use redis::Value;

/// The longest reply. Ours are under 200 bytes; an error may quote a resource of 64 KiB.
const LENGTH_MAX: usize = 128 * 1024;

/// The deepest nesting.
const DEPTH_MAX: usize = 4;

/// The longest line of a type and a number.
const NUMBER_MAX: usize = 32;

/// What is sent is no reply, or none that is wanted.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Nonsense;

impl fmt::Display for Nonsense {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it said what no server should")
    }
}

/// The first reply in `bytes` and its length, if it is there as a whole.
pub(super) fn take(bytes: &[u8]) -> Result<Option<(Value, usize)>, Nonsense> {
    let Some(length) = end(bytes, 0, DEPTH_MAX)? else {
        return if bytes.len() > LENGTH_MAX { Err(Nonsense) } else { Ok(None) };
    };
    Ok(Some((read(&bytes[..length])?, length)))
}

/// Reads one whole reply. The crate's parser zeroes eight KiB for each, which was four fifths of all
/// that we computed; so the three shortest kinds, which are nearly all that come, are read here.
fn read(whole: &[u8]) -> Result<Value, Nonsense> {
    match whole {
        b"+OK\r\n" => Ok(Value::Okay),
        b"$-1\r\n" => Ok(Value::Nil),
        [b':', digits @ .., b'\r', b'\n'] => Ok(Value::Int(number(digits)?)),
        _ => redis::parse_redis_value(whole).map_err(|_| Nonsense),
    }
}

/// Where the reply that begins at `start` ends.
fn end(bytes: &[u8], start: usize, depth: usize) -> Result<Option<usize>, Nonsense> {
    let Some(&kind) = bytes.get(start) else { return Ok(None) };
    let longest = match kind {
        b'+' | b'-' => LENGTH_MAX,
        b':' | b'$' | b'*' => NUMBER_MAX,
        _ => return Err(Nonsense),
    };
    let line = &bytes[start..bytes.len().min(start + longest)];
    let Some(length) = line.windows(2).position(|it| it == b"\r\n") else {
        return if line.len() == longest { Err(Nonsense) } else { Ok(None) };
    };
    let after = start + length + 2;
    match (kind, number(&line[1..length])) {
        (b'+' | b'-', _) | (b':', Ok(_)) | (b'$' | b'*', Ok(-1)) => Ok(Some(after)),
        (b'$', Ok(size)) => string_end(bytes, after, size),
        (b'*', Ok(count)) if depth > 0 && count >= 0 => {
            let mut at = after;
            for _ in 0..count {
                match end(bytes, at, depth - 1)? {
                    Some(next) => at = next,
                    None => return Ok(None),
                }
            }
            Ok(Some(at))
        }
        _ => Err(Nonsense),
    }
}

fn string_end(bytes: &[u8], start: usize, size: i64) -> Result<Option<usize>, Nonsense> {
    let size = usize::try_from(size).map_err(|_| Nonsense)?;
    if size > LENGTH_MAX {
        return Err(Nonsense);
    }
    match bytes.get(start + size..start + size + 2) {
        Some(b"\r\n") => Ok(Some(start + size + 2)),
        Some(_) => Err(Nonsense),
        None => Ok(None),
    }
}

fn number(digits: &[u8]) -> Result<i64, Nonsense> {
    std::str::from_utf8(digits).ok().and_then(|it| it.parse().ok()).ok_or(Nonsense)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_replies_are_taken_one_by_one() {
        let bytes = b"+OK\r\n:-2\r\n$-1\r\n$3\r\na\r\n\r\n*2\r\n:1\r\n*0\r\n-ERR no\r\n";
        let mut at = 0;
        let mut values = Vec::new();
        while let Some((value, length)) = take(&bytes[at..]).unwrap() {
            values.push(value);
            at += length;
        }
        assert_eq!(at, bytes.len());
        assert_eq!(values[..3], [Value::Okay, Value::Int(-2), Value::Nil]);
        assert_eq!(values[3], Value::BulkString(b"a\r\n".to_vec()));
        assert_eq!(values[4], Value::Array(vec![Value::Int(1), Value::Array(vec![])]));
        assert!(matches!(values[5], Value::ServerError(_)));
    }

    #[test]
    fn a_part_of_a_reply_is_none_yet() {
        for whole in [&b"+OK\r\n"[..], b":12345\r\n", b"$3\r\nabc\r\n", b"*2\r\n$1\r\na\r\n:1\r\n"]
        {
            for length in 0..whole.len() {
                assert_eq!(take(&whole[..length]), Ok(None), "{length} of {whole:?}");
            }
            assert!(take(whole).unwrap().is_some());
        }
    }

    #[test]
    fn what_is_merely_announced_is_refused() {
        for bytes in [
            &b"$9999999999\r\n"[..],
            b"$-2\r\n",
            b"*-2\r\n",
            b":1x\r\n",
            b"$1\r\nabc",
            b"HTTP/1.1 400 Bad Request\r\n",
            b"SSH-2.0-OpenSSH_9.2\r\n",
            b":00000000000000000000000000000000000000000",
            b"*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
            b"\0",
        ] {
            assert_eq!(take(bytes), Err(Nonsense), "{bytes:?}");
        }
        assert_eq!(take(&vec![b'+'; LENGTH_MAX + 1]), Err(Nonsense));
        assert_eq!(take(b"*1000000000\r\n"), Ok(None));
    }
}
