//! The header is what cbindgen generates from the source.

use std::path::{Path, PathBuf};
use std::{env, fs};

const PARTS: [&str; 22] = [
    "version.rs",
    "status.rs",
    "callback.rs",
    "handle.rs",
    "redlock.rs",
    "locking.rs",
    "inspect.rs",
    "acquire.rs",
    "handover.rs",
    "reentrant.rs",
    "shared_lock.rs",
    "submit.rs",
    "event.rs",
    "kept_log.rs",
    "servers.rs",
    "stats.rs",
    "fencing.rs",
    "waking.rs",
    "language.rs",
    "access.rs",
    "lease.rs",
    "resources.rs",
];

#[test]
fn the_header_is_up_to_date() {
    let made = generated();
    let path = root().join("include/redlock.h");
    if env::var_os("UPDATE_HEADER").is_some() {
        fs::write(&path, &made).expect("the header can be written");
    }
    let stored = fs::read_to_string(&path).unwrap_or_default();
    assert!(stored == made, "include/redlock.h is stale: run `make header`");
}

fn generated() -> String {
    let config = cbindgen::Config::from_file(root().join("cbindgen.toml")).expect("cbindgen.toml");
    let builder = PARTS.iter().fold(cbindgen::Builder::new().with_config(config), |it, part| {
        it.with_src(root().join("src/ffi").join(part))
    });
    let mut made = Vec::new();
    builder.generate().expect("the source can be read").write(&mut made);
    String::from_utf8(made).expect("the header is UTF-8")
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}
