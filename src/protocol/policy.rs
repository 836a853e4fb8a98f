//! What the settings of a manager ask of its calls and connections.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU64, Ordering};

use crate::protocol::quorum::validity::Drift;
use crate::protocol::stats::Tracing;

/// What the settings of a manager ask of its calls and connections. Each value may be changed and read at any
/// time. Whoever changes one has checked its bounds.
#[derive(Debug)]
pub struct Policy {
    retry_count: AtomicI64,
    retry_delay_ms: AtomicI64,
    drift: AtomicU64,
    has_fencing: AtomicBool,
    has_waking: AtomicBool,
    has_failover_guard: AtomicBool,
    connect_ms: AtomicI64,
    reply_ms: AtomicI64,
    tracing: AtomicU8,
}

impl Policy {
    /// How often a call tries at most, and the longest pause after its first try, in milliseconds.
    pub fn set_retry(&self, count: i64, delay_ms: i64) {
        self.retry_count.store(count, Ordering::Relaxed);
        self.retry_delay_ms.store(delay_ms, Ordering::Relaxed);
    }

    pub fn set_drift(&self, drift: Drift) {
        self.drift.store(drift.factor().to_bits(), Ordering::Relaxed);
    }

    /// Sets whether locks that are taken from now on have a fencing token.
    pub fn set_fencing(&self, enabled: bool) {
        self.has_fencing.store(enabled, Ordering::Relaxed);
    }

    /// Sets whether a release wakes a waiting client.
    pub fn set_waking(&self, enabled: bool) {
        self.has_waking.store(enabled, Ordering::Relaxed);
    }

    /// Sets whether a master that Sentinels watch needs a majority of them for its vote.
    pub fn set_failover_guard(&self, enabled: bool) {
        self.has_failover_guard.store(enabled, Ordering::Relaxed);
    }

    /// Sets how long a server may take, in milliseconds. 0 for `reply_ms` means a part of the TTL.
    pub fn set_timeouts(&self, connect_ms: i64, reply_ms: i64) {
        self.connect_ms.store(connect_ms, Ordering::Relaxed);
        self.reply_ms.store(reply_ms, Ordering::Relaxed);
    }

    /// Sets which events of locks are logged.
    pub(crate) fn set_tracing(&self, tracing: Tracing) {
        self.tracing.store(tracing as u8, Ordering::Relaxed);
    }

    pub fn retry_count(&self) -> i64 {
        self.retry_count.load(Ordering::Relaxed)
    }

    pub fn retry_delay_ms(&self) -> i64 {
        self.retry_delay_ms.load(Ordering::Relaxed)
    }

    pub fn drift(&self) -> Drift {
        Drift::new(f64::from_bits(self.drift.load(Ordering::Relaxed))).unwrap_or(Drift::DEFAULT)
    }

    pub fn has_fencing(&self) -> bool {
        self.has_fencing.load(Ordering::Relaxed)
    }

    pub fn has_waking(&self) -> bool {
        self.has_waking.load(Ordering::Relaxed)
    }

    pub fn has_failover_guard(&self) -> bool {
        self.has_failover_guard.load(Ordering::Relaxed)
    }

    pub(crate) fn tracing(&self) -> Tracing {
        match self.tracing.load(Ordering::Relaxed) {
            0 => Tracing::Off,
            1 => Tracing::Events,
            _ => Tracing::Resources,
        }
    }

    /// The time for connecting, and the same time again for the login.
    pub fn connect_ms(&self) -> i64 {
        self.connect_ms.load(Ordering::Relaxed)
    }

    /// The time for a reply to a request about a lock of this TTL. The Redlock page advises 5 to 50 ms for a
    /// TTL of 10 s. A twentieth of the TTL leaves room for slower networks.
    pub fn reply_ms(&self, ttl_ms: i64) -> i64 {
        match self.reply_ms.load(Ordering::Relaxed) {
            0 => Self::default_reply_ms(ttl_ms),
            set => set,
        }
    }

    /// The reply timeout if no other is set.
    pub fn default_reply_ms(ttl_ms: i64) -> i64 {
        (ttl_ms / 20).clamp(25, 500)
    }
}

/// Where CRedLock has a value, it is the same.
impl Default for Policy {
    fn default() -> Self {
        Self {
            retry_count: AtomicI64::new(3),
            retry_delay_ms: AtomicI64::new(200),
            drift: AtomicU64::new(Drift::DEFAULT.factor().to_bits()),
            has_fencing: AtomicBool::new(false),
            has_waking: AtomicBool::new(true),
            has_failover_guard: AtomicBool::new(true),
            connect_ms: AtomicI64::new(1_500),
            reply_ms: AtomicI64::new(0),
            tracing: AtomicU8::new(Tracing::Off as u8),
        }
    }
}
