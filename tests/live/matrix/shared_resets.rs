//! Conversations about shared locks that are cut off at any byte, on either side.

use redlock::ffi::status::RedLockStatus::{REDLOCK_LOST, REDLOCK_OK, REDLOCK_UNREACHABLE};

use crate::readers::{RESOURCE, shared};
use crate::resets::at_every_byte;
use crate::support::proxy::BOTH;
use crate::support::usage::TTL;
use crate::support::{Lease, Manager, Way};

/// Two readers, one after the other.
fn reads(manager: &Manager) {
    let (lease, beside) = (Lease::new(), Lease::new());
    let status = [manager.acquire(&shared(), &lease), manager.acquire(&shared(), &beside)];
    assert!(status.iter().all(|it| [REDLOCK_OK, REDLOCK_UNREACHABLE].contains(it)), "{status:?}");
    let extended = manager.extend(&lease, 2 * TTL);
    let allowed = match status[0] {
        REDLOCK_OK => [REDLOCK_OK, REDLOCK_UNREACHABLE],
        _ => [REDLOCK_LOST; 2],
    };
    assert!(allowed.contains(&extended), "{status:?} {extended:?}: {}", lease.message());
    for lease in [lease, beside] {
        // The release may have been carried out, and its reply lost.
        let status = manager.unlock(&lease);
        let allowed = [REDLOCK_OK, REDLOCK_UNREACHABLE, REDLOCK_LOST];
        assert!(allowed.contains(&status) && !lease.is_held(), "{status:?}: {}", lease.message());
    }
}

/// A writer becomes a reader, and then extends or leaves at once. An extension makes up for a downgrade that
/// did not reach the server, and so does a release.
fn downgrades(manager: &Manager, is_extended: bool) {
    let lease = Lease::new();
    let taken = manager.lock(RESOURCE, TTL, &lease);
    let downgraded = manager.downgrade(&lease);
    let next = if is_extended { manager.extend(&lease, 2 * TTL) } else { downgraded };
    let statuses = [downgraded, next];
    match taken {
        REDLOCK_OK => {
            // A held lock cannot be lost by this.
            let are_allowed =
                statuses.iter().all(|it| [REDLOCK_OK, REDLOCK_UNREACHABLE].contains(it));
            assert!(are_allowed && lease.is_held(), "{statuses:?}: {}", lease.message());
            assert!(lease.is_shared() || statuses[0] != REDLOCK_OK);
        }
        status => {
            assert_eq!(status, REDLOCK_UNREACHABLE);
            assert_eq!(statuses, [REDLOCK_LOST; 2]);
        }
    }
    let status = manager.unlock(&lease);
    let allowed = [REDLOCK_OK, REDLOCK_UNREACHABLE, REDLOCK_LOST];
    assert!(allowed.contains(&status) && !lease.is_held(), "{status:?}: {}", lease.message());
}

/// A script is a thousand bytes, and nothing is executed before the last byte has arrived.
fn steps() -> impl Iterator<Item = (Way, usize)> {
    BOTH.into_iter().map(|way| (way, Way::Replies.step()))
}

#[test]
fn r13_a_reset_at_any_byte_of_the_only_server_leaves_no_reader() {
    for cut in steps() {
        at_every_byte(1, cut, 2, reads);
    }
}

#[test]
fn r13_a_reset_at_any_byte_leaves_nothing_of_a_downgrade() {
    for cut in steps() {
        for is_extended in [true, false] {
            at_every_byte(1, cut, 2, |manager| downgrades(manager, is_extended));
        }
    }
}

#[test]
fn r13_a_reset_at_any_byte_of_one_server_spares_readers() {
    for cut in steps() {
        at_every_byte(3, cut, 2, |manager| {
            manager.connect_to_all();
            let [lease, beside] = [(); 2].map(|()| crate::readers::take(manager, &shared()));
            assert_eq!(manager.extend(&lease, 2 * TTL), REDLOCK_OK, "{}", lease.message());
            assert!(lease.remaining_ms() > TTL);
            for lease in [lease, beside] {
                assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
            }
        });
    }
}

#[test]
fn r13_a_reset_at_any_byte_of_one_server_spares_a_downgrade() {
    for cut in steps() {
        at_every_byte(3, cut, 2, |manager| {
            manager.connect_to_all();
            let lease = manager.take(RESOURCE, TTL);
            assert_eq!(manager.downgrade(&lease), REDLOCK_OK, "{}", lease.message());
            assert!(lease.is_shared());
            assert_eq!(manager.extend(&lease, 2 * TTL), REDLOCK_OK, "{}", lease.message());
            assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
        });
    }
}
