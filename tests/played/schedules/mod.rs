//! Random schedules. Each is made of a seed, and fixes everything: the servers with their clocks, what
//! the clients do, and all that goes wrong. Each knows which assumptions of the promise it breaks. If
//! none, no two holds of a lock may ever overlap, in true time; the rest of what is promised
//! (`promises.rs` has a name for each) is so whatever is broken. Who looks at which of it, and how each
//! was seen to be broken, is in `promises.md`.

mod actor;
mod differential;
pub(crate) mod generate;
pub(crate) mod handed;
pub(crate) mod kept;
pub(crate) mod plants;
mod play;
mod plays;
mod possession;
pub(crate) mod promises;
pub(crate) mod records;
pub(crate) mod schedule;
pub(crate) mod several;
pub(crate) mod shared;
mod shrink;
mod simulate;
mod statuses;
mod traces;
mod troubles;
mod verdicts;
pub(crate) mod watch;
mod woken;
