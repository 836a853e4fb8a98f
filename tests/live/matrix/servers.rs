//! Faults of servers: they hang, die, come back without keys, refuse. This file has servers that do not answer
//! for a while, or never.

use std::thread;
use std::time::{Duration, Instant};

use redlock::ffi::status::RedLockStatus::{REDLOCK_OK, REDLOCK_UNREACHABLE};

use crate::support::faults::leave_behind;
use crate::support::usage::{
    DEADLINE, TOO_LONG, TTL, addresses, blames, connected, everything_works, in_time, make_brief,
    nothing_is_left,
};
use crate::support::{Cluster, Fault, Lease, Manager, Program, Server, wait_until, wait_until_ok};

#[test]
fn s01_a_hanging_minority_costs_no_time() {
    for (servers, frozen) in [(3, 1), (5, 2)] {
        let cluster = Cluster::start(servers);
        let manager = connected(&cluster);
        let (mut healthy, mut hampered) = (Vec::new(), Vec::new());
        for _ in 0..5 {
            healthy.extend((0..20).map(|_| time_of_a_cycle(&manager)));
            let held = manager.take("held", TTL);
            cluster.wait_until_everywhere("held");
            cluster[..frozen].iter().for_each(Server::freeze);
            hampered.extend((0..20).map(|_| time_of_a_cycle(&manager)));
            assert_eq!(manager.extend(&held, 2 * TTL), REDLOCK_OK, "{}", held.message());
            assert_eq!(manager.confirm(&held, TTL), REDLOCK_OK, "{}", held.message());
            assert_eq!(manager.unlock(&held), REDLOCK_OK, "{}", held.message());
            cluster[..frozen].iter().for_each(Server::resume);
            cluster.wait_until_gone("held");
        }
        // The bench measures how much less than a tenth it is. Here the machine is busy.
        let (healthy, hampered) = (median(healthy), median(hampered));
        let limit = 3 * healthy + Duration::from_millis(5);
        assert!(hampered < limit, "{hampered:?} rather than {healthy:?} with {frozen} frozen");
        cluster.wait_until_gone("cycle");
    }
}

fn time_of_a_cycle(manager: &Manager) -> Duration {
    let start = Instant::now();
    let lease = manager.take("cycle", TTL);
    assert_eq!(manager.extend(&lease, TTL), REDLOCK_OK, "{}", lease.message());
    assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    start.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

#[test]
fn s02_late_grants_of_a_majority_are_undone() {
    for (servers, frozen) in [(3, 2), (5, 3)] {
        let cluster = Cluster::start(servers);
        let manager = connected(&cluster);
        make_brief(&manager);
        let before = sets(&cluster);
        let lease = Lease::new();
        cluster[..frozen].iter().for_each(Server::freeze);
        in_time(DEADLINE, || assert_eq!(manager.lock("r", TTL, &lease), REDLOCK_UNREACHABLE));
        assert!(!lease.is_held());
        cluster[..frozen].iter().for_each(Server::resume);
        grants_come_and_go(&cluster, &before);
        wait_until("it locks again", || manager.try_lock("r", TTL, 0, &lease) == REDLOCK_OK);
    }
}

#[test]
fn s02_a_hold_outlives_a_hanging_majority() {
    let cluster = Cluster::start(5);
    let manager = connected(&cluster);
    let lease = manager.take("r", TTL);
    cluster.wait_until_everywhere("r");
    make_brief(&manager);
    let (token, remaining) = (lease.token(), lease.remaining_ms());
    cluster[..3].iter().for_each(Server::freeze);
    in_time(DEADLINE, || assert_eq!(manager.extend(&lease, 2 * TTL), REDLOCK_UNREACHABLE));
    in_time(DEADLINE, || assert_eq!(manager.confirm(&lease, 0), REDLOCK_UNREACHABLE));
    assert!(lease.is_held() && lease.remaining_ms() <= remaining, "{}", lease.message());
    cluster[..3].iter().for_each(Server::resume);
    wait_until("it is extended late", || cluster.iter().all(|it| it.pttl("r") > TTL));
    assert!(lease.remaining_ms() <= remaining, "nobody was told of that");
    wait_until("it is extended", || manager.extend(&lease, 2 * TTL) == REDLOCK_OK);
    assert_eq!(lease.token(), token);
    assert!(lease.remaining_ms() > TTL);
}

#[test]
fn s02_an_unanswered_release_is_carried_out_late() {
    let cluster = Cluster::start(5);
    let manager = connected(&cluster);
    let lease = manager.take("r", TTL);
    cluster.wait_until_everywhere("r");
    make_brief(&manager);
    cluster[..3].iter().for_each(Server::freeze);
    in_time(DEADLINE, || assert_eq!(manager.unlock(&lease), REDLOCK_UNREACHABLE));
    assert!(!lease.is_held());
    cluster[..3].iter().for_each(Server::resume);
    // No call is made any more.
    cluster.wait_until_gone("r");
}

#[test]
fn s03_late_grants_are_undone_after_the_manager_was_freed() {
    let cluster = Cluster::start(3);
    let manager = connected(&cluster);
    make_brief(&manager);
    let before = sets(&cluster);
    cluster[..2].iter().for_each(Server::freeze);
    assert_eq!(manager.lock("r", TTL, &Lease::new()), REDLOCK_UNREACHABLE);
    drop(manager);
    cluster[..2].iter().for_each(Server::resume);
    grants_come_and_go(&cluster, &before);
}

#[test]
fn s03_the_keys_of_a_killed_process_end_with_their_ttl() {
    const SHORT_TTL: i64 = 1_500;
    let cluster = Cluster::start(3);
    let rival = connected(&cluster);
    let mut client = Program::compile("obedient").start(&cluster.urls());
    client.hears("ready");
    let before = sets(&cluster);
    cluster[..2].iter().for_each(Server::freeze);
    client.says(&format!("lock {SHORT_TTL}"));
    wait_until("the call has begun", || cluster[2].calls("set") > before[2]);
    drop(client);
    cluster[..2].iter().for_each(Server::resume);
    for (server, before) in cluster.iter().zip(&before) {
        wait_until("the request is carried out", || server.calls("set") > *before);
        assert!(server.pttl("r") <= SHORT_TTL, "{}", cluster.describe("r"));
    }
    let lease = Lease::new();
    assert_eq!(rival.try_lock("r", TTL, 20_000, &lease), REDLOCK_OK, "{}", lease.message());
}

fn sets(cluster: &Cluster) -> Vec<u64> {
    cluster.iter().map(|server| server.calls("set")).collect()
}

/// Waits for the requests of the lock first: before them there is nothing to undo.
fn grants_come_and_go(cluster: &Cluster, before: &[u64]) {
    for (server, before) in cluster.iter().zip(before) {
        wait_until("the request is carried out", || server.calls("set") > *before);
    }
    cluster.wait_until_gone("r");
}

/// A request cannot be called back from a server that pauses all commands. So the server is not asked again
/// before the end of the test.
const FOR_LONG: &str = "600000";

#[test]
fn s09_a_paused_minority_is_harmless() {
    for what in ["ALL", "WRITE"] {
        let cluster = Cluster::start(5);
        let manager = connected(&cluster);
        for server in &cluster[..2] {
            server.must(&["CLIENT", "PAUSE", FOR_LONG, what]);
        }
        in_time(TOO_LONG, || everything_works(&manager, "r"));
    }
}

#[test]
fn s09_a_short_pause_of_a_majority_costs_only_its_time() {
    let cluster = Cluster::start(3);
    let manager = connected(&cluster);
    for (what, pause_ms) in [("ALL", 50), ("WRITE", 50), ("ALL", 500), ("WRITE", 500)] {
        // This thread may be stopped for a while before it begins to lock, and then it waits for less. A
        // library that did not subtract the waiting time would never pass.
        wait_until_ok("the time that it waited is taken off", || {
            let start = Instant::now();
            for server in &cluster[..2] {
                server.must(&["CLIENT", "PAUSE", &pause_ms.to_string(), what]);
            }
            let late_ms = i64::try_from(start.elapsed().as_millis()).expect("not that long") + 1;
            let lease = manager.take("r", TTL);
            let most = TTL - TTL / 100 - 2 - (pause_ms - late_ms);
            let validity_ms = lease.validity_ms();
            assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
            cluster.wait_until_gone("r");
            let is_less = late_ms < pause_ms && validity_ms <= most;
            if is_less { Ok(()) } else { Err(format!("{validity_ms} of {most}")) }
        });
    }
}

#[test]
fn s09_a_long_paused_majority_is_unreachable() {
    thread::scope(|scope| {
        for what in ["ALL", "WRITE"] {
            scope.spawn(|| majority_that_pauses_for_long(what));
        }
    });
}

fn majority_that_pauses_for_long(what: &str) {
    let cluster = Cluster::start(5);
    let manager = connected(&cluster);
    make_brief(&manager);
    let (before, lease) = (sets(&cluster), Lease::new());
    for server in &cluster[..3] {
        server.must(&["CLIENT", "PAUSE", "5000", what]);
    }
    in_time(Duration::from_secs(4), || {
        assert_eq!(manager.lock("r", TTL, &lease), REDLOCK_UNREACHABLE);
    });
    let silent = ["timed out", "no reply"];
    assert_eq!(blames(&lease.message(), &addresses(&cluster[..3]), &silent), Ok(()));
    if what == "WRITE" {
        // Questions are answered by servers that do not owe an earlier answer.
        let stranger = connected(&cluster);
        assert_eq!(stranger.is_locked("other"), Ok(false), "{}", stranger.message());
    }
    grants_come_and_go(&cluster, &before);
}

#[test]
fn s10_a_sleeping_minority_is_harmless() {
    let cluster = Cluster::start(5);
    let manager = connected(&cluster);
    for server in &cluster[..2] {
        leave_behind(server, &["DEBUG", "SLEEP", "600"]);
    }
    in_time(TOO_LONG, || everything_works(&manager, "r"));
}

#[test]
fn s10_a_sleeping_majority_is_unreachable_and_used_again() {
    let cluster = Cluster::start(5);
    let manager = connected(&cluster);
    make_brief(&manager);
    for server in &cluster[..3] {
        leave_behind(server, &["DEBUG", "SLEEP", "4"]);
    }
    let lease = Lease::new();
    wait_until("they sleep", || match manager.try_lock("r", TTL, 0, &lease) {
        REDLOCK_OK => {
            manager.unlock(&lease);
            false
        }
        status => status == REDLOCK_UNREACHABLE,
    });
    nothing_is_left(&manager, &cluster, "r");
    wait_until("it locks again", || manager.try_lock("r", TTL, 0, &lease) == REDLOCK_OK);
}

#[test]
fn s10_servers_with_a_foreign_script_are_not_hammered() {
    let cluster = Cluster::start(3);
    let manager = connected(&cluster);
    let lease = manager.take("r", TTL);
    cluster.wait_until_everywhere("r");
    make_brief(&manager);
    let log = manager.log();
    cluster[..2].iter().for_each(Fault::BUSY.strike);
    assert_eq!(manager.unlock(&lease), REDLOCK_UNREACHABLE, "{}", lease.message());
    let (calls, began) = (500, Instant::now());
    for _ in 0..calls {
        assert_eq!(manager.try_lock("r", TTL, 0, &lease), REDLOCK_UNREACHABLE);
        // Two endless scripts may leave the server no processor time to say so.
        let blamed = blames(&lease.message(), &addresses(&cluster[..2]), &["BUSY", "timed out"]);
        assert_eq!(blamed, Ok(()));
    }
    let probes = u64::try_from(began.elapsed().as_millis() / 200).expect("not that long");
    cluster[..2].iter().for_each(Fault::BUSY.mend);
    for server in &cluster[..2] {
        // An attempt is three commands, and a release one or two. A release is tried again at most every 200
        // ms.
        let refused = error_replies(server, "BUSY");
        assert!(
            refused <= 5 * calls + 2 * probes + 20,
            "{refused} commands of {calls} calls were refused"
        );
    }
    nothing_is_left(&manager, &cluster, "r");
    wait_until("it locks again", || manager.try_lock("r", TTL, 0, &lease) == REDLOCK_OK);
    wait_until("that is logged", || {
        assert_eq!(manager.extend(&lease, TTL), REDLOCK_OK, "{}", lease.message());
        let text = log.text();
        addresses(&cluster[..2]).iter().all(|it| text.contains(&format!("{it}: works again")))
    });
}

/// How often a server has answered with this error.
pub(crate) fn error_replies(server: &Server, code: &str) -> u64 {
    let prefix = format!("errorstat_{code}:count=");
    let statistics = server.must(&["INFO", "errorstats"]).text().expect("statistics");
    let count = statistics.lines().find_map(|it| it.strip_prefix(&prefix)?.trim().parse().ok());
    count.unwrap_or(0)
}
