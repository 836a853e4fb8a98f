//! All processes of a program: its group, and the processes that have left the group.

use std::fs;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

/// From now on this process adopts the orphans of its descendants, so that it can find them. Returns whether it can:
/// this needs a kernel that lists children, and `/proc`.
pub(crate) fn adopt_orphans() -> bool {
    #[cfg(target_os = "linux")]
    let adopts = nix::sys::prctl::set_child_subreaper(true).is_ok();
    #[cfg(not(target_os = "linux"))]
    let adopts = false;
    let this = Pid::this();
    adopts && fs::read_to_string(format!("/proc/{this}/task/{this}/children")).is_ok()
}

/// Kills the group, and all descendants of this process except `spared`. This process adopts orphans, so
/// processes that have left their parent are its descendants, too. Returns one that this user may not kill.
pub(crate) fn kill_all(group: Pid, spared: Pid) -> Option<Pid> {
    let is_refused = |done: nix::Result<()>| done == Err(Errno::EPERM);
    let mut refused = is_refused(killpg(group, Signal::SIGKILL)).then_some(group);
    // The loop repeats, because a process that forks meanwhile has a new child.
    for _ in 0..100 {
        let mut found = Vec::new();
        descendants(Pid::this(), spared, &mut found);
        found.retain(|&it| is_alive(it));
        let killed = found.iter().filter(|&&it| !is_refused(kill(it, Signal::SIGKILL))).count();
        if killed < found.len() {
            refused = found.iter().copied().find(|&it| is_refused(kill(it, None)));
        }
        if killed == 0 {
            break;
        }
    }
    refused
}

/// The children of this process, including zombies.
pub(crate) fn children() -> impl Iterator<Item = Pid> {
    children_of(Pid::this()).into_iter()
}

/// Whether this process has descendants that are alive, other than these.
pub(crate) fn has_others(known: &[Pid]) -> bool {
    let mut found = Vec::new();
    descendants(Pid::this(), Pid::from_raw(0), &mut found);
    found.into_iter().any(|it| !known.contains(&it) && is_alive(it))
}

fn descendants(parent: Pid, spared: Pid, found: &mut Vec<Pid>) {
    for child in children_of(parent).into_iter().filter(|&it| it != spared) {
        found.push(child);
        descendants(child, spared, found);
    }
}

/// Reads the kernel's own list, if the kernel has one.
fn children_of(parent: Pid) -> Vec<Pid> {
    let Ok(threads) = fs::read_dir(format!("/proc/{parent}/task")) else { return Vec::new() };
    let lists = threads.flatten().map(|it| fs::read_to_string(it.path().join("children")));
    let words = |list: String| {
        let numbers = list.split_whitespace().filter_map(|it| it.parse().ok());
        numbers.map(Pid::from_raw).collect::<Vec<_>>()
    };
    lists.flat_map(|list| list.map(words).unwrap_or_default()).collect()
}

/// A zombie is not alive.
pub(crate) fn is_alive(process: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").and_then(|it| it.1.chars().next());
    state.is_some_and(|it| !matches!(it, 'Z' | 'X' | 'x'))
}
