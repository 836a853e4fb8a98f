//! The rules of a lock over several servers, pure: no clock, no randomness, no I/O and no types of
//! Redis. Time and random numbers come in as arguments, so a simulation can play any schedule.

pub mod backoff;
pub mod ballot;
pub mod draw;
pub mod hand_overs;
pub mod holders;
pub mod offset;
pub mod ownership;
pub mod permit_count;
pub mod permits;
pub mod readers;
pub mod restoration;
pub mod soundness;
pub mod tally;
pub mod validity;
