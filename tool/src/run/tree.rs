//! All processes of a program: its group, and the processes that have left the group.

use std::fs;

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

/// Kills the group, and all descendants of this process except `spared`. This process adopts orphans, so
/// processes that have left their parent are its descendants, too.
pub(crate) fn kill_all(group: Pid, spared: Pid) {
    let _ = killpg(group, Signal::SIGKILL);
    // The loop repeats, because a process that forks meanwhile has a new child.
    for _ in 0..100 {
        let mut found = Vec::new();
        descendants(Pid::this(), spared, &mut found);
        found.retain(|&it| is_alive(it));
        if found.is_empty() {
            return;
        }
        for process in found {
            let _ = kill(process, Signal::SIGKILL);
        }
    }
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
fn is_alive(process: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").and_then(|it| it.1.chars().next());
    state.is_some_and(|it| !matches!(it, 'Z' | 'X' | 'x'))
}
