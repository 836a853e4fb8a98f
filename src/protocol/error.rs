//! The reason why a call failed, as a status and as a message for a person.

use std::fmt;
use std::ops::RangeInclusive;

use crate::protocol::argument::{self, Argument, Fault, Language};

/// The kind of a failure. Each has the meaning of the status of the C interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Status {
    /// Somebody else holds the lock.
    Taken,
    /// Too few servers gave a usable answer in time for any quorum.
    Unreachable,
    /// A quorum granted the lock, but no validity was left. Everything was released again.
    TooSlow,
    /// The lease does not hold the lock, or holds it no longer.
    Lost,
    /// The call was cancelled. It leaves nothing locked.
    Cancelled,
    /// The lease holds the lock, but not for as long as was asked.
    TooShort,
    /// An argument is invalid.
    InvalidArgument,
    /// No server was added.
    NoServers,
    /// The lease, or the call, belongs to the parent process.
    Forked,
    /// A panic was caught, or the system provided no randomness.
    Internal,
}

/// A failure: its kind, and a message that says what was wrong. The message never contains a token or a
/// password.
#[derive(Clone, PartialEq, Eq)]
pub struct Error {
    status: Status,
    cause: Cause,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Cause {
    Words(String),
    Argument(Argument, Fault),
}

impl Error {
    pub(crate) fn new(status: Status, words: impl Into<String>) -> Self {
        Self { status, cause: Cause::Words(words.into()) }
    }

    /// For a child that was forked by a callback within a call.
    pub(crate) fn forked_within() -> Self {
        Self::new(
            Status::Forked,
            "the call belongs to the parent process: a callback forked during it",
        )
    }

    pub(crate) fn invalid(words: impl Into<String>) -> Self {
        Self::new(Status::InvalidArgument, words)
    }

    /// An argument is wrong in this way.
    pub(crate) fn of_argument(argument: Argument, fault: Fault) -> Self {
        Self { status: Status::InvalidArgument, cause: Cause::Argument(argument, fault) }
    }

    /// The same, with the words that follow the name of the argument.
    pub(crate) fn argument(argument: Argument, words: impl Into<String>) -> Self {
        Self::of_argument(argument, Fault::Words(words.into()))
    }

    /// Checks a time in milliseconds.
    pub(crate) fn check_time(
        argument: Argument,
        ms: i64,
        range: RangeInclusive<i64>,
    ) -> Result<(), Self> {
        match range.contains(&ms) {
            true => Ok(()),
            false => Err(Self::of_argument(argument, Fault::Time { ms, range })),
        }
    }

    /// The message for a program in this language.
    #[doc(hidden)]
    pub fn words(&self, language: Language) -> String {
        match &self.cause {
            Cause::Words(words) => words.clone(),
            Cause::Argument(argument, fault) => argument::words(*argument, fault, language),
        }
    }

    /// The same error with its message for a program in this language.
    pub(crate) fn told_in(self, language: Language) -> Self {
        Self { cause: Cause::Words(self.words(language)), ..self }
    }

    /// The kind of the failure.
    pub fn status(&self) -> Status {
        self.status
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words(Language::Rust))
    }
}

/// With the message as [`Display`](fmt::Display) has it: a program whose `main` returns the error prints this.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let message = self.words(Language::Rust);
        f.debug_struct("Error").field("status", &self.status).field("message", &message).finish()
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::argument::Argument;

    #[test]
    fn a_debugger_sees_the_message() {
        let error = Error::argument(Argument::Ttl, "is wrong");
        let shown = format!("{error:?}");
        assert_eq!(
            shown,
            format!("Error {{ status: InvalidArgument, message: {:?} }}", error.to_string())
        );
        assert!(shown.contains("ttl is wrong"), "{shown}");
    }
}
