//! A reader that waits behind a waiting writer, and is cancelled at every step.

use std::thread;

use redlock::ffi::status::RedLockStatus::{REDLOCK_OK, REDLOCK_TAKEN};

use crate::calls::{MANNERS, Manner, TAG, cancelled_once};
use crate::calls_cancelled::Stand;
use crate::readers::{
    INTENT, LINE, RESOURCE, readers_of, shared, take, unlock, wait_until_read_by,
};
use crate::rig::Rig;
use crate::shared_cancelled::{Call, is_used, step};
use crate::support::events::Wanted;
use crate::support::proxy::BOTH;
use crate::support::usage::{TTL, connected};
use crate::support::{Cluster, Lease, Manager, Server, Way, wait_until};

/// One client reads, and a writer waits for it. So a reader that comes now waits, too.
struct Queue {
    reader: Manager,
    lease: Lease,
    writer: Manager,
    wanted: Lease,
}

impl Queue {
    fn of(cluster: &Cluster) -> Self {
        let (reader, writer) = (connected(cluster), connected(cluster));
        let (lease, wanted) = (take(&reader, &shared()), Lease::new());
        wait_until_read_by(cluster, &[&lease]);
        assert_eq!(writer.set_background_thread(true), REDLOCK_OK);
        let patient = Wanted { wait_ms: -1, ..Wanted::new(RESOURCE, TTL) };
        assert_eq!(writer.submit_acquire(&patient, &wanted, 9), REDLOCK_OK);
        wait_until("it says that it waits", || {
            cluster.iter().all(|it| it.exists(INTENT) && in_line(it) == 1)
        });
        Self { reader, lease, writer, wanted }
    }

    /// Nothing is left of the cancelled reader: the writer waits alone, for the first reader.
    #[track_caller]
    fn is_as_it_was(&self, manager: &Manager, cluster: &Cluster) {
        wait_until("all is as it was", || {
            let is_so = |it: &Server| {
                let readers = readers_of(it, RESOURCE);
                readers.len() == 1 && readers[0].0 == self.lease.token() && in_line(it) == 1
            };
            is_used(manager) && cluster.iter().all(is_so)
        });
        assert_eq!(self.writer.next_event(0), None, "the writer has come to something");
    }

    /// The first reader leaves, and the writer takes the lock. Then nothing is left.
    #[track_caller]
    fn ends(self, cluster: &Cluster) {
        unlock(&self.reader, &self.lease);
        assert_eq!(self.writer.event().status, REDLOCK_OK, "{}", self.wanted.message());
        assert!(!self.wanted.is_shared() && self.wanted.is_held());
        unlock(&self.writer, &self.wanted);
        wait_until("nothing is left", || cluster.iter().all(|it| it.locks() == 0));
    }
}

fn in_line(server: &Server) -> i64 {
    server.must(&["ZCARD", LINE]).integer()
}

/// The reader tries, joins the queue, and looks again now and then.
#[test]
fn r12_a_reader_behind_a_writer_is_cancelled_at_any_byte() {
    thread::scope(|scope| {
        for way in BOTH {
            for manner in MANNERS {
                scope.spawn(move || {
                    let rig = Rig::start(1);
                    let (queue, manager) = (Queue::of(&rig.servers), rig.connected());
                    let wanted = Wanted { wait_ms: -1, ..shared() };
                    let length = until_it_stands_in_line((&rig, &queue, &manager), &wanted, way);
                    for count in (0..length).step_by(step(way)) {
                        let cut = || rig.proxies[0].stall_after(way, count);
                        let is_there = || rig.proxies[0].is_holding(way);
                        waits((&rig, &queue, &manager), (manner, &wanted), cut, is_there);
                    }
                    queue.ends(&rig.servers);
                });
            }
        }
    });
}

/// How many bytes are sent until the call waits in the queue. The first waiter on a connection sends more.
fn until_it_stands_in_line(
    (rig, queue, manager): (&Rig, &Queue, &Manager),
    wanted: &Wanted,
    way: Way,
) -> u64 {
    let mut length = 0;
    for _ in 0..2 {
        let before = rig.proxies[0].handed_on(way);
        let mut looks = 0;
        let is_there = || {
            length = rig.proxies[0].handed_on(way) - before;
            // The call is driven between two of these checks, so it hears that it is in the queue.
            looks += u32::from(in_line(&rig.servers[0]) == 2);
            looks == 3
        };
        waits((rig, queue, manager), (Manner::Submitted, wanted), || {}, is_there);
    }
    assert!(length > 20, "{length} bytes are no conversation: {way:?}");
    length
}

/// A waiting call that is cancelled when it has reached this point, unless it was let in. On a busy machine the
/// writer's announcement may expire before the writer renews it.
#[track_caller]
fn waits(
    (rig, queue, manager): (&Rig, &Queue, &Manager),
    (manner, wanted): (Manner, &Wanted),
    cut: impl FnOnce(),
    is_there: impl FnMut() -> bool,
) {
    let lease = Lease::new();
    cut();
    let run = || manager.acquire(wanted, &lease);
    let submit = || {
        let status = manager.submit_acquire(wanted, &lease, TAG);
        assert_eq!(status, REDLOCK_OK, "{}", lease.message());
    };
    let status = cancelled_once(manner, (manager, &lease), (run, submit), is_there);
    rig.heal();
    if Call::Second.is_cancelled(status, &lease) {
        assert!(!lease.is_held());
    } else {
        unlock(manager, &lease);
    }
    queue.is_as_it_was(manager, &rig.servers);
}

/// One attempt is either refused by a quorum before it is cancelled, or cancelled before that.
#[test]
fn r12_a_reader_behind_a_writer_is_cancelled_at_any_packet() {
    for manner in MANNERS {
        let rig = Rig::start(3);
        let (queue, manager) = (Queue::of(&rig.servers), rig.connected());
        for stands in Stand::of_three() {
            let lease = Lease::new();
            let are_there = Stand::bring_about(stands, &rig);
            let is_quorum = stands.iter().filter(|it| **it == Stand::Heard).count() >= 2;
            let status =
                Call::Second.cancelled_once(manner, &manager, &lease, || !is_quorum && are_there());
            rig.heal();
            match status {
                // The writer's announcement expired on a busy machine.
                REDLOCK_OK => unlock(&manager, &lease),
                REDLOCK_TAKEN => assert!(is_quorum, "{stands:?}: {}", lease.message()),
                status => assert!(Call::Second.is_cancelled(status, &lease) && !is_quorum),
            }
            queue.is_as_it_was(&manager, &rig.servers);
        }
        assert!(queue.writer.inspect(RESOURCE).is_ok_and(|it| it.readers == 1));
        queue.ends(&rig.servers);
    }
}
