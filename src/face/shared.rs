//! What a manager, its leases and its futures share.

use crate::manager::redlock::RedLock;

/// What all clones of a manager, its leases and its futures share.
pub(super) struct Shared {
    pub(super) core: RedLock,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.core.abandon();
    }
}
