//! TLS on one socket.

use std::io::{self, ErrorKind, Read, Write};

use rustls::ClientConnection;

use super::words;
use crate::protocol::conn::certificate_error::CertificateError;
use crate::system::socket::Socket;

/// How many reads in a row may bring no data of the server's own, in the handshake and after it. The longest
/// chain of certificates takes fewer, and so do the tickets that servers send. A server that goes on without
/// end must not keep this thread busy. Hundreds of tickets come at a time, and each costs as much as a
/// request.
const WORDLESS_MAX: usize = 32;
const WORDLESS_LATER_MAX: usize = 8;

/// The socket, and the TLS state of the connection. Data that is passed to it before the handshake is
/// complete is sent after the handshake.
pub(in crate::transport) struct Session {
    connection: ClientConnection,
    socket: Socket,
    /// The first byte that was received.
    first: Option<u8>,
}

impl Session {
    pub(super) fn new(connection: ClientConnection, socket: Socket) -> Self {
        Self { connection, socket, first: None }
    }

    /// Like [`Socket::send`]. The accepted data may be sent only later: see [`Self::has_unsent`].
    pub(in crate::transport) fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = self.connection.writer().write(bytes)?;
        self.flush()?;
        Ok(taken)
    }

    /// Like [`Socket::receive`], but fills `room` with all received data.
    pub(in crate::transport) fn receive(&mut self, room: &mut [u8]) -> io::Result<Option<usize>> {
        let (mut filled, mut wordless) = (0, 0);
        while filled < room.len() {
            match self.connection.reader().read(&mut room[filled..]) {
                Ok(0) => break,
                Ok(read) => (filled, wordless) = (filled + read, 0),
                // Only TLS can tell the end of the data from a connection that was cut. Here both cases are
                // the same, because half a reply counts for nothing.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => break,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    wordless += 1;
                    if wordless > self.wordless_max() {
                        let words = "TLS protocol error: too many messages without data";
                        return Err(io::Error::new(ErrorKind::InvalidData, words));
                    }
                    match self.receive_records() {
                        Ok(true) => {}
                        Ok(false) => return Ok((filled > 0).then_some(filled)),
                        // The data before the end of the connection counts. The end is reported again by the
                        // next read.
                        Err(error) if filled > 0 && error.kind() != ErrorKind::InvalidData => break,
                        Err(error) => return Err(error),
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Some(filled))
    }

    pub(in crate::transport) fn has_unsent(&self) -> bool {
        self.connection.wants_write()
    }

    pub(in crate::transport) fn is_shaking_hands(&self) -> bool {
        self.connection.is_handshaking()
    }

    /// Whether nothing at all was received.
    pub(in crate::transport) fn is_silent(&self) -> bool {
        self.first.is_none()
    }

    pub(in crate::transport) fn socket(&self) -> &Socket {
        &self.socket
    }

    pub(in crate::transport) fn forget(self) {
        self.socket.forget();
    }

    fn wordless_max(&self) -> usize {
        if self.is_shaking_hands() { WORDLESS_MAX } else { WORDLESS_LATER_MAX }
    }

    /// Returns whether anything was received, including the end of the stream.
    fn receive_records(&mut self) -> io::Result<bool> {
        let mut plain = Heard { socket: &self.socket, first: &mut self.first };
        match self.connection.read_tls(&mut plain) {
            Ok(0) if self.connection.is_handshaking() => {
                let words = "closed by the server during the TLS handshake";
                return Err(io::Error::new(ErrorKind::UnexpectedEof, words));
            }
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error),
        }
        self.connection.process_new_packets().map_err(|error| {
            // Tells the server the reason, if it still listens.
            let _ = self.flush();
            let hint = match error {
                rustls::Error::InvalidMessage(_) => words::of_first(self.first),
                _ => "",
            };
            let words = words::of(&error) + hint;
            match error {
                rustls::Error::InvalidCertificate(_) => {
                    io::Error::new(ErrorKind::InvalidData, CertificateError(words))
                }
                _ => io::Error::new(ErrorKind::InvalidData, words),
            }
        })?;
        Ok(true)
    }

    /// Sends the data of TLS, or as much as the socket takes.
    fn flush(&mut self) -> io::Result<()> {
        while self.connection.wants_write() {
            match self.connection.write_tls(&mut Plain(&self.socket)) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// The socket as rustls reads from it, and the first byte that was ever received.
struct Heard<'a> {
    socket: &'a Socket,
    first: &'a mut Option<u8>,
}

impl Read for Heard<'_> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let received = self.socket.receive(room)?;
        let received = received.ok_or_else(|| io::Error::from(ErrorKind::WouldBlock))?;
        *self.first = self.first.or_else(|| room[..received].first().copied());
        Ok(received)
    }
}

/// The socket as rustls writes to it.
struct Plain<'a>(&'a Socket);

impl Write for Plain<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.send(bytes)? {
            0 if !bytes.is_empty() => Err(ErrorKind::WouldBlock.into()),
            sent => Ok(sent),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
