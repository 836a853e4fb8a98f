//! Servers that take long to read their keys from the disk, and answer everybody meanwhile that they do.
//!
//! A Redis of before 7.0 looks at its clients once in 1000 commands of a file of commands, hardly ever
//! in a snapshot, and nobody can hurry it: it has loaded when it has loaded.

use super::faults::{is_error, leave_behind};
use super::product::product;
use super::servers::Server;
use super::wait::wait_until;

/// With these, and what [`fill`] leaves on its disk, a server that is started loads for longer than any
/// test waits for something else.
pub(crate) fn arguments() -> &'static [&'static str] {
    match product().is_before_7() {
        true => &["--key-load-delay", "300", "--aof-use-rdb-preamble", "no"],
        // It looks at its clients each time that it has read so many bytes; with the usual 2 MB, which is more
        // than there are, it answers at the very beginning, and then no more until it has loaded.
        false => &["--key-load-delay", "10000", "--loading-process-events-interval-bytes", "1024"],
    }
}

/// Has a server that writes down its commands have much to load.
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

/// Returns when it has loaded, as soon as can be.
pub(super) fn let_it_load(server: &Server) {
    if !product().is_before_7() {
        server.must(&["CONFIG", "SET", "key-load-delay", "0"]);
    }
    wait_until("it has loaded", || !is_error(&server.command(&["GET", "x"])));
}

fn populate(server: &Server) {
    // 40,000 pauses of 0.3 ms and as long as it takes to wake up, or 10,000 of 10 ms.
    let (keys, size) = if product().is_before_7() { ("40000", "1") } else { ("10000", "1000") };
    server.must(&["DEBUG", "POPULATE", keys, "filler", size]);
}

fn wait_until_rewritten(server: &Server) {
    wait_until("what it is to load is written", || {
        let info = server.must(&["INFO", "persistence"]).text().expect("words");
        info.contains("aof_rewrite_in_progress:0") && info.contains("aof_rewrite_scheduled:0")
    });
}
