//! Port numbers that are not in use.

use std::fs::File;
use std::io::{Seek, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::MetadataExt;
use std::{env, fs};

/// Below the range from which the system takes the ports of outgoing connections. Otherwise one of those
/// could occupy the port of a server that is about to be restarted, or connect to itself on the port of a
/// server that is down.
const FIRST: u16 = 12_000;
const LAST: u16 = 31_999;

/// A port that is free now, and that no test of this user gets again soon. A client of one test may go on looking for a
/// server that has ended, and must not find that of another test there. A program outside the tests may still take
/// the port first: whoever listens on it must be able to ask for a new one.
pub(crate) fn free() -> u16 {
    loop {
        let port = next();
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
}

/// All test programs of this user count in one file: each number is a byte that is added to its end. The system adds one
/// after the other, and tells where.
fn next() -> u16 {
    let user = fs::metadata("/proc/self").map_or(0, |it| it.uid());
    let counted = env::temp_dir().join(format!("redlock-test-ports-{user}"));
    let mut file = File::options().create(true).append(true).open(counted).expect("a file");
    file.write_all(b".").expect("there is room");
    let count = file.stream_position().expect("it is a file");
    let all = u64::from(LAST - FIRST + 1);
    FIRST + u16::try_from(count % all).expect("it is less")
}
