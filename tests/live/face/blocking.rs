//! Calls that block.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use redlock::{Error, Guard, Lease, Level, Manager, Options, Status, Ticket};

use crate::support::{Cluster, wait_until};
use crate::{TTL, builder, manager, options};

#[test]
fn a_lock_is_taken_extended_confirmed_and_released() {
    let cluster = Cluster::start(3);
    let manager = manager(&cluster);
    assert_eq!(manager.connect(Duration::ZERO).expect("they are up"), "");
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
fn a_lease_that_is_dropped_is_released_and_nobody_waits_for_that() {
    let cluster = Cluster::start(3);
    let manager = manager(&cluster);
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
    let lease = manager(&cluster).acquire(&options("r")).expect("it is free");
    cluster.wait_until_everywhere("r");
    assert!(lease.is_held());
    drop(lease);
    cluster.wait_until_gone("r");
    wait_until("the connections are closed", || cluster.iter().all(|it| it.clients().is_empty()));
}

#[test]
fn a_lock_changes_hands_by_a_ticket() {
    let cluster = Cluster::start(3);
    let (giver, taker) = (manager(&cluster), manager(&cluster));
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
fn permits_and_several_resources_are_kinds_of_lock() {
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
fn settings_are_checked_when_the_manager_is_made() {
    let cluster = Cluster::start(1);
    let words = |builder: redlock::Builder| {
        let error = builder.build().expect_err("it is refused");
        assert_eq!(error.status(), Status::InvalidArgument);
        error.to_string()
    };
    assert!(words(builder(&cluster).clock_drift(1.5)).contains("1.5"));
    assert!(words(builder(&cluster).retry(0, Duration::ZERO)).contains('0'));
    let twice = words(builder(&cluster).server(cluster[0].url()));
    assert!(twice.contains("added before"), "{twice}");
    let secret = words(Manager::builder().server("redis://:hunter2@:0/x"));
    assert!(!secret.contains("hunter2"), "{secret}");
    let none = Manager::builder().build().expect("it asks nobody").acquire(&options("r"));
    assert_eq!(none.expect_err("there is none").status(), Status::NoServers);
    let long = Options::new("r", Duration::MAX);
    let error = manager(&cluster).acquire(&long).expect_err("nobody needs that");
    assert_eq!(error.status(), Status::InvalidArgument);
}

#[test]
fn settings_reach_the_manager() {
    let cluster = Cluster::start(3);
    cluster.iter().for_each(|it| drop(it.must(&["CONFIG", "SET", "requirepass", "hunter2"])));
    let told = Arc::new(std::sync::Mutex::new(Vec::new()));
    let lines = Arc::clone(&told);
    let manager = builder(&cluster)
        .fencing(true)
        .credentials(None, "hunter2")
        .timeouts(Duration::from_secs(5), Duration::from_secs(5))
        .restart_guard(Guard::Off, Duration::ZERO, Duration::ZERO)
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
        error.status() == status && error.to_string().contains("before the result of the call")
    };
    outcome.as_ref().is_err_and(is_it)
}

const BRIEF: Duration = Duration::from_millis(300);

/// The logger is called when everything else is done. A success would no longer be true when the call returns.
#[test]
fn a_lock_that_ends_while_the_logger_runs_is_not_taken() {
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
fn a_lock_that_ends_while_the_logger_runs_is_lost() {
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
fn readers_share_a_lock_and_a_writer_may_become_one() {
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
