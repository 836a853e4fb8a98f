//! Real servers with a fault, as a minority and as a majority, before a lock is taken and while it is held.

use std::time::Duration;

use redlock::ffi::status::RedLockStatus::{REDLOCK_OK, REDLOCK_TAKEN, REDLOCK_UNREACHABLE};

use crate::support::{
    Cluster, Fault, Lease, Manager, Proxy, Server, Way, wait_until, wait_until_ok,
};
use crate::{
    DEADLINE, TOO_LONG, TTL, addresses, blames, connected, every_way_to_lock_is_unreachable,
    everything_works, in_time, make_brief, names, nothing_is_left, patient, unguarded,
};

/// The same five tests for each fault of a real server.
macro_rules! faults {
    ($($name:ident: $fault:expr),* $(,)?) => {$(
        mod $name {
            use super::*;

            #[test]
            fn a_faulty_minority_from_the_start_is_harmless() {
                minority_from_the_start($fault);
            }

            #[test]
            fn a_faulty_minority_is_named() {
                minority_in_words($fault);
            }

            #[test]
            fn a_faulty_minority_in_a_hold_is_harmless() {
                minority_in_a_hold($fault);
            }

            #[test]
            fn a_faulty_majority_is_unreachable_and_keeps_nothing() {
                majority_from_the_start($fault);
            }

            #[test]
            fn a_faulty_majority_in_a_hold_leaves_the_old_validity() {
                majority_in_a_hold($fault);
            }
        }
    )*};
}

faults! {
    killed: Fault::KILLED,
    frozen: Fault::FROZEN,
    needing_a_password: Fault::PASSWORD,
    read_only_replica: Fault::REPLICA,
    out_of_memory: Fault::OUT_OF_MEMORY,
    loading: Fault::LOADING,
    busy_with_a_script: Fault::BUSY,
    without_permission: Fault::FORBIDDEN,
}

fn minority_from_the_start(fault: Fault) {
    let cluster = Cluster::start(5);
    let manager = unguarded(patient(&cluster));
    cluster[..2].iter().for_each(fault.strike);
    in_time(TOO_LONG, || everything_works(&manager, "r"));

    cluster[..2].iter().for_each(fault.mend);
    cluster[2..4].iter().for_each(Server::kill);
    let lease = Lease::new();
    wait_until("the mended servers are used", || {
        manager.try_lock("r", TTL, 0, &lease) == REDLOCK_OK
    });
    assert_eq!(manager.unlock(&lease), REDLOCK_OK);
    assert_eq!(manager.is_locked("r"), Ok(false));
}

/// A call ends when enough servers have answered, whatever the others would say. Here the working servers are
/// far away, so the faulty servers are heard first.
fn minority_in_words(fault: Fault) {
    let cluster = Cluster::start(5);
    cluster[..2].iter().for_each(fault.strike);
    let distant: Vec<_> = cluster[2..].iter().map(far_away).collect();
    let mut all = addresses(&cluster[..2]);
    all.extend(distant.iter().map(Proxy::address));

    let holder = patient(&cluster);
    let lease = holder.take("r", TTL);
    a_rival_is_told(&Manager::at(&all), &all[..2], fault);
    assert_eq!(holder.unlock(&lease), REDLOCK_OK);
    a_holder_is_told(&Manager::at(&all), &all[..2], fault);
}

fn far_away(server: &Server) -> Proxy {
    const TIME: Duration = Duration::from_millis(50);
    let proxy = Proxy::to(server);
    proxy.delay(Way::Replies, TIME, TIME);
    proxy
}

/// The working servers report that the lock is taken. The message also says that two servers do not work.
fn a_rival_is_told(rival: &Manager, faulty: &[String], fault: Fault) {
    let lease = Lease::new();
    make_brief(rival);
    wait_until_ok("the message tells what is wrong with each server", || {
        let status = rival.try_lock("r", TTL, 0, &lease);
        let message = lease.message();
        match status {
            REDLOCK_TAKEN => blames(&message, faulty, fault.words),
            // The machine is so busy that a healthy server was too slow.
            REDLOCK_UNREACHABLE => Err(message),
            other => panic!("{other:?}: {message}"),
        }
    });
    assert!(lease.message().contains("held by another client"), "{}", lease.message());
}

/// The words of successful calls, and the log, say that two servers do not work.
fn a_holder_is_told(manager: &Manager, faulty: &[String], fault: Fault) {
    let lease = Lease::new();
    make_brief(manager);
    let log = manager.log();
    wait_until_ok("the message tells what is wrong with each server", || {
        let status = manager.try_lock("told", TTL, 0, &lease);
        let message = lease.message();
        manager.unlock(&lease);
        match status {
            REDLOCK_OK => blames(&message, faulty, fault.words),
            _ => Err(message),
        }
    });
    let text = log.text();
    assert!(faulty.iter().all(|it| text.contains(it)), "the log says only: {text}");
}

fn minority_in_a_hold(fault: Fault) {
    let cluster = Cluster::start(5);
    let manager = unguarded(connected(&cluster));
    let lease = manager.take("r", TTL);
    cluster.wait_until_everywhere("r");
    cluster[..2].iter().for_each(fault.strike);

    in_time(TOO_LONG, || {
        assert_eq!(manager.extend(&lease, 2 * TTL), REDLOCK_OK, "{}", lease.message());
        assert!(lease.remaining_ms() > TTL);
        assert_eq!(manager.confirm(&lease, TTL), REDLOCK_OK, "{}", lease.message());
        assert_eq!(manager.continue_lock("r", 2 * TTL, &lease), REDLOCK_OK, "{}", lease.message());
        assert_eq!(manager.is_locked("r"), Ok(true));
        let refused = Lease::new();
        assert_eq!(manager.try_lock("r", TTL, 0, &refused), REDLOCK_TAKEN);
        assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
        assert_eq!(manager.is_locked("r"), Ok(false));
    });
    // The two servers may not have received the release. This keeps no client out.
    cluster[..2].iter().for_each(fault.mend);
    cluster[2].kill();
    wait_until("the mended servers are used", || {
        manager.try_lock("another", TTL, 0, &lease) == REDLOCK_OK
    });
}

fn majority_from_the_start(fault: Fault) {
    let cluster = Cluster::start(5);
    let manager = unguarded(connected(&cluster));
    make_brief(&manager);
    cluster[..3].iter().for_each(fault.strike);

    every_way_to_lock_is_unreachable(&manager, "r");
    if !fault.answers_questions {
        in_time(DEADLINE, || assert_eq!(manager.is_locked("r"), Err(REDLOCK_UNREACHABLE)));
        assert!(names(&manager.message(), &cluster[..3]), "{}", manager.message());
    }
    let lease = Lease::new();
    wait_until_ok("the message tells what is wrong with each server", || {
        in_time(DEADLINE, || {
            assert_eq!(manager.try_lock("r", TTL, 0, &lease), REDLOCK_UNREACHABLE);
        });
        blames(&lease.message(), &addresses(&cluster[..3]), fault.words)
    });

    cluster[..3].iter().for_each(fault.mend);
    nothing_is_left(&manager, &cluster, "r");
    wait_until("the manager locks again", || manager.try_lock("r", TTL, 0, &lease) == REDLOCK_OK);
}

fn majority_in_a_hold(fault: Fault) {
    let cluster = Cluster::start(5);
    let manager = unguarded(connected(&cluster));
    let lease = manager.take("r", TTL);
    cluster.wait_until_everywhere("r");
    let validity = lease.remaining_ms();
    cluster[..3].iter().for_each(fault.strike);

    let changed = if fault.changes_keys { REDLOCK_OK } else { REDLOCK_UNREACHABLE };
    if !fault.changes_keys {
        make_brief(&manager);
    }
    in_time(DEADLINE, || assert_eq!(manager.extend(&lease, 2 * TTL), changed));
    assert!(lease.is_held());
    if !fault.changes_keys {
        assert!(lease.remaining_ms() <= validity);
        assert!(names(&lease.message(), &cluster[..3]), "{}", lease.message());
    }
    if !fault.answers_questions {
        in_time(DEADLINE, || assert_eq!(manager.confirm(&lease, 0), REDLOCK_UNREACHABLE));
        in_time(DEADLINE, || assert_eq!(manager.is_locked("r"), Err(REDLOCK_UNREACHABLE)));
        assert!(lease.is_held());
    }
    in_time(DEADLINE, || assert_eq!(manager.unlock(&lease), changed));
    assert!(!lease.is_held());

    cluster[..3].iter().for_each(fault.mend);
    nothing_is_left(&manager, &cluster, "r");
    wait_until("the manager locks again", || {
        manager.try_lock("r", TTL, 0, &Lease::new()) == REDLOCK_OK
    });
}
