//! The C functions by which log lines are taken, where no function is told of them.

use std::ffi::{c_char, c_int};
use std::slice;
use std::sync::Arc;

use super::call::manager_call;
use super::guard::guard;
use super::handle::{RedLock, shared};
use super::status::RedLockStatus;
use crate::error::Error;
use crate::kept_log::LINES_MAX;
use crate::log::Logger;

/// Has the manager keep what it would tell a logger, for RedLock_TakeLogLine: for callers into whom
/// no thread may call from C, as into interpreters. It takes the place of a function set by
/// RedLock_SetLogger, as one that is set later takes its place. What was kept before is forgotten. A
/// forked child keeps its own lines, and has none of its parent's.
///
/// @param rl    the manager.
/// @param lines how many lines to keep at most, up to 65536: where one more comes, the oldest goes. 0:
///              none, and nothing is said any more.
/// @return REDLOCK_OK or REDLOCK_INVALID_ARGUMENT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_KeepLog(rl: *mut RedLock, lines: c_int) -> RedLockStatus {
    manager_call(rl, |handle| {
        if !(0..=LINES_MAX).contains(&lines) {
            let words = format!("lines is {lines}, not from 0 to {LINES_MAX}");
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
/// @param line receives the line, cut to what there is room for, and a NUL; empty where there is
///             none. May be NULL: then the line is dropped.
/// @param size bytes of room, with the NUL; 256 are enough for most lines.
/// @return the level of the line, as RedLockLogger is told it; 0 if there is none.
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
        // SAFETY: `line` is not NULL, and the header asks for so much room that may be written to. Not
        // more of it is touched than what is written, which is within that.
        let room = unsafe { slice::from_raw_parts_mut(line.cast::<u8>(), bytes.len() + 1) };
        room[..bytes.len()].copy_from_slice(bytes);
        room[bytes.len()] = 0;
    }
    taken.map_or(0, |line| line.0 as i32)
}
