//! The status that a call returns.

use std::ffi::{CStr, c_char};

use crate::protocol::error::Status;

/// The status that a call returns. 0 is success, a positive value an ordinary outcome, a negative value a
/// fault of the call. Values are never reused. Treat an unknown value according to its sign.
#[allow(non_camel_case_types, clippy::upper_case_acronyms)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum RedLockStatus {
    /// Success.
    REDLOCK_OK = 0,
    /// Another holder has the lock: so many servers refused that a quorum is out of reach.
    REDLOCK_TAKEN = 1,
    /// Too few servers gave a usable answer in time for any quorum.
    REDLOCK_UNREACHABLE = 2,
    /// A quorum granted the lock, but no validity was left. Everything was released again.
    REDLOCK_TOO_SLOW = 3,
    /// The lease is not held, or no longer held: it has expired, or was deleted or taken over. Also: so many
    /// servers have lost the lock, or received it too late, that the servers that had it all the time are no
    /// quorum. Another client may have held the lock in between.
    REDLOCK_LOST = 4,
    /// RedLock_Cancel ended the call. Nothing of the call stays locked. A lock that was held before the call
    /// is still held.
    REDLOCK_CANCELLED = 5,
    /// RedLock_NextEvent had no event to return in that time.
    REDLOCK_NO_EVENT = 6,
    /// RedLock_Confirm found that the lock is held, but not for the required time.
    REDLOCK_TOO_SHORT = 7,
    /// NULL, an empty or too long resource, a TTL that leaves no validity, a bad URL or port, a lease that
    /// still holds a lock, and so on. The message names the fault.
    REDLOCK_INVALID_ARGUMENT = -1,
    /// No server was added to the manager.
    REDLOCK_NO_SERVERS = -2,
    /// The lease belongs to the parent process, or the process was forked within the call.
    REDLOCK_FORKED = -3,
    /// A panic was caught, or the system provided no random bytes. The message says which.
    REDLOCK_INTERNAL = -4,
}

use RedLockStatus::{
    REDLOCK_CANCELLED, REDLOCK_FORKED, REDLOCK_INTERNAL, REDLOCK_INVALID_ARGUMENT, REDLOCK_LOST,
    REDLOCK_NO_EVENT, REDLOCK_NO_SERVERS, REDLOCK_OK, REDLOCK_TAKEN, REDLOCK_TOO_SHORT,
    REDLOCK_TOO_SLOW, REDLOCK_UNREACHABLE,
};

/// Returns the name of a status, such as "REDLOCK_TAKEN".
///
/// @param status any integer.
/// @return a string that is never freed; "REDLOCK_UNKNOWN_STATUS" for a value that is no status. Any thread
///         may call this.
#[unsafe(no_mangle)]
pub extern "C" fn RedLockStatus_Name(status: i32) -> *const c_char {
    name(status).as_ptr()
}

/// Tells whether the same call may succeed a little later without any change.
///
/// @param status any integer.
/// @return true for REDLOCK_TAKEN, REDLOCK_UNREACHABLE and REDLOCK_TOO_SLOW. Any thread may call this.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_status_has_its_c_constant() {
        for (status, passed_on) in [
            (Status::Taken, "REDLOCK_TAKEN"),
            (Status::Unreachable, "REDLOCK_UNREACHABLE"),
            (Status::TooSlow, "REDLOCK_TOO_SLOW"),
            (Status::Lost, "REDLOCK_LOST"),
            (Status::Cancelled, "REDLOCK_CANCELLED"),
            (Status::TooShort, "REDLOCK_TOO_SHORT"),
            (Status::InvalidArgument, "REDLOCK_INVALID_ARGUMENT"),
            (Status::NoServers, "REDLOCK_NO_SERVERS"),
            (Status::Forked, "REDLOCK_FORKED"),
            (Status::Internal, "REDLOCK_INTERNAL"),
        ] {
            let said = name(RedLockStatus::from(status) as i32);
            assert_eq!(said.to_str(), Ok(passed_on), "{status:?}");
        }
    }
}
