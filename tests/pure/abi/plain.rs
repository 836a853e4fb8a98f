//! The library without TLS.

use std::path::PathBuf;
use std::process::Command;

use crate::compiler::run;
use crate::library;

/// Builds it where nothing else is built, and tells where it is.
#[track_caller]
pub(crate) fn build() -> PathBuf {
    let built = library::path();
    // It is in the folder of its profile, or in one of that.
    let target = built.ancestors().nth(3).expect("it is built in a folder").join("plain");
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(env!("CARGO_MANIFEST_DIR"));
    command.args(["build", "--quiet", "--lib", "--no-default-features", "--target-dir"]);
    let result = run(command.arg(&target));
    assert!(result.status.success(), "{}", String::from_utf8_lossy(&result.stderr));
    target.join("debug/libredlock.so")
}
