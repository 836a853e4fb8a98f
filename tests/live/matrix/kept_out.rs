//! A job that must run once in a fleet: whoever has run it keeps the others out for a time (RedLock_UnlockAfter), also
//! while servers fail.

use redlock::ffi::status::RedLockStatus::{REDLOCK_OK, REDLOCK_TAKEN, REDLOCK_UNREACHABLE};

use crate::support::usage::{TTL, connected, connected_unguarded, make_brief};
use crate::support::{Cluster, Lease, Manager, Server, wait_until};

const JOB: &str = "job";

/// So long that no test ends it.
const LEAST: i64 = TTL / 2;

/// Machines that run the job if nobody has run it.
struct Fleet {
    machines: Vec<Manager>,
    jobs_run: usize,
}

impl Fleet {
    fn of(machines: Vec<Manager>) -> Self {
        Self { machines, jobs_run: 0 }
    }

    /// Each machine in turn. The job takes no time.
    fn each_machine_is_due(&mut self) {
        for machine in &self.machines {
            let lease = Lease::new();
            match machine.try_lock(JOB, TTL, 0, &lease) {
                REDLOCK_OK => {
                    self.jobs_run += 1;
                    assert_eq!(
                        machine.unlock_after(&lease, LEAST),
                        REDLOCK_OK,
                        "{}",
                        lease.message()
                    );
                    assert!(!lease.is_held());
                }
                status => assert_eq!(status, REDLOCK_TAKEN, "{}", lease.message()),
            }
        }
    }

    #[track_caller]
    fn has_run_it(&self, times: usize, when: &str) {
        assert_eq!(self.jobs_run, times, "{when}");
    }
}

fn ends_in_time(server: &Server) {
    wait_until("its key ends sooner", || (1..=LEAST).contains(&server.pttl(JOB)));
}

/// The time is over on all servers.
fn the_time_is_over(cluster: &Cluster) {
    cluster.iter().for_each(|server| _ = server.must(&["PEXPIRE", JOB, "1"]));
    cluster.wait_until_gone(JOB);
}

#[test]
fn u01_a_job_runs_once_even_on_late_machines() {
    let cluster = Cluster::start(3);
    let mut fleet = Fleet::of((0..4).map(|_| connected(&cluster)).collect());
    for times in 1..=2 {
        for _ in 0..3 {
            fleet.each_machine_is_due();
            fleet.has_run_it(times, "one machine ran it");
        }
        cluster.iter().for_each(ends_in_time);
        the_time_is_over(&cluster);
    }
}

#[test]
fn u02_a_dead_or_emptied_minority_admits_no_second_machine() {
    let cluster = Cluster::start(3);
    let mut fleet = Fleet::of((0..3).map(|_| connected_unguarded(&cluster)).collect());
    cluster[2].kill();
    fleet.each_machine_is_due();
    fleet.has_run_it(1, "one server was down from the start");
    cluster[2].restart();
    fleet.each_machine_is_due();
    fleet.has_run_it(1, "it came back empty");
    // The machines that were refused have left nothing on it.
    wait_until("nothing is left there", || {
        cluster[2].get(JOB).is_none_or(|it| Some(it) == cluster[0].get(JOB))
    });
    cluster[..2].iter().for_each(ends_in_time);
    // A majority that has forgotten the job cannot keep anybody out.
    cluster[..2].iter().for_each(|it| _ = it.must(&["DEL", JOB]));
    fleet.each_machine_is_due();
    fleet.has_run_it(2, "a majority has forgotten it");
}

#[test]
fn u03_a_late_server_keeps_others_out_within_the_ttl() {
    let cluster = Cluster::start(3);
    let mut fleet = Fleet::of((0..3).map(|_| connected(&cluster)).collect());
    let first = connected(&cluster);
    let lease = first.take(JOB, TTL);
    cluster.wait_until_everywhere(JOB);
    cluster[0].freeze();
    assert_eq!(first.unlock_after(&lease, LEAST), REDLOCK_OK, "{}", lease.message());
    fleet.each_machine_is_due();
    cluster[0].resume();
    ends_in_time(&cluster[0]);
    // With a majority that is late, the machine is told, and the key stays for its TTL unless they hear of it.
    the_time_is_over(&cluster);
    let lease = first.take(JOB, TTL);
    cluster.wait_until_everywhere(JOB);
    make_brief(&first);
    cluster[..2].iter().for_each(Server::freeze);
    assert_eq!(first.unlock_after(&lease, LEAST), REDLOCK_UNREACHABLE, "{}", lease.message());
    assert!(!lease.is_held());
    cluster[..2].iter().for_each(Server::resume);
    fleet.each_machine_is_due();
    fleet.has_run_it(0, "another machine ran it before");
    assert!(cluster.iter().all(|it| (1..=TTL).contains(&it.pttl(JOB))));
    wait_until("they hear of it", || first.unlock(&lease) == REDLOCK_OK);
    cluster.iter().for_each(ends_in_time);
}
