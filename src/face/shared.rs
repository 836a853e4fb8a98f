//! What a manager, its leases and its futures share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::lost::News;
use super::options::Options;
use crate::error::Error;
use crate::redlock::RedLock;

/// What all clones of a manager, its leases and its futures share.
pub(super) struct Shared {
    pub(super) core: RedLock,
    /// Whether there is a background thread, or the program has shown that it drives.
    pub(super) is_driven: AtomicBool,
}

impl Shared {
    /// Returns where to report that a lock with these options cannot be kept alive.
    pub(super) fn news_for(&self, options: &Options) -> Result<Arc<News>, Error> {
        if options.keeps_alive() {
            self.check_driven("a lock is to be kept")?;
        }
        Ok(Arc::default())
    }

    /// A future was polled.
    pub(super) fn check_polled(&self) -> Result<(), Error> {
        self.check_driven("a future was polled")
    }

    pub(super) fn check_driven(&self, what: &str) -> Result<(), Error> {
        if self.is_driven.load(Ordering::Relaxed) {
            return Ok(());
        }
        let words = format!(
            "{what}, and nobody drives the manager: ask for background_thread(true), \
             or for its descriptor, and call drive()"
        );
        Err(Error::invalid(words))
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.core.abandon();
    }
}
