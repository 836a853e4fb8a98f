//! One lock, held or not.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::Error;
use crate::moment::Moment;
use crate::quorum::backoff::Backoff;
use crate::system::clock;
use crate::system::process::this_process;
use crate::token::Token;
use crate::transport::Servers;
use crate::transport::command::Mended;

/// A lock that was taken. The leases that continue one lock share it.
#[derive(Debug)]
pub(crate) struct Hold {
    resource: Arc<[u8]>,
    token: Token,
    /// The process that took it, and that alone may use it.
    process: u32,
    /// Until when it is valid; only ever grows.
    valid_until: AtomicI64,
    /// The servers that may have it: those to which it was sent.
    servers: AtomicU64,
    /// Those of them that had lost it, since an extension last showed that a quorum had it all the
    /// time. None were noted yet, if there is nothing.
    mended: Mutex<Option<Mended>>,
    /// The longest TTL that a server may have given it.
    longest_ttl_ms: AtomicI64,
    phase: AtomicU8,
    /// Whether a release was sent by a call that found it ended, for another that ends it.
    release_sent: AtomicBool,
}

/// How far a lock's life has come. It only goes forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It was taken. Whether it is still valid, the clock tells.
    Taken,
    /// It was found out not to be ours any more; perhaps something of it is left somewhere.
    Lost,
    /// It is being released; perhaps not all servers were told yet.
    Releasing,
    /// Nothing is left of it.
    Over,
}

impl Hold {
    pub(crate) fn new(
        resource: Arc<[u8]>,
        token: Token,
        ttl_ms: i64,
        valid_until: Moment,
        servers: Servers,
    ) -> Self {
        Self {
            resource,
            token,
            process: this_process(),
            valid_until: AtomicI64::new(valid_until.as_nanos()),
            servers: AtomicU64::new(servers.bits()),
            mended: Mutex::new(None),
            longest_ttl_ms: AtomicI64::new(ttl_ms),
            phase: AtomicU8::new(Phase::Taken as u8),
            release_sent: AtomicBool::new(false),
        }
    }

    pub(crate) fn resource(&self) -> &Arc<[u8]> {
        &self.resource
    }

    pub(crate) fn token(&self) -> &Token {
        &self.token
    }

    pub(crate) fn longest_ttl_ms(&self) -> i64 {
        self.longest_ttl_ms.load(Ordering::Relaxed)
    }

    /// A server may have given it this TTL from now on.
    pub(crate) fn note_ttl(&self, ttl_ms: i64) {
        self.longest_ttl_ms.fetch_max(ttl_ms, Ordering::Relaxed);
    }

    pub(crate) fn servers(&self) -> Servers {
        Servers::from_bits(self.servers.load(Ordering::Acquire))
    }

    /// These servers may have it from now on.
    pub(crate) fn note_servers(&self, servers: Servers) {
        self.servers.fetch_or(servers.bits(), Ordering::AcqRel);
    }

    /// The servers that had lost it and were given it again: that they have it now does not mean
    /// that nobody else had it in between.
    pub(crate) fn mended(&self) -> Mended {
        self.mended_or_none().get_or_insert_default().clone()
    }

    /// A quorum of others had it all the time. What is noted later for an extension of before counts
    /// no more either.
    pub(crate) fn trust_mended(&self) {
        *self.mended_or_none() = None;
    }

    fn mended_or_none(&self) -> MutexGuard<'_, Option<Mended>> {
        self.mended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn valid_until(&self) -> Moment {
        Moment::from_nanos(self.valid_until.load(Ordering::Acquire))
    }

    /// Extends the validity; never shortens it.
    pub(crate) fn extend_to(&self, valid_until: Moment) {
        self.valid_until.fetch_max(valid_until.as_nanos(), Ordering::AcqRel);
    }

    /// Goes on to a later phase. Returns the one before.
    pub(crate) fn pass_to(&self, phase: Phase) -> Phase {
        match self.phase.fetch_max(phase as u8, Ordering::AcqRel) {
            0 => Phase::Taken,
            1 => Phase::Lost,
            2 => Phase::Releasing,
            _ => Phase::Over,
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.phase.load(Ordering::Acquire) != Phase::Taken as u8
    }

    /// A release is about to be sent beside the one that ends it.
    pub(crate) fn note_release(&self) {
        self.release_sent.store(true, Ordering::Release);
    }

    /// Whether one may have been: then a server that has nothing to delete was told before.
    pub(crate) fn was_release_sent(&self) -> bool {
        self.release_sent.load(Ordering::Acquire)
    }

    /// Whether nothing is left of it.
    pub(crate) fn is_over(&self) -> bool {
        self.phase.load(Ordering::Acquire) == Phase::Over as u8
    }

    pub(crate) fn is_ours(&self) -> bool {
        self.process == this_process()
    }

    /// How long it is valid after `now`; 0 if it is not, or is another process's.
    pub(crate) fn remaining_ms(&self, now: Moment) -> i64 {
        if self.has_ended() || !self.is_ours() {
            return 0;
        }
        self.valid_until().ms_since(now)
    }

    pub(crate) fn is_held(&self, now: Moment) -> bool {
        !self.has_ended() && now < self.valid_until() && self.is_ours()
    }
}

/// A handle of one lock: empty, or the holder of it.
///
/// Dropping a lease releases nothing: a lock ends by [`crate::RedLock::unlock`] or by itself.
#[derive(Clone, Debug, Default)]
pub struct Lease {
    pub(crate) hold: Option<Arc<Hold>>,
    pub(crate) resource: Arc<[u8]>,
    pub(crate) validity_ms: i64,
    pub(crate) absent: String,
    /// The wait that the last call has left off in the middle, if it was a slice of one.
    pub(crate) wait: Option<BrokenOff>,
}

/// A wait for a lock between two of the slices that it is made in.
#[derive(Clone, Debug)]
pub(crate) struct BrokenOff {
    /// The end of the pause that was under way.
    pub(crate) pause_until: Moment,
    pub(crate) backoff: Backoff,
    pub(crate) has_asked: bool,
    /// What the last try has come to.
    pub(crate) error: Error,
}

impl Lease {
    /// An empty lease.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether the lock is held and valid now, by this machine's clock.
    pub fn is_held(&self) -> bool {
        self.hold.as_ref().is_some_and(|it| it.is_held(clock::now()))
    }

    /// How long the lock is valid from now on, rounded down; 0 when it is not held.
    pub fn remaining_ms(&self) -> i64 {
        self.hold.as_ref().map_or(0, |it| it.remaining_ms(clock::now()))
    }

    /// How long the lock was valid when it was granted or last extended; 0 if there is none.
    pub fn validity_ms(&self) -> i64 {
        self.validity_ms
    }

    /// The resource of the last locking call on this lease.
    pub fn resource(&self) -> &[u8] {
        &self.resource
    }

    /// The token that stands on the servers, if there is a lock.
    pub fn token(&self) -> Option<&str> {
        self.hold.as_ref().map(|it| it.token().as_str())
    }

    /// Words about servers that could not take part in the last call, if it succeeded all the same;
    /// empty if all could.
    pub fn absent(&self) -> &str {
        &self.absent
    }

    /// Makes it the holder of a lock that was taken or extended without some servers.
    pub(crate) fn keep(&mut self, hold: Arc<Hold>, absent: String, now: Moment) {
        self.absent = absent;
        self.validity_ms = hold.valid_until().ms_since(now);
        self.hold = Some(hold);
    }

    /// Makes it empty.
    pub(crate) fn clear(&mut self) {
        self.hold = None;
        self.validity_ms = 0;
        self.absent.clear();
        self.wait = None;
    }

    /// Makes it empty, for a call about this resource.
    pub(crate) fn begin(&mut self, resource: &[u8]) {
        self.clear();
        if *self.resource != *resource {
            self.resource = Arc::from(resource);
        }
    }
}
