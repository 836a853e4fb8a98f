//! Calls that block.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use redlock::{Error, Guard, Lease, Level, Manager, Options, Status, Ticket, Trouble};

use crate::executor::poll_once;
use crate::support::{Cluster, finishes, wait_until};
use crate::{TTL, builder, connect, connected, manager, options};

#[test]
fn a_lock_is_taken_extended_confirmed_and_released() {
    let cluster = Cluster::start(3);
    let manager = connected(&cluster);
    assert!(manager.servers().iter().all(|it| it.has_vote && it.role == "primary"));
    let mut lease = manager.acquire(&options("r")).expect("it is free");
    assert!(lease.is_held() && lease.remaining() > TTL / 2 && lease.validity() < TTL);
    assert_eq!((lease.resource(), lease.fencing_token()), (&b"r"[..], None));
    let error = manager.acquire(&options("r").tries(2)).expect_err("it is taken");
    assert_eq!(error.status(), Status::Taken, "{error}");
    lease.confirm(TTL / 2).expect("it is held for so long");
    assert_eq!(lease.confirm(TTL * 2).expect_err("not so long").status(), Status::TooShort);
    lease.extend(TTL * 3).expect("it is held");
    assert!(lease.remaining() > TTL * 2);
    let holder = manager.inspect("r").expect("they answer").expect("somebody has it");
    assert!(holder.left.expect("it ends") > TTL * 2);
    lease.unlock().expect("it is held");
    assert!(!lease.is_held() && lease.remaining().is_zero());
    assert_eq!(lease.unlock().expect_err("it was released").status(), Status::Lost);
    assert_eq!(manager.inspect("r"), Ok(None));
    assert!(format!("{lease:?} {manager:?}").contains(&cluster[0].address()));
}

#[test]
fn a_dropped_lease_is_released_without_waiting() {
    let cluster = Cluster::start(3);
    let manager = connected(&cluster);
    drop(manager.acquire(&options("r")).expect("it is free"));
    cluster.wait_until_gone("r");
    let lease = manager.acquire(&options("r")).expect("it is free");
    cluster.wait_until_everywhere("r");
    cluster[0].freeze();
    cluster[1].freeze();
    // With a majority that does not answer.
    drop(lease);
    wait_until("the one that answers has let go", || !cluster[2].exists("r"));
    cluster[0].resume();
    cluster[1].resume();
    cluster.wait_until_gone("r");
}

/// The lease keeps the connections, and the last lease that is dropped closes them.
#[test]
fn a_lease_outlives_its_manager() {
    let cluster = Cluster::start(3);
    let lease = connected(&cluster).acquire(&options("r")).expect("it is free");
    cluster.wait_until_everywhere("r");
    assert!(lease.is_held());
    drop(lease);
    cluster.wait_until_gone("r");
    wait_until("the connections are closed", || cluster.iter().all(|it| it.clients().is_empty()));
}

#[test]
fn a_ticket_hands_a_lock_over() {
    let cluster = Cluster::start(3);
    let (giver, taker) = (connected(&cluster), manager(&cluster));
    let mut given = giver.acquire(&options("r")).expect("it is free");
    cluster.wait_until_everywhere("r");
    let ticket = given.detach().expect("it is held");
    assert!(!given.is_held());
    drop(given);
    let secret = cluster[0].get("r").expect("the giver releases nothing");
    assert!(ticket.as_str().contains(&secret) && !format!("{ticket:?}").contains(&secret));
    let text = Ticket::from(ticket.as_str().to_owned());
    let mut taken = taker.adopt(&text).expect("it is there");
    assert!(taken.is_held());
    taken.unlock().expect("it is held");
    cluster.wait_until_gone("r");
    let error = taker.adopt(&ticket).expect_err("it has ended");
    assert_eq!(error.status(), Status::Lost);
    assert!(!error.to_string().contains(&secret));
    let none = taker.adopt(&Ticket::from("redlock".to_owned()));
    assert_eq!(none.expect_err("it is none").status(), Status::InvalidArgument);
}

#[test]
fn permits_and_several_resources_can_be_locked() {
    let cluster = Cluster::start(3);
    let manager = manager(&cluster);
    let permit = || manager.acquire(&options("r").permit_of(2));
    let (_first, _second) = (permit().expect("one is free"), permit().expect("one is free"));
    assert_eq!(permit().expect_err("none is free").status(), Status::Taken);
    let both = || manager.acquire(&Options::several(["a", "b"], TTL));
    let mut held = both().expect("both are free");
    assert_eq!(manager.acquire(&options("b")).expect_err("it is taken").status(), Status::Taken);
    held.unlock().expect("it is held");
    let _one = manager.acquire(&options("b")).expect("it is free");
    assert_eq!(both().expect_err("one is taken").status(), Status::Taken);
    manager.acquire(&options("a").wait(TTL)).expect("it is free");
    let none: [&str; 0] = [];
    let error = manager.acquire(&Options::several(none, TTL)).expect_err("nothing");
    assert_eq!(error.status(), Status::InvalidArgument);
}

#[test]
fn settings_are_checked_in_build() {
    let cluster = Cluster::start(1);
    let words = |builder: redlock::Builder| {
        let error = builder.build().expect_err("it is refused");
        assert_eq!(error.status(), Status::InvalidArgument);
        error.to_string()
    };
    assert!(words(builder(&cluster).clock_drift(1.5)).contains("1.5"));
    assert!(words(builder(&cluster).retry(0, Duration::ZERO)).contains('0'));
    let twice = words(builder(&cluster).server(cluster[0].url()));
    assert!(twice.contains("already added"), "{twice}");
    let secret = words(Manager::builder().server("redis://:hunter2@:0/x"));
    assert!(!secret.contains("hunter2"), "{secret}");
    let none = Manager::builder().build();
    assert_eq!(none.expect_err("there is none").status(), Status::NoServers);
    let long = Options::new("r", Duration::MAX);
    let error = manager(&cluster).acquire(&long).expect_err("nobody needs that");
    assert_eq!(error.status(), Status::InvalidArgument);
}

#[test]
fn settings_reach_the_manager() {
    let cluster = Cluster::start(3);
    cluster.iter().for_each(|it| drop(it.must(&["CONFIG", "SET", "requirepass", "hunter2"])));
    let told = Arc::new(Mutex::new(Vec::new()));
    let lines = Arc::clone(&told);
    let manager = builder(&cluster)
        .fencing(true)
        .credentials(None, "hunter2")
        .timeouts(Duration::from_secs(5), Duration::from_secs(5))
        .restart_guard(Guard::Off, Duration::ZERO, Duration::ZERO)
        .failover_guard(false)
        .logger(move |level, line| lines.lock().unwrap().push((level, line.to_owned())))
        .build()
        .expect("a manager");
    let first = manager.acquire(&options("r")).expect("it is free").fencing_token();
    let next = manager.acquire(&options("r").wait(TTL)).expect("it is free").fencing_token();
    assert!(first.is_some() && next > first);
    cluster[0].kill();
    wait_until("a line is told", || {
        drop(manager.acquire(&options("r").wait(TTL)));
        told.lock().unwrap().iter().any(|(level, _)| *level == Level::Warning)
    });
    assert!(!format!("{told:?} {manager:?}").contains("hunter2"));
}

/// A manager whose logger does not return before all keys of these names have expired, and how often it was called.
fn with_slow_logger(cluster: &Arc<Cluster>, names: &'static [&str]) -> (Manager, Arc<AtomicUsize>) {
    let (calls, servers) = (Arc::new(AtomicUsize::new(0)), Arc::clone(cluster));
    let count = Arc::clone(&calls);
    let logger = move |_: Level, _: &str| {
        count.fetch_add(1, Ordering::Relaxed);
        names.iter().for_each(|name| servers.wait_until_gone(name));
    };
    (builder(cluster).logger(logger).build().expect("a manager"), calls)
}

/// Whether a call failed because its lock had ended before the call returned.
fn was_late(outcome: &Result<(), Error>, status: Status) -> bool {
    let is_it = |error: &Error| {
        error.status() == status && error.to_string().contains("before the program read the result")
    };
    outcome.as_ref().is_err_and(is_it)
}

const BRIEF: Duration = Duration::from_millis(300);

/// The logger is called when everything else is done. A success would no longer be true when the call returns.
#[test]
fn a_lock_expired_in_the_logger_is_not_taken() {
    let cluster = Arc::new(Cluster::start(3));
    let (manager, calls) = with_slow_logger(&cluster, &["r", "s", "r#1"]);
    let kinds = [
        Options::new("r", BRIEF),
        Options::new("r", BRIEF).shared(),
        Options::new("r", BRIEF).permit_of(2),
        Options::several(["r", "s"], BRIEF),
    ];
    for options in kinds {
        wait_until("the logger is called in a call that would have succeeded", || {
            cluster[0].hang_up();
            let before = calls.load(Ordering::Relaxed);
            let taken = manager.acquire(&options);
            let is_told = calls.load(Ordering::Relaxed) > before;
            assert!(!is_told || taken.as_ref().is_ok_and(Lease::is_held) || taken.is_err());
            is_told && was_late(&taken.map(drop), Status::TooSlow)
        });
    }
    wait_until("the logger is called when the lock was adopted", || {
        let Ok(mut given) = manager.acquire(&Options::new("r", BRIEF)) else { return false };
        let Ok(ticket) = given.detach() else { return false };
        cluster[0].hang_up();
        let taken = manager.adopt(&ticket);
        assert!(taken.as_ref().is_ok_and(Lease::is_held) || taken.is_err());
        was_late(&taken.map(drop), Status::TooSlow)
    });
    cluster.wait_until_gone("r");
}

#[test]
fn a_lock_expired_in_the_logger_is_lost() {
    let cluster = Arc::new(Cluster::start(3));
    let (manager, calls) = with_slow_logger(&cluster, &["r"]);
    type Change = fn(&mut Lease) -> Result<(), Error>;
    let changes: [Change; 3] =
        [|lease| lease.extend(BRIEF), |lease| lease.confirm(Duration::ZERO), Lease::downgrade];
    for change in changes {
        wait_until("the logger is called in a call that would have succeeded", || {
            let Ok(mut lease) = manager.acquire(&Options::new("r", BRIEF)) else { return false };
            cluster[0].hang_up();
            let before = calls.load(Ordering::Relaxed);
            let outcome = change(&mut lease);
            let is_told = calls.load(Ordering::Relaxed) > before;
            assert!(!is_told || outcome.is_err() || lease.is_held());
            is_told && was_late(&outcome, Status::Lost) && !lease.is_held()
        });
    }
}

#[test]
fn inspect_permits_gives_count_and_remaining_time() {
    let cluster = Cluster::start(3);
    let manager = manager(&cluster);
    let look = |of| manager.inspect_permits("s", of);
    let none = look(2).expect("they answer");
    assert_eq!((none.taken, none.left), (0, None));
    let _one = manager.acquire(&options("s").permit_of(2)).expect("there is one");
    let one = look(2).expect("they answer");
    assert_eq!((one.taken, one.left.is_some_and(|it| it <= TTL)), (1, true));
    for of in [0, 257] {
        assert_eq!(look(of).expect_err("of").status(), Status::InvalidArgument);
    }
}

#[test]
fn readers_share_a_lock_and_a_writer_can_downgrade() {
    let cluster = Cluster::start(3);
    let (one, other) = (manager(&cluster), manager(&cluster));
    let mut leases =
        [&one, &other].map(|it| it.acquire(&options("r").shared()).expect("it is free"));
    assert!(leases.iter().all(|it| it.is_shared() && it.is_held()));
    let holder = one.inspect("r").expect("they answer").expect("somebody has it");
    assert_eq!(holder.readers, Some(2));
    let error = other.acquire(&options("r")).expect_err("there are readers");
    assert_eq!(error.status(), Status::Taken, "{error}");
    for lease in &mut leases {
        lease.extend(TTL * 2).expect("it is held");
        lease.unlock().expect("it is held");
    }
    cluster.wait_until_gone("r");

    let mut lease = one.acquire(&options("r")).expect("it is free");
    let holder = one.inspect("r").expect("they answer").expect("somebody has it");
    assert_eq!((holder.readers, lease.is_shared()), (None, false));
    assert!(other.acquire(&options("r").shared()).is_err());
    lease.downgrade().expect("it is held");
    assert!(lease.is_shared() && lease.is_held());
    drop(other.acquire(&options("r").shared()).expect("there are readers only"));
    lease.unlock().expect("it is held");
    assert_eq!(lease.downgrade().expect_err("it was released").status(), Status::Lost);
    let mut both = one.acquire(&Options::several(["a", "b"], TTL)).expect("they are free");
    assert_eq!(both.downgrade().expect_err("there are two").status(), Status::InvalidArgument);
}

#[test]
fn server_info_matches_the_server() {
    let cluster = Cluster::start(3);
    let manager = connected(&cluster);
    let said = |section: &str, name: &str| {
        let info = cluster[0].must(&["INFO", section]).text().expect("words");
        let line = info.lines().find_map(|it| it.strip_prefix(name)?.strip_prefix(':'));
        line.expect("the server says it").to_owned()
    };
    let info = &manager.servers()[0];
    assert!(info.is_connected && info.has_vote && info.words.is_empty(), "{info:?}");
    assert_eq!((&*info.role, &*info.run_id), ("primary", &*said("server", "run_id")));
    assert!(info.version.ends_with(&said("server", "redis_version")) || info.version.contains(' '));
    assert_eq!((&*info.keeps, &*info.eviction), ("no log", "noeviction"));
    assert!(info.round_trip.is_some_and(|it| it > Duration::ZERO && it < Duration::from_secs(60)));
    // Both clocks are those of this machine.
    assert!(info.clock_offset_us.is_some_and(|it| it.abs() < 60_000_000), "{info:?}");
    // Without its note, it is a server that has lost its memory.
    drop(manager.acquire(&options("r")).expect("it is free"));
    cluster[0].must(&["FLUSHALL"]);
    cluster[0].hang_up();
    wait_until("it has no vote", || {
        drop(manager.acquire(&options("r").wait(TTL)));
        let info = &manager.servers()[0];
        info.is_connected && !info.has_vote && info.words.contains("lost its data")
    });
    cluster[0].kill();
    wait_until("it is not connected", || {
        drop(manager.acquire(&options("r").wait(TTL)));
        let info = &manager.servers()[0];
        !info.is_connected && !info.has_vote && !info.words.is_empty()
    });
}

#[test]
fn an_absent_server_is_reported() {
    let cluster = Cluster::start(3);
    let manager = connected(&cluster);
    assert_eq!(manager.acquire(&options("r")).expect("it is free").absent(), "");
    cluster[0].kill();
    wait_until("it is seen to be absent", || {
        let lease = manager.acquire(&options("s").wait(TTL)).expect("two of three are enough");
        lease.absent().contains(&cluster[0].address())
    });
}

#[test]
fn connect_reports_that_a_server_is_not_guarded_and_the_log_once() {
    let cluster = Cluster::start(3);
    cluster[0].must(&["ACL", "SETUSER", "default", "-info"]);
    let lines = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&lines);
    let log = move |level, line: &str| kept.lock().expect("a list").push((level, line.to_owned()));
    let manager = builder(&cluster).logger(log).build().expect("servers");
    let words = manager.connect(Duration::ZERO).expect("all are up");
    assert!(words.contains(&format!("{} not guarded", cluster[0].address())), "{words}");
    let troubles: Vec<_> = manager.servers().iter().map(|it| it.trouble).collect();
    assert_eq!(troubles, [Some(Trouble::NotGuarded), None, None]);
    let reconnected = |count: usize| {
        cluster[0].hang_up();
        wait_until("it is connected again", || {
            drop(manager.acquire(&options("r").wait(TTL)));
            let lines = lines.lock().expect("a list");
            lines.iter().filter(|it| it.1.contains("connected again")).count() >= count
        });
    };
    reconnected(1);
    reconnected(2);
    let lines = lines.lock().expect("a list");
    let about_it: Vec<_> = lines.iter().filter(|it| it.1.contains("not guarded")).collect();
    assert!(matches!(&about_it[..], [(Level::Warning, _)]), "{lines:?}");
}

/// A ticket names all resources, so it may be long.
#[test]
fn a_lock_with_long_names_can_be_detached() {
    let cluster = Cluster::start(3);
    let manager = connected(&cluster);
    let names = ["a", "b", "c"].map(|it| it.repeat(1_000));
    let mut given = manager.acquire(&Options::several(names, TTL)).expect("they are free");
    let ticket = given.detach().expect("a ticket");
    assert!(manager.adopt(&ticket).expect("it is there").is_held());
}

#[test]
fn connecting_is_bounded_by_the_caller() {
    let cluster = Cluster::start(1);
    cluster[0].freeze();
    let manager = builder(&cluster).timeouts(TTL, Duration::ZERO).build().expect("a manager");
    let said = finishes("to connect", move || manager.connect(Duration::from_millis(50)));
    assert_eq!(said.expect_err("it says nothing").status(), Status::Unreachable);
}

#[test]
fn the_last_setting_counts() {
    let cluster = Cluster::start(1);
    let manager = builder(&cluster).fencing(true).fencing(false).build().expect("a manager");
    assert_eq!(manager.acquire(&options("r")).expect("it is free").fencing_token(), None);
    let builder = builder(&cluster).background_thread(true).background_thread(false);
    let manager = builder.build().expect("a manager");
    let kept = manager.acquire(&options("s").keep_alive(true)).expect_err("nobody drives");
    assert_eq!(kept.status(), Status::InvalidArgument);
}

/// The pause is so long that nobody waits for it: the manager tries once, and not three times at once.
#[test]
fn a_huge_delay_is_a_long_pause() {
    let cluster = Cluster::start(1);
    cluster[0].must(&["SET", "r", "another's"]);
    let driven = connect(builder(&cluster).retry(1, Duration::MAX).build().expect("a manager"));
    let _ = driven.descriptor().expect("a descriptor");
    let mut waiting = driven.acquire_async(&options("r").tries(i32::MAX));
    assert!(poll_once(&mut waiting).is_pending());
    driven.drive_for(Duration::from_secs(1)).expect("it drives");
    let asked = || cluster[0].calls("set") + cluster[0].scripts();
    let before = asked();
    driven.drive_for(Duration::from_secs(1)).expect("it drives");
    assert_eq!(asked(), before);
}

#[test]
fn a_user_logs_in_with_a_given_or_requested_password() {
    let cluster = Cluster::start(1);
    let rights = ["ACL", "SETUSER", "ann", "on", ">s3same", "~*", "&*", "+@all"];
    cluster[0].must(&rights);
    let given = builder(&cluster).credentials(Some("ann"), "s3same");
    let asked = builder(&cluster).password_source(Some("ann"), |_| Some(b"s3same".to_vec()));
    for builder in [given, asked] {
        let manager = connect(builder.build().expect("a manager"));
        drop(manager.acquire(&options("r")).expect("it is free"));
        let clients = cluster[0].must(&["CLIENT", "LIST"]).text().expect("words");
        assert!(clients.contains("user=ann"), "{clients}");
    }
}

#[test]
fn each_guard_has_its_named_effect() {
    let manager = |cluster: &Cluster, guard: Guard, cap_s: u64| {
        let cap = Duration::from_secs(cap_s);
        let builder = builder(cluster).restart_guard(guard, Duration::ZERO, cap);
        builder.build().expect("a manager")
    };
    let acquire = |cluster: &Cluster, guard: Guard| {
        let taken = manager(cluster, guard, 0).acquire(&Options::new("r", TTL));
        taken.map(drop).map_err(|it| it.to_string())
    };
    // Servers that nobody has used have a vote, unless the guard is strict.
    let cluster = Cluster::start(1);
    cluster[0].be_new();
    assert!(acquire(&cluster, Guard::Strict).is_err_and(|it| it.contains("lost its data")));
    let strict = manager(&cluster, Guard::Strict, 3);
    wait_until("it has been without a vote for the longest time", || {
        strict.acquire(&Options::new("r", TTL)).is_ok()
    });
    cluster[0].be_new();
    assert_eq!(acquire(&cluster, Guard::On), Ok(()));
    // A server that may evict locks has a vote only where nothing is guarded.
    cluster[0].must(&["CONFIG", "SET", "maxmemory", "1gb"]);
    cluster[0].must(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    for guard in [Guard::On, Guard::Strict] {
        assert!(acquire(&cluster, guard).is_err_and(|it| it.contains("evict")), "{guard:?}");
    }
    for guard in [Guard::Off, Guard::Durable] {
        assert_eq!(acquire(&cluster, guard), Ok(()), "{guard:?}");
    }
}

#[test]
fn a_child_does_not_release_a_lease_of_its_parent() {
    let cluster = Cluster::start(3);
    let manager = connected(&cluster);
    let mut lease = manager.acquire(&options("r")).expect("it is free");
    // SAFETY: the child makes calls that the library allows in a child, and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: no memory is involved. The alarm ends a child that hangs.
        unsafe { libc::alarm(50) };
        // Its connections are in use when the lease is dropped, and what it sends then has arrived before its last lock.
        let mut is_well = manager.connect(Duration::ZERO).is_ok();
        drop(lease);
        is_well &= manager.acquire(&options("child")).is_ok();
        // SAFETY: nothing of the parent needs to be cleaned up.
        unsafe { libc::_exit(i32::from(!is_well)) };
    }
    let mut status = 0;
    // SAFETY: `status` may be written to, and the child is ours.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "{status}");
    lease.confirm(Duration::ZERO).expect("it is held");
    assert_eq!(cluster.having("r"), 3);
}
