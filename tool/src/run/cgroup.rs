//! A control group of the program and its processes, where one can be made. The kernel kills all of them at once,
//! also those that have become other users or left their process group.

use std::ffi::CString;
use std::fs::{self, File};
use std::io::Write;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use nix::unistd::getpid;

pub(crate) struct Cgroup {
    path: PathBuf,
    /// Where the program's processes go that outlive it.
    parent: PathBuf,
    entry: File,
    kill: File,
}

/// What a process needs that has forked, and must not allocate.
pub(crate) struct Remover {
    kill: RawFd,
    path: CString,
}

impl Cgroup {
    /// None if the system has no control groups of version 2 that can be killed (Linux 5.14), or this user may make
    /// none.
    pub(crate) fn make() -> Option<Self> {
        let parent = own()?;
        let path = parent.join(format!("redlock-{}", getpid()));
        fs::create_dir(&path).ok()?;
        let open = |name| File::options().write(true).open(path.join(name)).ok();
        let Some((entry, kill)) = open("cgroup.procs").zip(open("cgroup.kill")) else {
            let _ = fs::remove_dir(&path);
            return None;
        };
        Some(Self { path, parent, entry, kill })
    }

    /// A process that writes "0" there is in the group from then on.
    pub(crate) fn entry(&self) -> RawFd {
        self.entry.as_raw_fd()
    }

    pub(crate) fn remover(&self) -> Option<Remover> {
        let path = CString::new(self.path.clone().into_os_string().into_vec()).ok()?;
        Some(Remover { kill: self.kill.as_raw_fd(), path })
    }

    pub(crate) fn kill(&self) {
        let _ = (&self.kill).write_all(b"1");
    }

    /// The processes in it, without those that have ended.
    pub(crate) fn processes(&self) -> Vec<i32> {
        let list = fs::read_to_string(self.path.join("cgroup.procs")).unwrap_or_default();
        list.lines().filter_map(|it| it.parse().ok()).collect()
    }
}

impl Drop for Cgroup {
    /// A control group is only removed when it is empty. Processes that the program has left behind go on.
    fn drop(&mut self) {
        // One that forks meanwhile has a new child.
        for _ in 0..100 {
            if fs::remove_dir(&self.path).is_ok() {
                return;
            }
            for process in self.processes() {
                let _ = fs::write(self.parent.join("cgroup.procs"), process.to_string());
            }
        }
    }
}

impl Remover {
    pub(crate) fn descriptor(&self) -> RawFd {
        self.kill
    }

    /// Kills all processes of the group.
    pub(crate) fn kill(&self) {
        // SAFETY: the byte is alive. The descriptor was inherited.
        unsafe { libc::write(self.kill, b"1".as_ptr().cast(), 1) };
    }

    /// Returns whether the group is gone.
    pub(crate) fn remove(&self) -> bool {
        // SAFETY: the path is alive and ends with a NUL.
        unsafe { libc::rmdir(self.path.as_ptr()) == 0 }
    }
}

/// The directory of the control group that this process is in.
fn own() -> Option<PathBuf> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    // Version 2 has number 0 and no controllers.
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    mounts.lines().find_map(|line| within(line, path))
}

/// The directory in which this mount shows the control group, if it does.
fn within(mount: &str, group: &str) -> Option<PathBuf> {
    let (place, kind) = mount.split_once(" - ")?;
    let mut words = place.split(' ');
    let (root, point) = (words.nth(3)?, words.next()?);
    let rest = Path::new(group).strip_prefix(root).ok()?;
    kind.starts_with("cgroup2 ").then(|| Path::new(point).join(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_found_in_its_mount() {
        let mount =
            "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate";
        let expected = Some(PathBuf::from("/sys/fs/cgroup/user.slice/a.scope"));
        assert_eq!(within(mount, "/user.slice/a.scope"), expected);
        // In a container.
        let mount = "30 23 0:26 /docker/7f /sys/fs/cgroup ro - cgroup2 cgroup rw";
        assert_eq!(within(mount, "/docker/7f"), Some(PathBuf::from("/sys/fs/cgroup")));
        assert_eq!(within(mount, "/docker/8"), None);
        for other in
            ["30 23 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu", "", "1 2 - cgroup2 "]
        {
            assert_eq!(within(other, "/"), None);
        }
    }
}
