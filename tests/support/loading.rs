//! Servers that take a long time to read their keys from the disk, and report that to all clients
//! meanwhile.
//!
//! A Redis before 7.0 serves its clients once in 1000 commands while it loads a file of commands, and
//! hardly ever while it loads a snapshot. Its loading cannot be accelerated.

use super::faults::{is_error, leave_behind};
use super::product::product;
use super::servers::Server;
use super::wait::wait_until;

/// With these arguments, and with the data that [`fill`] leaves on its disk, a server that is started loads
/// for longer than any test waits for something else.
pub(crate) fn arguments() -> &'static [&'static str] {
    match product().is_before_7() {
        true => &["--key-load-delay", "300", "--aof-use-rdb-preamble", "no"],
        // The server serves its clients each time that it has read this many bytes. With the default of 2
        // MB, which is more than the file has, it answers at the very beginning, and then not until it has
        // loaded.
        false => &["--key-load-delay", "10000", "--loading-process-events-interval-bytes", "1024"],
    }
}

/// Gives a server that records its commands much to load.
pub(crate) fn fill(server: &Server) {
    populate(server);
    server.must(&["BGREWRITEAOF"]);
    wait_until_rewritten(server);
}

/// Saves its keys, drops them and reads them again, with a pause at each.
pub(super) fn load_slowly(server: &Server) {
    populate(server);
    if product().is_before_7() {
        server.must(&["CONFIG", "SET", "aof-use-rdb-preamble", "no"]);
        server.must(&["CONFIG", "SET", "appendonly", "yes"]);
        wait_until_rewritten(server);
        server.must(&["CONFIG", "SET", "key-load-delay", "300"]);
        leave_behind(server, &["DEBUG", "LOADAOF"]);
    } else {
        server.must(&["CONFIG", "SET", "loading-process-events-interval-bytes", "1024"]);
        server.must(&["CONFIG", "SET", "key-load-delay", "10000"]);
        leave_behind(server, &["DEBUG", "RELOAD"]);
    }
    wait_until("it loads", || is_error(&server.command(&["GET", "x"])));
}

/// Returns when the server has loaded, as soon as possible.
pub(super) fn let_it_load(server: &Server) {
    if !product().is_before_7() {
        server.must(&["CONFIG", "SET", "key-load-delay", "0"]);
    }
    wait_until("it has loaded", || !is_error(&server.command(&["GET", "x"])));
}

fn populate(server: &Server) {
    // 40,000 pauses of 0.3 ms plus the time to wake up, or 10,000 of 10 ms.
    let (keys, size) = if product().is_before_7() { ("40000", "1") } else { ("10000", "1000") };
    server.must(&["DEBUG", "POPULATE", keys, "filler", size]);
}

fn wait_until_rewritten(server: &Server) {
    wait_until("what it is to load is written", || {
        let info = server.must(&["INFO", "persistence"]).text().expect("words");
        info.contains("aof_rewrite_in_progress:0") && info.contains("aof_rewrite_scheduled:0")
    });
}
