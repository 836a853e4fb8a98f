//! The library is a guest in another program's process. These tests check its effects there besides locking.
//! Each test runs a C program of `tests/programs/c`, and that program makes the checks. The test has the
//! servers, breaks them, and looks at what they received.

#[path = "../../support/mod.rs"]
mod support;

mod failing;
mod manners;
mod uses;
