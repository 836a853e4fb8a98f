//! Servers that send endless session tickets. Each ticket is valid TLS and contains no reply. A client that
//! reads until nothing is left would read for ever, and all threads of its manager would wait behind it.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use redlock::ffi::status::RedLockStatus::{REDLOCK_OK, REDLOCK_UNREACHABLE};
use rustls::crypto::cipher::{MessageEncrypter, OutboundChunks, OutboundPlainMessage};
use rustls::crypto::ring::cipher_suite::TLS13_CHACHA20_POLY1305_SHA256;
use rustls::{ConnectionTrafficSecrets, ContentType, ProtocolVersion, ServerConnection};

use crate::front;
use crate::rig::manager_of;
use crate::support::fake::GREETING;
use crate::support::usage::{PATIENT_MS, TTL, everything_works, in_time};
use crate::support::{Authority, Fake, Lease, Server, wait_until_ok};

/// When the flood begins.
#[derive(Clone, Copy, PartialEq, Eq)]
enum After {
    Handshake,
    /// The connection is up, and a request is sent.
    Greeting,
}

/// A non-waiting call that takes this long hangs. The flood lasts longer, but ends, so that a failing test
/// ends, too.
const HELD: Duration = Duration::from_secs(30);
const FLOOD: Duration = Duration::from_secs(60);

/// The handshake message of TLS 1.3 with a ticket: for 7,200 s, with a nonce and a ticket of one byte.
const TICKET: [u8; 19] = [4, 0, 0, 15, 0, 0, 28, 32, 0, 0, 0, 0, 1, 0, 0, 1, 7, 0, 0];

/// As many of them as a record may hold.
const TICKETS_IN_RECORD: usize = 800;

fn flooding(authority: &Authority, after: After) -> Fake {
    let mut config = front::config(&authority.server());
    config.enable_secret_extraction = true;
    config.send_tls13_tickets = 0;
    let config = Arc::new(config);
    Fake::start(move |guest| {
        let mut stream = guest.stream();
        let mut tls = ServerConnection::new(Arc::clone(&config)).map_err(io::Error::other)?;
        while tls.is_handshaking() {
            tls.complete_io(&mut stream)?;
        }
        if after == After::Greeting {
            hear(&mut tls, stream)?;
            tls.writer().write_all(GREETING)?;
            tls.complete_io(&mut stream)?;
            hear(&mut tls, stream)?;
        }
        flood(tls, stream)
    })
}

/// Waits until a request arrives.
fn hear(tls: &mut ServerConnection, mut stream: impl Read) -> io::Result<()> {
    loop {
        let mut said = [0; 4096];
        match tls.reader().read(&mut said) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            heard => return heard.map(|_| ()),
        }
        tls.read_tls(&mut stream)?;
        tls.process_new_packets().map_err(io::Error::other)?;
    }
}

/// rustls sends no more tickets than its configuration says, so they are written by hand.
fn flood(tls: ServerConnection, mut stream: impl Write) -> io::Result<()> {
    let (mut number, mut encrypter) = sender(tls)?;
    let tickets = TICKET.repeat(TICKETS_IN_RECORD);
    let began = Instant::now();
    while began.elapsed() < FLOOD {
        let record = OutboundPlainMessage {
            typ: ContentType::Handshake,
            version: ProtocolVersion::TLSv1_3,
            payload: OutboundChunks::from(&*tickets),
        };
        let record = encrypter.encrypt(record, number).map_err(io::Error::other)?;
        number += 1;
        stream.write_all(&record.encode())?;
    }
    Ok(())
}

fn sender(tls: ServerConnection) -> io::Result<(u64, Box<dyn MessageEncrypter>)> {
    let secrets = tls.dangerous_extract_secrets().map_err(io::Error::other)?;
    let (number, ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv }) = secrets.tx else {
        return Err(io::Error::other("no other cipher was offered"));
    };
    let suite = TLS13_CHACHA20_POLY1305_SHA256.tls13().expect("it is one of TLS 1.3");
    Ok((number, suite.aead_alg.encrypter(key, iv)))
}

#[test]
fn endless_session_tickets_block_no_call() {
    for after in [After::Handshake, After::Greeting] {
        let authority = Authority::new();
        let fake = flooding(&authority, after);
        let manager = manager_of(&authority, &[format!("rediss://{}", fake.address())]);
        assert_eq!(manager.set_timeouts(2_000, 2_000), REDLOCK_OK);
        assert_eq!(manager.set_retry(1, 0), REDLOCK_OK);
        let (log, lease) = (manager.log(), Lease::new());
        wait_until_ok("it is told what is wrong", || {
            in_time(HELD, || {
                assert_eq!(manager.try_lock("r", TTL, 0, &lease), REDLOCK_UNREACHABLE);
            });
            let words = "TLS protocol error: too many messages without data";
            if log.text().contains(words) { Ok(()) } else { Err(lease.message()) }
        });
    }
}

#[test]
fn endless_session_tickets_block_no_thread() {
    for after in [After::Handshake, After::Greeting] {
        let authority = Arc::new(Authority::new());
        let fake = flooding(&authority, after);
        let good = [(); 2].map(|()| Server::start_tls(&authority, &authority.server(), &[]));
        let urls = [format!("rediss://{}", fake.address()), good[0].url(), good[1].url()];
        let manager = manager_of(&authority, &urls);
        assert_eq!(manager.set_timeouts(PATIENT_MS, PATIENT_MS), REDLOCK_OK);
        thread::scope(|scope| {
            for nth in 0..4 {
                let (manager, resource) = (&manager, format!("r{nth}"));
                scope.spawn(move || {
                    for _ in 0..3 {
                        in_time(HELD, || everything_works(manager, &resource));
                    }
                });
            }
        });
    }
}
