//! Why the command itself fails, and its exit status in that case. These statuses keep the meanings that
//! `timeout` and `env` give them, and leave the program's own statuses to the program.

use std::fmt;
use std::process::ExitCode;

use redlock::protocol::argument::Language;
use redlock::{Error, Status};
use serde_json::json;

use crate::output;

/// The kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The lock was taken, and could not be kept.
    Lost,
    /// The same, and a process of the program could not be killed, and went on.
    Unkillable,
    /// Too few servers answered.
    Unreachable,
    /// Somebody else holds the lock, and held it for the whole waiting time.
    Taken,
    /// The arguments, the configuration, or this program itself are wrong.
    Usage,
    /// The program exists and cannot be run.
    CannotRun,
    /// There is no such program.
    NoProgram,
    /// A signal ended this program before it held the lock.
    Signal(i32),
    /// `doctor` found that something is wrong.
    Unwell,
    /// The user was asked, and said no.
    Declined,
    /// The status that the user has chosen for a lock that is taken.
    Chosen(u8),
}

/// A failure, described for a person.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) kind: Kind,
    pub(crate) words: String,
}

impl Kind {
    pub(crate) fn status(self) -> u8 {
        match self {
            Self::Unwell | Self::Declined => 1,
            Self::Unkillable => 121,
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
            Self::Declined => "declined",
            Self::Unkillable => "unkillable",
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

    /// Reports the failure to the user. Returns the exit status.
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
        Self::new(kind, error.words(Language::Command))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}
