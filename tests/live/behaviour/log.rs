//! What a logger is told, and how often: a line for each change of a server's state, but at most one a second
//! for similar events.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use redlock::ffi::status::RedLockStatus::{REDLOCK_OK, REDLOCK_UNREACHABLE};

use crate::support::fake::GREETING;
use crate::support::product::product;
use crate::support::{Fake, Lease, Log, Manager, Server, wait_until};
use crate::{PATIENT_MS, TTL};

/// How often the server does the same thing.
const MANY: usize = 300;

fn manager_at(address: String) -> Manager {
    let manager = Manager::at(&[address]);
    assert_eq!(manager.set_timeouts(PATIENT_MS, PATIENT_MS), REDLOCK_OK);
    assert_eq!(manager.set_retry(1, 0), REDLOCK_OK);
    manager
}

/// The lines that contain these words.
fn lines(log: &Log<'_>, words: &str) -> Vec<String> {
    let lines = log.lines().into_iter().map(|it| it.1);
    lines.filter(|it| it.contains(words)).collect()
}

/// The number of events that these lines stand for: each line for itself, and for the events that it says were
/// left out.
fn stands_for(lines: &[String]) -> usize {
    let more = |it: &String| {
        let more = it.split_once("(and ")?.1.split_once(" more like it")?.0;
        more.parse::<usize>().ok()
    };
    lines.iter().map(|it| 1 + more(it).unwrap_or(0)).sum()
}

/// A manager that locks and unlocks sees one endless error. Successful calls in between are no news.
#[test]
fn a_user_without_scripts_is_logged_once() {
    let server = Server::start();
    let manager = manager_at(server.address());
    manager.connect_to_all();
    let log = manager.log();
    server.must(&[&["ACL", "SETUSER", "default", "-eval"], product().without_releases()].concat());
    for nth in 0..MANY {
        let lease = manager.take(&format!("r{nth}"), TTL);
        assert_eq!(manager.unlock(&lease), REDLOCK_UNREACHABLE, "{}", lease.message());
    }
    assert_eq!(lines(&log, "NOPERM").len(), 1, "{}", log.text());
    assert!(!log.text().contains("works again"), "{}", log.text());
    server.must(&["ACL", "SETUSER", "default", "+@all"]);
    wait_until("what was refused works again", || {
        let lease = manager.take("r", TTL);
        assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
        lines(&log, &format!("{}: works again", server.address())).len() == 1
    });
}

#[test]
fn alternating_errors_are_logged_once_a_second() {
    let refused = AtomicUsize::new(0);
    let fake = Fake::obeying(move |command, _| match command {
        "SET" if refused.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) => {
            Some("-OOM no".to_owned())
        }
        "SET" => Some("-MISCONF no".to_owned()),
        "PTTL" => Some(":-2".to_owned()),
        "EVAL" => Some(":0".to_owned()),
        _ => None,
    });
    let manager = manager_at(fake.address());
    manager.connect_to_all();
    let (log, lease) = (manager.log(), Lease::new());
    let start = Instant::now();
    for _ in 0..MANY {
        assert_eq!(manager.try_lock("r", TTL, 0, &lease), REDLOCK_UNREACHABLE);
    }
    // Without another error the log tells how many there were.
    wait_until("all are told of, or counted", || {
        assert_eq!(manager.connect(0), REDLOCK_OK);
        stands_for(&log.lines().into_iter().map(|it| it.1).collect::<Vec<_>>()) == MANY
    });
    let seconds = start.elapsed().as_secs() as usize;
    for error in ["OOM", "MISCONF"] {
        let told = lines(&log, error);
        assert!(told.len() <= seconds + 1, "in {seconds} s: {told:#?}");
        assert_eq!(stands_for(&told), MANY / 2, "{told:#?}");
    }
}

#[test]
fn repeated_connection_losses_are_logged_once_a_second() {
    let fake = Fake::start(|guest| {
        guest.read()?;
        guest.write(GREETING)?;
        guest.read().map(|_| ())
    });
    let manager = manager_at(fake.address());
    let (log, lease) = (manager.log(), Lease::new());
    let start = Instant::now();
    while fake.connections() < MANY / 10 {
        assert_eq!(manager.try_lock("r", TTL, 0, &lease), REDLOCK_UNREACHABLE);
    }
    let seconds = start.elapsed().as_secs() as usize;
    for words in ["connection lost", "connected again"] {
        let told = lines(&log, words);
        assert!((1..=seconds + 1).contains(&told.len()), "in {seconds} s: {told:#?}");
    }
}

#[test]
fn immediately_closed_connections_are_logged_once() {
    let fake = Fake::closing();
    let manager = manager_at(fake.address());
    let (log, lease) = (manager.log(), Lease::new());
    while fake.connections() < MANY / 10 {
        assert_eq!(manager.try_lock("r", TTL, 0, &lease), REDLOCK_UNREACHABLE);
    }
    assert_eq!(log.lines().len(), 1, "{}", log.text());
}
