//! The rules of a lock over several servers, pure: no clock, no randomness, no I/O and no types of
//! Redis. Time and random numbers come in as arguments, so a simulation can play any schedule.

pub mod backoff;
pub mod ballot;
pub mod draw;
pub mod holders;
pub mod offset;
pub mod permits;
pub mod readers;
pub mod restoring;
pub mod soundness;
pub mod taken;
pub mod tally;
pub mod untold;
pub mod validity;
