//! A library that was built without TLS.

use std::env;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{Cluster, Program};

/// Built only for this test, beside everything else, and kept from run to run.
#[test]
fn a_library_without_tls_locks_as_usual() {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("without-tls");
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build
        .args(["rustc", "--quiet", "--lib", "--crate-type", "cdylib", "--no-default-features"])
        .args(["--offline", "--locked", "--config", "profile.dev.debug=false", "--target-dir"])
        .arg(&target)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::null());
    let output = build.output().expect("cargo can be run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let library = target.join("debug/libredlock.so");
    let code = std::fs::read(&library).expect("it was built");
    let has = |word: &str| code.windows(word.len()).any(|it| it == word.as_bytes());
    assert!(has("RedLock_SetTlsCa") && !has("rustls"), "there is TLS in it");

    let cluster = Cluster::start(3);
    let program = Program::compile_with("without_tls", &library);
    program.run(&cluster.urls());
}
