//! Invalid arguments: each is refused in its own words, and nothing else happens. Arguments at the limit of the
//! valid range work.

#[path = "../../support/mod.rs"]
mod support;

mod addresses;
mod declarations;
mod held;
mod kept_log;
mod many_servers;
mod messages;
mod names;
mod nulls;
mod numbers;
mod passing;
mod secrets;
mod servers;
mod stats;
mod statuses;

use redlock::ffi::status::RedLockStatus::{self, REDLOCK_INVALID_ARGUMENT, REDLOCK_OK};

use support::{Lease, Manager, Server};

const TTL: i64 = 600_000;

/// Everything that is visible of a lock, on both sides. No refused call may change it.
#[derive(Debug, PartialEq, Eq)]
struct Sight {
    is_held: bool,
    token: String,
    resource: String,
    validity_ms: i64,
    key: Option<String>,
}

/// A server, and a manager that holds a lock there. Calls that are refused are made on it.
struct Holder {
    server: Server,
    manager: Manager,
    lease: Lease,
}

impl Holder {
    const RESOURCE: &'static str = "held";

    fn new() -> Self {
        let server = Server::start();
        let manager = Manager::at(&[server.address()]);
        let lease = manager.take(Self::RESOURCE, TTL);
        Self { server, manager, lease }
    }

    fn sight(&self) -> Sight {
        let lease = &self.lease;
        Sight {
            is_held: lease.is_held(),
            token: lease.token(),
            resource: lease.resource(),
            validity_ms: lease.validity_ms(),
            key: self.server.get(Self::RESOURCE),
        }
    }

    /// Runs `body`, in which every call is refused. So the lock stays, and no request reaches the server.
    #[track_caller]
    fn nothing_happens<T>(&self, body: impl FnOnce() -> T) -> T {
        let before = (self.sight(), self.server.pttl(Self::RESOURCE));
        assert!(before.0.is_held);
        let commands = commands_processed(&self.server);
        let result = body();
        // The look at the statistics is a command itself.
        assert_eq!(commands_processed(&self.server), commands + 1, "something was sent");
        assert_eq!(self.sight(), before.0);
        let pttl = self.server.pttl(Self::RESOURCE);
        assert!(pttl <= before.1 && pttl > before.1 - 60_000, "{} became {pttl}", before.1);
        let remaining_ms = self.lease.remaining_ms();
        assert!(remaining_ms > 0 && remaining_ms <= pttl, "{remaining_ms} of {pttl}");
        result
    }
}

/// How many commands the server has carried out before this one.
#[track_caller]
fn commands_processed(server: &Server) -> u64 {
    let statistics = server.command(&["INFO", "stats"]).text().expect("statistics");
    let line = statistics.lines().find_map(|it| it.strip_prefix("total_commands_processed:"));
    line.expect("it counts its commands").trim().parse().expect("a number")
}

/// A call on a manager was refused, and the words name what was wrong.
#[track_caller]
fn refused(manager: &Manager, status: RedLockStatus, words: &[&str]) {
    assert_eq!(status, REDLOCK_INVALID_ARGUMENT, "{words:?}: {}", manager.message());
    says(&manager.message(), words);
}

/// A call on a lease was refused, and the words name what was wrong.
#[track_caller]
fn refused_with(lease: &Lease, status: RedLockStatus, words: &[&str]) {
    assert_eq!(status, REDLOCK_INVALID_ARGUMENT, "{words:?}: {}", lease.message());
    says(&lease.message(), words);
}

#[track_caller]
fn accepted(manager: &Manager, status: RedLockStatus) {
    assert_eq!(status, REDLOCK_OK, "{}", manager.message());
    assert_eq!(manager.message(), "", "a success leaves no words");
}

#[track_caller]
fn says(message: &str, words: &[&str]) {
    for word in words {
        let message = message.to_lowercase();
        assert!(message.contains(&word.to_lowercase()), "{word:?} is not in {message:?}");
    }
    assert!(!message.contains('\n'), "more than one line: {message:?}");
}

/// Different faults are not reported in the same words.
#[track_caller]
fn all_differ(messages: &[String]) {
    for (index, message) in messages.iter().enumerate() {
        let again = messages[index + 1..].iter().position(|it| it == message);
        assert_eq!(again, None, "two faults are told as {message:?}");
    }
}
