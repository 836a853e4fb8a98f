//! An owner that another server has replaced, and that does not know that: a master that Sentinels watch, or a node of a
//! cluster. What it grants counts for nothing.

use std::thread;

use redlock::ffi::status::RedLockStatus::{REDLOCK_OK, REDLOCK_UNREACHABLE};

use crate::support::events::Wanted;
use crate::support::{Lease, Manager, Server, wait_until, wait_until_ok};

pub(crate) const RESOURCE: &str = "r";
pub(crate) const HELD: &str = "held";

/// Longer than three seconds, and long enough for a busy machine.
pub(crate) const TTL: i64 = 6_000;

/// Returns when this voter, by its name, grants a lock.
#[track_caller]
pub(crate) fn await_lock_of(manager: &Manager, voter: &str) {
    let lease = Lease::new();
    wait_until_ok("it has the vote", || match manager.try_lock(RESOURCE, TTL, 0, &lease) {
        REDLOCK_OK => Ok(()),
        _ => Err(lease.message()),
    });
    assert_eq!(manager.servers()[0].name, voter);
    assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
}

/// A call cannot succeed, once its words contain this, and names no server as the holder.
#[track_caller]
pub(crate) fn await_no_vote(manager: &Manager, wanted: &str) {
    let (lease, mut tries) = (Lease::new(), 0);
    wait_until_ok("it has no vote", || {
        tries += 1;
        let status = manager.try_lock(&*format!("no vote {tries}"), TTL, 0, &lease);
        let words = lease.message();
        let is_it = status == REDLOCK_UNREACHABLE && words.contains(wanted);
        if is_it { Ok(()) } else { Err(format!("{status:?}: {words}")) }
    });
    assert_eq!(manager.try_lock("no vote", TTL, 0, &lease), REDLOCK_UNREACHABLE);
    assert!(!manager.servers()[0].votes);
}

#[track_caller]
pub(crate) fn keep(manager: &Manager) -> Lease {
    let (lease, wanted) = (Lease::new(), Wanted { keep_alive: true, ..Wanted::new(HELD, TTL) });
    assert_eq!(manager.acquire(&wanted, &lease), REDLOCK_OK, "{}", lease.message());
    lease
}

/// Keeps the manager's lock. Returns whether it has it still.
pub(crate) fn keeps(manager: &Manager, lease: &Lease) -> bool {
    manager.next_event(10);
    lease.is_held()
}

/// Until it is over, the holder keeps its lock, and the rival does not get it.
#[track_caller]
pub(crate) fn goes_on(
    (holder, held): (&Manager, &Lease),
    rival: &Manager,
    is_over: impl Fn() -> bool,
) {
    let taken = Lease::new();
    wait_until("it is over", || {
        assert!(keeps(holder, held), "it was lost: {}", held.message());
        assert_ne!(rival.try_lock(HELD, TTL, 0, &taken), REDLOCK_OK, "two hold it");
        is_over()
    });
}

#[track_caller]
pub(crate) fn changes_hands((holder, held): (&Manager, &Lease), rival: &Manager) {
    assert_eq!(holder.unlock(held), REDLOCK_OK, "{}", held.message());
    assert_eq!(rival.try_lock(HELD, TTL, 0, &Lease::new()), REDLOCK_OK, "{}", rival.message());
}

/// The owner is the only voter of both, and is paused beyond the election. What waits in its socket is carried out when it
/// continues. So a lock that was requested before the election may be granted after it, but no other client has it then.
#[track_caller]
pub(crate) fn is_paused_beyond_the_election(old: &Server, [first, rival]: &[Manager; 2]) {
    assert_eq!(first.set_timeouts(1_500, 60_000), REDLOCK_OK);
    for manager in [first, rival] {
        assert_eq!(manager.unlock(&manager.take(RESOURCE, TTL)), REDLOCK_OK);
    }
    old.freeze();
    let lease = Lease::new();
    thread::scope(|scope| {
        // It waits in the socket of the paused owner.
        let waiting = scope.spawn(|| first.try_lock(RESOURCE, TTL, 0, &lease));
        let taken = Lease::new();
        wait_until_ok("the successor votes", || {
            let status = rival.try_lock(RESOURCE, TTL, 0, &taken);
            if status == REDLOCK_OK { Ok(()) } else { Err(taken.message()) }
        });
        old.resume();
        let status = waiting.join().expect("it does not panic");
        assert!(status != REDLOCK_OK || !lease.is_held(), "two hold it");
        assert!(taken.remaining_ms() > 0);
        assert_ne!(first.try_lock(RESOURCE, TTL, 0, &lease), REDLOCK_OK, "two hold it");
        assert_eq!(rival.unlock(&taken), REDLOCK_OK, "{}", taken.message());
    });
}

/// The owner and one client are cut off from everybody else. The owner goes on granting locks to that client, and extends
/// the one that it keeps. They have no vote, also when the successor has one. `words` say who still names the old owner.
#[track_caller]
pub(crate) fn grants_in_vain(
    old: &Server,
    [inside, outside]: [&Manager; 2],
    words: &str,
    cut_off: impl FnOnce(),
) {
    let (held, lease, taken) = (keep(inside), Lease::new(), Lease::new());
    cut_off();
    wait_until_ok("the successor votes", || {
        keeps(inside, &held);
        if inside.try_lock(RESOURCE, TTL, 0, &lease) == REDLOCK_OK {
            // It was confirmed a moment before.
            inside.unlock(&lease);
        }
        match outside.try_lock(HELD, TTL, 0, &taken) {
            REDLOCK_OK => Ok(()),
            _ => Err(taken.message()),
        }
    });
    assert!(!held.is_held(), "two hold it");
    let granted = old.calls("set");
    await_no_vote(inside, words);
    assert!(old.calls("set") > granted, "it was asked nothing");
    assert_ne!(inside.extend(&held, TTL), REDLOCK_OK);
    assert_eq!(outside.unlock(&taken), REDLOCK_OK, "{}", taken.message());
}
