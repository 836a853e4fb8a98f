//! Finds the end of a reply in a stream, for the redis crate to parse. It checks that the reply is complete and no
//! larger than our servers can need. A hostile server must not make us keep memory for data that it only announces.

use std::fmt;

use redis::Value;

use super::simple_reply::simple;

/// The maximum length of a reply. Ours are under 200 bytes. But an error may quote a resource of 64 KiB, and
/// must not break a connection that many callers share.
const LENGTH_MAX: usize = 128 * 1024;

/// The maximum number of elements in a reply, in all its arrays together. As values they take no more memory
/// than the longest reply takes as bytes.
const ELEMENTS_MAX: usize = 1024;
const _: () = assert!(ELEMENTS_MAX * size_of::<Value>() <= LENGTH_MAX);

/// The maximum nesting.
const DEPTH_MAX: usize = 4;

/// The maximum length of a line with a type and a number.
const NUMBER_MAX: usize = 32;

/// The data is no reply, or no wanted one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProtocolError {
    Unwanted,
    /// It may be a reply, but its size or announced size is larger than that of any wanted reply.
    TooLarge,
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unwanted => f.write_str("protocol error: unexpected reply"),
            Self::TooLarge => write!(
                f,
                "protocol error: reply too large (limit: {} KiB, {ELEMENTS_MAX} elements, {DEPTH_MAX} levels)",
                LENGTH_MAX / 1024
            ),
        }
    }
}

/// How far the first reply has been scanned. No byte is scanned twice, even if the reply arrives in small
/// pieces. Otherwise each byte of a long reply would cost as much as all bytes before it.
#[derive(Default)]
pub(crate) struct Scan {
    /// Where the first incomplete element begins, and up to where it contains no line end.
    at: usize,
    seen: usize,
    /// How many arrays are open, how many elements each one still needs, and the number of all elements.
    depth: usize,
    wanted: [usize; DEPTH_MAX],
    elements: usize,
    /// Whether the server was told to speak RESP3, which has push messages, maps, and its own nil.
    is_resp3: bool,
}

/// An element without the elements inside it: where it ends, and how many are inside.
type Element = (usize, usize);

impl Scan {
    /// The scan of a new connection. `is_resp3` says whether the server is told to speak RESP3.
    pub(crate) fn new(is_resp3: bool) -> Self {
        Self { is_resp3, ..Self::default() }
    }

    /// The next bytes begin another reply.
    pub(crate) fn restart(&mut self) {
        (self.at, self.seen, self.depth, self.elements) = (0, 0, 0, 0);
    }

    /// The first reply in `bytes` and its length, if it is complete. If it is not, the next call must pass
    /// the same bytes with more bytes behind them.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Result<Option<(Value, usize)>, ProtocolError> {
        if self.at == 0
            && let Some(whole) = simple(bytes)
        {
            self.seen = 0;
            return Ok(Some(whole));
        }
        let Some(length) = self.end(bytes)? else { return Ok(None) };
        let whole = (read(&bytes[..length])?, length);
        self.restart();
        Ok(Some(whole))
    }

    fn end(&mut self, bytes: &[u8]) -> Result<Option<usize>, ProtocolError> {
        loop {
            let Some((after, inside)) = self.element(bytes)? else { return Ok(None) };
            self.at = after;
            if inside > 0 {
                self.wanted[self.depth] = inside;
                self.depth += 1;
                continue;
            }
            // The last element of an array also ends the array.
            while self.depth > 0 {
                self.wanted[self.depth - 1] -= 1;
                if self.wanted[self.depth - 1] > 0 {
                    break;
                }
                self.depth -= 1;
            }
            if self.depth == 0 {
                return Ok(Some(self.at));
            }
        }
    }

    fn element(&mut self, bytes: &[u8]) -> Result<Option<Element>, ProtocolError> {
        let Some(&kind) = bytes.get(self.at) else { return Ok(None) };
        let room = LENGTH_MAX - self.at;
        let longest = match kind {
            b'+' | b'-' => room,
            b':' | b'$' | b'*' => NUMBER_MAX.min(room),
            b'_' | b'%' if self.is_resp3 => NUMBER_MAX.min(room),
            // A push message is no part of a reply.
            b'>' if self.is_resp3 && self.at == 0 => NUMBER_MAX,
            _ => return Err(ProtocolError::Unwanted),
        };
        let Some(after) = self.line_end(bytes, longest) else {
            return match bytes.len() - self.at >= longest {
                false => Ok(None),
                true if longest < room => Err(ProtocolError::Unwanted),
                true => Err(ProtocolError::TooLarge),
            };
        };
        let line = &bytes[self.at + 1..after - 2];
        match (kind, number(line)) {
            (b'_', _) if line.is_empty() => Ok(Some((after, 0))),
            (b'%', Ok(pairs @ 0..)) => Ok(Some((after, self.open(pairs.saturating_mul(2))?))),
            (b'>', Ok(count @ 1..)) => Ok(Some((after, self.open(count)?))),
            (b'+' | b'-', _) | (b':', Ok(_)) | (b'$' | b'*', Ok(-1)) => Ok(Some((after, 0))),
            (b'$', Ok(size @ 0..)) => Ok(string_end(bytes, after, size)?.map(|end| (end, 0))),
            (b'*', Ok(count @ 0..)) => Ok(Some((after, self.open(count)?))),
            _ => Err(ProtocolError::Unwanted),
        }
    }

    /// Where the first line of the element ends, if that is within `longest` bytes.
    fn line_end(&mut self, bytes: &[u8], longest: usize) -> Option<usize> {
        let from = self.at.max(self.seen);
        let until = bytes.len().min(self.at + longest);
        let found = bytes.get(from..until)?.windows(2).position(|pair| pair == b"\r\n");
        if found.is_none() {
            // The last byte may be the first of the line end.
            self.seen = until.saturating_sub(1);
        }
        found.map(|place| from + place + 2)
    }

    /// Opens an array with the announced number of elements.
    fn open(&mut self, count: i64) -> Result<usize, ProtocolError> {
        let count = usize::try_from(count).map_err(|_| ProtocolError::TooLarge)?;
        if count > ELEMENTS_MAX - self.elements || self.depth == DEPTH_MAX {
            return Err(ProtocolError::TooLarge);
        }
        self.elements += count;
        Ok(count)
    }
}

fn read(whole: &[u8]) -> Result<Value, ProtocolError> {
    match whole {
        b"_\r\n" => Ok(Value::Nil),
        [b':', digits @ .., b'\r', b'\n'] => Ok(Value::Int(number(digits)?)),
        [b'$', rest @ .., b'\r', b'\n'] => match rest.iter().position(|&byte| byte == b'\n') {
            Some(end) => Ok(Value::BulkString(rest[end + 1..].to_vec())),
            None => Ok(Value::Nil), // It is whole, so its size is -1, however that is written.
        },
        // It may quote a resource, which may be any bytes. The crate accepts only UTF-8.
        [b'-', ..] => parse(&whole.iter().map(|&byte| byte.min(0x7F)).collect::<Vec<u8>>()),
        _ => parse(whole),
    }
}

fn number(digits: &[u8]) -> Result<i64, ProtocolError> {
    str::from_utf8(digits).ok().and_then(|it| it.parse().ok()).ok_or(ProtocolError::Unwanted)
}

fn parse(whole: &[u8]) -> Result<Value, ProtocolError> {
    redis::parse_redis_value(whole).map_err(|_| ProtocolError::Unwanted)
}

fn string_end(bytes: &[u8], start: usize, size: i64) -> Result<Option<usize>, ProtocolError> {
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    let end = start.saturating_add(size).saturating_add(2);
    if end > LENGTH_MAX {
        return Err(ProtocolError::TooLarge);
    }
    match bytes.get(end - 2..end) {
        Some(b"\r\n") => Ok(Some(end)),
        Some(_) => Err(ProtocolError::Unwanted),
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(bytes: &[u8]) -> Result<Option<(Value, usize)>, ProtocolError> {
        Scan::default().take(bytes)
    }

    /// The result if the bytes arrive one by one.
    fn drip(bytes: &[u8]) -> Result<Option<(Value, usize)>, ProtocolError> {
        let mut scan = Scan::default();
        for length in 1..bytes.len() {
            assert_eq!(scan.take(&bytes[..length])?, None, "{length} of {}", bytes.len());
        }
        scan.take(bytes)
    }

    fn string(size: usize) -> Vec<u8> {
        [format!("${size}\r\n").into_bytes(), vec![b'x'; size], b"\r\n".to_vec()].concat()
    }

    fn array(count: usize) -> Vec<u8> {
        [format!("*{count}\r\n").into_bytes(), b":1\r\n".repeat(count)].concat()
    }

    #[test]
    fn whole_replies_are_taken_one_by_one() {
        let bytes = b"+OK\r\n:-2\r\n$-1\r\n$3\r\na\r\n\r\n*2\r\n:1\r\n*0\r\n-ERR no\r\n";
        let mut at = 0;
        let mut values = Vec::new();
        let mut scan = Scan::default();
        while let Some((value, length)) = scan.take(&bytes[at..]).unwrap() {
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
    fn a_reply_is_the_same_in_any_pieces() {
        for whole in [
            &b"+OK\r\n"[..],
            b":12345\r\n",
            b"-ERR \r\r\n",
            b"$3\r\nabc\r\n",
            b"$4\r\n\r\n\r\n\r\n",
            b"$0\r\n\r\n",
            b"*2\r\n$1\r\na\r\n:1\r\n",
            b"*3\r\n*2\r\n*0\r\n*1\r\n$-1\r\n*-1\r\n+\r\n",
            b"*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
            b"$-01\r\n",
        ] {
            let (value, length) = take(whole).unwrap().unwrap();
            assert_eq!(length, whole.len());
            assert_eq!(drip(whole), Ok(Some((value, length))));
        }
    }

    #[test]
    fn unexpected_replies_are_refused() {
        for bytes in [
            &b"$-2\r\n"[..],
            b"*-2\r\n",
            b":1x\r\n",
            b":\r\n",
            b":9223372036854775808\r\n",
            b"$1\r\nabc",
            b"$99999999999999999999\r\n",
            b"HTTP/1.1 400 Bad Request\r\n",
            b"SSH-2.0-OpenSSH_9.2\r\n",
            b":00000000000000000000000000000000000000000",
            b"\0",
        ] {
            assert_eq!(take(bytes), Err(ProtocolError::Unwanted), "{bytes:?}");
        }
        for kind in b"%~>|_,#!=(" {
            let bytes = [&[*kind], &b"1\r\n"[..]].concat();
            assert_eq!(take(&bytes), Err(ProtocolError::Unwanted), "{}", char::from(*kind));
        }
    }

    /// The result for bytes of a server that was told to speak RESP3.
    fn take_resp3(bytes: &[u8]) -> Result<Option<(Value, usize)>, ProtocolError> {
        Scan::new(true).take(bytes)
    }

    #[test]
    fn resp3_has_pushes_maps_and_null() {
        let taken = |bytes: &[u8]| take_resp3(bytes).unwrap().unwrap();
        assert_eq!(taken(b"_\r\n+OK\r\n"), (Value::Nil, 3));
        let (map, length) = taken(b"%2\r\n$1\r\na\r\n:1\r\n$1\r\nb\r\n*1\r\n_\r\n:7\r\n");
        assert!(matches!(map, Value::Map(pairs) if pairs.len() == 2));
        assert_eq!(length, 29);
        let push = b">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nr\r\n";
        assert!(matches!(taken(push), (Value::Push { .. }, length) if length == push.len()));
        for length in 0..push.len() {
            assert_eq!(take_resp3(&push[..length]), Ok(None), "{length}");
        }
        let mut scan = Scan::new(true);
        assert!(scan.take(b"_\r\n").unwrap().is_some());
        assert!(scan.take(b"_\r\n").unwrap().is_some(), "it goes on being spoken");
    }

    #[test]
    fn a_push_is_bounded_and_never_part_of_a_reply() {
        for bytes in [
            &b"_1\r\n"[..],
            b"%-1\r\n",
            b">0\r\n",
            b">-1\r\n",
            b"*1\r\n>1\r\n",
            b">x\r\n",
            b",1\r\n",
            b"#t\r\n",
            b"~1\r\n",
        ] {
            assert_eq!(take_resp3(bytes), Err(ProtocolError::Unwanted), "{bytes:?}");
        }
        for bytes in [
            &b">1025\r\n"[..],
            b">9223372036854775807\r\n",
            b"%513\r\n",
            b"%9223372036854775807\r\n",
            b">2\r\n$1\r\na\r\n$131072\r\n",
            b">1\r\n*1\r\n*1\r\n*1\r\n*1\r\n",
        ] {
            assert_eq!(take_resp3(bytes), Err(ProtocolError::TooLarge), "{bytes:?}");
        }
    }

    #[test]
    fn an_oversized_announcement_is_refused_at_once() {
        for bytes in [
            &b"$131072\r\n"[..],
            b"$9999999999\r\n",
            b"$9223372036854775807\r\n",
            b"*1025\r\n",
            b"*1000000000\r\n",
            b"*9223372036854775807\r\n",
            b"*1000\r\n*25\r\n",
            b"*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n",
        ] {
            assert_eq!(take(bytes), Err(ProtocolError::TooLarge), "{bytes:?}");
        }
    }

    #[test]
    fn the_bounds_are_exact() {
        for whole in [string(LENGTH_MAX - 11), array(ELEMENTS_MAX)] {
            assert_eq!(take(&whole).unwrap().unwrap().1, whole.len());
        }
        let line = |length| [b"-".repeat(length), b"\r\n".to_vec()].concat();
        assert!(take(&line(LENGTH_MAX - 2)).unwrap().is_some());
        for bytes in [string(LENGTH_MAX - 10), array(ELEMENTS_MAX + 1), line(LENGTH_MAX - 1)] {
            assert_eq!(take(&bytes), Err(ProtocolError::TooLarge), "{} bytes", bytes.len());
        }
        let strings = [b"*3\r\n".to_vec(), string(LENGTH_MAX / 2), string(LENGTH_MAX / 2)].concat();
        assert_eq!(take(&strings), Err(ProtocolError::TooLarge));
    }

    #[test]
    fn an_endless_line_is_refused_at_the_bound() {
        for kind in b"+-" {
            let line = vec![*kind; LENGTH_MAX];
            assert_eq!(take(&line[1..]), Ok(None));
            assert_eq!(take(&line), Err(ProtocolError::TooLarge));
        }
    }

    #[test]
    fn nested_replies_use_no_stack() {
        assert_eq!(take(&b"*1\r\n".repeat(100_000)), Err(ProtocolError::TooLarge));
    }

    #[test]
    fn bytes_are_scanned_once() {
        let mut scan = Scan::default();
        let line = b"-".repeat(1000);
        for length in 1..line.len() {
            assert_eq!(scan.take(&line[..length]), Ok(None));
            assert_eq!((scan.at, scan.seen), (0, length - 1));
        }
        let mut scan = Scan::default();
        let array = array(1000);
        assert_eq!(scan.take(&array[..array.len() - 1]), Ok(None));
        assert_eq!(scan.at, array.len() - b":1\r\n".len());
    }

    #[test]
    fn an_error_may_quote_invalid_utf8() {
        let (error, _) = take(b"-WRONGTYPE of \xFF\0\xC3\r\n").unwrap().unwrap();
        assert!(matches!(error, Value::ServerError(it) if it.code() == "WRONGTYPE"));
        assert_eq!(take(b"+\xFF\r\n"), Err(ProtocolError::Unwanted));
    }

    #[test]
    fn protocol_errors_are_distinct() {
        assert_ne!(ProtocolError::Unwanted.to_string(), ProtocolError::TooLarge.to_string());
        assert!(ProtocolError::TooLarge.to_string().contains("128 KiB"));
    }
}
