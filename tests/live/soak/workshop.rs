//! The worker, compiled.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::directory::Directory;
use crate::support::library;

/// The program, in its own directory, which is deleted with it.
pub(crate) struct Worker {
    directory: Directory,
}

impl Worker {
    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().join("worker")
    }
}

/// With all warnings, each of which is a failure.
#[track_caller]
pub(crate) fn compile(compiler: &str) -> Worker {
    let directory = Directory::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = directory.path();
    // A copy, because a build during the run replaces the original library.
    let library = path.join(library::SONAME);
    fs::copy(library::path(), &library).expect("the library can be copied");
    symlink(&library, path.join("libredlock.so")).expect("a link can be made");
    let mut command = Command::new(compiler);
    command
        .args(["-std=c11", "-g", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-pthread"])
        .arg("-I")
        .arg(root.join("include"))
        .args(
            ["worker.c", "actor.c", "journal.c"]
                .map(|it| root.join("tests/live/soak/worker").join(it)),
        )
        .arg(format!("-L{}", path.display()))
        .arg(format!("-Wl,-rpath,{}", path.display()))
        .args(["-lredlock", "-o"])
        .arg(path.join("worker"));
    let result = command.output().unwrap_or_else(|error| panic!("{compiler}: {error}"));
    let said = String::from_utf8_lossy(&result.stderr);
    assert!(result.status.success() && said.is_empty(), "{compiler}: {said}");
    Worker { directory }
}
