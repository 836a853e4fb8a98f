//! The messages for a connection over which a server sends too much.

use crate::crowd::{self, Crowd};
use crate::manager::call::Call;
use crate::manager::lease::Lease;
use crate::manager::redlock::RedLock;
use crate::protocol::error::Status;
use crate::world;

/// Thirteen replies to the handshake are right. Then these bytes come in place of the reply to an acquire.
fn words_after(said: &[u8]) -> String {
    let length = u8::try_from(said.len()).expect("few bytes");
    let script = [&[0; 14][..], &[7, length], said].concat();
    world::begin(Crowd::new(&script));
    let manager = RedLock::new();
    manager.add_server_url(&format!("unix://{}", crowd::place(0)), 0).expect("a server");
    let mut lease = Lease::new();
    let error = manager
        .run(Call::Acquire(Call::acquire(b"r", 10_000)), &mut lease)
        .expect_err("no reply of a server");
    assert_eq!(error.status(), Status::Unreachable);
    assert!(!lease.is_held());
    drop(manager);
    world::end();
    error.to_string()
}

#[test]
fn a_too_large_reply_ends_the_connection_and_is_named() {
    for said in [&b"$131072\r\n"[..], b"*1025\r\n", b"*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n"] {
        let words = words_after(said);
        assert!(words.contains("connection lost: protocol error: reply too large"), "{words}");
    }
}

#[test]
fn a_senseless_reply_ends_the_connection_and_is_named() {
    for said in [&b"$-2\r\n"[..], b"~1\r\n", b"\0", b"*1\r\n+OK\r\n:1\r\n"] {
        let words = words_after(said);
        assert!(words.contains("connection lost: protocol error: unexpected reply"), "{words}");
    }
}

#[test]
fn an_error_with_invalid_utf8_keeps_the_connection() {
    let words = words_after(b"-READONLY of \xFF\xFE\r\n");
    assert!(words.contains("READONLY: read-only replica"), "{words}");
}
