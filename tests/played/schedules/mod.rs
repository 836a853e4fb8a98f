//! Random schedules. Each is made from a seed, and fixes everything: the servers with their clocks, the
//! actions of the clients, and all faults. Each knows which assumptions of the promise it breaks. If it
//! breaks none, no two holds of a lock may ever overlap, in true time. The other promises hold whatever is
//! broken; `promises.rs` has a name for each. `promises.md` lists where each promise is checked, and how
//! each was seen to be broken.

mod actor;
mod differential;
pub(crate) mod generate;
mod golden;
pub(crate) mod handed;
pub(crate) mod holes;
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
