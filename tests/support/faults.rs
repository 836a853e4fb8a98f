//! Faults of a server: how to cause each, and how to end it.

use std::thread;

use super::loading;
use super::ports;
use super::product::product;
use super::resp::Reply;
use super::servers::Server;
use super::wait::wait_until;

/// One fault.
#[derive(Clone, Copy)]
pub(crate) struct Fault {
    pub(crate) strike: fn(&Server),
    pub(crate) mend: fn(&Server),
    /// The message of a lock that failed because of the fault contains at least one of these.
    pub(crate) words: &'static [&'static str],
    /// Whether questions are answered as usual.
    pub(crate) answers_questions: bool,
    /// Whether an existing key can still be extended and deleted.
    pub(crate) changes_keys: bool,
}

impl Fault {
    const TOTAL: Self = Self {
        strike: Server::kill,
        mend: Server::restart,
        words: &["refused", "closed", "reset"],
        answers_questions: false,
        changes_keys: false,
    };

    /// The process is gone, and returns without its keys when the fault ends.
    pub(crate) const KILLED: Self = Self::TOTAL;

    /// The process is stopped: it accepts connections and requests, and answers nothing.
    pub(crate) const FROZEN: Self = Self {
        strike: Server::freeze,
        mend: Server::resume,
        words: &["timed out", "no reply"],
        ..Self::TOTAL
    };

    /// It wants a password that the library was not told.
    pub(crate) const PASSWORD: Self = Self {
        strike: |server| {
            server.must(&["CONFIG", "SET", "requirepass", "nobody-knows"]);
            // Existing connections would otherwise continue unchanged.
            server.must(&["CLIENT", "KILL", "TYPE", "normal"]);
        },
        mend: |server| _ = server.must(&["CONFIG", "SET", "requirepass", ""]),
        words: &["NOAUTH"],
        ..Self::TOTAL
    };

    /// It became a replica, and its primary is unreachable.
    pub(crate) const REPLICA: Self = Self {
        strike: |server| {
            server.must(&["REPLICAOF", "127.0.0.1", &ports::free().to_string()]);
        },
        mend: |server| _ = server.must(&["REPLICAOF", "NO", "ONE"]),
        words: &["READONLY"],
        answers_questions: true,
        ..Self::TOTAL
    };

    /// It has no memory for new keys.
    pub(crate) const OUT_OF_MEMORY: Self = Self {
        strike: |server| _ = server.must(&["CONFIG", "SET", "maxmemory", "1"]),
        mend: |server| _ = server.must(&["CONFIG", "SET", "maxmemory", "0"]),
        words: &["OOM"],
        answers_questions: true,
        changes_keys: true,
    };

    /// It reads its keys from the disk, slowly.
    pub(crate) const LOADING: Self = Self {
        strike: loading::load_slowly,
        mend: loading::let_it_load,
        words: &["LOADING"],
        ..Self::TOTAL
    };

    /// It runs somebody's endless script.
    pub(crate) const BUSY: Self = Self {
        strike: |server| {
            server.must(&["CONFIG", "SET", "lua-time-limit", "1"]);
            leave_behind(server, &["EVAL", "while true do end", "0"]);
            wait_until("the script runs", || is_error(&server.command(&["GET", "x"])));
        },
        mend: |server| {
            server.must(&["SCRIPT", "KILL"]);
            wait_until("the script has ended", || !is_error(&server.command(&["GET", "x"])));
        },
        words: &["BUSY"],
        ..Self::TOTAL
    };

    /// The user of the library may not use the necessary commands.
    pub(crate) const FORBIDDEN: Self = Self {
        strike: |server| {
            let rules = [&["ACL", "SETUSER", "default", "-set"], product().without_releases()];
            server.must(&rules.concat());
        },
        mend: |server| _ = server.must(&["ACL", "SETUSER", "default", "+@all"]),
        words: &["NOPERM"],
        answers_questions: true,
        ..Self::TOTAL
    };
}

/// Sends a command on a connection of its own that stays open until it is answered.
pub(crate) fn leave_behind(server: &Server, words: &[&str]) {
    let mut connection = server.connect().expect("the server can be reached");
    connection.send(words).expect("it can be sent");
    thread::spawn(move || connection.reply());
}

pub(super) fn is_error(reply: &Reply) -> bool {
    matches!(reply, Reply::Error(_))
}
