//! What a call answers.

use std::ffi::{CStr, c_char};

use crate::error::Status;

/// What a call answers. 0 is success, a positive value an ordinary outcome, a negative value a
/// fault of the call. Values are never reused; treat one you do not know like its sign says.
#[allow(non_camel_case_types, clippy::upper_case_acronyms)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum RedLockStatus {
    /// Done.
    REDLOCK_OK = 0,
    /// Somebody else holds it: enough servers said no that a quorum is out of reach.
    REDLOCK_TAKEN = 1,
    /// Too few servers gave a usable answer in time for any quorum.
    REDLOCK_UNREACHABLE = 2,
    /// A quorum granted, but no validity was left; everything was released again.
    REDLOCK_TOO_SLOW = 3,
    /// The lease is not held, or no longer: expired, deleted, or taken over. Also where so many servers
    /// have lost it, or had it too late, that those which had it all the time are no quorum: somebody else
    /// may have held it in between.
    REDLOCK_LOST = 4,
    /// RedLock_Cancel ended the call. Nothing of it stays locked; a lock that was held before is held still.
    REDLOCK_CANCELLED = 5,
    /// RedLock_NextEvent had nothing to tell in that time.
    REDLOCK_NO_EVENT = 6,
    /// RedLock_Confirm found the lock ours, but not for as long as was asked.
    REDLOCK_TOO_SHORT = 7,
    /// NULL, an empty or too long resource, a TTL that leaves no validity, a bad URL or port,
    /// a lease that still holds a lock, ...: the message names what was wrong.
    REDLOCK_INVALID_ARGUMENT = -1,
    /// No server was added to the manager.
    REDLOCK_NO_SERVERS = -2,
    /// The lease belongs to the parent process.
    REDLOCK_FORKED = -3,
    /// A panic was caught, or the system gave no randomness; the message says which.
    REDLOCK_INTERNAL = -4,
}

use RedLockStatus::{
    REDLOCK_CANCELLED, REDLOCK_FORKED, REDLOCK_INTERNAL, REDLOCK_INVALID_ARGUMENT, REDLOCK_LOST,
    REDLOCK_NO_EVENT, REDLOCK_NO_SERVERS, REDLOCK_OK, REDLOCK_TAKEN, REDLOCK_TOO_SHORT,
    REDLOCK_TOO_SLOW, REDLOCK_UNREACHABLE,
};

/// The name of a status, such as "REDLOCK_TAKEN".
///
/// @param status any integer.
/// @return a string that lives for ever, "REDLOCK_UNKNOWN_STATUS" for a value that is none.
///         Any thread may call this.
#[unsafe(no_mangle)]
pub extern "C" fn RedLockStatus_Name(status: i32) -> *const c_char {
    name(status).as_ptr()
}

/// Whether the same call may succeed a little later without anything being changed.
///
/// @param status any integer.
/// @return true for REDLOCK_TAKEN, REDLOCK_UNREACHABLE and REDLOCK_TOO_SLOW. Any thread may call
///         this.
#[unsafe(no_mangle)]
pub extern "C" fn RedLockStatus_IsRetriable(status: i32) -> bool {
    [REDLOCK_TAKEN, REDLOCK_UNREACHABLE, REDLOCK_TOO_SLOW]
        .iter()
        .any(|&transient| transient as i32 == status)
}

impl From<Status> for RedLockStatus {
    fn from(status: Status) -> Self {
        match status {
            Status::Taken => REDLOCK_TAKEN,
            Status::Unreachable => REDLOCK_UNREACHABLE,
            Status::TooSlow => REDLOCK_TOO_SLOW,
            Status::Lost => REDLOCK_LOST,
            Status::Cancelled => REDLOCK_CANCELLED,
            Status::TooShort => REDLOCK_TOO_SHORT,
            Status::InvalidArgument => REDLOCK_INVALID_ARGUMENT,
            Status::NoServers => REDLOCK_NO_SERVERS,
            Status::Forked => REDLOCK_FORKED,
            Status::Internal => REDLOCK_INTERNAL,
        }
    }
}

fn name(status: i32) -> &'static CStr {
    const NAMES: [(RedLockStatus, &CStr); 12] = [
        (REDLOCK_OK, c"REDLOCK_OK"),
        (REDLOCK_TAKEN, c"REDLOCK_TAKEN"),
        (REDLOCK_UNREACHABLE, c"REDLOCK_UNREACHABLE"),
        (REDLOCK_TOO_SLOW, c"REDLOCK_TOO_SLOW"),
        (REDLOCK_LOST, c"REDLOCK_LOST"),
        (REDLOCK_CANCELLED, c"REDLOCK_CANCELLED"),
        (REDLOCK_NO_EVENT, c"REDLOCK_NO_EVENT"),
        (REDLOCK_TOO_SHORT, c"REDLOCK_TOO_SHORT"),
        (REDLOCK_INVALID_ARGUMENT, c"REDLOCK_INVALID_ARGUMENT"),
        (REDLOCK_NO_SERVERS, c"REDLOCK_NO_SERVERS"),
        (REDLOCK_FORKED, c"REDLOCK_FORKED"),
        (REDLOCK_INTERNAL, c"REDLOCK_INTERNAL"),
    ];
    NAMES
        .iter()
        .find(|(value, _)| *value as i32 == status)
        .map_or(c"REDLOCK_UNKNOWN_STATUS", |(_, name)| name)
}
