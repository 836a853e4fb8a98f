//! Why the command itself fails, and with which status it ends then. They leave what `timeout` and `env` use to them,
//! and what a program ends with to the program.

use std::fmt;
use std::process::ExitCode;

use redlock::{Error, Status};
use serde_json::json;

use crate::output;

/// What kind of failure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The lock was taken, and could not be kept.
    Lost,
    /// Too few servers answered.
    Unreachable,
    /// Somebody else has the lock, and had it for as long as was waited.
    Taken,
    /// Arguments, the configuration, or this program itself.
    Usage,
    /// The program is there and cannot be run.
    CannotRun,
    /// There is no such program.
    NoProgram,
    /// This program was ended by a signal before it had the lock.
    Signal(i32),
    /// It looked, and something is wrong.
    Unwell,
    /// What the user has set for a lock that is taken.
    Chosen(u8),
}

/// A failure, in words for a person.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) kind: Kind,
    pub(crate) words: String,
}

impl Kind {
    pub(crate) fn status(self) -> u8 {
        match self {
            Self::Unwell => 1,
            Self::Lost => 122,
            Self::Unreachable => 123,
            Self::Taken => 124,
            Self::Usage => 125,
            Self::CannotRun => 126,
            Self::NoProgram => 127,
            Self::Signal(number) => 128u8.saturating_add(u8::try_from(number).unwrap_or(0)),
            Self::Chosen(status) => status,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Unwell => "unwell",
            Self::Lost => "lost",
            Self::Unreachable => "unreachable",
            Self::Taken | Self::Chosen(_) => "taken",
            Self::Usage => "usage",
            Self::CannotRun => "cannot-run",
            Self::NoProgram => "no-program",
            Self::Signal(_) => "signal",
        }
    }
}

impl From<Kind> for ExitCode {
    fn from(kind: Kind) -> Self {
        Self::from(kind.status())
    }
}

impl Failure {
    pub(crate) fn new(kind: Kind, words: impl Into<String>) -> Self {
        Self { kind, words: words.into() }
    }

    pub(crate) fn usage(words: impl Into<String>) -> Self {
        Self::new(Kind::Usage, words)
    }

    /// Tells it to the user, and says with which status to end.
    pub(crate) fn tell(&self, json: bool) -> ExitCode {
        if json {
            let status = self.kind.status();
            let told = json!({"event": self.kind.name(), "status": status, "words": self.words});
            output::tell(told);
        } else if !matches!(self.kind, Kind::Signal(_)) {
            output::tell_words(&self.words);
        }
        self.kind.into()
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let kind = match error.status() {
            Status::Taken => Kind::Taken,
            Status::Unreachable | Status::TooSlow => Kind::Unreachable,
            Status::Lost | Status::TooShort => Kind::Lost,
            _ => Kind::Usage,
        };
        Self::new(kind, error.to_string())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}
