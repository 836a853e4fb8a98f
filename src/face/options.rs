//! How a lock is to be taken.

use std::time::Duration;

use super::time::ms;
use crate::redlock::AcquireOptions;
use crate::submitted::Tag;

/// How a lock is to be taken: what to lock, for how long, and how long to try.
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
    /// One attempt to lock `resource` for `ttl`, from when it is asked for.
    ///
    /// A resource is 1 to 65,536 bytes: the name of the key on the servers. A TTL is 1 ms to ten years, and has to
    /// leave some validity after the allowance for clocks. Both are checked when the lock is asked for.
    pub fn new(resource: impl Into<Vec<u8>>, ttl: Duration) -> Self {
        let (resource, wait) = (resource.into(), Wait::For(Duration::ZERO));
        Self { resource, ttl, wait, keep_alive: false }
    }

    /// Tries for so long, and then once more. Zero, the default: one attempt.
    #[must_use]
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = Wait::For(wait);
        self
    }

    /// Tries until the lock is taken, or the call cannot succeed any more.
    #[must_use]
    pub fn wait_forever(mut self) -> Self {
        self.wait = Wait::Forever;
        self
    }

    /// Tries so often, at least once, with the pauses of [`super::Builder::retry`]. Replaces the wait.
    #[must_use]
    pub fn tries(mut self, tries: i32) -> Self {
        self.wait = Wait::Tries(tries.max(1));
        self
    }

    /// Whether the lock is extended again and again, until it is unlocked or dropped. If that becomes impossible,
    /// [`super::Lease::lost`] tells, while at least a tenth of the TTL is left. It needs a manager that somebody
    /// drives: see [`super::Manager`]. The default is no.
    #[must_use]
    pub fn keep_alive(mut self, keep_alive: bool) -> Self {
        self.keep_alive = keep_alive;
        self
    }

    /// What is locked.
    pub fn resource(&self) -> &[u8] {
        &self.resource
    }

    pub(super) fn keeps_alive(&self) -> bool {
        self.keep_alive
    }

    /// The same for the manager, with what comes along with the news that the lock cannot be kept.
    pub(super) fn plain(&self, keep: Option<Tag>) -> AcquireOptions<'_> {
        let (wait_ms, tries) = match self.wait {
            Wait::For(wait) => (ms(wait), 0),
            Wait::Forever => (-1, 0),
            Wait::Tries(tries) => (0, tries),
        };
        AcquireOptions { resource: &self.resource, ttl_ms: ms(self.ttl), wait_ms, tries, keep }
    }
}
