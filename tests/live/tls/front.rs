//! A TLS endpoint of the tests, in front of a real server without TLS. It can misbehave in ways that real
//! servers cannot.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ServerConfig, ServerConnection};

use crate::support::{Fake, Identity, Server};

pub(crate) struct Front {
    _server: Server,
    fake: Fake,
}

/// Its behaviour besides forwarding.
#[derive(Clone, Copy, Default)]
pub(crate) struct Manners {
    /// The longest record it sends.
    pub(crate) record: Option<usize>,
    pub(crate) tickets: usize,
    /// Whether it changes its keys, and asks the client to change its keys, after each reply.
    pub(crate) renews_keys: bool,
    pub(crate) then: Then,
}

/// What it does when the handshake is over.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Then {
    #[default]
    HandsOn,
    /// Takes everything, and says nothing.
    IsSilent,
    /// Sends the closing message of TLS, and closes.
    SaysGoodbye,
    /// Closes, without the closing message of TLS.
    Closes,
    /// Goes on without TLS.
    SpeaksPlainly,
    /// Sends this many copies of these bytes, in place of the first reply.
    Answers(&'static [u8], usize),
}

impl Front {
    pub(crate) fn start(identity: &Identity, manners: Manners) -> Self {
        let (server, mut config) = (Server::start(), config(identity));
        (config.max_fragment_size, config.send_tls13_tickets) = (manners.record, manners.tickets);
        let (config, address) = (Arc::new(config), server.address());
        let fake = Fake::start(move |guest| {
            let (client, server) = (guest.stream(), TcpStream::connect(&address)?);
            for end in [client, &server] {
                end.set_nodelay(true)?;
                end.set_nonblocking(true)?;
            }
            let tls = ServerConnection::new(Arc::clone(&config)).map_err(io::Error::other)?;
            Conversation { tls, client, server: &server, manners }.run()
        });
        Self { _server: server, fake }
    }

    pub(crate) fn address(&self) -> String {
        self.fake.address()
    }

    pub(crate) fn url(&self) -> String {
        format!("rediss://{}", self.address())
    }

    /// How many connections there have been.
    pub(crate) fn connections(&self) -> usize {
        self.fake.connections()
    }
}

/// The key need not be that of the certificate.
pub(crate) fn config(identity: &Identity) -> ServerConfig {
    // Valgrind cannot follow the bits through the processor's AES instructions.
    let cipher_suites = vec![ring::cipher_suite::TLS13_CHACHA20_POLY1305_SHA256];
    let provider = Arc::new(CryptoProvider { cipher_suites, ..ring::default_provider() });
    let certificates = CertificateDer::pem_file_iter(&identity.certificate).expect("a file");
    let certificates = certificates.collect::<Result<Vec<_>, _>>().expect("certificates");
    let key = PrivateKeyDer::from_pem_file(&identity.key).expect("a key");
    let key = provider.key_provider.load_private_key(key).expect("a good key");
    let identity = SingleCertAndKey::from(CertifiedKey::new(certificates, key));
    ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("there are some")
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(identity))
}

struct Conversation<'a> {
    tls: ServerConnection,
    client: &'a TcpStream,
    server: &'a TcpStream,
    manners: Manners,
}

impl Conversation<'_> {
    /// Until either side has gone.
    fn run(mut self) -> io::Result<()> {
        // A reply may be longer than the default buffer limit.
        self.tls.set_buffer_limit(None);
        loop {
            let requests = self.hear()?;
            let is_over = !self.tls.is_handshaking() && !self.tls.wants_write();
            let has_moved = match self.manners.then {
                Then::HandsOn => self.hand_on(&requests)?,
                Then::SaysGoodbye if is_over => {
                    self.tls.send_close_notify();
                    return self.flush();
                }
                Then::Closes if is_over => return Ok(()),
                Then::SpeaksPlainly if is_over && !requests.is_empty() => {
                    return self.client.write_all(b"+OK\r\n$-1\r\n:1\r\n");
                }
                Then::Answers(bytes, times) if !requests.is_empty() => {
                    let bytes = bytes.repeat(times);
                    self.manners.then = Then::IsSilent;
                    self.tls.writer().write_all(&bytes)?;
                    true
                }
                _ => false,
            };
            self.flush()?;
            if !has_moved && requests.is_empty() {
                thread::sleep(Duration::from_millis(1));
            }
        }
    }

    /// The client's data that has arrived so far.
    fn hear(&mut self) -> io::Result<Vec<u8>> {
        match self.tls.read_tls(&mut self.client) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        if let Err(error) = self.tls.process_new_packets() {
            // The client is told.
            self.flush()?;
            return Err(io::Error::other(error));
        }
        let mut said = Vec::new();
        match self.tls.reader().read_to_end(&mut said) {
            Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error),
            _ => Ok(said),
        }
    }

    /// Returns whether the server has answered anything.
    fn hand_on(&mut self, requests: &[u8]) -> io::Result<bool> {
        let mut rest = requests;
        while !rest.is_empty() {
            match self.server.write(rest) {
                Ok(count) => rest = &rest[count..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => thread::yield_now(),
                Err(error) => return Err(error),
            }
        }
        let mut replies = [0; 64 * 1024];
        match self.server.read(&mut replies) {
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                self.tls.writer().write_all(&replies[..count])?;
                if self.manners.renews_keys {
                    self.tls.refresh_traffic_keys().map_err(io::Error::other)?;
                }
                Ok(true)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Sends the pending data.
    fn flush(&mut self) -> io::Result<()> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut self.client) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => thread::yield_now(),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
