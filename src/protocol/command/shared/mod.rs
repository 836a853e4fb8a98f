//! The commands for locks that several clients can hold at the same time if they want them shared: *readers*.
//! A client that holds the lock alone is a *writer*, and its lock is the plain one of every Redlock client.
//!
//! While there are readers, the value of the resource is the string `redlock:shared`. The readers are in a
//! sorted set beside it, each token with its end by the server's clock. The resource lives as long as the
//! last of them. So a reader that dies keeps nobody out for longer than its TTL. A reader whose time has
//! expired is no reader any more, even if its entry still exists.
//!
//! A waiting writer says so in a third key, and later readers wait for it. So readers that come and go can
//! never keep a writer out for ever.

pub(crate) mod acquire;
pub(crate) mod enrol;
pub(crate) mod extend;
pub(crate) mod inspect;
pub(crate) mod intend;
pub(crate) mod release;

/// The value of a resource that readers hold.
pub(crate) const VALUE: &[u8] = b"redlock:shared";

/// How long the announcement of a waiting writer holds. The writer repeats it as long as it waits.
pub(crate) const INTENT_MS: i64 = 500;

/// The longest TTL of any lock: ten years. A longer time in the data is not trusted.
const LONGEST_MS: i64 = 315_360_000_000;

/// The key with the readers of a resource.
pub(super) fn readers(resource: &[u8]) -> Vec<u8> {
    [resource, b":r"].concat()
}

/// The key in which a writer says that it waits.
fn intent(resource: &[u8]) -> Vec<u8> {
    [resource, b":i"].concat()
}
