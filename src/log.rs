//! What the library has to say to whoever wants to listen. Silent by default.

use std::sync::Arc;

use crate::error::Error;
use crate::fork::ForkMutex;

/// How much a line matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// A fault of a server that a lock may suffer from.
    Warning = 1,
    /// A fault mended, or something that a reader of logs may care for.
    Info = 2,
}

/// A function that is told.
pub type Logger = Arc<dyn Fn(Level, &str) + Send + Sync>;

/// One line and how much it matters.
pub(crate) type Line = (Level, String);

/// Where the lines go.
#[derive(Default)]
pub(crate) struct Log {
    logger: ForkMutex<Option<Logger>>,
}

impl Log {
    pub(crate) fn set(&self, logger: Option<Logger>) -> Result<(), Error> {
        let mut slot = self.logger.lock()?;
        // The old one is dropped after the mutex is free again: it is somebody else's code.
        let old = std::mem::replace(&mut *slot, logger);
        drop(slot);
        drop(old);
        Ok(())
    }

    /// Tells the logger. The caller holds no mutex: the logger may call the library again.
    pub(crate) fn tell(&self, lines: &[Line]) {
        if lines.is_empty() {
            return;
        }
        let logger = self.logger.lock().ok().and_then(|slot| (*slot).clone());
        if let Some(logger) = logger {
            lines.iter().for_each(|(level, line)| logger(*level, line));
        }
    }
}
