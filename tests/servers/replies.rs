//! Replies that are cut, cut up, or too many.

use std::collections::HashSet;

use redlock::ffi::status::RedLockStatus::{REDLOCK_TAKEN, REDLOCK_UNREACHABLE};

use crate::support::{Fake, Lease, Manager, Server, wait_until};
use crate::{PATIENT_MS, TTL, everything_works, make_brief};

#[test]
fn a_reply_too_many_is_nobodys_grant() {
    let server = Server::start();
    server.must(&["SET", "r", "somebody"]);
    let fake = Fake::in_front_of(&server, |replies| Some([replies, b"+OK\r\n:9999\r\n"].concat()));
    let manager = Manager::at(&[fake.address()]);
    make_brief(&manager);
    for _ in 0..10 {
        let lease = Lease::new();
        let status = manager.lock("r", TTL, &lease);
        assert!([REDLOCK_TAKEN, REDLOCK_UNREACHABLE].contains(&status), "{status:?}");
        assert!(!lease.is_held());
    }
    assert_eq!(server.get("r").as_deref(), Some("somebody"));
}

#[test]
fn a_grant_whose_reply_is_cut_off_is_released() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    const WHOLE: usize = usize::MAX;
    let server = Server::start();
    let left = Arc::new(AtomicUsize::new(WHOLE));
    let fake = Fake::in_front_of(&server, {
        let left = Arc::clone(&left);
        move |replies| match left.load(Ordering::SeqCst) {
            WHOLE => Some(replies.to_vec()),
            0 => None,
            count => {
                let part = count.min(replies.len());
                left.store(count - part, Ordering::SeqCst);
                Some(replies[..part].to_vec())
            }
        }
    });
    let manager = Manager::at(&[fake.address()]);
    make_brief(&manager);
    for count in 0..5 {
        let lease = Lease::new();
        wait_until("the connection is up", || manager.is_locked("r") == Ok(false));
        left.store(count, Ordering::SeqCst);
        assert_eq!(manager.lock("r", TTL, &lease), REDLOCK_UNREACHABLE, "after {count} bytes");
        assert!(!lease.is_held());
        fake.hang_up();
        left.store(WHOLE, Ordering::SeqCst);
        wait_until("what was granted is released", || {
            manager.is_locked("r") == Ok(false) && !server.exists("r")
        });
    }
    let tokens = fake.tokens_set("r");
    let distinct: HashSet<_> = tokens.iter().collect();
    assert_eq!((tokens.len(), distinct.len()), (5, 5), "a request to take a lock is sent once");
    manager.set_timeouts(PATIENT_MS, PATIENT_MS);
    everything_works(&manager, "r");
}

#[test]
fn replies_that_come_byte_by_byte_are_put_together() {
    let server = Server::start();
    let fake = Fake::dripping(&server);
    let manager = Manager::at(&[fake.address()]);
    manager.set_timeouts(PATIENT_MS, PATIENT_MS);
    everything_works(&manager, "r");
}
