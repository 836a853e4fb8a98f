//! The variables that the process was given.

use std::env;
use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// What the variable holds, if it is set.
pub(crate) fn variable(name: &[u8]) -> Option<Vec<u8>> {
    env::var_os(OsStr::from_bytes(name)).map(OsStringExt::into_vec)
}
