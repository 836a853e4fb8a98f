//! The C functions that return the resources of a lease.

use std::ffi::c_char;

use super::lease::{RedLockLease, read};

/// Returns the number of resources of the last locking call on this lease. No I/O.
///
/// @param lease a lease, or NULL.
/// @return 1, or the number of RedLockAcquireOptions.resources; 0 if there was no such call yet, and for
///         NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLockLease_ResourceCount(lease: *const RedLockLease) -> usize {
    read(lease, 0, |state| state.lease.resources().len())
}

/// Returns one resource of the last locking call on this lease. They have the order in which they were given.
/// No I/O.
///
/// @param lease a lease, or NULL.
/// @param index which resource: from 0, below RedLockLease_ResourceCount.
/// @return a string that belongs to the lease, valid until the next call that changes the lease; empty if
///         there is no such resource, and for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLockLease_ResourceAt(
    lease: *const RedLockLease,
    index: usize,
) -> *const c_char {
    read(lease, c"".as_ptr(), |state| state.resource_at(index))
}
