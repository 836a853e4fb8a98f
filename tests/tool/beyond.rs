//! Processes that `redlock` may not kill, or cannot find, and a guard that is killed. A shim refuses system calls, as
//! systems do: see `tests/programs/c/refusing_shim.c`.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::command::{Running, finish, is_alive, redlock, start};
use crate::support::directory::Directory;
use crate::support::process::send;
use crate::support::{Cluster, finishes, program, wait_until};

/// It does not stop when it is told to, and ends with its standard input.
const STUBBORN: &str = "trap '' TERM; echo $$; while read x; do :; done; exit 0";

/// A `redlock` of which system calls are refused.
pub(crate) struct Refusing {
    shim: Directory,
}

impl Refusing {
    pub(crate) fn new() -> Self {
        let shim = Directory::new();
        program::compile("refusing_shim", ["-shared", "-fPIC"], &shim.join("shim.so"));
        Self { shim }
    }

    pub(crate) fn refuse(&self, command: &mut Command, calls: &str) {
        command.env("LD_PRELOAD", self.shim.join("shim.so")).env("REDLOCK_TEST_REFUSED", calls);
    }
}

/// A program that does not stop, and its process. Its lock is deleted.
fn with_a_lock_that_is_deleted(cluster: &Cluster, refused: &str) -> (Running, u32) {
    let refusing = Refusing::new();
    let arguments = ["--json", "run", "--ttl", "2s", "r", "--", "sh", "-c", STUBBORN];
    let mut command = redlock(cluster, &arguments);
    refusing.refuse(&mut command, refused);
    command.stdin(Stdio::piped());
    let mut running = start(command);
    let process = running.process();
    cluster.wait_until_everywhere("r");
    cluster.iter().for_each(|it| drop(it.must(&["DEL", "r"])));
    (running, process)
}

#[test]
fn an_unkillable_program_is_reported() {
    let cluster = Cluster::start(3);
    let (mut running, process) = with_a_lock_that_is_deleted(&cluster, "kill,cgroup");
    let told = running.event("unkillable");
    assert_eq!(told["process"], process);
    assert!(is_alive(process));
    drop(running.child.stdin.take());
    let outcome = running.end();
    assert_eq!(outcome.status, Some(121), "{outcome:?}");
    assert_eq!(outcome.event("unkillable")["status"], 121);
}

/// Where no control group can be made, the same is told as above.
#[test]
fn a_control_group_kills_an_unkillable_program() {
    let cluster = Cluster::start(3);
    let (mut running, process) = with_a_lock_that_is_deleted(&cluster, "kill");
    if has_cgroup(process) {
        let outcome = finishes("it is killed", || running.end());
        assert_eq!(outcome.status, Some(122), "{outcome:?}");
        assert!(!is_alive(process));
    } else {
        running.event("unkillable");
        drop(running.child.stdin.take());
        assert_eq!(running.end().status, Some(121));
    }
}

fn has_cgroup(process: u32) -> bool {
    fs::read_to_string(format!("/proc/{process}/cgroup")).is_ok_and(|it| it.contains("/redlock-"))
}

/// Whether there is a control group that this `redlock` has made.
pub(crate) fn has_cgroup_of(wrapper: u32) -> bool {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let Some(own) = groups.lines().find_map(|it| it.strip_prefix("0::/")) else { return false };
    let roots = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].map(|it| Path::new(it).join(own));
    roots.iter().any(|it| it.join(format!("redlock-{wrapper}")).exists())
}

/// It may be killed before it says anything. Its output ends when it is dead.
#[test]
fn a_program_without_a_known_end_is_killed() {
    let cluster = Cluster::start(3);
    let refusing = Refusing::new();
    let mut command = redlock(&cluster, &["run", "r", "--", "sleep", "1000"]);
    refusing.refuse(&mut command, "waitid");
    let running = start(command);
    let outcome = finishes("it ends, and so does its program", || running.end());
    assert_eq!(outcome.status, Some(125), "{outcome:?}");
    assert!(outcome.stderr.contains("cannot wait for its end"), "{outcome:?}");
    cluster.wait_until_gone("r");
}

#[test]
fn missing_means_against_escaped_processes_are_reported() {
    let cluster = Cluster::start(3);
    let refusing = Refusing::new();
    for (refused, is_told) in [("subreaper,cgroup", true), ("cgroup", false)] {
        let mut command = redlock(&cluster, &["run", "r", "--", "true"]);
        refusing.refuse(&mut command, refused);
        let outcome = finish(command);
        assert_eq!(outcome.status, Some(0), "{outcome:?}");
        let told = outcome.stderr.contains("processes that have left the process group");
        assert_eq!(told, is_told, "{outcome:?}");
    }
}

/// What it leaves behind goes on, and nothing is left of its control group.
#[test]
fn a_remaining_process_leaves_the_control_group() {
    let cluster = Cluster::start(3);
    let script = "sleep 1000 > /dev/null 2>&1 & echo $!";
    let mut running = start(redlock(&cluster, &["run", "r", "--", "sh", "-c", script]));
    let (process, wrapper) = (running.process(), running.child.id());
    assert_eq!(running.end().status, Some(0));
    assert!(is_alive(process) && !has_cgroup(process) && !has_cgroup_of(wrapper));
    send(process, libc::SIGKILL);
}

#[test]
fn a_killed_guard_is_replaced() {
    let cluster = Cluster::start(3);
    // The kernel kills the shell when `redlock` dies, and not what the shell has started.
    let script = "sleep 1000 > /dev/null 2>&1 & echo $!; wait";
    for refused in ["", "cgroup"] {
        let refusing = Refusing::new();
        let mut command = redlock(&cluster, &["run", "r", "--", "sh", "-c", script]);
        refusing.refuse(&mut command, refused);
        let mut running = start(command);
        let (process, wrapper) = (running.process(), running.child.id());
        let guard = guard_of(wrapper, 0);
        send(guard, libc::SIGKILL);
        guard_of(wrapper, guard);
        send(wrapper, libc::SIGKILL);
        wait_until("the program is killed", || !is_alive(process));
        wait_until("its control group is gone", || !has_cgroup_of(wrapper));
        cluster.iter().for_each(|it| drop(it.must(&["DEL", "r"])));
    }
}

/// Waits for a guard of this process that is not the one before. A child has its name after a moment, and the kernel's
/// list of children may lack some of them while others come and go.
#[track_caller]
fn guard_of(wrapper: u32, before: u32) -> u32 {
    let is_guard = |process: &u32| {
        fs::read_to_string(format!("/proc/{process}/comm"))
            .is_ok_and(|name| name.trim() == "redlock-guard")
    };
    let mut guard = None;
    wait_until("there is a guard", || {
        let list = fs::read_to_string(format!("/proc/{wrapper}/task/{wrapper}/children"));
        let list = list.unwrap_or_default();
        let mut children = list.split_whitespace().filter_map(|it| it.parse().ok());
        guard = children.find(|it| is_guard(it) && *it != before);
        guard.is_some()
    });
    guard.expect("there is one")
}
