//! Everything that the bench needs besides its main program: servers, contenders, figures, and an orderly end.

pub(crate) mod cluster;
pub(crate) mod command;
pub(crate) mod compile;
pub(crate) mod contenders;
pub(crate) mod event_rows;
pub(crate) mod figures;
pub(crate) mod footprint;
pub(crate) mod instructions;
pub(crate) mod kept;
pub(crate) mod kind_rows;
pub(crate) mod machine;
pub(crate) mod picture;
pub(crate) mod plan;
pub(crate) mod process;
pub(crate) mod report;
pub(crate) mod results;
pub(crate) mod rows;
pub(crate) mod schedule;
pub(crate) mod servers;
pub(crate) mod table;
pub(crate) mod talk;
pub(crate) mod turns;
pub(crate) mod waiters;
pub(crate) mod waiting;
pub(crate) mod waking_rows;

/// The only reaction to an error here is to end the bench, so a text for a person is enough.
pub(crate) type Outcome<T> = Result<T, Box<dyn std::error::Error>>;
