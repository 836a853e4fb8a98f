//! The counters equal the number of events, exactly.

use std::ptr;

use redlock::ffi::kept_log::{RedLock_KeepLog, RedLock_TakeLogLine};
use redlock::ffi::stats::{
    REDLOCK_TRACE_EVENTS, REDLOCK_TRACE_OFF, REDLOCK_TRACE_RESOURCES, RedLock_StatsText,
    RedLockHistogram, RedLockOutcomes, RedLockStats,
};
use redlock::ffi::status::RedLockStatus::{
    REDLOCK_CANCELLED, REDLOCK_INVALID_ARGUMENT, REDLOCK_LOST, REDLOCK_OK, REDLOCK_TAKEN,
    REDLOCK_TOO_SHORT, REDLOCK_UNREACHABLE,
};

use crate::support::events::Wanted;
use crate::support::usage::{connected, make_brief};
use crate::support::{Cluster, Lease, Manager, Server, wait_until};
use crate::{TTL, accepted};

/// A manager of a server that does not exist.
fn nowhere() -> Manager {
    Manager::at(&["127.0.0.1:1".to_owned()])
}

/// The values of all fields, in the order of the struct.
fn numbers(outcomes: RedLockOutcomes) -> [u64; 8] {
    let RedLockOutcomes { ok, taken, unreachable, too_slow, lost, too_short, cancelled, failed } =
        outcomes;
    [ok, taken, unreachable, too_slow, lost, too_short, cancelled, failed]
}

#[track_caller]
fn is_sound(histogram: &RedLockHistogram, count: u64) {
    assert_eq!((histogram.count, histogram.buckets.iter().sum()), (count, count));
    assert!(histogram.sum_us >= 0 && (count > 0 || histogram.sum_us == 0));
}

#[test]
fn a_new_manager_has_counted_nothing() {
    let stats = Manager::new().stats();
    assert_eq!(numbers(stats.acquire), [0; 8]);
    assert_eq!((stats.attempts, stats.requests, stats.connections, stats.kept), (0, 0, 0, 0));
    is_sound(&stats.acquire_time, 0);
    assert!(stats.bounds_us.is_sorted() && stats.bounds_us[0] == 25);
    // Calls that are refused for their arguments are not counted either.
    let manager = nowhere();
    assert_eq!(manager.try_lock("r", 0, 0, &Lease::new()), REDLOCK_INVALID_ARGUMENT);
    assert_eq!(manager.unlock(&Lease::new()), REDLOCK_LOST);
    let stats = manager.stats();
    assert_eq!((numbers(stats.acquire), numbers(stats.release)), ([0; 8], [0; 8]));
}

#[test]
fn calls_are_counted_by_outcome() {
    let cluster = Cluster::start(3);
    let (manager, rival) = (connected(&cluster), connected(&cluster));
    let before = manager.stats();
    assert_eq!((before.connections, before.connections_lost), (3, 0));
    // 5 locks. One of them is given away, one is adopted, one is lost, and one has two levels.
    let lease = Lease::new();
    for _ in 0..2 {
        assert_eq!(manager.try_lock("r", TTL, 0, &lease), REDLOCK_OK, "{}", lease.message());
        assert_eq!(rival.try_lock("r", TTL, 0, &Lease::new()), REDLOCK_TAKEN);
        assert_eq!(manager.extend(&lease, TTL), REDLOCK_OK, "{}", lease.message());
        assert_eq!(manager.confirm(&lease, 0), REDLOCK_OK, "{}", lease.message());
        assert_eq!(manager.confirm(&lease, 2 * TTL), REDLOCK_TOO_SHORT);
        assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    }
    assert_eq!(manager.try_lock("r", TTL, 0, &lease), REDLOCK_OK, "{}", lease.message());
    let ticket = manager.detach(&lease).expect("it is held");
    assert_eq!(manager.adopt(&ticket, &lease), REDLOCK_OK, "{}", lease.message());
    assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    assert_eq!(manager.adopt(&ticket, &lease), REDLOCK_LOST);
    assert_eq!(manager.try_lock("r", TTL, 0, &lease), REDLOCK_OK, "{}", lease.message());
    cluster.wait_until_everywhere("r");
    cluster.iter().for_each(|it| _ = it.must(&["DEL", "r"]));
    assert_eq!(manager.extend(&lease, TTL), REDLOCK_LOST);
    assert_eq!(manager.try_lock("r", TTL, 0, &lease), REDLOCK_OK, "{}", lease.message());
    assert_eq!(lease.retain(), REDLOCK_OK);
    assert_eq!([(); 2].map(|()| manager.unlock(&lease)), [REDLOCK_OK; 2]);
    assert_eq!(manager.is_locked("r"), Ok(false));
    // One call that is cancelled while it waits, and one that takes the lock after the holder.
    let held = rival.take("held", TTL);
    let wanted = Wanted { wait_ms: -1, ..Wanted::new("held", TTL) };
    for ending in [REDLOCK_CANCELLED, REDLOCK_OK] {
        assert_eq!(manager.submit_acquire(&wanted, &lease, 1), REDLOCK_OK);
        while manager.stats().waiting == 0 {
            assert_eq!(manager.next_event(1), None);
        }
        match ending {
            REDLOCK_CANCELLED => assert_eq!(manager.cancel(&lease), REDLOCK_OK),
            _ => assert_eq!(rival.unlock(&held), REDLOCK_OK),
        }
        assert_eq!(manager.next_event(-1).map(|it| it.status), Some(ending));
    }
    assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());

    let stats = manager.stats();
    assert_eq!(numbers(stats.acquire), [6, 0, 0, 0, 0, 0, 1, 0]);
    assert_eq!(numbers(stats.extend), [2, 0, 0, 0, 1, 0, 0, 0]);
    assert_eq!(numbers(stats.confirm), [2, 0, 0, 0, 0, 2, 0, 0]);
    assert_eq!(numbers(stats.release), [5, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(numbers(stats.adopt), [1, 0, 0, 0, 1, 0, 0, 0]);
    assert_eq!(numbers(stats.inspect), [1, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!((stats.detached, stats.waits, stats.waiting, stats.kept), (1, 2, 0, 0));
    // Waiting calls ask again and again.
    assert!(stats.attempts >= 8, "{}", stats.attempts);
    is_sound(&stats.acquire_time, 6);
    is_sound(&stats.wait_time, 2);
    is_sound(&stats.hold_time, 5);
    assert!(stats.round_trip.count > before.round_trip.count + 3 * 10);
    assert_eq!((stats.connections, stats.connections_lost), (3, 0));
    assert_eq!(numbers(rival.stats().acquire), [1, 2, 0, 0, 0, 0, 0, 0]);
    assert_eq!(rival.stats().attempts, 3);
}

#[test]
fn requests_are_counted_as_the_servers_see_them() {
    let server = Server::start();
    let manager = Manager::at(&[server.address()]);
    assert_eq!(manager.connect(0), REDLOCK_OK, "{}", manager.message());
    let before = manager.stats();
    for _ in 0..10 {
        let lease = manager.take("r", TTL);
        assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    }
    let stats = manager.stats();
    assert_eq!(stats.requests - before.requests, 20);
    assert_eq!(stats.round_trip.count - before.round_trip.count, 20);
    assert_eq!((stats.attempts, stats.waits), (10, 0));
}

#[test]
fn lost_servers_are_counted() {
    let cluster = Cluster::start(3);
    let manager = cluster.manager();
    make_brief(&manager);
    manager.connect_to_all();
    cluster.iter().for_each(Server::kill);
    let lease = Lease::new();
    assert_eq!(manager.try_lock("r", TTL, 0, &lease), REDLOCK_UNREACHABLE);
    wait_until("all are found out", || {
        assert_eq!(manager.try_lock("r", TTL, 0, &lease), REDLOCK_UNREACHABLE);
        let stats = manager.stats();
        stats.connections_lost == 3 && stats.connections_failed >= 3
    });
    let stats = manager.stats();
    assert_eq!(stats.connections, 3);
    assert_eq!(stats.acquire.ok, 0);
    assert!(stats.acquire.unreachable >= 2 && stats.acquire_time.count == 0);
    let text = manager.stats_text();
    for server in &*cluster {
        let value =
            |name: &str| value(&text, &format!("{name}{{server=\"{}\"}}", server.address()));
        assert_eq!(value("redlock_server_up"), "0");
        assert_eq!(value("redlock_server_connections_lost_total"), "1");
    }
}

#[test]
fn kept_locks_are_counted() {
    let cluster = Cluster::start(3);
    let manager = connected(&cluster);
    let lease = manager.take("r", 900);
    assert_eq!(manager.keep_alive(&lease, 7), REDLOCK_OK);
    while manager.stats().renewed < 2 {
        assert_eq!(manager.next_event(10), None);
    }
    assert_eq!((manager.stats().kept, manager.stats().kept_lost), (1, 0));
    cluster.iter().for_each(|it| _ = it.must(&["DEL", "r"]));
    let event = manager.next_event(-1).expect("it is lost");
    assert_eq!((event.is_lost, event.status), (true, REDLOCK_LOST));
    let stats = manager.stats();
    assert_eq!((stats.kept, stats.kept_lost), (0, 1));
    assert!(stats.not_renewed >= 1);
    // Renewals of a kept lock do not count as extensions by calls.
    assert_eq!(numbers(stats.extend), [0; 8]);
}

#[test]
fn a_struct_of_another_version_is_filled_to_its_size() {
    let manager = Manager::new();
    let mut stats = RedLockStats { size: size_of::<usize>(), ..RedLockStats::default() };
    // SAFETY (all): the manager lives, and the struct may be written to.
    let mut get = |size| {
        stats.size = size;
        // SAFETY: see above.
        unsafe { redlock::ffi::stats::RedLock_GetStats(manager.raw(), &raw mut stats) }
    };
    assert_eq!(get(0), REDLOCK_INVALID_ARGUMENT);
    assert_eq!(get(size_of::<RedLockStats>() - 8), REDLOCK_INVALID_ARGUMENT);
    assert!(
        manager.message().contains("initialize the struct with REDLOCK_STATS_INIT"),
        "{}",
        manager.message()
    );
    assert_eq!(get(size_of::<RedLockStats>()), REDLOCK_OK);
    // A struct that a later version has made longer.
    let mut long = [RedLockStats::default(); 2];
    long[0].size = 2 * size_of::<RedLockStats>();
    // SAFETY: see above.
    let get =
        |it: *mut RedLockStats| unsafe { redlock::ffi::stats::RedLock_GetStats(manager.raw(), it) };
    assert_eq!(get(long.as_mut_ptr()), REDLOCK_OK);
    assert_eq!(long[0].bounds_us[0], 25);
    long[1].size = 1;
    assert_eq!(get(long.as_mut_ptr()), REDLOCK_INVALID_ARGUMENT);
}

#[test]
fn the_text_is_written_whole_or_not_at_all() {
    let manager = nowhere();
    // SAFETY: the manager lives, and the size of the buffer is zero.
    let needed = unsafe { RedLock_StatsText(manager.raw(), ptr::null_mut(), 0) };
    assert!(needed > 1_000);
    for size in [1, 2, needed / 2, needed, needed + 1, needed + 100] {
        let mut room = vec![b'?'; size + 8];
        // SAFETY: the manager lives, and the buffer has at least the stated size.
        let said = unsafe { RedLock_StatsText(manager.raw(), room.as_mut_ptr().cast(), size) };
        assert_eq!(said, needed);
        let written = if size > needed { needed } else { 0 };
        assert_eq!(room[written], 0, "{size}");
        assert!(!room[..written].contains(&0) && room[size..].iter().all(|&it| it == b'?'));
    }
}

/// The URL has a user and a password.
#[test]
fn servers_are_named_without_secrets() {
    let manager = Manager::of_urls(&[
        "redis://ada:Barley@127.0.0.1:1/3".to_owned(),
        "unix:///no/server".to_owned(),
    ]);
    make_brief(&manager);
    assert_eq!(manager.try_lock("Barley", TTL, 0, &Lease::new()), REDLOCK_UNREACHABLE);
    let text = manager.stats_text();
    assert!(!text.contains("Barley") && !text.contains("ada"), "{text}");
    assert_eq!(value(&text, "redlock_server_votes{server=\"127.0.0.1:1\"}"), "0");
}

/// The format allows each line: a comment, or a name, labels, and a number.
#[test]
fn the_text_is_well_formed() {
    let cluster = Cluster::start(3);
    let manager = connected(&cluster);
    let lease = manager.take("r", TTL);
    assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    let text = manager.stats_text();
    let mut declared: Option<(&str, &str)> = None;
    let mut seen = Vec::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("a type");
            assert!(!seen.contains(&name), "{name} comes twice");
            seen.push(name);
            declared = Some((name, kind));
            let is_counter = name.ends_with("_total");
            assert_eq!(is_counter, kind == "counter", "{line}");
            continue;
        }
        if line.starts_with("# HELP ") {
            continue;
        }
        let (name, kind) = declared.expect("what comes is declared before");
        let (series, number) = line.rsplit_once(' ').expect("a value");
        assert!(number.parse::<f64>().is_ok(), "{line}");
        let own = series.split('{').next().unwrap_or_default();
        let suffix = own.strip_prefix(name).expect(line);
        let suffixes: &[&str] =
            if kind == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
        assert!(suffixes.contains(&suffix), "{line}");
        assert!(own.bytes().all(|it| it.is_ascii_lowercase() || it == b'_'), "{line}");
    }
    assert!(seen.len() > 25, "{seen:?}");
    assert_eq!(value(&text, "redlock_lock_acquisitions_total{outcome=\"ok\"}"), "1");
    assert_eq!(value(&text, "redlock_lock_acquire_duration_seconds_count"), "1");
    assert_eq!(value(&text, "redlock_lock_hold_duration_seconds_bucket{le=\"+Inf\"}"), "1");
}

#[track_caller]
fn value<'a>(text: &'a str, series: &str) -> &'a str {
    let found = text.lines().find_map(|it| it.strip_prefix(series)?.strip_prefix(' '));
    found.unwrap_or_else(|| panic!("{series} is not in\n{text}"))
}

/// The lines of this level that were kept.
fn lines(manager: &Manager) -> Vec<String> {
    let mut room = vec![0_u8; 4_096];
    let mut take = || {
        // SAFETY: the manager lives, and the buffer has the stated size.
        let level =
            unsafe { RedLock_TakeLogLine(manager.raw(), room.as_mut_ptr().cast(), room.len()) };
        let end = room.iter().position(|&it| it == 0).expect("a NUL");
        (level != 0).then(|| (level, String::from_utf8(room[..end].to_vec()).expect("UTF-8")))
    };
    std::iter::from_fn(&mut take).filter(|it| it.0 == 3).map(|it| it.1).collect()
}

/// The parts of each line that contain no times.
fn events(manager: &Manager) -> Vec<String> {
    let is_of_time = |it: &&str| it.contains("_ms=");
    let timeless =
        |line: String| line.split(' ').filter(|it| !is_of_time(it)).collect::<Vec<_>>().join(" ");
    lines(manager).into_iter().map(timeless).collect()
}

#[test]
fn lock_events_are_traced_on_request() {
    let cluster = Cluster::start(3);
    let (manager, rival) = (connected(&cluster), connected(&cluster));
    // SAFETY: the manager lives.
    accepted(&manager, unsafe { RedLock_KeepLog(manager.raw(), 100) });
    let lease = Lease::new();
    let life = || {
        assert_eq!(manager.try_lock("a \"b\"\n", TTL, 0, &lease), REDLOCK_OK);
        assert_eq!(manager.extend(&lease, TTL), REDLOCK_OK);
        assert_eq!(manager.unlock(&lease), REDLOCK_OK);
    };
    life();
    assert_eq!(lines(&manager), Vec::<String>::new(), "nobody has asked");
    accepted(&manager, manager.set_tracing(REDLOCK_TRACE_EVENTS));
    life();
    assert_eq!(events(&manager), ["event=acquired attempts=1", "event=extended", "event=released"]);
    accepted(&manager, manager.set_tracing(REDLOCK_TRACE_RESOURCES));
    life();
    let name = r#"resource="a \"b\"\x0a""#;
    let told = [
        format!("event=acquired {name} attempts=1"),
        format!("event=extended {name}"),
        format!("event=released {name}"),
    ];
    assert_eq!(events(&manager), told);
    let held = rival.take("r", TTL);
    assert_eq!(manager.try_lock("r", TTL, 0, &lease), REDLOCK_TAKEN);
    let token = held.token();
    assert_eq!(events(&manager), ["event=refused resource=\"r\" outcome=taken attempts=1"]);
    assert_eq!(rival.unlock(&held), REDLOCK_OK);
    // A server that has not heard of the release yet would refuse.
    cluster.wait_until_gone("r");
    assert_eq!(manager.try_lock("r", TTL, 0, &lease), REDLOCK_OK);
    cluster.wait_until_everywhere("r");
    cluster.iter().for_each(|it| _ = it.must(&["DEL", "r"]));
    assert_eq!(manager.unlock(&lease), REDLOCK_LOST);
    let told = lines(&manager);
    assert!(told[1].starts_with("event=lost resource=\"r\" outcome=lost duration_ms="), "{told:?}");
    assert!(told.iter().all(|it| !it.contains(&token)));
    accepted(&manager, manager.set_tracing(REDLOCK_TRACE_OFF));
    life();
    assert_eq!(lines(&manager), Vec::<String>::new());
    for bad in [-1, 3, i32::MAX] {
        assert_eq!(manager.set_tracing(bad), REDLOCK_INVALID_ARGUMENT);
        assert!(manager.message().contains(&bad.to_string()), "{}", manager.message());
    }
}
