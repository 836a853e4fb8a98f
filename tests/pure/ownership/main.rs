//! Explores everything that can happen to a voter whose owner changes: a master that Sentinels watch, or that of a slot
//! in a cluster. Three arbiters say who the owner is, and two clients take the lock. Copies are promoted with or without
//! the key; arbiters learn of that late, or never; requests, answers and notes arrive late; locks are extended.
//!
//! Nobody tells a deposed owner. It grants locks for ever, as it can while it is paused or cut off for any time. Even
//! so, the two clients never hold the lock at once:
//!
//! - An arbiter names the owner and the owner's epoch. If a majority names the same pair, that is a lease, as old as
//!   the question.
//! - A grant counts if its client has a lease whose question was sent at most `lead` before the request.
//! - A client with a lease writes the note of the owner, with the epoch. The owner votes when the note is `wait` old. It
//!   must have the epoch of the lease.
//! - `wait` is as long as `lead` and the time that a client holds the lock together.
//!
//! Two majorities have an arbiter in common, whose epoch only grows. So each lease on the old owner was asked for before
//! the note of the new one was written.
//!
//! - The rules are written down here once more, in short form. They are not the library's code.
//! - A note may be written under a lease of any age: what a client has sent may arrive late.
//! - A client gives up a request when the time it would hold the lock is over. A request that is given up earlier, or
//!   arrives later, only keeps others out.
//! - Owners keep their data here. The guard is there for those that lose it (`docs/guard.md`). A node that is promoted
//!   again is another owner, whose notes begin anew.
//! - An arbiter that learns of an owner before it is promoted is like one that learns of it at that moment.
//!
//! `cargo test --test ownership` goes through two starts and finds the mistakes that need few states, in a few seconds.
//! `make model` goes through all twelve and finds the other mistakes. The twelve have 10,206, 33,550, 76,200, 202,489,
//! 552,692, 3,359,328, 2,385,022, 26,647,005, 5,296,192, 238,799, 14,737,837 and 3,343,368 states. That takes one
//! processor seven minutes, and 1.3 GB.

mod asking;
mod electing;
mod key;
mod locking;
mod mistakes;
mod passing;
mod rules;
mod search;
mod starts;
mod state;
mod symmetry;
