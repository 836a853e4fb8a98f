//! The library as it is installed in a system: under the name that the linker looks for, and under the one that
//! programs ask for when they start.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::{env, fs, io, process};

use crate::support::library;

/// A directory with the shared library. Its path stays the same from run to run, because compiler caches
/// include the path in their keys.
pub(crate) fn directory() -> &'static Path {
    static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
    DIRECTORY.get_or_init(|| {
        let profile = match env::var_os("REDLOCK_TEST_LIBRARY") {
            Some(_) => "other",
            None if cfg!(debug_assertions) => "debug",
            None => "release",
        };
        let directory = kept(&format!("lib-{profile}"));
        for name in ["libredlock.so", library::SONAME] {
            link(&library::path(), &directory.join(name)).expect("a link can be made");
        }
        directory
    })
}

/// A directory below `target` that is kept from run to run.
pub(crate) fn kept(name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&directory).expect("a directory can be made");
    directory
}

/// The root of the project.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// In one step, because another run may be using it.
fn link(target: &Path, place: &Path) -> io::Result<()> {
    let draft = place.with_extension(format!("draft-{}", process::id()));
    symlink(target, &draft)?;
    fs::rename(draft, place)
}
