//! Servers, some of which must not be trusted.

use std::any::Any;
use std::sync::Arc;

use redlock::ffi::status::RedLockStatus::{REDLOCK_OK, REDLOCK_UNREACHABLE};

use crate::support::usage::{
    DEADLINE, PATIENT_MS, TOO_LONG, TTL, blames, every_way_to_lock_is_unreachable,
    everything_works, in_time, make_brief,
};
use crate::support::{Authority, Cluster, Fake, Identity, Lease, Manager, Server, wait_until_ok};

/// A password that is in no URL. A server that knows it was told.
pub(crate) const PASSWORD: &str = "s3same-0pen";

/// A peer behind a rediss:// URL, which lives as long as this.
pub(crate) struct Peer {
    pub(crate) url: String,
    pub(crate) address: String,
    heard: Box<dyn Fn() -> bool>,
}

impl Peer {
    /// A server with TLS that shows this identity.
    pub(crate) fn server(authority: &Arc<Authority>, identity: &Identity) -> Self {
        Self::of(Server::start_tls(authority, identity, &[]))
    }

    /// A real server.
    pub(crate) fn of(server: Server) -> Self {
        Self::of_url(server.url(), server)
    }

    /// A real server, reached by this URL.
    pub(crate) fn of_url(url: String, server: Server) -> Self {
        let address = server.address();
        let heard = move || ["auth", "hello", "set", "eval"].iter().any(|it| server.calls(it) > 0);
        Self { url, address, heard: Box::new(heard) }
    }

    /// A fake server.
    pub(crate) fn fake(fake: Fake) -> Self {
        let (url, address) = (format!("rediss://{}", fake.address()), fake.address());
        let said = move || {
            let received = fake.received();
            [PASSWORD, "AUTH", "HELLO", "PING"].iter().any(|word| contains(&received, word))
        };
        Self { url, address, heard: Box::new(said) }
    }

    /// A peer that is told nothing. `kept` is kept alive with it.
    pub(crate) fn deaf(url: String, address: String, kept: impl Any) -> Self {
        let heard = move || {
            let _ = &kept;
            false
        };
        Self { url, address, heard: Box::new(heard) }
    }

    /// Whether it received a command, or the password.
    pub(crate) fn has_heard_anything(&self) -> bool {
        (self.heard)()
    }
}

pub(crate) fn contains(bytes: &[u8], word: &str) -> bool {
    bytes.windows(word.len()).any(|it| it == word.as_bytes())
}

/// A manager of these, which trusts this authority and is patient.
#[track_caller]
pub(crate) fn manager_of(authority: &Authority, urls: &[String]) -> Manager {
    let manager = Manager::new();
    assert_eq!(manager.set_tls_ca(Some(&authority.file())), REDLOCK_OK, "{}", manager.message());
    assert_eq!(manager.set_timeouts(PATIENT_MS, PATIENT_MS), REDLOCK_OK);
    for url in urls {
        assert_eq!(manager.add(url, 0), REDLOCK_OK, "{url}: {}", manager.message());
    }
    manager
}

/// This many good servers.
pub(crate) fn good_servers(authority: &Arc<Authority>, count: usize) -> Cluster {
    Cluster::start_each(count, || Server::start_tls(authority, &authority.server(), &[]))
}

/// Tests strangers of one kind. Two among five have no effect. Three are a majority, and the message blames
/// each in one of these words. None of them receives anything.
#[track_caller]
pub(crate) fn are_refused(authority: &Arc<Authority>, stranger: impl Fn() -> Peer, words: &[&str]) {
    are_refused_by(authority, |_| (), stranger, words);
}

/// The same, with managers that are configured further.
#[track_caller]
pub(crate) fn are_refused_by(
    authority: &Arc<Authority>,
    set_up: impl Fn(&Manager),
    stranger: impl Fn() -> Peer,
    words: &[&str],
) {
    let good = good_servers(authority, 3);
    let strangers = [stranger(), stranger(), stranger()];
    let manager = manager_of(authority, &[urls(&strangers[..2]), good.urls()].concat());
    set_up(&manager);
    in_time(TOO_LONG, || (0..2).for_each(|_| everything_works(&manager, "r")));
    good.wait_until_gone("r");

    let manager = manager_of(authority, &[&urls(&strangers), &good.urls()[..2]].concat());
    set_up(&manager);
    make_brief(&manager);
    are_to_blame(&manager, &strangers, words);
    good.wait_until_gone("r");
    for it in &strangers {
        assert!(!it.has_heard_anything(), "{} was told something", it.address);
    }
}

/// Every way to lock is unreachable, in time, and the message blames each of these.
#[track_caller]
pub(crate) fn are_to_blame(manager: &Manager, strangers: &[Peer], words: &[&str]) {
    let (log, lease) = (manager.log(), Lease::new());
    every_way_to_lock_is_unreachable(manager, "r");
    in_time(DEADLINE, || assert_eq!(manager.is_locked("r"), Err(REDLOCK_UNREACHABLE)));
    in_time(DEADLINE, || assert_eq!(manager.connect(0), REDLOCK_UNREACHABLE));
    let addresses: Vec<_> = strangers.iter().map(|it| it.address.clone()).collect();
    wait_until_ok("the message tells what is wrong with each server", || {
        assert_eq!(manager.try_lock("r", TTL, 0, &lease), REDLOCK_UNREACHABLE);
        blames(&lease.message(), &addresses, words)
    });
    tells_no_secret(&[log.text(), lease.message(), manager.message()]);
}

#[track_caller]
pub(crate) fn tells_no_secret(words: &[String]) {
    for text in words {
        for secret in [PASSWORD, "BEGIN", "PRIVATE"] {
            assert!(!text.contains(secret), "{text}");
        }
    }
}

/// With a password for each, which no stranger may receive.
fn urls(strangers: &[Peer]) -> Vec<String> {
    let with_password = |it: &Peer| it.url.replacen("://", &format!("://:{PASSWORD}@"), 1);
    strangers.iter().map(with_password).collect()
}
