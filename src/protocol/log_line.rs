//! What there is to say to the program's logger.

/// How important a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Level {
    /// A fault of a server that may affect a lock.
    Warning = 1,
    /// A fault was mended, or other information for a reader of logs.
    Info = 2,
    /// An event of a lock, for a program that asked for such lines.
    Event = 3,
}

/// One line and its level.
pub(crate) type LogLine = (Level, String);
