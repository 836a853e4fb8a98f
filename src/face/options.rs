//! How to take a lock.

use std::sync::Arc;
use std::time::Duration;

use super::time::ms;
use crate::manager::call::{AcquireOptions, Call, Patience};
use crate::manager::event::Tag;
use crate::protocol::lock_kind::LockKind;

/// How to take a lock: what to lock, for how long, and how long to try.
///
/// ```
/// use std::time::Duration;
///
/// let options = redlock::Options::new("invoice:42", Duration::from_secs(10))
///     .wait(Duration::from_secs(30))
///     .keep_alive(true);
/// assert_eq!(options.resource(), b"invoice:42");
/// ```
#[derive(Clone, Debug)]
pub struct Options {
    resource: Vec<u8>,
    kind: LockKind,
    ttl: Duration,
    wait: Wait,
    keep_alive: bool,
}

#[derive(Clone, Copy, Debug)]
enum Wait {
    For(Duration),
    Forever,
    Tries(i32),
}

impl Options {
    /// One attempt to lock `resource` for `ttl`, counted from the request.
    ///
    /// A resource is 1 to 65,536 bytes: the name of the key on the servers. A TTL is 1 ms to ten years, and
    /// must leave some validity after the allowance for clocks. Both are checked when the lock is requested.
    pub fn new(resource: impl Into<Vec<u8>>, ttl: Duration) -> Self {
        let (resource, wait) = (resource.into(), Wait::For(Duration::ZERO));
        Self { resource, kind: LockKind::Exclusive, ttl, wait, keep_alive: false }
    }

    /// One attempt to lock all of these resources, or none: 1 to 128 different resources. [`Options::resource`]
    /// returns the first.
    pub fn several<R: Into<Vec<u8>>>(
        resources: impl IntoIterator<Item = R>,
        ttl: Duration,
    ) -> Self {
        let resources: Vec<Vec<u8>> = resources.into_iter().map(Into::into).collect();
        let mut options = Self::new(resources.first().cloned().unwrap_or_default(), ttl);
        if resources.len() > 1 {
            options.kind = LockKind::Several(resources.into_iter().map(Arc::from).collect());
        }
        options
    }

    /// Shared mode: any number of readers can hold the lock at the same time. Readers and writers, which hold
    /// the lock exclusively, exclude each other. Replaces [`Options::permit_of`].
    #[must_use]
    pub fn shared(mut self) -> Self {
        self.kind = LockKind::Shared;
        self
    }

    /// Takes one of `permits` permits of the resource, 1 to 256: that many callers can hold the resource at the
    /// same time. All callers must give the same number. Replaces [`Options::shared`].
    #[must_use]
    pub fn permit_of(mut self, permits: u16) -> Self {
        self.kind = LockKind::Permit { of: permits };
        self
    }

    /// Tries for this long, and then once more. Zero, the default: one attempt.
    #[must_use]
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = Wait::For(wait);
        self
    }

    /// Tries until the lock is taken, or the call can no longer succeed.
    #[must_use]
    pub fn wait_forever(mut self) -> Self {
        self.wait = Wait::Forever;
        self
    }

    /// Tries this many times, at least once, with the pauses of [`super::Builder::retry`]. Replaces the wait.
    #[must_use]
    pub fn tries(mut self, tries: i32) -> Self {
        self.wait = Wait::Tries(tries.max(1));
        self
    }

    /// Sets whether the lock is kept alive: it is extended again and again until it is unlocked or dropped. If
    /// that becomes impossible, [`super::Lease::lost`] reports it while at least a tenth of the TTL is left.
    /// This needs a manager that is driven: see [`super::Manager`]. The default is no.
    #[must_use]
    pub fn keep_alive(mut self, keep_alive: bool) -> Self {
        self.keep_alive = keep_alive;
        self
    }

    /// The resource to lock.
    pub fn resource(&self) -> &[u8] {
        &self.resource
    }

    pub(super) fn keeps_alive(&self) -> bool {
        self.keep_alive
    }

    /// The call that takes the lock. `keep` is the tag of the event that reports that the lock cannot
    /// be kept alive.
    pub(super) fn call(&self, keep: Option<Tag>) -> Call<'_> {
        let patience = match self.wait {
            Wait::For(wait) => Patience::Ms(ms(wait)),
            Wait::Forever => Patience::Ms(-1),
            Wait::Tries(tries) => Patience::Tries(tries.into()),
        };
        let (resource, kind, ttl_ms) = (&self.resource, self.kind.clone(), ms(self.ttl));
        Call::Acquire(AcquireOptions { resource, kind, ttl_ms, patience, keep })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(10);

    #[test]
    fn the_last_of_wait_and_tries_counts() {
        let one = Options::new("r", TTL);
        let patience = |options: Options| match options.call(None) {
            Call::Acquire(options) => options.patience,
            _ => unreachable!("it takes a lock"),
        };
        assert_eq!(patience(one.clone()), Patience::Ms(0));
        assert_eq!(patience(one.clone().tries(7).wait(TTL)), Patience::Ms(10_000));
        assert_eq!(patience(one.clone().wait(TTL).wait_forever()), Patience::Ms(-1));
        assert_eq!(patience(one.clone().wait_forever().tries(7)), Patience::Tries(7));
        assert_eq!([0, -3].map(|it| patience(one.clone().tries(it))), [Patience::Tries(1); 2]);
    }

    #[test]
    fn the_last_kind_of_lock_counts() {
        let one = Options::new("r", TTL);
        assert_eq!(one.clone().permit_of(3).shared().kind, LockKind::Shared);
        assert_eq!(one.clone().shared().permit_of(3).kind, LockKind::Permit { of: 3 });
        assert_eq!(Options::several(["r"], TTL).kind, LockKind::Exclusive);
        let names = ["r", "s"].map(|it| Arc::from(it.as_bytes()));
        assert_eq!(Options::several(["r", "s"], TTL).kind, LockKind::Several(Arc::from(names)));
    }

    #[test]
    fn keep_alive_can_be_turned_off() {
        let kept = Options::new("r", TTL).keep_alive(true);
        assert!(kept.keeps_alive() && !kept.keep_alive(false).keeps_alive());
    }
}
