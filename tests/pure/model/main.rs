//! Whose turn it is, in every order in which threads can meet.
//!
//! What is checked is the very file that the library is made of. [`sync`] gives it loom's mutexes in
//! place of the system's, and [`engine`] something small to drive; then each scene is played again
//! and again until every interleaving was seen, up to so many preemptions where the scene says so.
//! A thread that nobody wakes is a deadlock, and loom reports it.

#[path = "../../../src/driver/mod.rs"]
mod driver;
mod engine;
mod events;
mod panics;
mod scenes;
mod stage;
/// In the place of the library's.
mod system {
    pub(crate) mod sync;
}
mod world;
