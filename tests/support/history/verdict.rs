//! What can be wrong with a history, and how it is said.

use std::fmt;

use super::line::Line;

/// What was violated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Rule {
    /// Two held one resource at the same time.
    Overlap,
    /// A holder acted, or was told that it may, after its lock was over.
    PastDeadline,
    /// Two wrote the same value of a counter, or what was written is not in it.
    LostUpdate,
    /// A counter has a value that nobody wrote.
    Unexplained,
    /// A key is on a server that nobody answers for.
    Orphan,
    /// A call took longer than it may.
    LateCall,
    /// A lock is said to be held after its release, or after it was said to be lost.
    HeldAfterEnd,
    /// A lock that had ended was extended.
    Revived,
    /// Two locks have one token.
    TokenReused,
    /// A lock is valid for longer than its TTL allows, or was shortened.
    Validity,
    /// A process uses a lock that another one took.
    Foreign,
    /// A lock is used that nobody took.
    Unheld,
    /// Descriptors, threads or memory grow.
    Leak,
    /// A process was neither killed nor has it ended well.
    Unaccounted,
    /// A call ended with a status that this use of the library cannot lead to.
    Status,
    /// After the last fault a lock was not had again.
    NotRecovered,
    /// A line that cannot be, by itself or after those before it.
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

/// One violation: a line of words, and the lines of the logs that prove it.
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

/// A span of nanoseconds in words.
pub(crate) fn ms(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let nanos = nanos.unsigned_abs();
    format!("{sign}{}.{:06} ms", nanos / 1_000_000, nanos % 1_000_000)
}
