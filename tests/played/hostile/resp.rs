//! A second, very simple parser of RESP. The library's reading of a server's bytes is compared with it.

use std::io::BufRead;

/// A complete reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Status(Vec<u8>),
    /// The first word of an error, and the text after it.
    Error(String, String),
    Int(i64),
    Bulk(Vec<u8>),
    Nil,
    Array(Vec<Self>),
    Map,
    /// The kind of a message that a server sends by itself.
    Push(Vec<u8>),
}

/// Why there is no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lack {
    /// It may still come.
    More,
    /// It will never be a valid reply.
    Unwanted,
    TooLarge,
}

/// The bounds of docs/internals/connections.md.
pub(crate) const LENGTH_MAX: usize = 128 * 1024;
const ELEMENTS_MAX: usize = 1024;
const LEVELS_MAX: usize = 4;
const NUMBER_MAX: usize = 32;

/// The first reply, or push, and its length.
pub(crate) fn reply(bytes: &[u8], is_resp3: bool) -> Result<(Reply, usize), Lack> {
    let mut reader = Reader { bytes, at: 0, elements: 0, is_resp3 };
    let reply = reader.element(0)?;
    match reply {
        Reply::Array(_) | Reply::Map | Reply::Push(_) if !reader.is_readable() => {
            Err(Lack::Unwanted)
        }
        Reply::Status(ref text) if std::str::from_utf8(text).is_err() => Err(Lack::Unwanted),
        _ => Ok((reply, reader.at)),
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    elements: usize,
    /// Whether the server was told to use RESP3.
    is_resp3: bool,
}

impl Reader<'_> {
    fn element(&mut self, level: usize) -> Result<Reply, Lack> {
        let kind = *self.bytes.get(self.at).ok_or(Lack::More)?;
        let room = LENGTH_MAX - self.at;
        match kind {
            b'+' => Ok(Reply::Status(self.line(room, Lack::TooLarge)?.to_vec())),
            b'-' => {
                // Only the first bytes of a long error are read. Each byte is one letter, whatever it is.
                let line = self.line(room, Lack::TooLarge)?;
                let line: String = line.iter().map(|&byte| char::from(byte.min(0x7F))).collect();
                let (code, words) = line.split_once(' ').unwrap_or((&line, ""));
                Ok(Reply::Error(code.to_owned(), words.to_owned()))
            }
            b':' => self.number(room).map(Reply::Int),
            b'$' => match self.number(room)? {
                -1 => Ok(Reply::Nil),
                size => self.bulk(usize::try_from(size).map_err(|_| Lack::Unwanted)?),
            },
            b'*' => match self.number(room)? {
                -1 => Ok(Reply::Nil),
                count => self.array(usize::try_from(count).map_err(|_| Lack::Unwanted)?, level),
            },
            b'_' if self.is_resp3 => {
                let otherwise = if room > NUMBER_MAX { Lack::Unwanted } else { Lack::TooLarge };
                match self.line(room.min(NUMBER_MAX), otherwise)? {
                    b"" => Ok(Reply::Nil),
                    _ => Err(Lack::Unwanted),
                }
            }
            b'%' if self.is_resp3 => {
                let pairs = usize::try_from(self.number(room)?).map_err(|_| Lack::Unwanted)?;
                self.array(pairs.saturating_mul(2), level).map(|_| Reply::Map)
            }
            b'>' if self.is_resp3 && self.at == 0 => self.push(room),
            _ => Err(Lack::Unwanted),
        }
    }

    fn push(&mut self, room: usize) -> Result<Reply, Lack> {
        let count = usize::try_from(self.number(room)?).map_err(|_| Lack::Unwanted)?;
        if count == 0 {
            return Err(Lack::Unwanted);
        }
        let Reply::Array(parts) = self.array(count, 0)? else { return Err(Lack::Unwanted) };
        match &parts[0] {
            // The crate has another name for this word.
            Reply::Status(word) if word == b"OK" => Err(Lack::Unwanted),
            Reply::Status(kind) | Reply::Bulk(kind) if std::str::from_utf8(kind).is_ok() => {
                Ok(Reply::Push(kind.clone()))
            }
            _ => Err(Lack::Unwanted),
        }
    }

    /// The text between the type and the line end, which must come within `longest` bytes.
    fn line(&mut self, longest: usize, otherwise: Lack) -> Result<&[u8], Lack> {
        let there = &self.bytes[self.at..self.bytes.len().min(self.at + longest)];
        match line_end(there) {
            Some(length) => {
                self.at += length + 2;
                Ok(&there[1..length])
            }
            None if there.len() == longest => Err(otherwise),
            None => Err(Lack::More),
        }
    }

    fn number(&mut self, room: usize) -> Result<i64, Lack> {
        let otherwise = if room > NUMBER_MAX { Lack::Unwanted } else { Lack::TooLarge };
        let line = self.line(room.min(NUMBER_MAX), otherwise)?;
        text(line).parse().map_err(|_| Lack::Unwanted)
    }

    fn bulk(&mut self, size: usize) -> Result<Reply, Lack> {
        if size > LENGTH_MAX || self.at + size + 2 > LENGTH_MAX {
            return Err(Lack::TooLarge);
        }
        let rest = &self.bytes[self.at..];
        match rest.get(size..size + 2) {
            None => Err(Lack::More),
            Some(b"\r\n") => {
                self.at += size + 2;
                Ok(Reply::Bulk(rest[..size].to_vec()))
            }
            Some(_) => Err(Lack::Unwanted),
        }
    }

    fn array(&mut self, count: usize, level: usize) -> Result<Reply, Lack> {
        if level == LEVELS_MAX || self.elements + count.min(LENGTH_MAX) > ELEMENTS_MAX {
            return Err(Lack::TooLarge);
        }
        self.elements += count;
        let elements = (0..count).map(|_| self.element(level + 1));
        elements.collect::<Result<_, _>>().map(Reply::Array)
    }

    /// Whether the elements of an array are valid text where they must be.
    fn is_readable(&self) -> bool {
        let mut whole = Self { at: 0, elements: 0, ..*self };
        whole.all_text(0)
    }

    fn all_text(&mut self, level: usize) -> bool {
        let (start, kind) = (self.at, self.bytes[self.at]);
        match kind {
            b'*' | b'>' | b'%' => {
                let each = if kind == b'%' { 2 } else { 1 };
                let count = self.number(LENGTH_MAX - start).unwrap_or(0) * each;
                (0..count).all(|_| self.all_text(level + 1))
            }
            b'+' | b'-' => {
                let Ok(line) = self.line(LENGTH_MAX - start, Lack::TooLarge) else { return false };
                std::str::from_utf8(line).is_ok()
            }
            _ => self.element(level).is_ok(),
        }
    }
}

/// The place of the first line end. The standard library searches for a byte faster than simple code here
/// would.
fn line_end(bytes: &[u8]) -> Option<usize> {
    let mut rest = bytes;
    loop {
        rest.skip_until(b'\n').ok()?;
        let line = &bytes[..bytes.len() - rest.len()];
        if line.ends_with(b"\r\n") {
            return Some(line.len() - 2);
        }
        if rest.is_empty() {
            return None;
        }
    }
}

fn text(line: &[u8]) -> String {
    String::from_utf8_lossy(line).into_owned()
}

/// The first command that a client sent, in words, and its length. The client sends well-formed commands.
pub(crate) fn command(bytes: &[u8]) -> Option<(Vec<Vec<u8>>, usize)> {
    let mut reader = Reader { bytes, at: 0, elements: 0, is_resp3: false };
    if reader.bytes.first()? != &b'*' {
        panic!("we sent what is no command: {:?}", text(&bytes[..bytes.len().min(50)]));
    }
    let count = reader.number(LENGTH_MAX).ok()?;
    let mut words = Vec::new();
    for _ in 0..count {
        // Each word may use the whole length: a command is not bounded as replies are.
        let mut word = Reader { bytes: bytes.get(reader.at..)?, at: 0, ..reader };
        let Reply::Bulk(value) = word.element(0).ok()? else { panic!("a word is no string") };
        reader.at += word.at;
        words.push(value);
    }
    Some((words, reader.at))
}
