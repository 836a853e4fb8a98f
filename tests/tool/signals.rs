//! Signals that are passed on, and a wrapper that is killed or stands still.

use std::os::unix::process::CommandExt;
use std::time::Duration;

use crate::beyond::Refusing;
use crate::command::{finish, is_alive, redlock, start};
use crate::support::process::send;
use crate::support::{Cluster, Server, finishes, wait_until};

/// Says which signal has come.
const TELLS: &str = r#"
for it in HUP QUIT USR1 USR2 WINCH; do trap "echo $it" $it; done
trap 'echo TERM; exit 5' TERM
echo ready
while :; do sleep 0.01; done"#;

#[test]
fn signals_reach_the_program() {
    let cluster = Cluster::start(3);
    let mut running = start(redlock(&cluster, &["run", "r", "--", "sh", "-c", TELLS]));
    assert_eq!(running.line(), "ready");
    for (signal, name) in [
        (libc::SIGHUP, "HUP"),
        (libc::SIGQUIT, "QUIT"),
        (libc::SIGUSR1, "USR1"),
        (libc::SIGUSR2, "USR2"),
        (libc::SIGWINCH, "WINCH"),
        (libc::SIGTERM, "TERM"),
    ] {
        send(running.child.id(), signal);
        assert_eq!(running.line(), name);
    }
    assert_eq!(running.end().status, Some(5));
    cluster.wait_until_gone("r");
}

#[test]
fn a_program_ended_by_a_signal_is_reported() {
    let cluster = Cluster::start(3);
    for (signal, status) in [(libc::SIGTERM, 143), (libc::SIGINT, 130), (libc::SIGHUP, 129)] {
        let script = "echo; exec sleep 1000";
        let mut running = start(redlock(&cluster, &["run", "r", "--", "sh", "-c", script]));
        running.line();
        send(running.child.id(), signal);
        assert_eq!(running.end().status, Some(status));
        cluster.wait_until_gone("r");
    }
}

/// The C library gives them numbers from 34 on.
#[test]
fn a_real_time_signal_ends_a_program() {
    let cluster = Cluster::start(3);
    let running = start(redlock(&cluster, &["run", "r", "--", "sh", "-c", "kill -35 $$"]));
    let outcome = finishes("it ends with its program", || running.end());
    assert_eq!(outcome.status, Some(128 + 35), "{outcome:?}");
    cluster.wait_until_gone("r");
}

#[test]
fn a_signal_ends_the_wait_and_leaves_no_lock() {
    let cluster = Cluster::start(3);
    cluster.iter().for_each(|it| drop(it.must(&["SET", "r", "another's"])));
    let waiting = start(redlock(&cluster, &["-v", "run", "--wait", "forever", "r", "--", "true"]));
    // Who stands in line is a client of another kind.
    let clients =
        |it: &Server| it.must(&["CLIENT", "LIST"]).text().map_or(0, |it| it.lines().count());
    wait_until("it asks", || cluster.iter().all(|it| clients(it) > 1));
    send(waiting.child.id(), libc::SIGTERM);
    assert_eq!(waiting.end().status, Some(143));
    cluster.iter().for_each(|it| assert_eq!(it.get("r").as_deref(), Some("another's")));
}

#[test]
fn an_ignored_signal_stays_ignored() {
    let cluster = Cluster::start(3);
    let script = "echo; exec sleep 1000";
    let mut command = redlock(&cluster, &["run", "r", "--", "sh", "-c", script]);
    // As nohup does.
    let ignore = || {
        // SAFETY: no handler is set.
        unsafe { libc::signal(libc::SIGHUP, libc::SIG_IGN) };
        Ok(())
    };
    // SAFETY: the closure makes a system call and allocates nothing.
    unsafe { command.pre_exec(ignore) };
    let mut running = start(command);
    running.line();
    send(running.child.id(), libc::SIGHUP);
    send(running.child.id(), libc::SIGTERM);
    assert_eq!(running.end().status, Some(143), "it heeds the second one alone");
}

#[test]
fn a_stopped_program_keeps_its_lock() {
    let cluster = Cluster::start(3);
    // No shell that goes on starting programs: what is stopped in the midst of that does not count as stopped.
    let script = "echo $$; exec sleep 1000";
    let mut running =
        start(redlock(&cluster, &["run", "--ttl", "5s", "r", "--", "sh", "-c", script]));
    let program = running.process();
    send(running.child.id(), libc::SIGTSTP);
    let state = || std::fs::read_to_string(format!("/proc/{program}/stat")).unwrap_or_default();
    wait_until("the program has stopped", || state().contains(") T"));
    send(running.child.id(), libc::SIGCONT);
    wait_until("it goes on", || !state().contains(") T"));
    send(running.child.id(), libc::SIGTERM);
    assert_eq!(running.end().status, Some(143));
}

/// A program with a child, and one that has left its group. All tell their numbers.
const FAMILY: &str = r#"
trap "" TERM HUP
sh -c 'echo $$; exec sleep 1000' &
setsid sh -c 'trap "" TERM HUP; echo $$; exec sleep 1000' &
echo $$
while :; do sleep 0.01; done"#;

/// Again and again, since it may be killed just when the program begins.
#[test]
fn the_death_of_the_wrapper_ends_the_program() {
    let cluster = Cluster::start(3);
    for number in 0..20 {
        let script = "sh -c 'echo $$; exec sleep 1000' & echo $$; wait";
        let name = format!("r{number}");
        let mut running = start(redlock(&cluster, &["run", &name, "--", "sh", "-c", script]));
        let family = [running.process(), running.process()];
        send(running.child.id(), libc::SIGKILL);
        wait_until("the program is gone, with its child", || {
            !family.iter().any(|it| is_alive(*it))
        });
        assert_eq!(running.end().status, None);
    }
}

#[test]
fn the_program_of_a_frozen_wrapper_is_killed_in_time() {
    let cluster = Cluster::start(3);
    let script = "sh -c 'echo $$; exec sleep 1000' & echo $$; wait";
    // Of a TTL of 20 s, the guard leaves a second, the most that it ever does.
    let mut running =
        start(redlock(&cluster, &["run", "--ttl", "20s", "r", "--", "sh", "-c", script]));
    let family = [running.process(), running.process()];
    cluster.wait_until_everywhere("r");
    send(running.child.id(), libc::SIGSTOP);
    wait_until("the program is gone, with its child", || !family.iter().any(|it| is_alive(*it)));
    assert!(cluster.having("r") >= cluster.quorum(), "before the lock had ended");
    send(running.child.id(), libc::SIGCONT);
    let outcome = running.end();
    assert_eq!(outcome.status, Some(122), "{outcome:?}");
}

#[test]
fn a_lost_lock_ends_the_whole_process_tree() {
    takes_the_whole_family_along("");
}

#[test]
fn a_lost_lock_ends_the_process_tree_without_a_cgroup() {
    takes_the_whole_family_along("cgroup");
}

/// There is a control group, and the program is not in it. A process has left the program's group, and its parent has
/// ended.
#[test]
fn a_lost_lock_ends_an_orphan_outside_the_cgroup() {
    const WITH_AN_ORPHAN: &str = r#"
(setsid sh -c 'trap "" TERM HUP; echo $$; exec sleep 1000' &)
echo $$
while :; do sleep 0.01; done"#;
    takes_along(WITH_AN_ORPHAN, 2, "entry");
}

fn takes_the_whole_family_along(refused: &str) {
    takes_along(FAMILY, 3, refused);
}

/// This script tells the numbers of so many processes.
fn takes_along(script: &str, processes: usize, refused: &str) {
    let (cluster, refusing) = (Cluster::start(3), Refusing::new());
    let mut command = redlock(&cluster, &["run", "--ttl", "3s", "r", "--", "sh", "-c", script]);
    refusing.refuse(&mut command, refused);
    let mut running = start(command);
    let family: Vec<_> = (0..processes).map(|_| running.process()).collect();
    assert!(family.iter().all(|it| is_alive(*it)));
    cluster.wait_until_everywhere("r");
    cluster.iter().for_each(|it| drop(it.must(&["DEL", "r"])));
    let outcome = running.end();
    assert_eq!(outcome.status, Some(122), "{outcome:?}");
    assert!(!family.iter().any(|it| is_alive(*it)), "one has survived");
}

#[test]
fn a_reader_of_the_output_does_not_wait_for_the_wrapper() {
    let cluster = Cluster::start(3);
    let mut command = std::process::Command::new("sh");
    command.arg("-c").arg(r#""$0" run r -- echo hello | cat; echo end"#);
    command.arg(env!("CARGO_BIN_EXE_redlock")).env("REDLOCK_SERVERS", cluster.urls().join(","));
    assert_eq!(finish(command).stdout, "hello\nend\n");
    std::thread::sleep(Duration::ZERO);
}
