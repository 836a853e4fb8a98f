//! What the bench needs besides its plan: servers, programs, figures, and an orderly end.

pub(crate) mod figures;
pub(crate) mod machine;
pub(crate) mod process;
pub(crate) mod programs;
pub(crate) mod servers;

/// Nothing here is handled but by ending the bench, so words for a person are enough.
pub(crate) type Outcome<T> = Result<T, Box<dyn std::error::Error>>;
