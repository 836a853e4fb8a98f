//! The commands for locks that several may have at the same time, if they want them shared: *readers*. One that has it
//! alone is a *writer*, and its lock is the plain one of every Redlock client.
//!
//! While there are readers the resource is the string `redlock:shared`. They stand in a sorted set beside it, each
//! token with the end of its time by the server's clock. The resource lives as long as the last of them, so that
//! a reader that dies keeps nobody out for longer than its TTL. A reader whose time is over is none, whether it stands
//! there still or not.
//!
//! A writer that waits says so in a third key, and readers that come later wait for it. So readers that come and
//! go can never keep it out for ever.

pub(crate) mod acquire;
pub(crate) mod enrol;
pub(crate) mod extend;
pub(crate) mod inspect;
pub(crate) mod intend;
pub(crate) mod release;

/// What stands under the name of a resource that readers have.
pub(crate) const VALUE: &[u8] = b"redlock:shared";

/// For how long a writer says that it waits. It says so again as long as it does.
pub(crate) const INTENT_MS: i64 = 500;

/// No lock has a longer TTL: ten years. What stands there for longer is not taken at its word.
const LONGEST_MS: i64 = 315_360_000_000;

/// The key in which the readers of a resource stand.
pub(super) fn readers(resource: &[u8]) -> Vec<u8> {
    [resource, b":r"].concat()
}

/// The key in which a writer says that it waits.
fn intent(resource: &[u8]) -> Vec<u8> {
    [resource, b":i"].concat()
}
