//! What bytes to and from a server go through: its socket as it is, or with TLS on it.

use std::io;

use super::tls::Session;
use crate::system::socket::Socket;

/// The most memory that an empty buffer keeps for later.
pub(super) const KEPT_MAX: usize = 8 * 1024;

/// The system's words, without the number of the error.
pub(super) fn error_words(error: &io::Error) -> String {
    let words = error.to_string();
    match words.split_once(" (os error") {
        Some((words, _)) => words.to_lowercase(),
        None => words,
    }
}

pub(super) enum Wire {
    Plain(Socket),
    Tls(Box<Session>),
}

impl Wire {
    /// Sends what fits; `Ok(0)` if nothing does. Without bytes it goes on with what it could not send
    /// before.
    fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(_) if bytes.is_empty() => Ok(0),
            Self::Plain(socket) => socket.send(bytes),
            Self::Tls(session) => session.send(bytes),
        }
    }

    /// Sends as much of the outbox as fits, and takes it out.
    pub(super) fn send_from(&mut self, outbox: &mut Vec<u8>) -> io::Result<()> {
        if outbox.is_empty() && !self.has_unsent() {
            return Ok(());
        }
        let sent = self.send(outbox)?;
        outbox.drain(..sent);
        if outbox.is_empty() && outbox.capacity() > KEPT_MAX {
            *outbox = Vec::new();
        }
        Ok(())
    }

    /// Receives what is there, into `room`. `None` if nothing is; 0 at the end of the stream.
    pub(super) fn receive(&mut self, room: &mut [u8]) -> io::Result<Option<usize>> {
        match self {
            Self::Plain(socket) => socket.receive(room),
            Self::Tls(session) => session.receive(room),
        }
    }

    /// Whether it has something of its own to send, or to send still.
    pub(super) fn has_unsent(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Tls(session) => session.has_unsent(),
        }
    }

    /// Whether it is not known yet who is at the other end.
    pub(super) fn is_shaking_hands(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Tls(session) => session.is_shaking_hands(),
        }
    }

    /// Whether TLS was begun and nothing has come at all.
    pub(super) fn is_silent(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Tls(session) => session.is_silent(),
        }
    }

    pub(super) fn socket(&self) -> &Socket {
        match self {
            Self::Plain(socket) => socket,
            Self::Tls(session) => session.socket(),
        }
    }

    /// Lets go of a descriptor that a forked child has closed.
    pub(super) fn forget(self) {
        match self {
            Self::Plain(socket) => socket.forget(),
            Self::Tls(session) => session.forget(),
        }
    }
}
