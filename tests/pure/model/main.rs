//! Which thread drives, in every order in which threads can meet.
//!
//! This checks the same source file that is part of the library. [`sync`] gives that file loom's mutexes in place
//! of the system's, and [`engine`] gives it something small to drive. Each scene is then played again and again
//! until every interleaving was seen. If the scene sets a limit, the interleavings have at most that number of
//! preemptions. A thread that no other thread wakes is a deadlock, and loom reports it.

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
