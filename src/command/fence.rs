//! Shared parts of the commands about fencing tokens: the counter of a resource, on each server.
//!
//! A server draws the number that the client proposes, which is the client's clock in microseconds. It draws
//! another number if the proposed one is far from the server's own clock, or if an equal or greater number
//! was drawn before. So usually all servers draw the same number. DESIGN.md, "Fencing tokens", gives the
//! reasons for these bounds.

/// How far a number may be from the clock of the server that draws it, in microseconds.
pub(super) const SPREAD_US: i64 = 1_000_000;

/// The TTL of a counter is this many milliseconds, or this many TTLs of the lock, whichever is longer.
const COUNTER_LEAST_MS: i64 = 3_600_000;
const COUNTER_TTLS: i64 = 100;

/// The key of the counter of a resource.
pub(super) fn counter(resource: &[u8]) -> Vec<u8> {
    [resource, b":f"].concat()
}

/// The minimum TTL of the counter for a lock with this TTL.
pub(super) fn counter_ttl_ms(ttl_ms: i64) -> i64 {
    ttl_ms.saturating_mul(COUNTER_TTLS).max(COUNTER_LEAST_MS)
}
