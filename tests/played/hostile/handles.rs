//! The handles of a C program: managers and leases, alive or NULL, and what the program may read from them.

use std::ffi::{CStr, CString, c_char};
use std::ptr;

use crate::ffi::lease::{
    RedLockLease, RedLockLease_ErrorMessage, RedLockLease_Free, RedLockLease_IsHeld,
    RedLockLease_RemainingMs, RedLockLease_Resource, RedLockLease_Token, RedLockLease_ValidityMs,
};
use crate::ffi::status::RedLockStatus;
use crate::ffi::{RedLock, RedLock_ErrorMessage, RedLock_Free};
use crate::seen;
use crate::urls::SECRET;

const MANAGERS: usize = 2;
const LEASES: usize = 3;

/// A manager, and how many servers were added to it.
#[derive(Clone, Copy)]
pub(crate) struct ManagerSlot {
    pub(crate) raw: *mut RedLock,
    pub(crate) servers: usize,
}

/// All handles. Those that were freed are NULL.
pub(crate) struct Hands {
    pub(crate) managers: [ManagerSlot; MANAGERS],
    pub(crate) leases: [*mut RedLockLease; LEASES],
}

impl Hands {
    pub(crate) fn new() -> Self {
        let none = ManagerSlot { raw: ptr::null_mut(), servers: 0 };
        Self { managers: [none; MANAGERS], leases: [ptr::null_mut(); LEASES] }
    }

    pub(crate) fn free_manager(&mut self, slot: usize) {
        // SAFETY: NULL, or made by RedLock_New and not freed; otherwise it would be NULL.
        unsafe { RedLock_Free(self.managers[slot].raw) };
        self.managers[slot] = ManagerSlot { raw: ptr::null_mut(), servers: 0 };
    }

    pub(crate) fn free_lease(&mut self, slot: usize) {
        // SAFETY: NULL, or made by RedLockLease_New and not freed; otherwise it would be NULL.
        unsafe { RedLockLease_Free(self.leases[slot]) };
        self.leases[slot] = ptr::null_mut();
    }
}

impl Drop for Hands {
    fn drop(&mut self) {
        (0..MANAGERS).for_each(|it| self.free_manager(it));
        (0..LEASES).for_each(|it| self.free_lease(it));
    }
}

/// Everything that can be read from a lease.
#[derive(Debug)]
pub(crate) struct Sight {
    pub(crate) is_held: bool,
    pub(crate) remaining_ms: i64,
    pub(crate) validity_ms: i64,
    pub(crate) resource: Vec<u8>,
    pub(crate) token: String,
    pub(crate) message: String,
}

/// Reads a lease, or NULL.
pub(crate) fn look(lease: *mut RedLockLease) -> Sight {
    // SAFETY: the lease is NULL or alive; strings of a lease are read at once.
    let sight = unsafe {
        Sight {
            is_held: RedLockLease_IsHeld(lease),
            remaining_ms: RedLockLease_RemainingMs(lease),
            validity_ms: RedLockLease_ValidityMs(lease),
            resource: bytes(RedLockLease_Resource(lease)),
            token: words(RedLockLease_Token(lease)),
            message: words(RedLockLease_ErrorMessage(lease)),
        }
    };
    assert!(sight.is_held || sight.remaining_ms == 0, "{sight:?}");
    assert!(!sight.is_held || sight.token.len() == 40, "{sight:?}");
    let is_hex = |it: u8| it.is_ascii_digit() || (b'A'..=b'F').contains(&it);
    assert!(sight.token.bytes().all(is_hex), "{sight:?}");
    assert!([0, 40].contains(&sight.token.len()), "{sight:?}");
    let is_told = !sight.token.is_empty() && sight.message.contains(&sight.token);
    assert!(!is_told, "a token is told: {sight:?}");
    sight
}

/// The message of a manager, or of NULL.
pub(crate) fn message(rl: *mut RedLock) -> String {
    // SAFETY: the manager is NULL or alive; the string is read at once.
    let message = unsafe { words(RedLock_ErrorMessage(rl)) };
    assert!(message.len() <= 4095, "{message}");
    message
}

/// Text for a person.
///
/// # Safety
///
/// The pointer must be to a C string.
pub(crate) unsafe fn words(string: *const c_char) -> String {
    // SAFETY: as the caller promises.
    let words = String::from_utf8(unsafe { bytes(string) }).expect("UTF-8");
    assert!(!words.contains(SECRET), "a password, or what a server said, is told: {words}");
    assert!(!words.contains(char::is_control), "more than one line: {words:?}");
    words
}

unsafe fn bytes(string: *const c_char) -> Vec<u8> {
    assert!(!string.is_null(), "a string of the library is never NULL");
    // SAFETY: as the caller promises.
    unsafe { CStr::from_ptr(string) }.to_bytes().to_vec()
}

/// A string argument, or NULL.
pub(crate) fn pointer(string: Option<&CString>) -> *const c_char {
    string.map_or(ptr::null(), |it| it.as_ptr())
}

/// Rejects statuses that no call may return, whatever its arguments are.
pub(crate) fn judge_status(status: RedLockStatus, words: &str) {
    seen::note(&status);
    assert_ne!(status, RedLockStatus::REDLOCK_INTERNAL, "{words}");
    assert_ne!(status, RedLockStatus::REDLOCK_FORKED, "{words}");
    assert!(status == RedLockStatus::REDLOCK_OK || !words.is_empty(), "{status:?}, without words");
}
