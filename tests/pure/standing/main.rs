//! Goes through everything that can happen to a lock on three servers, as far as the rules of
//! `src/quorum/standing.rs` are concerned: a holder that extends it and repairs it, a rival that takes it
//! where it can, keys that are lost, connections that break with requests on them that are carried out
//! later, and answers that come late. The rules are the library's own.
//!
//! A lock that a rival has had must never be vouched for again by a round that began after that.
//!
//! `cargo test --test standing` goes a few hundred thousand states deep; `make model` to the end.

mod rules;
mod world;
