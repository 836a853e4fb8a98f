//! Port numbers that are not in use.

use std::net::{Ipv4Addr, TcpListener};
use std::process;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::SystemTime;

/// Below the range from which the system takes the ports of outgoing connections. Otherwise one of those
/// could occupy the port of a server that is about to be restarted, or connect to itself on the port of a
/// server that is down.
const FIRST: u16 = 12_000;
const LAST: u16 = 31_999;

/// A port that is free now, and that this process does not hand out again soon. Another process may still
/// take it first: a program that listens on it must be able to ask for a new one.
pub(crate) fn free() -> u16 {
    loop {
        let port = next();
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
}

/// Test programs that run at the same time begin at different places.
fn next() -> u16 {
    static NEXT: OnceLock<AtomicU16> = OnceLock::new();
    let count = LAST - FIRST + 1;
    let step = NEXT.get_or_init(|| AtomicU16::new(somewhere())).fetch_add(1, Ordering::Relaxed);
    FIRST + step % count
}

fn somewhere() -> u16 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    (process::id().wrapping_mul(7919) ^ now.subsec_micros()) as u16
}
