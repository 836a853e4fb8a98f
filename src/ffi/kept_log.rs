//! The C functions that fetch log lines, for programs without a logger function.

use std::ffi::{c_char, c_int};
use std::slice;
use std::sync::Arc;

use super::call::manager_call;
use super::guard::guard;
use super::handle::{RedLock, shared};
use super::status::RedLockStatus;
use crate::manager::kept_log::LINES_MAX;
use crate::manager::log::Logger;
use crate::protocol::error::Error;

/// Keeps log lines in the manager, for RedLock_TakeLogLine. The lines are those that a logger would get. This
/// is for programs into which no thread may call from C, such as interpreters. It replaces a function set by
/// RedLock_SetLogger, and a function that is set later replaces it. Lines that were kept before are dropped.
/// A forked child keeps its own lines, and has none of its parent's.
///
/// @param rl    the manager.
/// @param lines the maximum number of lines to keep, up to 65536. If one more line comes, the oldest is
///              dropped. 0: no lines are kept, and nothing is logged any more.
/// @return REDLOCK_OK or REDLOCK_INVALID_ARGUMENT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_KeepLog(rl: *mut RedLock, lines: c_int) -> RedLockStatus {
    manager_call(rl, |handle| {
        if !(0..=LINES_MAX).contains(&lines) {
            let words = format!("lines is {lines}: it must be 0 to {LINES_MAX}");
            return Err(Error::invalid(words));
        }
        handle.kept_log.keep(usize::try_from(lines).unwrap_or_default())?;
        let kept_log = Arc::clone(&handle.kept_log);
        let logger = move |level, line: &str| kept_log.push(level, line);
        let logger = (lines > 0).then(|| Arc::new(logger) as Logger);
        handle.manager.set_logger(logger)
    })
}

/// Takes the oldest line that was kept. See RedLock_KeepLog. No I/O. Any thread may call this.
///
/// @param rl   the manager, or NULL.
/// @param line receives the line, cut to the size of the buffer, and a NUL; empty if there is no line. May be
///             NULL: then the line is dropped.
/// @param size the size of the buffer in bytes, including the NUL; 256 are enough for most lines.
/// @return the level of the line, as for RedLockLogger; 0 if there is no line.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_TakeLogLine(
    rl: *mut RedLock,
    line: *mut c_char,
    size: usize,
) -> i32 {
    let taken = shared(rl).and_then(|handle| guard(|| Ok(handle.kept_log.take())).ok()?);
    if !line.is_null() && size > 0 {
        let text = taken.as_ref().map_or("", |line| line.1.as_str());
        let fits = |end: &usize| *end < size && text.is_char_boundary(*end);
        let bytes = &text.as_bytes()[..(0..=text.len()).rev().find(fits).unwrap_or_default()];
        // SAFETY: `line` is not NULL, and the header requires `size` writable bytes. The slice covers only
        // the bytes that are written, which are within that size.
        let room = unsafe { slice::from_raw_parts_mut(line.cast::<u8>(), bytes.len() + 1) };
        room[..bytes.len()].copy_from_slice(bytes);
        room[bytes.len()] = 0;
    }
    taken.map_or(0, |line| line.0 as i32)
}
