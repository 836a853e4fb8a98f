//! The C functions that tell which resources a lease is about.

use std::ffi::c_char;

use super::lease::{RedLockLease, read};

/// How many resources the last locking call on this lease was about. No I/O.
///
/// @param lease a lease, or NULL.
/// @return 1, or how many there were in RedLockAcquireOptions.resources; 0 if there was no such call yet, and for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLockLease_ResourceCount(lease: *const RedLockLease) -> usize {
    read(lease, 0, |state| state.lease.resources().len())
}

/// One of the resources of the last locking call on this lease, in the order in which they were given. No I/O.
///
/// @param lease a lease, or NULL.
/// @param index which: from 0, below RedLockLease_ResourceCount.
/// @return a string of the lease, valid until the next call that changes the lease; empty if there is no such
///         resource, and for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLockLease_ResourceAt(
    lease: *const RedLockLease,
    index: usize,
) -> *const c_char {
    read(lease, c"".as_ptr(), |state| state.resource_at(index))
}
