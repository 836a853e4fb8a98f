//! A small blocking client of the tests, so that they check the servers independently of the library under
//! test.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// A server that takes longer is frozen, and should not have been asked.
const PATIENCE: Duration = Duration::from_secs(20);

/// The answer of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Status(String),
    Error(String),
    Integer(i64),
    Bulk(Vec<u8>),
    Nil,
    Array(Vec<Self>),
}

impl Reply {
    #[track_caller]
    pub(crate) fn integer(&self) -> i64 {
        match self {
            Self::Integer(value) => *value,
            other => panic!("an integer was expected: {other:?}"),
        }
    }

    /// The text of a string; `None` for nil.
    #[track_caller]
    pub(crate) fn text(&self) -> Option<String> {
        match self {
            Self::Bulk(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
            Self::Status(text) => Some(text.clone()),
            Self::Nil => None,
            other => panic!("a string was expected: {other:?}"),
        }
    }

    pub(crate) fn is_ok(&self) -> bool {
        matches!(self, Self::Status(text) if text == "OK")
    }
}

/// One connection.
pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
}

impl Connection {
    pub(crate) fn open(address: &str) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    pub(crate) fn command(&mut self, words: &[&str]) -> io::Result<Reply> {
        self.send(words)?;
        self.reply()
    }

    /// Sends a command without waiting for the reply.
    pub(crate) fn send(&mut self, words: &[&str]) -> io::Result<()> {
        let mut request = format!("*{}\r\n", words.len());
        for word in words {
            request.push_str(&format!("${}\r\n{word}\r\n", word.len()));
        }
        self.stream.get_mut().write_all(request.as_bytes())
    }

    /// The reply to the first command that was not answered yet.
    pub(crate) fn reply(&mut self) -> io::Result<Reply> {
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        let line = line.strip_suffix("\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
        let Some((kind, rest)) = line.split_at_checked(1) else { return Err(unknown(line)) };
        match kind {
            "+" => Ok(Reply::Status(rest.to_owned())),
            "-" => Ok(Reply::Error(rest.to_owned())),
            ":" => Ok(Reply::Integer(number(rest)?)),
            "$" => self.bulk(number(rest)?),
            "*" => self.array(number(rest)?),
            _ => Err(unknown(line)),
        }
    }

    fn bulk(&mut self, length: i64) -> io::Result<Reply> {
        let Ok(length) = usize::try_from(length) else { return Ok(Reply::Nil) };
        let mut bytes = vec![0; length + 2];
        self.stream.read_exact(&mut bytes)?;
        bytes.truncate(length);
        Ok(Reply::Bulk(bytes))
    }

    fn array(&mut self, length: i64) -> io::Result<Reply> {
        let Ok(length) = usize::try_from(length) else { return Ok(Reply::Nil) };
        (0..length).map(|_| self.reply()).collect::<io::Result<_>>().map(Reply::Array)
    }
}

fn number(text: &str) -> io::Result<i64> {
    text.parse().map_err(|_| unknown(text))
}

fn unknown(line: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, line)
}
