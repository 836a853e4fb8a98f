//! Which servers a call waits for, and late answers that are read nevertheless.

use std::cell::Cell;
use std::rc::Rc;

use super::TTL;
use super::cluster::{Cluster, MS, Trip};
use crate::manager::lease::Lease;
use crate::protocol::error::Status;

/// The thread is kept from running when its time ends, and the answer comes meanwhile.
#[test]
fn an_answer_present_at_the_timeout_counts() {
    let mut heard = 0;
    for nth in 1.. {
        let cluster = Cluster::new(1);
        let client = cluster.client().tries(1, 0).waits_ms(50).connected();
        cluster.script(client.way(0), [Trip::ms(1, 60)]);
        client.stall_once(nth, 20 * MS);
        let up_at = cluster.now() + 50 * MS;
        let said = client.lock("r", TTL, &mut Lease::new());
        heard += usize::from(client.stalled_at() == up_at && said == Ok(()));
        if !client.has_stalled() {
            assert_ne!(said, Ok(()), "it came too late");
            break;
        }
    }
    assert!(heard > 0);
}

/// The thread is kept from running before it sends its request. The server has its whole time all the same.
#[test]
fn a_delay_before_sending_is_not_charged_to_the_server() {
    for nth in 1.. {
        let cluster = Cluster::new(1);
        let client = cluster.client().tries(1, 0).waits_ms(50).connected();
        cluster.script(client.way(0), [Trip::ms(1, 30)]);
        client.stall_once(nth, 40 * MS);
        assert_eq!(client.lock("r", TTL, &mut Lease::new()), Ok(()), "delayed at look {nth}");
        if !client.has_stalled() {
            break;
        }
    }
}

/// By then there is a second connection, and a caller waits for something else.
#[test]
fn an_answer_on_the_old_connection_is_read_at_once() {
    let cluster = Cluster::new(3);
    let client = cluster.client().connected();
    (0..3).for_each(|it| cluster.put(it, "other", "theirs", 60_000));
    cluster.script(client.way(0), [Trip::ms(1, 3_000)]);
    client.take("r", TTL);
    // Otherwise it would poll without waiting, again and again.
    let said = client.try_lock("other", TTL, 5_000, &mut Lease::new());
    assert_eq!(said, Err(Status::Taken));
    cluster.run_ms(100);
}

/// Otherwise it would try to connect to the server, and wait for that.
#[test]
fn a_call_with_a_quorum_does_not_wait_for_a_dead_server() {
    let cluster = Cluster::new(3);
    let client = cluster.client().connected();
    cluster.kill(2);
    for quiet_ms in [1_000, 11, 1_000] {
        cluster.run_ms(quiet_ms);
        let asked_at = cluster.now();
        let mut lease = client.take("r", TTL);
        assert_eq!(cluster.now() - asked_at, 2 * MS);
        assert_eq!(client.unlock(&mut lease), Ok(()));
    }
}

/// Nobody drives until the answer is overdue, so the connection is set aside while the call is under way.
#[test]
fn requests_on_a_replaced_connection_are_released() {
    let cluster = Cluster::new(1);
    let client = cluster.client().connected();
    cluster.script(client.way(0), [Trip::ms(1, 6_000)]);
    client.submit("r", TTL);
    cluster.run_ms(3_000);
    assert_eq!(cluster.having_any("r"), 1);
    assert_eq!(client.event(0), Some(Err(Status::Unreachable)));
    cluster.run_ms(100);
    assert_eq!(cluster.having_any("r"), 0);
}

/// The second request is written when the first one is overdue. The server has its whole time all the same.
#[test]
fn a_late_request_on_a_replaced_connection_has_its_time() {
    let cluster = Cluster::new(1);
    let client = cluster.client().connected();
    cluster.script(client.way(0), [Trip::ms(1, 2_200)]);
    client.submit("a", TTL);
    // A twentieth of the TTL is how long an answer may take.
    cluster.run_ms(490);
    client.submit("b", TTL);
    cluster.run_ms(1_600);
    assert_eq!(client.event(1_000), Some(Err(Status::Unreachable)));
    assert_eq!(client.event(1_000), Some(Ok(())));
}

/// The second connection wants another password, and a thread is asking for that when the first one answers.
#[test]
fn a_waiter_hears_the_old_connection_during_a_callback() {
    let cluster = Cluster::with_password(1);
    let (scene, asked) = (*cluster, Rc::new(Cell::new(0)));
    let times = Rc::clone(&asked);
    let client = cluster.client().asks(move || {
        times.set(times.get() + 1);
        if times.get() > 1 {
            scene.run_ms(5_000);
        }
        times.get() == 1
    });
    let client = Rc::new(client.connected());
    let start = cluster.now();
    cluster.script(client.way(0), [Trip::ms(1, 3_000)]);
    assert_eq!(client.lock("a", TTL, &mut Lease::new()), Err(Status::Unreachable));
    cluster.change_password("another");
    cluster.run_until(start + 2_010 * MS);
    for _ in 0..2 {
        // Each of these calls drives for a moment: the second connection is made, and refused.
        assert_eq!(client.is_locked("b"), Err(Status::Unreachable));
        cluster.run_ms(10);
    }
    let asking = Rc::clone(&client);
    cluster.thread(0, move || _ = asking.is_locked("b"));
    let told = Rc::new(Cell::new(0));
    let (waiting, told_at) = (Rc::clone(&client), Rc::clone(&told));
    cluster.thread(90, move || {
        assert_eq!(waiting.lock("c", TTL, &mut Lease::new()), Ok(()));
        told_at.set(scene.now());
    });
    cluster.end_threads(10_000);
    assert_eq!(asked.get(), 2);
    assert!(told.get() < start + 3_100 * MS, "{}", (told.get() - start) / MS);
}
