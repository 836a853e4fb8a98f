//! The possible violations of a history, and their descriptions.

use std::fmt;

use super::line::Line;

/// The rule that was violated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Rule {
    /// Two processes held one resource at the same time.
    Overlap,
    /// A holder acted, or was told that it may, after the end of its lock.
    PastDeadline,
    /// Two processes wrote the same value of a counter, or a written value is not in it.
    LostUpdate,
    /// A counter has a value that nobody wrote.
    Unexplained,
    /// A key is on a server without a call that explains it.
    Orphan,
    /// A call took longer than allowed.
    LateCall,
    /// A lock is reported as held after its release, or after it was reported as lost.
    HeldAfterEnd,
    /// A lock that had ended was extended.
    Revived,
    /// Two locks have one token.
    TokenReused,
    /// A lock is valid for longer than its TTL allows, or was shortened.
    Validity,
    /// A process uses a lock that another one took.
    Foreign,
    /// A process uses a lock that nobody took.
    Unheld,
    /// Descriptors, threads or memory grow.
    Leak,
    /// A process was neither killed nor did it end properly.
    Unaccounted,
    /// A call ended with a status that is impossible with this use of the library.
    Status,
    /// After the last fault a lock could not be acquired again.
    NotRecovered,
    /// A line that is impossible, by itself or after the lines before it.
    Malformed,
}

impl Rule {
    pub(crate) const ALL: [Self; 17] = [
        Self::Overlap,
        Self::PastDeadline,
        Self::LostUpdate,
        Self::Unexplained,
        Self::Orphan,
        Self::LateCall,
        Self::HeldAfterEnd,
        Self::Revived,
        Self::TokenReused,
        Self::Validity,
        Self::Foreign,
        Self::Unheld,
        Self::Leak,
        Self::Unaccounted,
        Self::Status,
        Self::NotRecovered,
        Self::Malformed,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Overlap => "overlap",
            Self::PastDeadline => "past-deadline",
            Self::LostUpdate => "lost-update",
            Self::Unexplained => "unexplained",
            Self::Orphan => "orphan",
            Self::LateCall => "late-call",
            Self::HeldAfterEnd => "held-after-end",
            Self::Revived => "revived",
            Self::TokenReused => "token-reused",
            Self::Validity => "validity",
            Self::Foreign => "foreign",
            Self::Unheld => "unheld",
            Self::Leak => "leak",
            Self::Unaccounted => "unaccounted",
            Self::Status => "status",
            Self::NotRecovered => "not-recovered",
            Self::Malformed => "malformed",
        }
    }
}

/// One violation: a line of text, and the lines of the logs that prove it.
#[derive(Clone, Debug)]
pub(crate) struct Violation {
    pub(crate) rule: Rule,
    pub(crate) words: String,
    pub(crate) proof: Vec<String>,
}

impl Violation {
    pub(crate) fn new(rule: Rule, words: impl Into<String>, proof: &[&Line<'_>]) -> Self {
        let proof = proof.iter().map(|line| line.to_string()).collect();
        Self { rule, words: words.into(), proof }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.rule.name(), self.words)?;
        self.proof.iter().try_for_each(|line| write!(out, "\n    {line}"))
    }
}

/// A time span of nanoseconds as text.
pub(crate) fn ms(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let nanos = nanos.unsigned_abs();
    format!("{sign}{}.{:06} ms", nanos / 1_000_000, nanos % 1_000_000)
}
