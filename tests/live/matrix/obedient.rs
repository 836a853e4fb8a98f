//! A client in its own process, `tests/programs/c/obedient.c`. A test can stop it and move its clocks.

use crate::support::program::Running;
use crate::support::shim::Environment;
use crate::support::{Cluster, Program};

pub(crate) struct Client {
    running: Running,
}

/// The result of an order, and what the client believes after it.
#[derive(Debug)]
pub(crate) struct Said {
    /// Such as "REDLOCK_OK".
    pub(crate) status: String,
    pub(crate) held: bool,
    pub(crate) remaining_ms: i64,
    /// The last moment at which the client believed that it held the lock, in milliseconds since boot. None if
    /// there was no such moment since the order.
    pub(crate) believed_until_ms: Option<i64>,
    pub(crate) words: String,
}

impl Client {
    /// Starts a client that is connected to all of the servers.
    pub(crate) fn start(cluster: &Cluster, environment: &Environment) -> Self {
        let mut running = Program::compile("obedient").start_in(environment, &cluster.urls());
        running.hears("ready");
        Self { running }
    }

    /// Executes an order.
    #[track_caller]
    pub(crate) fn does(&mut self, order: &str) -> Said {
        self.begins(order);
        self.tells()
    }

    /// As [`Client::does`], and the order must succeed.
    #[track_caller]
    pub(crate) fn must(&mut self, order: &str) -> Said {
        let said = self.does(order);
        assert_eq!(said.status, "REDLOCK_OK", "{order}: {said:?}");
        said
    }

    /// Begins to execute an order.
    #[track_caller]
    pub(crate) fn begins(&mut self, order: &str) {
        self.running.says(order);
    }

    /// The result of the order.
    #[track_caller]
    pub(crate) fn tells(&mut self) -> Said {
        let line = self.running.hears_a_word();
        let said = parse(&line);
        said.unwrap_or_else(|| panic!("that is no answer: {line:?}"))
    }

    pub(crate) fn running(&self) -> &Running {
        &self.running
    }
}

fn parse(line: &str) -> Option<Said> {
    let (numbers, words) = line.split_once(':')?;
    let mut numbers = numbers.split(' ');
    let status = numbers.next()?.to_owned();
    let held = numbers.next()? == "1";
    let remaining_ms = numbers.next()?.parse().ok()?;
    let believed_until_ms = numbers.next()?.parse().ok().filter(|it| *it >= 0);
    Some(Said { status, held, remaining_ms, believed_until_ms, words: words.trim().to_owned() })
}
