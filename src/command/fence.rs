//! What the commands about fencing tokens share: the counter of a resource, on each server.
//!
//! A server draws the number that the client proposes, its clock in microseconds, unless that is far from the
//! server's own clock, or a number that is as great was drawn before. So all servers draw the same number as a rule.
//! Why these bounds: see DESIGN.md, "Fencing tokens".

/// How far a number may be from the clock of the server that draws it, in microseconds.
pub(super) const SPREAD_US: i64 = 1_000_000;

/// The least TTL of a counter, and how many TTLs of the lock it is.
const COUNTER_LEAST_MS: i64 = 3_600_000;
const COUNTER_TTLS: i64 = 100;

/// The key of the counter of a resource.
pub(super) fn counter(resource: &[u8]) -> Vec<u8> {
    [resource, b":f"].concat()
}

/// The least TTL of the counter of a lock with this TTL.
pub(super) fn counter_ttl_ms(ttl_ms: i64) -> i64 {
    ttl_ms.saturating_mul(COUNTER_TTLS).max(COUNTER_LEAST_MS)
}
