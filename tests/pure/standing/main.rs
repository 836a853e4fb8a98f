//! Explores everything that can happen to a lock on three servers under the rules of `src/protocol/quorum/soundness.rs`. A
//! holder extends and repairs the lock, and a rival takes it where it can. Keys are lost. Connections break while
//! requests are in flight, and the servers execute those requests later. Answers arrive late. The rules are the
//! library's own code.
//!
//! If a rival has held the lock, a round that began after that must never confirm it again.
//!
//! `cargo test --test standing` explores a few hundred thousand states. `make model` explores all of them.

mod rules;
mod world;
