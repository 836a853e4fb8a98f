//! A client of ours beside a client of another library, which polls and wakes nobody.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use redlock::ffi::status::RedLockStatus::REDLOCK_OK;

use crate::support::resp::Connection;
use crate::support::{Cluster, Lease};
use crate::{TTL, patient};

const RELEASE: &str =
    "if redis.call('GET',KEYS[1])==ARGV[1] then return redis.call('DEL',KEYS[1]) else return 0 end";

/// How often the lock is taken, by both together.
const TURNS: usize = 600;

const HOLD: Duration = Duration::from_millis(2);

/// Plain Redlock.
struct Foreign(Vec<Connection>);

impl Foreign {
    fn of(cluster: &Cluster) -> Self {
        Self(cluster.iter().map(|it| it.connect().expect("a connection")).collect())
    }

    fn try_once(&mut self, token: &str) -> bool {
        let set = ["SET", "r", token, "NX", "PX", "30000"];
        let grants = self.0.iter_mut().map(|it| it.command(&set).expect("an answer").is_ok());
        2 * grants.filter(|is_granted| *is_granted).count() > self.0.len()
    }

    fn release(&mut self, token: &str) {
        for server in &mut self.0 {
            server.command(&["EVAL", RELEASE, "1", "r", token]).expect("an answer");
        }
    }
}

/// The other client wants the lock again 1 ms after its release, and polls every 10 to 20 ms. Ours had a
/// twentieth of the turns when it slept until somebody woke it.
#[test]
fn a_waiter_gets_a_fair_share_beside_a_polling_client() {
    let cluster = Cluster::start(3);
    let (manager, turns) = (patient(&cluster), [0, 1].map(|_| AtomicUsize::new(0)));
    let is_over = || turns.iter().map(|it| it.load(Ordering::SeqCst)).sum::<usize>() >= TURNS;
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut foreign = Foreign::of(&cluster);
            for nth in 0.. {
                if is_over() {
                    break;
                }
                let token = format!("foreign {nth}");
                let is_had = foreign.try_once(&token);
                if is_had {
                    turns[0].fetch_add(1, Ordering::SeqCst);
                    thread::sleep(HOLD);
                }
                foreign.release(&token);
                thread::sleep(Duration::from_millis(if is_had { 1 } else { 10 + 7 * nth % 11 }));
            }
        });
        let lease = Lease::new();
        while !is_over() {
            let status = manager.try_lock("r", TTL, 60_000, &lease);
            assert_eq!(status, REDLOCK_OK, "{}", lease.message());
            turns[1].fetch_add(1, Ordering::SeqCst);
            thread::sleep(HOLD);
            assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
        }
    });
    let [theirs, ours] = turns.map(AtomicUsize::into_inner);
    println!("{ours} {theirs}");
    assert!(4 * ours >= ours + theirs, "{ours} of ours beside {theirs}");
}
