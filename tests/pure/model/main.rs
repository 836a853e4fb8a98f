//! Checks which thread drives, in every order in which threads can meet.
//!
//! This checks the same source file that is part of the library. [`sync`] gives that file loom's mutexes in
//! place of the system's, and [`engine`] gives it a small engine to drive. Each scene is played again and again
//! until every interleaving was seen. If the scene sets a limit, the interleavings have at most that number of
//! preemptions. If no thread wakes a sleeping thread, loom reports a deadlock.

#[path = "../../../src/driver/mod.rs"]
mod driver;
mod engine;
mod events;
mod panics;
mod scenes;
mod stage;
/// Replaces the module of the library.
mod system {
    pub(crate) mod sync;
}
mod world;
