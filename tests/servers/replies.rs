//! Replies that are cut, cut up, or too many.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

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
fn a_reply_that_makes_no_sense_is_no_grant_and_the_key_is_released() {
    let server = Server::start();
    let instead: Arc<Mutex<Option<&[u8]>>> = Arc::default();
    let fake = Fake::in_front_of(&server, {
        let instead = Arc::clone(&instead);
        move |replies| match instead.lock().expect("not poisoned").take() {
            Some(nonsense) => Some(nonsense.to_vec()),
            None => Some(replies.to_vec()),
        }
    });
    let manager = Manager::at(&[fake.address()]);
    make_brief(&manager);
    let nonsense: [&[u8]; 8] = [
        b":1\r\n:600000\r\n",
        b"$2\r\nOK\r\n:600000\r\n",
        b"+QUEUED\r\n:600000\r\n",
        b"*1\r\n+OK\r\n:600000\r\n",
        b"*0\r\n:600000\r\n",
        b"$9999999999\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"-ERR no\r\n-ERR no\r\n",
    ];
    for reply in nonsense {
        let lease = Lease::new();
        wait_until("the connection is up", || manager.is_locked("r") == Ok(false));
        *instead.lock().expect("not poisoned") = Some(reply);
        let status = manager.lock("r", TTL, &lease);
        assert_eq!(status, REDLOCK_UNREACHABLE, "{}", String::from_utf8_lossy(reply));
        assert!(!lease.is_held());
        wait_until("what was granted is released", || {
            manager.is_locked("r") == Ok(false) && !server.exists("r")
        });
    }
    assert_eq!(fake.tokens_set("r").len(), nonsense.len());
}

#[test]
fn replies_that_come_byte_by_byte_are_put_together() {
    let server = Server::start();
    let fake = Fake::dripping(&server);
    let manager = Manager::at(&[fake.address()]);
    manager.set_timeouts(PATIENT_MS, PATIENT_MS);
    everything_works(&manager, "r");
}
