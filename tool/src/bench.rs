//! `redlock bench`: how long a lock takes on these servers.

use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use redlock::{Error, Manager, Options};
use serde_json::json;

use crate::cli::Common;
use crate::failure::Failure;
use crate::histogram::Histogram;
use crate::output;
use crate::screen;
use crate::servers::Servers;

/// The longest measurement that is allowed.
const LONGEST: Duration = Duration::from_secs(600);

const TTL: Duration = Duration::from_secs(10);

/// After this many failures in a row, a thread gives up its measurement.
const FAILURES_MAX: usize = 10;

#[derive(Default)]
struct Times {
    lock: Vec<Duration>,
    unlock: Vec<Duration>,
    failures: usize,
    last: Option<Error>,
}

pub(crate) fn bench(
    common: &Common,
    duration: Duration,
    threads: u16,
) -> Result<ExitCode, Failure> {
    if duration > LONGEST || duration.is_zero() {
        return Err(Failure::usage("--duration must be more than 0s and at most 10m"));
    }
    let manager = Servers::find(common)?.builder(common)?.build()?;
    let absent = manager.connect(Duration::ZERO)?;
    let start = Instant::now();
    let all = thread::scope(|scope| {
        let run = |number| {
            let manager = &manager;
            scope.spawn(move || measure(manager, number, start + duration))
        };
        let running: Vec<_> = (0..threads).map(run).collect();
        running.into_iter().flat_map(|it| it.join()).fold(Times::default(), Times::plus)
    });
    let took = start.elapsed();
    if let (0, Some(error)) = (all.lock.len(), all.last) {
        return Err(error.into());
    }
    let (lock, unlock) = (Histogram::new(all.lock), Histogram::new(all.unlock));
    #[allow(clippy::cast_precision_loss)]
    let rate = lock.count() as f64 / took.as_secs_f64();
    let servers = manager.servers().len();
    if common.json {
        output::print_line(json!({"servers": servers, "threads": threads,
            "seconds": took.as_secs_f64(), "locks_per_second": rate, "failures": all.failures,
            "absent": absent, "lock": lock.as_json(), "unlock": unlock.as_json()}))?;
        return Ok(ExitCode::SUCCESS);
    }
    let seconds = took.as_secs_f64();
    let mut page =
        format!("{servers} servers, {threads} threads, {seconds:.1} s: {rate:.0} locks/s\n");
    if !absent.is_empty() {
        page += &format!("without {absent}\n");
    }
    if all.failures > 0 {
        page += &format!("{} calls failed\n", all.failures);
    }
    let width = screen::width().saturating_sub(30).clamp(10, 60);
    for (name, histogram) in [("lock", lock), ("unlock", unlock)] {
        page += &format!("\n{name}: {}\n{}", histogram.summary(), histogram.draw(width));
    }
    output::print(page)?;
    Ok(ExitCode::SUCCESS)
}

fn measure(manager: &Manager, number: u16, end: Instant) -> Times {
    let mut times = Times::default();
    let options = Options::new(format!("redlock:bench:{}:{number}", std::process::id()), TTL);
    let mut in_a_row = 0;
    while Instant::now() < end && in_a_row < FAILURES_MAX {
        let begin = Instant::now();
        let taken = manager.acquire(&options);
        let granted = Instant::now();
        let outcome = taken.and_then(|mut lease| {
            times.lock.push(granted - begin);
            lease.unlock()
        });
        match outcome {
            Ok(()) => {
                times.unlock.push(granted.elapsed());
                in_a_row = 0;
            }
            Err(error) => {
                times.failures += 1;
                in_a_row += 1;
                times.last = Some(error);
            }
        }
    }
    times
}

impl Times {
    fn plus(mut self, other: Self) -> Self {
        self.lock.extend(other.lock);
        self.unlock.extend(other.unlock);
        self.failures += other.failures;
        self.last = self.last.or(other.last);
        self
    }
}
