//! A callback of the program that panics: the call ends as if it had not been made, and the panic goes on.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use redlock::Manager;

use crate::executor::poll_once;
use crate::support::{Cluster, wait_until};
use crate::{TTL, builder, options};

fn panics<T>(call: impl FnOnce() -> T) -> bool {
    catch_unwind(AssertUnwindSafe(call)).is_err()
}

/// The user of the library on all servers, with this password.
fn set_password(cluster: &Cluster, password: &str) {
    let rights = ["ACL", "SETUSER", "locker", "reset", "on", password, "~*", "&*", "+@all"];
    for server in cluster.iter() {
        server.must(&rights);
        server.command(&["CLIENT", "KILL", "USER", "locker"]);
    }
}

/// At first the source panics.
#[test]
fn a_password_source_is_asked_again_after_a_panic() {
    let cluster = Cluster::start(3);
    set_password(&cluster, ">p");
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let source = move |_: &str| {
        assert!(count.fetch_add(1, Ordering::SeqCst) > 0, "the test wants this panic");
        Some(b"p".to_vec())
    };
    let builder = builder(&cluster).password_source(Some("locker"), source);
    let manager = builder.build().expect("a manager");
    assert!(panics(|| manager.acquire(&options("r"))));
    wait_until("all servers are connected", || {
        let _ = manager.connect(Duration::ZERO);
        manager.servers().iter().all(|it| it.has_vote)
    });
    let mut lease = manager.acquire(&options("r")).expect("it is free");
    lease.unlock().expect("it is held");
    assert!(asked.load(Ordering::SeqCst) >= 4);
}

/// The source panics while the call is under way. Nothing is left of the call that could end a later one.
#[test]
fn a_panic_of_the_password_source_ends_only_its_call() {
    let cluster = Cluster::start(3);
    set_password(&cluster, ">p");
    let panicking = Arc::new(AtomicUsize::new(0));
    let panics_now = Arc::clone(&panicking);
    let source = move |_: &str| {
        assert!(panics_now.load(Ordering::SeqCst) != 1, "the test wants this panic");
        Some(if panics_now.load(Ordering::SeqCst) == 0 { b"p".to_vec() } else { b"q".to_vec() })
    };
    let builder = builder(&cluster).password_source(Some("locker"), source);
    let manager = builder.build().expect("a manager");
    let mut lease = manager.acquire(&options("r")).expect("it is free");
    panicking.store(1, Ordering::SeqCst);
    set_password(&cluster, ">q");
    // An extension asks for passwords only when it finds that it must connect.
    wait_until("the source panics", || panics(|| lease.extend(TTL)));
    panicking.store(2, Ordering::SeqCst);
    wait_until("the lock is extended", || lease.extend(TTL).is_ok());
    wait_until("all servers are connected", || {
        let _ = manager.connect(Duration::ZERO);
        manager.servers().iter().all(|it| it.has_vote)
    });
    thread::scope(|scope| {
        for name in ["a", "b", "c", "d"] {
            let manager = &manager;
            scope.spawn(move || {
                for _ in 0..20 {
                    manager.acquire(&options(name)).expect("it is free").unlock().expect("held");
                }
            });
        }
    });
}

fn log_of(manager_of: impl Fn(Arc<AtomicUsize>) -> Manager) -> (Manager, Arc<AtomicUsize>) {
    let panicking = Arc::new(AtomicUsize::new(0));
    (manager_of(Arc::clone(&panicking)), panicking)
}

#[test]
fn a_panic_of_the_logger_releases_the_taken_lock() {
    let cluster = Cluster::start(3);
    let (manager, panicking) = log_of(|panicking| {
        let logger = move |_, _: &str| {
            assert_eq!(panicking.load(Ordering::SeqCst), 0, "the test wants this panic");
        };
        builder(&cluster).logger(logger).build().expect("a manager")
    });
    let _ = manager.connect(Duration::ZERO);
    drop(manager.acquire(&options("r")).expect("it is free"));
    cluster.wait_until_gone("r");
    panicking.store(1, Ordering::SeqCst);
    cluster[0].kill();
    wait_until("the logger has panicked", || panics(|| drop(manager.acquire(&options("r")))));
    wait_until("it is released", || [1, 2].iter().all(|&it| !cluster[it].exists("r")));
    panicking.store(0, Ordering::SeqCst);
    drop(manager.acquire(&options("r")).expect("it is free"));
}

#[test]
fn polling_a_finished_change_panics() {
    let cluster = Cluster::start(1);
    let manager = builder(&cluster).background_thread(true).build().expect("a manager");
    let mut lease = manager.acquire(&options("r")).expect("it is free");
    let mut change = lease.extend_async(TTL);
    assert!(change.wait_for(TTL).expect("in time").is_ok());
    assert!(panics(|| poll_once(&mut change)));
    assert!(panics(|| change.wait_for(TTL)));
}
