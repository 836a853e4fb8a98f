//! `redlock`, the command: its exit statuses, what becomes of the program that it runs, what it tells of the servers, and
//! what it keeps to itself. Each test runs the built program against servers of its own.

#[path = "../support/mod.rs"]
mod support;

mod beyond;
mod clusters;
mod command;
mod kinds;
mod looks;
mod lost;
mod manual;
mod page;
mod readers;
mod secrets;
mod signals;
mod statuses;
mod terminal;
mod tickets;
mod trials;
mod unlock;
