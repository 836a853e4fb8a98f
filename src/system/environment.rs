//! The variables that the process was given, and whether they are to be believed.

use std::env;
use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// What the variable holds, if it is set, and is not [foreign](is_foreign).
pub(crate) fn variable(name: &[u8]) -> Option<Vec<u8>> {
    if is_foreign() {
        return None;
    }
    env::var_os(OsStr::from_bytes(name)).map(OsStringExt::into_vec)
}

/// Whether the environment comes from somebody who has fewer rights than this process: so it is in a
/// program that is setuid or setgid, or has capabilities. Who starts it must not choose whom it
/// trusts. `secure_getenv` of the C library asks the same.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn is_foreign() -> bool {
    // SAFETY: it takes a number, and looks at memory that the kernel filled for the C library.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// As above, where the kernel does not say so: by what the process may do beyond its user.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn is_foreign() -> bool {
    // SAFETY: these take nothing, touch no memory and cannot fail.
    let ids = unsafe { [libc::getuid() == libc::geteuid(), libc::getgid() == libc::getegid()] };
    ids.contains(&false)
}
