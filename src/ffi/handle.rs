//! The handle of a lock manager.

use std::sync::Arc;

use super::message::Message;
use crate::kept_log::KeptLog;
use crate::redlock::RedLock as Manager;

/// A lock manager: the servers and the settings. Any number of threads may lock through one
/// manager at once, and they share its connections; make the settings before the first lock.
pub struct RedLock {
    pub(super) manager: Manager,
    pub(super) message: Message,
    pub(super) kept_log: Arc<KeptLog>,
}

/// The manager behind the pointer, kept alive for the length of the call.
pub(super) fn shared(rl: *const RedLock) -> Option<Arc<RedLock>> {
    if rl.is_null() {
        return None;
    }
    // SAFETY: a pointer that is not NULL came from RedLock_New's Arc::into_raw and was not freed
    // yet, as the header asks. The count is raised first, so the Arc made here is ours.
    unsafe {
        Arc::increment_strong_count(rl);
        Some(Arc::from_raw(rl))
    }
}
