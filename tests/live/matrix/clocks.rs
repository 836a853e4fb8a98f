//! Clocks that step, stand still, or run fast, on either side, and short locks.

use std::ops::Range;
use std::time::Instant;

use redlock::ffi::status::RedLockStatus::{
    REDLOCK_INVALID_ARGUMENT, REDLOCK_LOST, REDLOCK_OK, REDLOCK_TAKEN,
};

use crate::obedient::Client;
use crate::rivals::{RESOURCE, Rivals};
use crate::support::shim::Clocks;
use crate::support::usage::{DEADLINE, PATIENT_MS, TTL, connected, connected_unguarded, in_time};
use crate::support::{Cluster, Lease, Server, wait_until};

/// Servers whose wall clocks can be moved. Keys expire by these clocks.
pub(crate) struct Timed {
    pub(crate) cluster: Cluster,
    clocks: Vec<Clocks>,
}

/// A key on each server that shows the server's time.
const SHOWN: &str = "time";
const LONG: i64 = 10_000_000_000;

impl Timed {
    pub(crate) fn start(servers: usize) -> Self {
        let clocks: Vec<_> = (0..servers).map(|_| Clocks::new()).collect();
        let start = |it: &Clocks| Server::start_in(&it.environment(), &[]);
        let cluster: Cluster = clocks.iter().map(start).collect();
        let timed = Self { cluster, clocks };
        timed.show();
        timed
    }

    /// Has the servers show their time. Those that have lost their data must be told again.
    pub(crate) fn show(&self) {
        for server in self.cluster.iter() {
            server.must(&["SET", SHOWN, "", "PX", &LONG.to_string()]);
        }
    }

    /// Steps these clocks at once. A server may read its wall clock only once in a millisecond, and another
    /// clock in between. Valkey since 9.1 does that.
    pub(crate) fn step_some(&self, servers: Range<usize>, ms: i64) {
        let before: Vec<_> = servers.clone().map(|it| self.cluster[it].pttl(SHOWN)).collect();
        self.clocks[servers.clone()].iter().for_each(|it| it.step_wall(ms));
        for (server, before) in self.cluster[servers].iter().zip(before) {
            wait_until("its clock steps", || {
                let moved = before - server.pttl(SHOWN);
                // After a longer step, the key is gone.
                if ms < 0 { moved < ms / 2 } else { moved > ms.min(LONG) / 2 }
            });
        }
    }

    /// Stops the clock of this server at a time before 1970. Such a clock must not run: Redis 7.0 takes the remainder
    /// of its seconds and 8 for a place in a table (`CLIENTS_PEAK_MEM_USAGE_SLOTS` in its server.h), writes before that
    /// table, and then knows no commands any more.
    pub(crate) fn stop_before_1970(&self, server: usize) {
        const SHOWN_MS: i64 = -800_000_000_000;
        self.clocks[server].stop_wall_at(SHOWN_MS);
        wait_until("its clock steps", || self.cluster[server].pttl(SHOWN) > 2 * LONG);
    }

    /// The clock of this server runs again.
    pub(crate) fn go_on(&self, server: usize) {
        self.clocks[server].stop_wall_at(0);
        wait_until("its clock steps", || self.cluster[server].pttl(SHOWN) < 2 * LONG);
    }

    /// Steps all clocks.
    pub(crate) fn step(&self, ms: i64) {
        self.step_some(0..self.clocks.len(), ms);
    }
}

#[test]
fn c01_a_step_forward_on_a_majority_admits_a_rival() {
    let servers = Timed::start(3);
    let rivals = Rivals::unguarded(&servers.cluster);
    servers.step_some(0..1, TTL + 1000);
    assert!(!servers.cluster[0].exists(RESOURCE), "its clock did not step");
    rivals.one_holds_until_it_is_back(&servers.cluster[0]);

    servers.step_some(0..2, TTL + 1000);
    rivals.both_hold();
    rivals.nothing_is_left(&servers.cluster);
}

#[test]
fn c02_clocks_stepping_back_extend_no_validity() {
    const HOUR: i64 = 3_600_000;
    let servers = Timed::start(3);
    let rivals = Rivals::of(&servers.cluster);
    servers.step(-HOUR);
    let pttl = servers.cluster[0].pttl(RESOURCE);
    assert!(pttl > HOUR, "{pttl}: its clock did not step");
    let (manager, lease) = (&rivals.holder, &rivals.held);
    let most = TTL - TTL / 100 - 2;
    for _ in 0..3 {
        rivals.one_holds();
        assert!(lease.remaining_ms() <= most && lease.validity_ms() <= most);
    }
    // A waiter for a lock that is not released does not wait for an hour.
    in_time(DEADLINE, || {
        let status = rivals.rival.try_lock(RESOURCE, TTL, 300, &rivals.wanted);
        assert_eq!(status, REDLOCK_TAKEN, "{}", rivals.wanted.message());
    });
    assert_eq!(manager.unlock(lease), REDLOCK_OK, "{}", lease.message());
    rivals.the_rival_takes_it();
}

#[test]
fn c02_with_stopped_clocks_locks_and_waits_still_end() {
    let servers = Timed::start(3);
    // A client that read a clock while it stood still takes it for a clock that was set forward when it runs
    // again. This may affect some of the servers.
    let holder = connected_unguarded(&servers.cluster);
    let rival = connected_unguarded(&servers.cluster);
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().expect("after 1970");
    let now = i64::try_from(now.as_millis()).expect("not that late");
    servers.clocks.iter().for_each(|it| it.stop_wall_at(now));
    let (lease, wanted) = (Lease::new(), Lease::new());
    wait_until("it is had", || holder.lock(RESOURCE, 300, &lease) == REDLOCK_OK);
    servers.cluster.wait_until_everywhere(RESOURCE);
    wait_until("it ends by the holder's clock", || !lease.is_held());
    in_time(DEADLINE, || {
        assert_eq!(rival.try_lock(RESOURCE, TTL, 300, &wanted), REDLOCK_TAKEN);
    });
    assert_eq!(servers.cluster.having(RESOURCE), 3, "the clocks do not stand");
    assert_eq!(holder.confirm(&lease, 0), REDLOCK_LOST, "{}", lease.message());
    servers.clocks.iter().for_each(|it| it.stop_wall_at(0));
    let status = rival.try_lock(RESOURCE, TTL, PATIENT_MS, &wanted);
    assert_eq!(status, REDLOCK_OK, "{}", wanted.message());
}

/// A client that holds a lock, and servers that have it. Time moves in steps: a hundredth of the TTL for the
/// client, and more for the servers.
struct Lapse {
    servers: Timed,
    clocks: Clocks,
    client: Client,
    rivals: (crate::support::Manager, Lease),
}

impl Lapse {
    fn start() -> Self {
        let (servers, clocks) = (Timed::start(3), Clocks::new());
        let mut client = Client::start(&servers.cluster, &clocks.environment());
        client.must(&format!("lock {TTL}"));
        servers.cluster.wait_until_everywhere(RESOURCE);
        // With a guard, the rival would mistake clocks that run so much faster than its own for clocks that
        // were set.
        let rivals = (connected_unguarded(&servers.cluster), Lease::new());
        Self { servers, clocks, client, rivals }
    }

    /// Returns whether the rival gets the lock at the end of the step, and whether the client then still
    /// believes that it holds the lock.
    fn step(&mut self, servers_ms: i64) -> (bool, bool) {
        self.servers.step(servers_ms);
        self.clocks.sleep(TTL / 100);
        let (rival, wanted) = &self.rivals;
        let taken_over = rival.try_lock(RESOURCE, TTL, 0, wanted) == REDLOCK_OK;
        (taken_over, self.client.does("look").held)
    }
}

#[test]
fn c03_servers_half_a_percent_fast_are_within_the_drift() {
    let (mut lapse, mut was_taken_over) = (Lapse::start(), false);
    for hundredth in 1..=100 {
        let (taken_over, held) = lapse.step(TTL / 100 * 1005 / 1000);
        was_taken_over |= taken_over;
        assert!(!(was_taken_over && held), "both have it after {hundredth} % of the TTL");
        // The duration of this test adds to the steps, for all of them. A busy machine may need some hundredths
        // of the TTL.
        let is_early = hundredth <= 90;
        assert!(if is_early { held } else { hundredth <= 98 || !held }, "{hundredth} %: {held}");
        assert!(!(is_early && was_taken_over), "taken over after {hundredth} % of the TTL");
    }
    assert!(was_taken_over, "it was not free at the end of the TTL");
}

#[test]
fn c03_servers_three_percent_fast_admit_a_rival_at_the_end() {
    let mut lapse = Lapse::start();
    let both = (1..=100).find(|_| lapse.step(TTL / 100 * 103 / 100) == (true, true));
    // By the steps alone it is 98. The duration of this test adds to that.
    let is_at_the_end = both.is_some_and(|it| (90..=98).contains(&it));
    assert!(is_at_the_end, "the drift was not exceeded ({both:?}), so this test shows nothing");
    assert_eq!(lapse.client.does("confirm 0").status, "REDLOCK_LOST");
    assert_eq!(lapse.client.does(&format!("extend {TTL}")).status, "REDLOCK_LOST");
}

#[test]
fn c03_servers_three_percent_fast_are_harmless_when_extended() {
    let mut lapse = Lapse::start();
    for step in 1..=600 {
        assert_eq!(lapse.step(TTL / 100 * 103 / 100), (false, true), "at step {step}");
        if step % 50 == 0 {
            lapse.client.must(&format!("extend {TTL}"));
        }
    }
}

#[test]
fn c04_steps_of_the_client_wall_clock_change_nothing() {
    const HOUR: i64 = 3_600_000;
    let (cluster, clocks) = (Cluster::start(3), Clocks::new());
    let mut client = Client::start(&cluster, &clocks.environment());
    let mut remaining_ms = client.must(&format!("lock {TTL}")).remaining_ms;
    for step in [HOUR, -2 * HOUR, 2 * HOUR, -1000, 1000, 10 * TTL, -20 * TTL] {
        clocks.step_wall(step);
        let said = client.must("look");
        assert!(said.held && said.remaining_ms <= remaining_ms, "{said:?}");
        assert!(said.remaining_ms > TTL - 120_000, "{said:?}");
        remaining_ms = said.remaining_ms;
        client.must("confirm 1000");
    }
    let extended = client.must(&format!("extend {}", 2 * TTL));
    assert!(extended.remaining_ms > TTL && extended.remaining_ms < 2 * TTL, "{extended:?}");
    client.must("unlock");

    // Also in a call that waits.
    let holder = connected(&cluster);
    let _held = holder.take(RESOURCE, TTL);
    for step in [-HOUR, HOUR] {
        in_time(DEADLINE, || {
            client.begins(&format!("try {TTL} 500"));
            clocks.step_wall(step);
            assert_eq!(client.tells().status, "REDLOCK_TAKEN");
        });
    }
}

#[test]
fn c05_a_machine_after_a_sleep_has_no_expired_lock() {
    for (sleep, is_held) in [(TTL / 2, true), (TTL, false), (2 * TTL, false)] {
        let (servers, clocks) = (Timed::start(3), Clocks::new());
        let mut client = Client::start(&servers.cluster, &clocks.environment());
        client.must(&format!("lock {TTL}"));
        servers.cluster.wait_until_everywhere(RESOURCE);
        // The time that the servers spend awake.
        clocks.sleep(sleep);
        servers.step(sleep);
        let (rival, wanted) = (connected(&servers.cluster), Lease::new());
        let taken_over = rival.try_lock(RESOURCE, TTL, 0, &wanted) == REDLOCK_OK;
        assert_eq!(taken_over, !is_held, "after {sleep} ms: {}", wanted.message());
        let said = client.must("look");
        assert_eq!(said.held, is_held, "after {sleep} ms: {said:?}");
        assert!(said.remaining_ms <= (TTL - TTL / 100 - 2 - sleep).max(0), "{said:?}");
        let expected = if is_held { "REDLOCK_OK" } else { "REDLOCK_LOST" };
        let said = client.does("confirm 0");
        assert_eq!(said.status, expected, "{said:?}");
        assert_eq!(said.words.contains("expired"), !is_held, "{said:?}");
        assert_eq!(client.does(&format!("extend {TTL}")).status, expected);
        if !is_held {
            client.does("unlock");
            assert_eq!(rival.confirm(&wanted, 1000), REDLOCK_OK, "{}", wanted.message());
        }
    }
}

#[test]
fn c05_a_machine_that_sleeps_in_a_call_keeps_nothing() {
    // An extension has to come before the end of the lock that it extends, whatever its new TTL.
    for (has_it, order, ttl_ms) in
        [(false, "lock", TTL), (true, "extend", TTL), (true, "extend", 3 * TTL)]
    {
        let (cluster, clocks) = (Cluster::start(3), Clocks::new());
        let mut client = Client::start(&cluster, &clocks.environment());
        if has_it {
            client.must(&format!("lock {TTL}"));
            cluster.wait_until_everywhere(RESOURCE);
        }
        asleep_in(&mut client, &cluster, &clocks, &format!("{order} {ttl_ms}"));
        client.does("unlock");
        // A connection that was silent for so long may have been given up. Then the server gets the release
        // later.
        wait_until("nothing is left", || {
            client.does("ask").status == "REDLOCK_OK" && cluster.having(RESOURCE) == 0
        });
    }
}

/// The client's machine sleeps for a TTL while two servers have not answered yet.
#[track_caller]
fn asleep_in(client: &mut Client, cluster: &Cluster, clocks: &Clocks, order: &str) {
    cluster[..2].iter().for_each(Server::freeze);
    let asked = || cluster[2].calls("set") + cluster[2].scripts();
    let before = asked();
    client.begins(order);
    wait_until("the call has begun", || asked() > before);
    clocks.sleep(TTL);
    cluster[..2].iter().for_each(Server::resume);
    let said = client.tells();
    assert_ne!(said.status, "REDLOCK_OK", "{order}: {said:?}");
    assert!(!said.held && said.remaining_ms == 0, "{order}: {said:?}");
}

#[test]
fn c07_short_locks_are_valid_as_reported() {
    let cluster = Cluster::start(3);
    let manager = connected(&cluster);
    for ttl_ms in [20, 30, 50, 100, 200, 400, 900] {
        let validity_ms = ttl_ms - (ttl_ms + 99) / 100 - 2;
        for round in 0..3 {
            let (resource, lease) = (format!("{ttl_ms}-{round}"), Lease::new());
            let mut asked_at = Instant::now();
            // On a busy machine so short a lock may expire before the call returns.
            wait_until("it is had", || {
                asked_at = Instant::now();
                manager.try_lock(&*resource, ttl_ms, 0, &lease) == REDLOCK_OK
            });
            let had_at = Instant::now();
            let said_ms = lease.validity_ms();
            assert!(said_ms <= validity_ms, "{said_ms} of {validity_ms}");
            assert!(said_ms >= validity_ms - ms(had_at - asked_at) - 1, "{said_ms}");
            loop {
                let before = Instant::now();
                let keys = cluster.having(&resource);
                let left_ms = lease.remaining_ms();
                let after = Instant::now();
                assert!(left_ms == 0 || keys >= 2, "{left_ms} ms left, on {keys} servers");
                assert!(
                    left_ms <= (validity_ms - ms(before.saturating_duration_since(had_at))).max(0)
                );
                assert!(left_ms >= validity_ms - ms(after - asked_at) - 2, "{left_ms} of {ttl_ms}");
                if !lease.is_held() {
                    break;
                }
            }
            assert_eq!(manager.extend(&lease, TTL), REDLOCK_LOST, "{}", lease.message());
            cluster.wait_until_gone(&resource);
        }
    }
}

#[test]
fn c07_a_ttl_without_any_validity_is_refused() {
    let cluster = Cluster::start(1);
    let manager = connected(&cluster);
    for (factor, least_ms) in [(0.0, 3), (0.01, 4), (0.1, 4), (0.5, 6), (0.9, 30)] {
        assert_eq!(manager.set_clock_drift_factor(factor), REDLOCK_OK);
        for ttl_ms in 1..2 * least_ms {
            let lease = Lease::new();
            let is_refused = manager.try_lock("r", ttl_ms, 0, &lease) == REDLOCK_INVALID_ARGUMENT;
            assert_eq!(is_refused, ttl_ms < least_ms, "{ttl_ms} ms, drift {factor}");
        }
    }
}

fn ms(time: std::time::Duration) -> i64 {
    i64::try_from(time.as_millis()).expect("not that long")
}
