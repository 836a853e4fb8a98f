//! The environment variables of the process, and whether they can be trusted.

use std::env;
use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// The value of the variable, if it is set and the environment is not [foreign](is_foreign).
pub(crate) fn variable(name: &[u8]) -> Option<Vec<u8>> {
    if is_foreign() {
        return None;
    }
    env::var_os(OsStr::from_bytes(name)).map(OsStringExt::into_vec)
}

/// Whether the environment comes from a user with fewer rights than this process. That is so in a program
/// that is setuid or setgid, or has capabilities. The user who starts such a program must not choose whom
/// it trusts. `secure_getenv` of the C library checks the same.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn is_foreign() -> bool {
    // SAFETY: the call takes a number, and reads memory that the kernel filled for the C library.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// As above, if the kernel does not report it: compares the real and the effective user and group.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn is_foreign() -> bool {
    // SAFETY: these calls take nothing, touch no memory and cannot fail.
    let ids = unsafe { [libc::getuid() == libc::geteuid(), libc::getgid() == libc::getegid()] };
    ids.contains(&false)
}
