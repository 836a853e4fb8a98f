//! Arguments that every locking call takes.

use crate::command::guard;
use crate::error::Error;
use crate::lock_kind::LockKind;
use crate::quorum::validity::{Drift, TTL_MAX_MS};
use crate::slot_set::SLOTS_MAX;

/// The longest resource name: far more than any is, and little enough to send to every server.
const RESOURCE_MAX: usize = 64 * 1024;

/// How many bytes the names of all permits of a semaphore may be: they go to every server with every attempt.
const PERMIT_NAMES_MAX: usize = 256 * 1024;

pub(crate) fn resource(resource: &[u8]) -> Result<(), Error> {
    if resource == guard::KEY.as_bytes() {
        let words = format!("resource is {}, where servers note what they remember", guard::KEY);
        return Err(Error::invalid(words));
    }
    match resource.len() {
        0 => Err(Error::invalid("resource is empty")),
        1..=RESOURCE_MAX => Ok(()),
        length => {
            let words = format!("resource is {length} bytes long, more than {RESOURCE_MAX}");
            Err(Error::invalid(words))
        }
    }
}

/// What this version can take.
pub(crate) fn kind(kind: &LockKind, resource: &[u8], has_fencing: bool) -> Result<(), Error> {
    let not_yet = |what: &str| Err(Error::invalid(format!("{what} is not known to this version")));
    match kind {
        LockKind::Exclusive => Ok(()),
        LockKind::Shared => not_yet("REDLOCK_SHARED"),
        LockKind::Permit { of } => permits(*of, resource, has_fencing),
        LockKind::Several(_) => not_yet("a lock of several resources"),
    }
}

/// Each permit is a key of its own, named after the resource, and a request names all.
fn permits(of: u16, resource: &[u8], has_fencing: bool) -> Result<(), Error> {
    if !(1..=SLOTS_MAX).contains(&of) {
        let words = format!("permits is {of}, and a semaphore has 1 to {SLOTS_MAX}");
        return Err(Error::invalid(words));
    }
    let bytes = usize::from(of) * resource.len();
    if of > 1 && bytes > PERMIT_NAMES_MAX {
        return Err(Error::invalid(format!(
            "resource is {} bytes long, too many for {of} permits: in all they may be {PERMIT_NAMES_MAX}",
            resource.len()
        )));
    }
    if of > 1 && has_fencing {
        return Err(Error::invalid(
            "a permit has no fencing token, which orders those that hold a lock one after the other: use a \
             manager without RedLock_SetFencing",
        ));
    }
    Ok(())
}

/// A TTL has to leave some validity.
pub(crate) fn ttl(ttl_ms: i64, drift: Drift) -> Result<(), Error> {
    if ttl_ms < 1 {
        return Err(Error::invalid(format!("ttl_ms is {ttl_ms}, less than 1")));
    }
    if ttl_ms > TTL_MAX_MS {
        return Err(Error::invalid(format!("ttl_ms is {ttl_ms}, more than {TTL_MAX_MS}")));
    }
    if drift.validity_ms(ttl_ms) < 1 {
        let allowance_ms = drift.allowance_ms(ttl_ms);
        return Err(Error::invalid(format!(
            "ttl_ms is {ttl_ms}, and {allowance_ms} ms of it are allowed for drift: no validity is left"
        )));
    }
    Ok(())
}
