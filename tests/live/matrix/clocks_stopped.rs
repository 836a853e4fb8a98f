//! Clients that are stopped for longer than their locks last, at every moment of a call. Whatever they do when
//! they go on, they do not believe that they hold a lock that another client holds.

use std::thread;
use std::time::{Duration, Instant};

use redlock::ffi::status::RedLockStatus::REDLOCK_OK;

use crate::obedient::{Client, Said};
use crate::rivals::RESOURCE;
use crate::support::shim::Pauses;
use crate::support::usage::{PATIENT_MS, TTL, connected};
use crate::support::{Cluster, Lease, Manager, Server, wait_until};

/// Long enough for a call on a busy machine, and short enough to be slept through.
const SHORT_TTL: i64 = 300;

struct Scene {
    cluster: Cluster,
    pauses: Pauses,
    client: Client,
    rival: Manager,
}

impl Scene {
    fn start() -> Self {
        let (cluster, pauses) = (Cluster::start(3), Pauses::new());
        let client = Client::start(&cluster, &pauses.environment());
        let rival = connected(&cluster);
        Self { cluster, pauses, client, rival }
    }

    /// The client is stopped at the moment of this number within the call, or after the call. If it was stopped
    /// after the call, returns the client's final report.
    fn stop_at(&mut self, moment: i64, order: &str) -> Option<Said> {
        self.pauses.set(moment);
        self.client.begins(&format!("stop {order}"));
        self.client.running().await_stop();
        let within = self.pauses.clear();
        let (lease, taken_at_ms) = self.is_taken_over();
        self.client.running().resume();
        if within {
            self.client.running().await_stop();
            self.client.running().resume();
        }
        let said = self.client.tells();
        let when = format!("{order}, at moment {moment}");
        assert_ne!(said.status, "REDLOCK_UNREACHABLE", "{when}: all servers answer: {said:?}");
        self.is_the_rivals(&lease, taken_at_ms, &said, &when);
        (!within).then_some(said)
    }

    /// The rival takes the lock as soon as it can. Returns the lease and the moment at which the rival took the
    /// lock.
    #[track_caller]
    fn is_taken_over(&self) -> (Lease, i64) {
        let lease = Lease::new();
        let status = self.rival.try_lock(RESOURCE, TTL, PATIENT_MS, &lease);
        assert_eq!(status, REDLOCK_OK, "{}", lease.message());
        (lease, since_boot_ms())
    }

    /// The client does not believe outdated facts, and has not touched the rival's lock.
    #[track_caller]
    fn is_the_rivals(&mut self, lease: &Lease, taken_at_ms: i64, said: &Said, when: &str) {
        assert!(!said.held && said.remaining_ms == 0, "{when}: {said:?}");
        let believed = said.believed_until_ms.is_some_and(|it| it >= taken_at_ms);
        assert!(!believed, "{when}: since {taken_at_ms} another had it: {said:?}");
        assert_eq!(self.rival.confirm(lease, 1000), REDLOCK_OK, "{when}: {}", lease.message());
        assert_eq!(self.rival.unlock(lease), REDLOCK_OK, "{when}: {}", lease.message());
        let asked = self.client.does("confirm 0");
        assert_eq!(asked.status, "REDLOCK_LOST", "{when}: {asked:?}");
        self.cluster.wait_until_gone(RESOURCE);
    }

    fn has_a_lock(&mut self) {
        let order = format!("lock {SHORT_TTL}");
        wait_until("the client has the lock", || self.client.does(&order).held);
    }

    /// Two of three servers grant only while the client is stopped. The client goes on when its reply timeout
    /// is over.
    fn stop_before_the_grants(&mut self, moment: i64) -> Stopped {
        let sets =
            |servers: &[Server]| servers.iter().map(|it| it.calls("set")).collect::<Vec<_>>();
        let before = sets(&self.cluster);
        self.cluster[..2].iter().for_each(Server::freeze);
        self.pauses.set(moment);
        let begun = Instant::now();
        self.client.begins(&format!("stop try {TTL} 0"));
        self.client.running().await_stop();
        let in_time = begun.elapsed() < PATIENCE;
        // The third server is asked last. It answers this PING after it has processed the earlier requests.
        self.cluster[2].must(&["PING"]);
        let has_asked = self.cluster[2].calls("set") > before[2];
        self.cluster[..2].iter().for_each(Server::resume);
        if has_asked {
            wait_until("all have granted", || {
                sets(&self.cluster).iter().zip(&before).all(|(now, before)| now > before)
            });
            thread::sleep(PATIENCE);
        }
        if self.pauses.clear() {
            self.client.running().resume();
            self.client.running().await_stop();
        }
        self.client.running().resume();
        let said = self.client.tells();
        self.client.does("unlock");
        self.cluster.wait_until_gone(RESOURCE);
        match (has_asked, in_time) {
            (false, _) => Stopped::BeforeItAsked,
            (true, false) => Stopped::TooLate,
            (true, true) => Stopped::InTime(said),
        }
    }

    /// Stops the client at every third moment from this one on, until the call ends before the moment comes.
    /// Returns that moment.
    fn at_moments_from(mut self, first: i64, order: &str, prepare: fn(&mut Self)) -> i64 {
        let mut moment = first;
        loop {
            prepare(&mut self);
            match self.stop_at(moment, order) {
                None => moment += LANES,
                Some(said) if said.status == "REDLOCK_OK" => return moment,
                // The machine is so busy that the lock expired before the call.
                Some(_) => {}
            }
        }
    }
}

/// How long the client waits for replies where that matters.
const PATIENCE: Duration = Duration::from_secs(1);

/// When a client was stopped in a call.
enum Stopped {
    BeforeItAsked,
    /// When its reply timeout was over already.
    TooLate,
    /// When it could still have been granted the lock in time. Contains its final report.
    InTime(Said),
}

/// Most of the time is spent waiting for locks to end, so several lanes run side by side.
const LANES: i64 = 3;

#[track_caller]
fn at_every_moment(order: &str, prepare: fn(&mut Scene)) {
    let ends = thread::scope(|scope| {
        let lane =
            |first| scope.spawn(move || Scene::start().at_moments_from(first, order, prepare));
        let lanes: Vec<_> = (1..=LANES).map(lane).collect();
        lanes.into_iter().map(|it| it.join().expect("a lock ends")).collect::<Vec<_>>()
    });
    let moments = ends.iter().min().expect("there are lanes") - 1;
    println!("stopped at {moments} moments of {order}");
    // Three requests, three replies, and clock readings before and after.
    assert!(moments >= 12, "only {moments} moments");
}

#[test]
fn c06_a_client_stopped_in_a_lock_claims_no_expired_lock() {
    at_every_moment(&format!("lock {SHORT_TTL}"), |_| {});
}

#[test]
fn c06_a_client_stopped_in_an_extension_claims_nothing() {
    at_every_moment(&format!("extend {SHORT_TTL}"), Scene::has_a_lock);
}

#[test]
fn c06_a_client_stopped_in_a_confirmation_claims_nothing() {
    at_every_moment("confirm 0", Scene::has_a_lock);
}

#[test]
fn c06_a_client_stopped_in_a_release_spares_the_rival() {
    at_every_moment("unlock", Scene::has_a_lock);
}

/// The grants are in the client's sockets while it is stopped. Their keys are long gone when it reads them.
#[test]
fn c06_grants_read_too_late_do_not_count() {
    let mut scene = Scene::start();
    for _ in 0..5 {
        let before: Vec<_> = scene.cluster.iter().map(|it| it.calls("set")).collect();
        scene.cluster[..2].iter().for_each(Server::freeze);
        scene.client.begins(&format!("lock {SHORT_TTL}"));
        wait_until("the call has begun", || scene.cluster[2].calls("set") > before[2]);
        scene.client.running().freeze();
        scene.cluster[..2].iter().for_each(Server::resume);
        for (server, before) in scene.cluster.iter().zip(before) {
            wait_until("all have granted", || server.calls("set") > before);
        }
        let (lease, taken_at_ms) = scene.is_taken_over();
        scene.client.running().resume();
        let said = scene.client.tells();
        assert_ne!(said.status, "REDLOCK_OK", "{said:?}");
        scene.is_the_rivals(&lease, taken_at_ms, &said, "with the grants in its sockets");
    }
}

/// The grants are in the client's sockets as well, and only the client's own reply timeout has passed. The
/// client looks for the grants, wherever in its wait it was stopped.
#[test]
fn c06_late_but_valid_grants_count() {
    // About the number of moments for the wait, the clock reading, and the reading of the third server's grant.
    const ENOUGH: usize = 7;
    let mut scene = Scene::start();
    scene.client.must(&format!("timeout {}", PATIENCE.as_millis()));
    let (mut moment, mut had) = (1, 0);
    while had < ENOUGH {
        wait_until("the client is stopped in time", || {
            match scene.stop_before_the_grants(moment) {
                Stopped::BeforeItAsked => true,
                Stopped::TooLate => false,
                Stopped::InTime(said) => {
                    let is_had = said.held && said.status == "REDLOCK_OK";
                    assert!(is_had, "stopped at moment {moment}: {said:?}");
                    had += 1;
                    true
                }
            }
        });
        moment += 1;
    }
}

#[test]
fn c06_a_client_with_a_slow_logger_claims_no_expired_lock() {
    let mut scene = Scene::start();
    scene.cluster[0].kill();
    scene.client.must("alert");
    scene.client.begins(&format!("lock {SHORT_TTL}"));
    scene.client.running().await_stop();
    let (lease, taken_at_ms) = scene.is_taken_over();
    scene.client.running().resume();
    let said = scene.client.tells();
    scene.cluster[0].restart();
    scene.is_the_rivals(&lease, taken_at_ms, &said, "in its logger");
}

fn since_boot_ms() -> i64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` may be written to.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &raw mut now) };
    assert_eq!(result, 0);
    now.tv_sec * 1000 + now.tv_nsec / 1_000_000
}
