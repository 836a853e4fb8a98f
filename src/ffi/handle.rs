//! The C handle of a lock manager.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use super::message::Message;
use crate::manager::kept_log::KeptLog;
use crate::manager::redlock::RedLock as Manager;
use crate::protocol::argument::Language;

/// A lock manager: the servers and the settings. Any number of threads may take locks through one manager at
/// the same time, and they share its connections. Make the settings before the first lock.
pub struct RedLock {
    pub(super) manager: Manager,
    pub(super) message: Message,
    pub(super) kept_log: Arc<KeptLog>,
    pub(super) language: MessageLanguage,
}

/// The language of the program that reads the messages.
#[derive(Default)]
pub(super) struct MessageLanguage(AtomicU8);

impl MessageLanguage {
    pub(super) fn set(&self, language: Language) {
        self.0.store(language as u8, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> Language {
        Language::ALL
            .get(usize::from(self.0.load(Ordering::Relaxed)))
            .copied()
            .unwrap_or(Language::C)
    }
}

/// The manager behind the pointer. The result keeps it alive for the duration of the call.
pub(super) fn shared(rl: *const RedLock) -> Option<Arc<RedLock>> {
    if rl.is_null() {
        return None;
    }
    // SAFETY: a pointer that is not NULL came from Arc::into_raw in RedLock_New and is not freed yet, as the
    // header requires. The count is raised first, so the Arc made here owns its reference.
    unsafe {
        Arc::increment_strong_count(rl);
        Some(Arc::from_raw(rl))
    }
}
