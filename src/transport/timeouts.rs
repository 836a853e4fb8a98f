//! How long a server may take.

use std::sync::atomic::{AtomicI64, Ordering};

/// How long a server may take. Can be changed while connections are in use.
#[derive(Debug)]
pub struct Timeouts {
    connect_ms: AtomicI64,
    reply_ms: AtomicI64,
}

impl Timeouts {
    /// The time for connecting, and the same time again for the login. The value of CRedLock.
    const CONNECT_MS: i64 = 1500;

    /// Sets both, in milliseconds. 0 for `reply_ms` means a part of the TTL.
    pub fn set(&self, connect_ms: i64, reply_ms: i64) {
        self.connect_ms.store(connect_ms, Ordering::Relaxed);
        self.reply_ms.store(reply_ms, Ordering::Relaxed);
    }

    /// The time for connecting.
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

impl Default for Timeouts {
    fn default() -> Self {
        Self { connect_ms: AtomicI64::new(Self::CONNECT_MS), reply_ms: AtomicI64::new(0) }
    }
}
