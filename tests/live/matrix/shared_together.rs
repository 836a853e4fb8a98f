//! Shared locks in combination with other features: waiting to be woken, fencing, keeping, tickets, levels,
//! cancelled calls.

use std::thread;

use redlock::ffi::status::RedLockStatus::{
    REDLOCK_CANCELLED, REDLOCK_INVALID_ARGUMENT, REDLOCK_LOST, REDLOCK_OK, REDLOCK_TAKEN,
};

use crate::support::events::Wanted;
use crate::support::usage::{TTL, connected};
use crate::support::{Cluster, Lease, Manager, Server, wait_until};

const RESOURCE: &str = "r";
const READERS: &str = "r:r";
const INTENT: &str = "r:i";
const LINE: &str = "r:w";
const WAIT_MS: i64 = 60_000;

fn shared() -> Wanted {
    Wanted::shared(RESOURCE, TTL)
}

fn waiting(wanted: Wanted) -> Wanted {
    Wanted { wait_ms: WAIT_MS, ..wanted }
}

#[track_caller]
fn take(manager: &Manager, wanted: &Wanted) -> Lease {
    let lease = Lease::new();
    assert_eq!(manager.acquire(wanted, &lease), REDLOCK_OK, "{}", lease.message());
    lease
}

#[track_caller]
fn unlock(manager: &Manager, lease: &Lease) {
    assert_eq!(manager.unlock(lease), REDLOCK_OK, "{}", lease.message());
}

fn in_line(server: &Server) -> i64 {
    server.must(&["ZCARD", LINE]).integer()
}

/// Moves every waiter in the queue of the first server so far behind that it does not look by itself for
/// seconds. Returns how often waiters have looked by then. Each look asks for the waiter's rank.
fn send_far_behind(cluster: &Cluster, waiters: u64) -> u64 {
    for other in 0..40 {
        cluster[0].must(&["ZADD", LINE, "1", &format!("gone:{other}")]);
    }
    let looked = cluster[0].calls("zrank");
    let now = || cluster[0].calls("zrank");
    wait_until("they have seen how far behind they are", || now() >= looked + waiters);
    now()
}

/// Nothing is left on any server.
fn nothing_is_left(cluster: &Cluster) {
    [RESOURCE, READERS, INTENT].iter().for_each(|key| cluster.wait_until_gone(key));
}

#[test]
fn r07_the_last_reader_wakes_a_writer_of_another_process() {
    let cluster = Cluster::start(1);
    let [one, other, writer] = [(); 3].map(|()| connected(&cluster));
    let leases = [take(&one, &shared()), take(&other, &shared())];
    thread::scope(|scope| {
        let waiting = scope.spawn(|| take(&writer, &waiting(Wanted::new(RESOURCE, TTL))));
        wait_until("it stands in line", || in_line(&cluster[0]) == 1);
        let looked = send_far_behind(&cluster, 1);
        unlock(&one, &leases[0]);
        assert_eq!(in_line(&cluster[0]), 41, "somebody was told although there is a reader");
        unlock(&other, &leases[1]);
        let lease = waiting.join().expect("it does not panic");
        assert_eq!(cluster[0].calls("zrank"), looked, "it was told");
        assert!(!lease.is_shared() && in_line(&cluster[0]) == 0);
        unlock(&writer, &lease);
    });
    nothing_is_left(&cluster);
}

#[test]
fn r07_a_leaving_writer_wakes_all_front_readers() {
    let cluster = Cluster::start(1);
    let writer = connected(&cluster);
    for how in ["released", "downgraded"] {
        let readers = [(); 3].map(|()| connected(&cluster));
        let lease = writer.take(RESOURCE, TTL);
        thread::scope(|scope| {
            let waiters = readers.each_ref().map(|it| scope.spawn(|| take(it, &waiting(shared()))));
            wait_until("they stand in line", || in_line(&cluster[0]) == 3);
            let looked = match how {
                "released" => send_far_behind(&cluster, 3),
                _ => cluster[0].calls("zrank"),
            };
            match how {
                "released" => unlock(&writer, &lease),
                _ => assert_eq!(writer.downgrade(&lease), REDLOCK_OK, "{}", lease.message()),
            }
            if how == "released" {
                assert_eq!(in_line(&cluster[0]), 0, "a reader was not told");
            }
            // None of them leaves before all hold the lock.
            let leases = waiters.map(|it| it.join().expect("it does not panic"));
            if how == "released" {
                assert_eq!(cluster[0].calls("zrank"), looked, "they were told");
            }
            readers.iter().zip(&leases).for_each(|it| unlock(it.0, it.1));
        });
        if how != "released" {
            unlock(&writer, &lease);
        }
        nothing_is_left(&cluster);
    }
}

/// The readers of one process have one place in the queue.
#[test]
fn r07_readers_of_one_process_share_one_place() {
    let cluster = Cluster::start(3);
    let (writer, readers) = (connected(&cluster), connected(&cluster));
    let lease = writer.take(RESOURCE, TTL);
    thread::scope(|scope| {
        let waiters = [(); 8].map(|()| scope.spawn(|| take(&readers, &waiting(shared()))));
        wait_until("one stands in line", || cluster.iter().all(|it| in_line(it) == 1));
        unlock(&writer, &lease);
        let leases = waiters.map(|it| it.join().expect("it does not panic"));
        assert!(leases.iter().all(|it| it.is_held() && it.is_shared()));
        leases.iter().for_each(|it| unlock(&readers, it));
    });
    nothing_is_left(&cluster);
    assert!(cluster.iter().all(|it| it.calls("zcard") > 0 && in_line(it) == 0));
}

/// Also if a reader joined the queue first.
#[test]
fn r07_an_announced_writer_is_woken_before_readers() {
    let cluster = Cluster::start(1);
    let [early, late, writer] = [(); 3].map(|()| connected(&cluster));
    let (lease, own) = (take(&early, &shared()), Lease::new());
    thread::scope(|scope| {
        let calling = scope.spawn(|| writer.acquire(&waiting(Wanted::new(RESOURCE, TTL)), &own));
        wait_until("it has said that it waits", || cluster.having(INTENT) == 1);
        let reading = scope.spawn(|| take(&late, &waiting(shared())));
        wait_until("both stand in line", || in_line(&cluster[0]) == 2);
        // By its place in the queue, the writer has come last.
        let first = cluster[0].must(&["EVAL", FIRST_WRITER, "1", LINE]).text().expect("a name");
        cluster[0].must(&["ZADD", LINE, "XX", "9000000000000000", &first]);
        unlock(&early, &lease);
        assert_eq!(calling.join().expect("it does not panic"), REDLOCK_OK, "{}", own.message());
        assert!(!reading.is_finished());
        unlock(&writer, &own);
        unlock(&late, &reading.join().expect("it does not panic"));
    });
    nothing_is_left(&cluster);
}

const FIRST_WRITER: &str = "local t=redis.call('ZRANGE',KEYS[1],0,-1,'WITHSCORES') for i=1,#t,2 do \
                            if t[i+1]%1==0 then return t[i] end end";

#[test]
fn r08_readers_draw_no_fencing_token_and_a_downgrade_keeps_it() {
    let cluster = Cluster::start(3);
    let (writer, reader) = (connected(&cluster), connected(&cluster));
    for manager in [&writer, &reader] {
        assert_eq!(manager.set_fencing(true), REDLOCK_OK);
    }
    let beside = take(&reader, &shared());
    assert_eq!(beside.fencing_token(), 0);
    let lease = Lease::new();
    let wanted = Wanted { tries: 2, ..Wanted::new(RESOURCE, TTL) };
    assert_eq!(writer.acquire(&wanted, &lease), REDLOCK_TAKEN, "{}", lease.message());
    unlock(&reader, &beside);
    // The writer has given up, and no trace is left.
    nothing_is_left(&cluster);
    let lease = writer.take(RESOURCE, TTL);
    let token = lease.fencing_token();
    assert!(token > 0);
    assert_eq!(writer.downgrade(&lease), REDLOCK_OK, "{}", lease.message());
    assert_eq!(lease.fencing_token(), token);
    let beside = take(&reader, &shared());
    unlock(&reader, &beside);
    unlock(&writer, &lease);
    cluster.wait_until_gone(RESOURCE);
    assert!(writer.take(RESOURCE, TTL).fencing_token() > token);
}

/// So long that a busy machine does not lose a kept lock.
const KEPT_TTL: i64 = 10_000;

#[test]
fn r08_a_shared_lock_is_kept_and_its_loss_is_reported() {
    let cluster = Cluster::start(3);
    let (manager, other) = (connected(&cluster), connected(&cluster));
    let lease = take(&manager, &Wanted { keep_alive: true, ..Wanted::shared(RESOURCE, KEPT_TTL) });
    let beside = take(&other, &shared());
    let end = || cluster[0].must(&["ZSCORE", READERS, &lease.token()]).text();
    let is_renewed = |before: &Option<String>| {
        let event = manager.next_event(5);
        assert!(event.is_none(), "{event:?}");
        end() != *before
    };
    let before = end();
    wait_until("it is renewed", || is_renewed(&before));
    // A writer becomes a reader, and is kept as a reader.
    unlock(&manager, &lease);
    unlock(&other, &beside);
    cluster.wait_until_gone(RESOURCE);
    let wanted = Wanted { keep_alive: true, ..Wanted::new(RESOURCE, KEPT_TTL) };
    assert_eq!(manager.acquire(&wanted, &lease), REDLOCK_OK, "{}", lease.message());
    assert_eq!(manager.downgrade(&lease), REDLOCK_OK, "{}", lease.message());
    let before = end();
    wait_until("it is renewed", || is_renewed(&before));
    cluster.iter().for_each(|it| _ = it.must(&["ZREM", READERS, &lease.token()]));
    let event = manager.next_event(WAIT_MS).expect("it is told");
    assert!(event.is_lost && event.status == REDLOCK_LOST, "{event:?}");
    assert!(!lease.is_held());
}

#[test]
fn r08_a_shared_lock_is_detached_only_at_its_last_level() {
    let cluster = Cluster::start(3);
    let (manager, other) = (connected(&cluster), connected(&cluster));
    let lease = take(&manager, &shared());
    assert_eq!(lease.retain(), REDLOCK_OK);
    assert_eq!(manager.detach(&lease), Err(REDLOCK_INVALID_ARGUMENT));
    unlock(&manager, &lease);
    assert!(lease.is_held());
    let ticket = manager.detach(&lease).expect("it is held");
    let adopted = Lease::new();
    assert_eq!(other.adopt(&ticket, &adopted), REDLOCK_OK, "{}", adopted.message());
    assert!(adopted.is_shared());
    unlock(&other, &adopted);
    nothing_is_left(&cluster);
}

#[test]
fn r08_a_shared_lock_excludes_several_names_and_permits() {
    let cluster = Cluster::start(1);
    let (manager, lease) = (connected(&cluster), Lease::new());
    let both = Wanted { mode: shared().mode, ..Wanted::several(&["a", "b"], TTL) };
    for (wanted, words) in [
        (both, "a lock of several resources must be exclusive"),
        (Wanted { permits: 2, ..shared() }, "mode must be 0 for a semaphore permit"),
    ] {
        assert_eq!(manager.acquire(&wanted, &lease), REDLOCK_INVALID_ARGUMENT);
        assert!(lease.message().contains(words), "{}", lease.message());
    }
    // A lock of several resources is a writer of each.
    let own = take(&manager, &Wanted::several(&["a", RESOURCE], TTL));
    let other = connected(&cluster);
    assert_eq!(other.acquire(&shared(), &lease), REDLOCK_TAKEN, "{}", lease.message());
    assert_eq!(manager.downgrade(&own), REDLOCK_INVALID_ARGUMENT, "{}", own.message());
    unlock(&manager, &own);
    cluster.wait_until_gone(RESOURCE);
    let lease = take(&other, &shared());
    let wanted = Wanted::several(&["a", RESOURCE], TTL);
    assert_eq!(manager.acquire(&wanted, &own), REDLOCK_TAKEN, "{}", own.message());
    unlock(&other, &lease);
}

#[test]
fn r08_a_cancelled_waiting_reader_or_writer_leaves_nothing() {
    let cluster = Cluster::start(3);
    let [holder, waiter] = [(); 2].map(|()| connected(&cluster));
    let lease = Lease::new();
    for (held, wanted) in [
        (Wanted::new(RESOURCE, TTL), waiting(shared())),
        (shared(), waiting(Wanted::new(RESOURCE, TTL))),
    ] {
        let own = take(&holder, &held);
        thread::scope(|scope| {
            let calling = scope.spawn(|| waiter.acquire(&wanted, &lease));
            wait_until("it stands in line", || cluster.iter().all(|it| in_line(it) == 1));
            assert_eq!(waiter.cancel(&lease), REDLOCK_OK);
            assert_eq!(calling.join().expect("it does not panic"), REDLOCK_CANCELLED);
        });
        wait_until("the line is empty", || cluster.iter().all(|it| in_line(it) == 0));
        unlock(&holder, &own);
        nothing_is_left(&cluster);
    }
}
