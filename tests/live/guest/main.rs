//! The library is a guest in somebody else's process: what it does there besides locking. Each
//! test runs a C program of `tests/programs/c`, which makes the checks; the test has the servers, breaks
//! them, and looks at what they were told.

#[path = "../../support/mod.rs"]
mod support;

mod failing;
mod manners;
mod uses;
