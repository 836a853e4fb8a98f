//! The version of the library, at compile time and at run time.

use std::ffi::{CStr, c_char};

/// The version of this header. RedLock_Version() returns the version of the library that runs.
pub const REDLOCK_VERSION_MAJOR: i32 = 0;
pub const REDLOCK_VERSION_MINOR: i32 = 3;
pub const REDLOCK_VERSION_PATCH: i32 = 0;

const VERSION: &CStr =
    match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
        Ok(version) => version,
        Err(_) => panic!("the version holds a NUL"),
    };

/// The version of the library that runs, such as "0.3.0".
///
/// @return a string that stays valid forever. Any thread may call this.
#[unsafe(no_mangle)]
pub extern "C" fn RedLock_Version() -> *const c_char {
    VERSION.as_ptr()
}
