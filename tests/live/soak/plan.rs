//! How long, how much, and with which dice.

use std::env;
use std::process;
use std::time::{Duration, SystemTime};

/// The settings of a soak.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// How long there are faults.
    pub(crate) time: Duration,
    /// How long there are no faults afterwards, before the remaining keys are checked.
    pub(crate) calm: Duration,
    pub(crate) seed: u64,
    pub(crate) workers: usize,
    /// How many of them are never killed.
    pub(crate) steady: usize,
    pub(crate) resources: usize,
    /// Whether servers forget their keys. The promise does not allow that.
    pub(crate) is_lawless: bool,
}

impl Plan {
    pub(crate) fn short() -> Self {
        Self {
            time: Duration::from_secs(8),
            calm: Duration::from_secs(1),
            seed: seed(),
            workers: 6,
            steady: 2,
            resources: 3,
            is_lawless: false,
        }
    }

    pub(crate) fn short_and_lawless() -> Self {
        Self { time: Duration::from_secs(4), is_lawless: true, ..Self::short() }
    }

    pub(crate) fn from_environment() -> Self {
        let minutes: f64 = number("REDLOCK_MINUTES").unwrap_or(5.0);
        Self {
            time: Duration::from_secs_f64(minutes * 60.0),
            calm: Duration::from_secs(3),
            workers: 8,
            resources: 5,
            is_lawless: env::var("REDLOCK_LAWLESS").is_ok_and(|it| !it.is_empty()),
            ..Self::short()
        }
    }
}

/// Another seed each time, unless one is given.
fn seed() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let some = u64::from(process::id()) << 20 ^ u64::from(now.subsec_micros());
    number("REDLOCK_SEED").unwrap_or(some)
}

fn number<T: std::str::FromStr>(name: &str) -> Option<T> {
    let text = env::var(name).ok().filter(|it| !it.is_empty())?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")))
}
