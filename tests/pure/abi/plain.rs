//! The library without TLS.

use std::path::PathBuf;
use std::process::Command;

use crate::compiler::run;
use crate::library;

/// Builds the library in a target folder of its own, and returns its path.
#[track_caller]
pub(crate) fn build() -> PathBuf {
    let built = library::path();
    // The library is in the folder of its profile, or in a folder inside that one.
    let target = built.ancestors().nth(3).expect("it is built in a folder").join("plain");
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(env!("CARGO_MANIFEST_DIR"));
    command.args(["build", "--quiet", "--lib", "--no-default-features", "--target-dir"]);
    let result = run(command.arg(&target));
    assert!(result.status.success(), "{}", String::from_utf8_lossy(&result.stderr));
    target.join("debug/libredlock.so")
}
