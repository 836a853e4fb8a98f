//! The shared library that a C program is linked with.

use std::env;
use std::path::PathBuf;

/// The library name that programs load when they start.
pub(crate) const SONAME: &str = match env!("CARGO_PKG_VERSION_MAJOR").as_bytes() {
    // Until 1.0 each minor version may change the interface.
    b"0" => concat!("libredlock.so.0.", env!("CARGO_PKG_VERSION_MINOR")),
    _ => concat!("libredlock.so.", env!("CARGO_PKG_VERSION_MAJOR")),
};

/// The library that was built together with this test, or the one that REDLOCK_TEST_LIBRARY names.
pub(crate) fn path() -> PathBuf {
    if let Some(other) = env::var_os("REDLOCK_TEST_LIBRARY") {
        return other.into();
    }
    let program = env::current_exe().expect("this program has a path");
    let library = program.with_file_name("libredlock.so");
    assert!(library.exists(), "there is no {}", library.display());
    library
}
