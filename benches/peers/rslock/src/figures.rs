//! Shared parts of the workers, and the line of figures at the end of a run.

use std::fmt::Write;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use crate::worker::Worker;

const PERCENTS: [f64; 23] = [
    1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 75.0, 80.0, 85.0, 90.0, 93.0, 95.0, 97.0,
    98.0, 99.0, 99.5, 99.7, 99.9, 99.95, 99.99,
];

/// Which worker held the contended resource last. Numbers begin at 1 here.
#[derive(Default)]
pub struct Board {
    last: AtomicUsize,
    inside: AtomicUsize,
    handovers: AtomicUsize,
    overlaps: AtomicUsize,
}

impl Board {
    pub fn clear(&self) {
        self.handovers.store(0, Relaxed);
    }

    pub fn enter(&self, number: usize) {
        if self.inside.fetch_add(1, Relaxed) != 0 {
            self.overlaps.fetch_add(1, Relaxed);
        }
        if self.last.swap(number + 1, Relaxed) != number + 1 {
            self.handovers.fetch_add(1, Relaxed);
        }
    }

    pub fn leave(&self) {
        self.inside.fetch_sub(1, Relaxed);
    }
}

pub fn processor_time() -> Duration {
    // SAFETY: all zeroes are a valid value of this structure of integers.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a structure of the right type.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut usage) };
    let of = |t: libc::timeval| {
        Duration::from_secs(t.tv_sec.unsigned_abs())
            + Duration::from_micros(t.tv_usec.unsigned_abs())
    };
    of(usage.ru_utime) + of(usage.ru_stime)
}

pub fn line(workers: &[Worker], board: Option<&Board>, took: Duration, busy: Duration) -> String {
    let cycles: usize = workers.iter().map(|w| w.cycles).sum();
    let failed: usize = workers.iter().map(|w| w.failed).sum();
    let mut line = format!(
        "cycles={cycles} failed={failed} busy_us={} seconds={:.6}",
        busy.as_micros(),
        took.as_secs_f64()
    );
    if let Some(board) = board {
        contention(&mut line, workers, board, cycles);
    }
    percentiles(&mut line, "lock", workers.iter().flat_map(|w| &w.locks).copied().collect());
    percentiles(&mut line, "unlock", workers.iter().flat_map(|w| &w.unlocks).copied().collect());
    line
}

// Writing to a string does not fail. This also holds below.
fn contention(line: &mut String, workers: &[Worker], board: &Board, cycles: usize) {
    let least = workers.iter().map(|w| w.cycles).min().unwrap_or(0);
    let most = workers.iter().map(|w| w.cycles).max().unwrap_or(0);
    let handovers = board.handovers.load(Relaxed);
    let overlaps = board.overlaps.load(Relaxed);
    let _ = write!(line, " handovers={handovers} overlaps={overlaps} least={least} most={most}");
    if cycles > 0 {
        let held: Duration = workers.iter().map(|w| w.held).sum();
        let _ = write!(line, " hold_us={:.1}", held.as_secs_f64() * 1e6 / cycles as f64);
    }
}

fn percentiles(line: &mut String, name: &str, mut samples: Vec<Duration>) {
    samples.sort();
    let count = samples.len() as f64;
    for percent in PERCENTS {
        let below = count * percent / 100.0;
        if let Some(sample) = samples.get(below as usize)
            && (percent <= 50.0 || below < count - 1.0)
        {
            let _ = write!(line, " {name}_p{percent}_us={:.2}", sample.as_secs_f64() * 1e6);
        }
    }
}
