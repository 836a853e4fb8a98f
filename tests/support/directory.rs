//! A directory that is removed with its owner.

use std::path::{Path, PathBuf};
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, process};

const PREFIX: &str = "redlock-test-";

/// Its path is short, because the path of a unix socket in it may have no more than 107 bytes.
pub(crate) struct Directory {
    path: PathBuf,
    owner: u32,
}

impl Directory {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        static SWEPT: Once = Once::new();

        SWEPT.call_once(sweep);
        let owner = process::id();
        loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let path = env::temp_dir().join(format!("{PREFIX}{owner}-{number}"));
            if fs::create_dir(&path).is_ok() {
                return Self { path, owner };
            }
            assert!(path.exists(), "{} cannot be made", path.display());
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The path of an entry, for a command line.
    pub(crate) fn join(&self, name: &str) -> String {
        self.path.join(name).to_str().expect("the path is UTF-8").to_owned()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // A forked child must not remove a directory that its parent uses.
        if self.owner == process::id() {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// Removes the directories of programs that were interrupted.
fn sweep() {
    let Ok(entries) = fs::read_dir(env::temp_dir()) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        if owner(&path).is_some_and(|owner| !Path::new(&format!("/proc/{owner}")).exists()) {
            let _ = fs::remove_dir_all(path);
        }
    }
}

fn owner(path: &Path) -> Option<u32> {
    let name = path.file_name()?.to_str()?;
    name.strip_prefix(PREFIX)?.split('-').next()?.parse().ok()
}
