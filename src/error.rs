//! Why a call did not succeed, and the words for a person.

use std::fmt;

/// What kind of failure it is. The meaning of each is that of the C interface's status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Somebody else holds it.
    Taken,
    /// Too few servers gave a usable answer in time for any quorum.
    Unreachable,
    /// A quorum granted, but no validity was left; everything was released again.
    TooSlow,
    /// The lease is not held, or no longer.
    Lost,
    /// The call was cancelled; nothing of it stays locked.
    Cancelled,
    /// The lock is ours, but not for as long as was asked.
    TooShort,
    /// An argument makes no sense.
    InvalidArgument,
    /// No server was added.
    NoServers,
    /// The lease, or the call, belongs to the parent process.
    Forked,
    /// A panic was caught, or the system gave no randomness.
    Internal,
}

/// A failure: its kind, and words that name what was wrong. Never a token, never a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    status: Status,
    words: String,
}

impl Error {
    pub(crate) fn new(status: Status, words: impl Into<String>) -> Self {
        Self { status, words: words.into() }
    }

    /// For a child that was forked by code of others that a call has run.
    pub(crate) fn forked_within() -> Self {
        Self::new(Status::Forked, "a callback forked within this call, which is the parent's")
    }

    pub(crate) fn invalid(words: impl Into<String>) -> Self {
        Self::new(Status::InvalidArgument, words)
    }

    /// What kind of failure it is.
    pub fn status(&self) -> Status {
        self.status
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

impl std::error::Error for Error {}
