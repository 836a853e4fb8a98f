//! Futures on any executor. A thread of the manager drives, or the executor drives by the manager's descriptor.

use std::pin::Pin;
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use redlock::{Change, Lease, Manager, Options, Status, Ticket};

use crate::executor::{block_on, drive_on, poll_once};
use crate::support::{Cluster, finishes, wait_until};
use crate::{TTL, connect, connected, driven, manager, options};

async fn life(manager: &Manager) {
    let mut lease = manager.acquire_async(&options("r")).await.expect("it is free");
    let taken = manager.acquire_async(&options("r")).await.expect_err("it is taken");
    assert_eq!(taken.status(), Status::Taken, "{taken}");
    lease.extend_async(TTL * 3).await.expect("it is held");
    assert!(lease.remaining() > TTL * 2 && lease.validity() > TTL * 2);
    lease.confirm_async(TTL * 2).await.expect("it is held for so long");
    let short = lease.confirm_async(TTL * 9).await.expect_err("not so long");
    assert_eq!(short.status(), Status::TooShort);
    lease.downgrade_async().await.expect("it is held");
    let mut beside = manager.acquire_async(&options("r").shared()).await.expect("it is shared");
    assert!(lease.is_shared() && beside.is_shared());
    beside.unlock_async().await.expect("it is held");
    let ticket = lease.detach().expect("it is held");
    let mut lease = manager.adopt_async(&ticket).await.expect("it is there");
    lease.unlock_async().await.expect("it is held");
    assert!(!lease.is_held());
    let gone = lease.unlock_async().await.expect_err("it was released");
    assert_eq!(gone.status(), Status::Lost);
    let bad = manager.adopt_async(&Ticket::from("no".to_owned())).await.expect_err("it is none");
    assert_eq!(bad.status(), Status::InvalidArgument);
}

#[test]
fn the_thread_of_a_manager_drives_its_futures() {
    let cluster = Cluster::start(3);
    let manager = driven(&cluster);
    finishes("futures on a thread", move || block_on(life(&manager)));
}

#[test]
fn an_event_loop_drives_by_the_descriptor() {
    let cluster = Cluster::start(3);
    let manager = manager(&cluster);
    finishes("futures by hand", move || drive_on(&manager, life(&manager)));
}

/// The call ended in time. When the future is polled, the lock has ended.
#[test]
fn a_lock_that_expires_before_the_poll_is_not_held() {
    const BRIEF: Duration = Duration::from_secs(2);
    let cluster = Cluster::start(3);
    let manager = manager(&cluster);
    manager.connect(Duration::ZERO).expect("they are up");
    let _ = manager.descriptor().expect("a descriptor");
    let end_call = || {
        manager.drive_for(TTL).expect("it drives");
        cluster.wait_until_gone("r");
    };
    let options = Options::new("r", BRIEF);
    let mut acquire = manager.acquire_async(&options);
    assert!(poll_once(&mut acquire).is_pending());
    end_call();
    let late = block_on(acquire).expect_err("it has ended");
    assert_eq!(late.status(), Status::TooSlow, "{late}");
    let changes: [fn(&mut Lease) -> Change<'_>; 3] = [
        |lease| lease.extend_async(BRIEF),
        |lease| lease.confirm_async(Duration::ZERO),
        Lease::downgrade_async,
    ];
    for change in changes {
        let mut lease = manager.acquire(&options).expect("it is free");
        let mut future = change(&mut lease);
        assert!(poll_once(&mut future).is_pending());
        end_call();
        let late = block_on(future).expect_err("it has ended");
        assert_eq!(late.status(), Status::Lost, "{late}");
        assert!(!lease.is_held());
    }
}

#[test]
fn a_lease_is_empty_after_a_loss() {
    let cluster = Cluster::start(3);
    let manager = connect(driven(&cluster));
    let mut lease = manager.acquire(&options("r")).expect("it is free");
    cluster.wait_until_everywhere("r");
    cluster.iter().for_each(|server| drop(server.must(&["DEL", "r"])));
    let lost = finishes("to extend", move || {
        let lost = block_on(lease.extend_async(TTL)).expect_err("it is lost");
        (lost.status(), lease.validity())
    });
    assert_eq!(lost, (Status::Lost, Duration::ZERO));
}

#[test]
fn futures_can_move_to_other_threads() {
    fn assert_send<T: Send>(_: &T) {}
    fn assert_shared<T: Send + Sync>(_: &T) {}
    let cluster = Cluster::start(3);
    let manager = driven(&cluster);
    assert_shared(&manager);
    let future = manager.acquire_async(&options("r"));
    assert_send(&future);
    let lease: Lease =
        finishes("a future elsewhere", move || block_on(future)).expect("it is free");
    assert_shared(&lease);
    assert_shared(&lease.lost());
}

#[test]
fn a_waiter_gets_the_released_lock() {
    let cluster = Cluster::start(3);
    let manager = driven(&cluster);
    let held = manager.acquire(&options("r")).expect("it is free");
    let mut waiting = manager.acquire_async(&options("r").wait(TTL));
    assert!(poll_once(&mut waiting).is_pending());
    drop(held);
    let lease = finishes("a waiter", move || block_on(waiting)).expect("it was released");
    assert!(lease.is_held());
}

#[test]
fn without_a_driver_futures_and_keep_alive_are_refused() {
    let cluster = Cluster::start(1);
    let manager = manager(&cluster);
    let words = "nothing drives the manager";
    let error = block_on(manager.acquire_async(&options("r"))).expect_err("nobody drives");
    assert!(error.to_string().contains(words), "{error}");
    let error = manager.acquire(&options("r").keep_alive(true)).expect_err("nobody drives");
    assert!(error.to_string().contains(words), "{error}");
    let mut lease = manager.acquire(&options("r")).expect("it is free: nothing stayed locked");
    assert!(lease.keep_alive().expect_err("nobody drives").to_string().contains(words));
    assert_eq!(block_on(lease.unlock_async()).expect_err("so").status(), Status::InvalidArgument);
    assert!(lease.is_held());
}

/// Whenever a future is dropped, it leaves no lock: before it was sent, while servers are asked, and after they
/// have granted the lock but before the result is taken.
#[test]
fn a_dropped_future_leaves_no_lock() {
    let cluster = Cluster::start(3);
    let manager = connect(driven(&cluster));
    drop(manager.acquire_async(&options("r")));
    assert_eq!(cluster.having("r"), 0);
    for _ in 0..50 {
        let mut future = manager.acquire_async(&options("r"));
        let _ = poll_once(&mut future);
        drop(future);
    }
    cluster.wait_until_gone("r");
    // Granted, and the result is never taken, unless it comes at once.
    let mut future = manager.acquire_async(&options("r"));
    let lease = poll_once(&mut future);
    cluster.wait_until_everywhere("r");
    drop(lease);
    drop(future);
    cluster.wait_until_gone("r");
    // While servers do not answer.
    cluster.iter().for_each(crate::support::Server::freeze);
    let mut future = manager.acquire_async(&options("r"));
    assert!(poll_once(&mut future).is_pending());
    drop(future);
    cluster.iter().for_each(crate::support::Server::resume);
    wait_until("it can be locked again", || manager.acquire(&options("r")).is_ok());
    cluster.wait_until_gone("r");
}

#[test]
fn a_dropped_waiter_leaves_the_queue() {
    let cluster = Cluster::start(3);
    let manager = driven(&cluster);
    let held = manager.acquire(&options("r")).expect("it is free");
    let mut first = manager.acquire_async(&options("r").wait_forever());
    assert!(poll_once(&mut first).is_pending());
    let second = manager.acquire_async(&options("r").wait_forever());
    drop(first);
    drop(held);
    let lease = finishes("the second", move || block_on(second)).expect("it was released");
    drop(lease);
    cluster.wait_until_gone("r");
}

/// A waiter that was not cancelled would ask again after each of its pauses, which are shorter than half a
/// second.
#[test]
fn a_dropped_waiter_asks_no_more() {
    let cluster = Cluster::start(3);
    cluster.iter().for_each(|it| drop(it.must(&["SET", "r", "another's"])));
    let manager = manager(&cluster);
    let _ = manager.descriptor().expect("a descriptor");
    let mut waiting = manager.acquire_async(&options("r").wait_forever());
    assert!(poll_once(&mut waiting).is_pending());
    let calls = |it: &crate::support::Server| it.calls("set") + it.scripts();
    let asked = || cluster.iter().map(calls).sum::<u64>();
    wait_until("it asks", || {
        manager.drive().expect("it drives");
        asked() > 0
    });
    drop(waiting);
    // The waiter leaves the queue if it is in one. The first event is its cancellation.
    manager.drive().expect("it drives");
    manager.drive_for(Duration::from_millis(500)).expect("it drives");
    let before = asked();
    manager.drive_for(Duration::from_secs(2)).expect("it drives");
    assert_eq!(asked(), before);
}

#[test]
fn a_dropped_change_keeps_the_lock_and_unlock_frees_it() {
    let cluster = Cluster::start(3);
    let manager = driven(&cluster);
    let mut lease = manager.acquire(&options("r")).expect("it is free");
    for _ in 0..20 {
        let _ = poll_once(&mut lease.extend_async(TTL * 2));
        let _ = poll_once(&mut lease.confirm_async(Duration::ZERO));
    }
    assert!(lease.is_held());
    lease.confirm(TTL / 2).expect("it is held");
    let _ = poll_once(&mut lease.unlock_async());
    cluster.wait_until_gone("r");
}

/// The call is over, and an event says so. Nobody has taken that event.
fn end(manager: &Manager, is_over: impl Fn() -> bool) {
    wait_until("the servers have done it", || {
        // A call that blocks does what is due for other calls, and takes no event.
        manager.inspect("another").expect("they answer");
        is_over()
    });
    // What the servers have answered before this is read.
    manager.inspect("another").expect("they answer");
}

#[test]
fn a_finished_acquire_is_released_with_its_dropped_future() {
    let cluster = Cluster::start(3);
    let (giver, manager) = (connected(&cluster), connected(&cluster));
    let _ = manager.descriptor().expect("a descriptor");
    // Whether the event reaches the future before it is dropped, or after that.
    for is_told in [true, false] {
        let ticket =
            giver.acquire(&options("r")).expect("it is free").detach().expect("it is held");
        let mut adopted = manager.adopt_async(&ticket);
        assert!(poll_once(&mut adopted).is_pending());
        end(&manager, || true);
        if is_told {
            manager.drive().expect("it drives");
        }
        drop(adopted);
        manager.drive().expect("it drives");
        cluster.wait_until_gone("r");
        let mut acquired = manager.acquire_async(&options("r").wait_forever());
        assert!(poll_once(&mut acquired).is_pending());
        end(&manager, || cluster.having("r") == 3);
        if is_told {
            manager.drive().expect("it drives");
        }
        drop(acquired);
        manager.drive().expect("it drives");
        cluster.wait_until_gone("r");
    }
}

#[test]
fn a_finished_change_keeps_the_lock_after_its_drop() {
    let cluster = Cluster::start(3);
    let manager = connected(&cluster);
    let _ = manager.descriptor().expect("a descriptor");
    let mut lease = manager.acquire(&options("r")).expect("it is free");
    for is_told in [true, false] {
        let mut extended = lease.extend_async(TTL * 2);
        assert!(poll_once(&mut extended).is_pending());
        end(&manager, || cluster.iter().all(|it| it.pttl("r") > 600_000));
        if is_told {
            manager.drive().expect("it drives");
        }
        drop(extended);
        manager.drive().expect("it drives");
        lease.confirm(Duration::ZERO).expect("it is held");
    }
}

/// The thread of the manager is busy with the task that it wakes when the future of another lock is dropped.
#[test]
fn the_background_thread_releases_unclaimed_locks() {
    struct Busy(Mutex<mpsc::Receiver<()>>);
    impl Wake for Busy {
        fn wake(self: Arc<Self>) {
            let _ = self.0.lock().expect("one thread wakes it").recv();
        }
    }
    let cluster = Cluster::start(3);
    let manager = connect(driven(&cluster));
    let (goes_on, waits) = mpsc::channel();
    let busy = Waker::from(Arc::new(Busy(waits.into())));
    let mut first = manager.acquire_async(&options("first"));
    let mut context = Context::from_waker(&busy);
    let mut pinned = Pin::new(&mut first);
    while pinned.as_mut().poll(&mut context).is_pending() && cluster.having("first") < 3 {}
    let mut second = manager.acquire_async(&options("r").wait_forever());
    let _ = poll_once(&mut second);
    end(&manager, || cluster.having("r") == 3);
    drop(second);
    drop(goes_on);
    cluster.wait_until_gone("r");
}

/// Its event is still there when the last that uses the manager is dropped.
#[test]
fn an_unclaimed_lock_is_released_with_its_manager() {
    let cluster = Cluster::start(3);
    let manager = connected(&cluster);
    let _ = manager.descriptor().expect("a descriptor");
    let mut acquired = manager.acquire_async(&options("r").wait_forever());
    assert!(poll_once(&mut acquired).is_pending());
    end(&manager, || cluster.having("r") == 3);
    drop(acquired);
    assert_eq!(cluster.having("r"), 3);
    drop(manager);
    cluster.wait_until_gone("r");
}

#[test]
fn drive_takes_all_ready_events() {
    let cluster = Cluster::start(3);
    let manager = connected(&cluster);
    let _ = manager.descriptor().expect("a descriptor");
    let mut futures = ["r", "s", "t"].map(|it| manager.acquire_async(&options(it)));
    assert!(futures.iter_mut().all(|it| poll_once(it).is_pending()));
    end(&manager, || ["r", "s", "t"].iter().all(|it| cluster.having(it) == 3));
    manager.drive().expect("it drives");
    assert!(futures.iter_mut().all(|it| poll_once(it).is_ready()));
}

/// The time is not begun anew at each event: that would never end.
#[test]
fn drive_for_returns_with_an_event() {
    let cluster = Cluster::start(3);
    let manager = connected(&cluster);
    let _ = manager.descriptor().expect("a descriptor");
    let mut acquired = manager.acquire_async(&options("r"));
    assert!(poll_once(&mut acquired).is_pending());
    let acquired = finishes("driving", move || {
        manager.drive_for(TTL).expect("it drives");
        acquired
    });
    assert!(block_on(acquired).is_ok());
}

#[test]
fn futures_work_with_drive_alone() {
    let cluster = Cluster::start(1);
    let manager = manager(&cluster);
    manager.drive().expect("it drives");
    let mut acquired = manager.acquire_async(&options("r"));
    assert!(poll_once(&mut acquired).is_pending());
    manager.drive_for(TTL).expect("it drives");
    assert!(block_on(acquired).is_ok());
}

/// So many calls are under way that the unlock has to wait before it is sent.
#[test]
fn an_unlock_dropped_before_sending_still_releases() {
    let cluster = Cluster::start(3);
    let manager = connected(&cluster);
    let _ = manager.descriptor().expect("a descriptor");
    let mut lease = manager.acquire(&options("r")).expect("it is free");
    cluster.wait_until_everywhere("r");
    cluster.iter().for_each(crate::support::Server::freeze);
    let mut others: Vec<_> =
        (0..600).map(|it| manager.acquire_async(&options(&format!("other {it}")))).collect();
    assert!(others.iter_mut().all(|it| poll_once(it).is_pending()));
    assert!(poll_once(&mut lease.unlock_async()).is_pending());
    cluster.iter().for_each(crate::support::Server::resume);
    wait_until("it is released", || {
        manager.drive().expect("it drives");
        cluster.having("r") == 0
    });
}
