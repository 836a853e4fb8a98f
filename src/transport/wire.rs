//! The way of bytes to and from a server: its plain socket, or TLS on it.

use std::io;

use super::tls::Session;
use crate::protocol::conn::inbox::{Inbox, KEPT_MAX, Received};
use crate::system::socket::Socket;

/// The most memory that an empty outbox keeps for later, if the writes are large.
const KEPT_FOR_LARGE_MAX: usize = 64 * 1024;

/// The most memory that an outbox keeps after a write of so many bytes. The next one may be as large.
fn kept_max(written: usize) -> usize {
    KEPT_MAX.max(KEPT_FOR_LARGE_MAX.min(4 * written))
}

pub(super) enum Wire {
    Plain(Socket),
    Tls(Box<Session>),
}

impl Wire {
    /// Sends what fits. Returns `Ok(0)` if nothing fits. With no bytes, it goes on with the data that it
    /// could not send before.
    fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(_) if bytes.is_empty() => Ok(0),
            Self::Plain(socket) => socket.send(bytes),
            Self::Tls(session) => session.send(bytes),
        }
    }

    /// Sends as much of the outbox as fits, and removes it from the outbox.
    pub(super) fn send_from(&mut self, outbox: &mut Vec<u8>) -> io::Result<()> {
        if outbox.is_empty() && !self.has_unsent() {
            return Ok(());
        }
        let sent = self.send(outbox)?;
        outbox.drain(..sent);
        if outbox.is_empty() && outbox.capacity() > kept_max(sent) {
            *outbox = Vec::new();
        }
        Ok(())
    }

    /// Receives the available data into the inbox, once. The end of the stream is an error.
    pub(super) fn receive_into(&mut self, inbox: &mut Inbox) -> io::Result<Received> {
        inbox.receive(|room| self.receive(room))
    }

    /// Receives the available data into `room`. Returns `None` if there is none, and 0 at the end of the
    /// stream.
    fn receive(&mut self, room: &mut [u8]) -> io::Result<Option<usize>> {
        match self {
            Self::Plain(socket) => socket.receive(room),
            Self::Tls(session) => session.receive(room),
        }
    }

    /// Whether TLS has data of its own to send, or data that it has not sent yet.
    pub(super) fn has_unsent(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Tls(session) => session.has_unsent(),
        }
    }

    /// Whether the TLS handshake is not complete, so that the identity of the other end is not known yet.
    pub(super) fn is_shaking_hands(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Tls(session) => session.is_shaking_hands(),
        }
    }

    /// Whether TLS has begun and nothing at all was received.
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

    /// Forgets a descriptor that a forked child has closed.
    pub(super) fn forget(self) {
        match self {
            Self::Plain(socket) => socket.forget(),
            Self::Tls(session) => session.forget(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outbox_keeps_room_for_another_write_of_its_size() {
        for (written, kept) in
            [(0, KEPT_MAX), (2_000, KEPT_MAX), (10_000, 40_000), (1 << 20, KEPT_FOR_LARGE_MAX)]
        {
            assert_eq!(kept_max(written), kept, "{written}");
        }
    }
}
