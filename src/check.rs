//! Arguments that every locking call takes.

use crate::command::guard;
use crate::error::Error;
use crate::lock_kind::LockKind;
use crate::quorum::validity::{Drift, TTL_MAX_MS};

/// The longest resource name: far more than any is, and little enough to send to every server.
const RESOURCE_MAX: usize = 64 * 1024;

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
pub(crate) fn kind(kind: &LockKind) -> Result<(), Error> {
    let not_yet = |what: &str| Err(Error::invalid(format!("{what} is not known to this version")));
    match kind {
        LockKind::Exclusive => Ok(()),
        LockKind::Shared => not_yet("REDLOCK_SHARED"),
        LockKind::Permit { .. } => not_yet("a semaphore"),
        LockKind::Several(_) => not_yet("a lock of several resources"),
    }
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
