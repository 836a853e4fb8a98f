//! Numbers: below, at and above the bounds of each argument.

use std::time::{Duration, Instant};

use redlock::ffi::status::RedLockStatus::{
    REDLOCK_OK, REDLOCK_TAKEN, REDLOCK_TOO_SHORT, REDLOCK_TOO_SLOW, REDLOCK_UNREACHABLE,
};

use crate::support::{Lease, Manager, Server, finishes};
use crate::{Holder, TTL, accepted, all_differ, refused, refused_with, says};

/// Ten years.
const LONGEST_TTL: i64 = 315_360_000_000;
const DAY: i64 = 86_400_000;

#[test]
fn a_ttl_out_of_bounds_is_refused_by_every_call() {
    let holder = Holder::new();
    let mut messages = Vec::new();
    for (ttl, words) in [
        (i64::MIN, "it must be 1 to 315360000000"),
        (-1, "it must be 1 to 315360000000"),
        (0, "it must be 1 to 315360000000"),
        (1, "reserved for clock drift"),
        (2, "reserved for clock drift"),
        (3, "reserved for clock drift"),
        (LONGEST_TTL + 1, "it must be 1 to 315360000000"),
        (i64::MAX, "it must be 1 to 315360000000"),
    ] {
        let words = [&*format!("ttl_ms is {ttl}"), words];
        for lease in [&holder.lease, &Lease::new()] {
            let manager = &holder.manager;
            holder.nothing_happens(|| {
                refused_with(lease, manager.lock("r", ttl, lease), &words);
                refused_with(lease, manager.try_lock("r", ttl, -1, lease), &words);
                refused_with(lease, manager.continue_lock("r", ttl, lease), &words);
                refused_with(lease, manager.extend(lease, ttl), &words);
            });
        }
        let held = &holder.lease;
        let manager = &holder.manager;
        let status = holder.nothing_happens(|| manager.continue_lock(Holder::RESOURCE, ttl, held));
        refused_with(held, status, &words);
        messages.push(held.message());
    }
    all_differ(&messages);
}

#[test]
fn the_shortest_ttl_is_four() {
    let server = Server::start();
    let manager = Manager::at(&[server.address()]);
    manager.set_retry(1, 0);
    for _ in 0..20 {
        let lease = Lease::new();
        let status = manager.lock("r", 4, &lease);
        // One millisecond of validity may be over before it begins, or before the server can be asked.
        let may_be = [REDLOCK_OK, REDLOCK_TOO_SLOW, REDLOCK_TAKEN, REDLOCK_UNREACHABLE];
        assert!(may_be.contains(&status), "{status:?}");
        assert!(lease.validity_ms() <= 1);
    }
}

#[test]
fn the_longest_ttl_is_ten_years() {
    let server = Server::start();
    let manager = Manager::at(&[server.address()]);
    let lease = manager.take("r", LONGEST_TTL);
    let pttl = server.pttl("r");
    assert!(pttl > LONGEST_TTL - 60_000 && pttl <= LONGEST_TTL, "{pttl}");
    let validity = LONGEST_TTL - LONGEST_TTL / 100 - 2;
    assert!(lease.validity_ms() <= validity && lease.validity_ms() > validity - 60_000);
    assert_eq!(manager.extend(&lease, LONGEST_TTL), REDLOCK_OK);
    assert_eq!(manager.continue_lock("r", LONGEST_TTL, &lease), REDLOCK_OK);
    assert_eq!(manager.unlock(&lease), REDLOCK_OK);
}

#[test]
fn the_least_ttl_follows_from_the_drift_factor() {
    let server = Server::start();
    let manager = Manager::at(&[server.address()]);
    manager.set_retry(50, 1);
    for (factor, ttl) in [(0.0, 2), (0.01, 3), (0.5, 5), (0.999, 2_000), (0.999_999, 2_000_000)] {
        accepted(&manager, manager.set_clock_drift_factor(factor));
        let lease = Lease::new();
        refused_with(&lease, manager.lock("r", ttl, &lease), &["too short", "drift"]);
    }
    accepted(&manager, manager.set_clock_drift_factor(0.999));
    // 102 ms of it are valid.
    let lease = manager.take("r", 104_000);
    assert!(lease.validity_ms() <= 102, "{}", lease.validity_ms());
}

#[test]
fn a_drift_factor_is_at_least_0_and_less_than_1() {
    let holder = Holder::new();
    let manager = &holder.manager;
    let mut messages = Vec::new();
    for factor in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, -1e-9, 1.0, 1.5] {
        let status = holder.nothing_happens(|| manager.set_clock_drift_factor(factor));
        refused(manager, status, &["factor is", "at least 0", "less than 1"]);
        messages.push(manager.message());
    }
    all_differ(&messages);
    says(&messages[0], &["factor is NaN"]);
    says(&messages[1], &["factor is inf"]);
    says(&messages[3], &["factor is -1:"]);
    says(&messages[5], &["factor is 1:"]);
    // The factor that was set before stays.
    assert_eq!(manager.extend(&holder.lease, 1_000_000), REDLOCK_OK);
    let validity = holder.lease.validity_ms();
    assert!(validity <= 989_998 && validity > 900_000, "{validity}");
    for factor in [0.0, -0.0, f64::MIN_POSITIVE, 0.999, 1.0 - f64::EPSILON] {
        accepted(manager, manager.set_clock_drift_factor(factor));
    }
}

#[test]
fn a_count_is_at_least_1_and_a_delay_at_least_0() {
    let holder = Holder::new();
    let manager = &holder.manager;
    accepted(manager, manager.set_retry(1, i32::MAX));
    let mut messages = Vec::new();
    for (count, delay_ms, words) in [
        (0, 0, "count is 0"),
        (-1, 200, "count is -1"),
        (i32::MIN, i32::MAX, "count is -2147483648"),
        (3, -1, "delay_ms is -1"),
        (i32::MAX, i32::MIN, "delay_ms is -2147483648"),
    ] {
        let status = holder.nothing_happens(|| manager.set_retry(count, delay_ms));
        refused(manager, status, &[words]);
        messages.push(manager.message());
    }
    all_differ(&messages);
    // One try, so no pause of 25 days: both parts of the earlier setting stay.
    one_try(&holder);
    accepted(manager, manager.set_retry(i32::MAX, i32::MAX));
    accepted(manager, manager.set_retry(i32::MAX, 0));
    accepted(manager, manager.set_retry(1, 0));
    one_try(&holder);
}

fn one_try(holder: &Holder) {
    let tries = holder.server.calls("set");
    assert_eq!(holder.manager.lock(Holder::RESOURCE, TTL, &Lease::new()), REDLOCK_TAKEN);
    assert_eq!(holder.server.calls("set"), tries + 1);
}

#[test]
fn timeouts_are_within_a_day() {
    let holder = Holder::new();
    let manager = &holder.manager;
    let mut messages = Vec::new();
    for (connect_ms, reply_ms, words) in [
        (0, 0, "connect_ms is 0"),
        (-1, 0, "connect_ms is -1"),
        (i64::MIN, 0, "connect_ms is -9223372036854775808"),
        (DAY + 1, 0, "connect_ms is 86400001"),
        (i64::MAX, i64::MAX, "connect_ms is 9223372036854775807"),
        (1500, -1, "reply_ms is -1"),
        (1500, i64::MIN, "reply_ms is -9223372036854775808"),
        (1500, DAY + 1, "reply_ms is 86400001"),
        (1500, i64::MAX, "reply_ms is 9223372036854775807"),
    ] {
        let status = holder.nothing_happens(|| manager.set_timeouts(connect_ms, reply_ms));
        refused(manager, status, &[words, "86400000"]);
        messages.push(manager.message());
    }
    all_differ(&messages);
    accepted(manager, manager.set_timeouts(1, 0));
    accepted(manager, manager.set_timeouts(DAY, DAY));
    assert_eq!(manager.confirm(&holder.lease, 0), REDLOCK_OK);
}

#[test]
fn connect_refuses_a_negative_timeout() {
    let holder = Holder::new();
    let manager = &holder.manager;
    for timeout_ms in [-1, i64::MIN] {
        let status = holder.nothing_happens(|| manager.connect(timeout_ms));
        refused(manager, status, &[&format!("timeout_ms is {timeout_ms}")]);
    }
    for timeout_ms in [0, 1, 1000, i64::MAX] {
        accepted(manager, manager.connect(timeout_ms));
    }
}

#[test]
fn confirm_refuses_a_negative_time() {
    let holder = Holder::new();
    let (manager, lease) = (&holder.manager, &holder.lease);
    for least_ms in [-1, i64::MIN] {
        let status = holder.nothing_happens(|| manager.confirm(lease, least_ms));
        refused_with(lease, status, &[&format!("least_ms is {least_ms}")]);
    }
    assert_eq!(manager.confirm(lease, 0), REDLOCK_OK);
    // No lock lasts that long, but this does not affect the lock that is held.
    for least_ms in [2 * TTL, LONGEST_TTL, i64::MAX - 1, i64::MAX] {
        assert_eq!(manager.confirm(lease, least_ms), REDLOCK_TOO_SHORT, "{}", lease.message());
        says(&lease.message(), &[&format!("{least_ms} ms"), "for only"]);
        assert!(lease.is_held());
    }
    assert_eq!(manager.confirm(lease, 1), REDLOCK_OK);
}

#[test]
fn a_wait_may_be_any_number() {
    let server = Server::start();
    let manager = Manager::at(&[server.address()]);
    for wait_ms in [0, 1, -1, i64::MAX, i64::MIN] {
        let lease = Lease::new();
        assert_eq!(manager.try_lock("r", TTL, wait_ms, &lease), REDLOCK_OK, "{}", lease.message());
        assert_eq!(manager.unlock(&lease), REDLOCK_OK);
    }
}

#[test]
fn the_longest_wait_really_waits() {
    let server = Server::start();
    let (holder, manager) = (Manager::at(&[server.address()]), Manager::at(&[server.address()]));
    manager.set_retry(1, 10);
    for wait_ms in [i64::MAX, i64::MIN] {
        let held = holder.take("r", TTL);
        let start = Instant::now();
        let waiting = Manager::at(&[server.address()]);
        waiting.set_retry(1, 10);
        let releasing = std::thread::scope(|scope| {
            let release = scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(100));
                assert_eq!(holder.unlock(&held), REDLOCK_OK);
            });
            let (status, lease) = finishes("the wait", move || {
                let lease = Lease::new();
                (waiting.try_lock("r", 1000, wait_ms, &lease), lease)
            });
            assert_eq!(status, REDLOCK_OK, "{}", lease.message());
            assert_eq!(manager.unlock(&lease), REDLOCK_OK);
            release.join()
        });
        releasing.expect("it released");
        assert!(start.elapsed() >= Duration::from_millis(100), "it did not wait");
    }
}
