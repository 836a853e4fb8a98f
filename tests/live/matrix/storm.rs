//! Workers that lock, hold and go away, while a test changes something, and the check of all that they have seen.

use std::fmt::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{mem, process, thread};

use redlock::ffi::status::RedLockStatus::{REDLOCK_OK, REDLOCK_TAKEN, REDLOCK_UNREACHABLE};

use crate::history::{self, File, History, Limits};
use crate::support::{Lease, Manager, wait_until};

const RESOURCES: [&str; 4] = ["a", "b", "c", "d"];

/// What the workers do.
#[derive(Clone, Copy)]
pub(crate) struct Load {
    pub(crate) workers: u64,
    pub(crate) ttl_ms: i64,
    /// Most holds are short. Some last for up to this time.
    pub(crate) hold_ms: u64,
    /// Whether a worker now and then goes away without a release.
    pub(crate) some_vanish: bool,
}

/// The progress of the workers.
pub(crate) struct Board {
    load: Load,
    stops: AtomicBool,
    counters: [AtomicU64; RESOURCES.len()],
    locks: AtomicU64,
    /// When the last lock was taken, and the longest time without a new lock.
    last: Mutex<Option<Instant>>,
    longest: Mutex<Duration>,
}

impl Board {
    fn new(load: Load) -> Self {
        let (stops, counters, locks, last, longest) = Default::default();
        Self { load, stops, counters, locks, last, longest }
    }

    fn note_lock(&self) {
        self.locks.fetch_add(1, Ordering::Relaxed);
        let now = Instant::now();
        let last = self.last.lock().expect("not poisoned").replace(now);
        let mut longest = self.longest.lock().expect("not poisoned");
        *longest = last.map_or(*longest, |last| longest.max(now - last));
    }

    /// Returns when a lock was taken that was requested after this.
    pub(crate) fn await_lock(&self) {
        let before = self.locks.load(Ordering::Relaxed);
        let wanted = before + self.load.workers;
        wait_until("a lock is had", || self.locks.load(Ordering::Relaxed) > wanted);
    }

    fn check(&self, files: Vec<File>) -> String {
        let mut driver = format!("{} driver:0 begin pid={}\n", 1, process::id());
        for (resource, counter) in RESOURCES.iter().zip(&self.counters) {
            let value = counter.load(Ordering::SeqCst);
            let _ =
                writeln!(driver, "{} driver:0 counter resource={resource} value={value}", now());
        }
        let _ = writeln!(driver, "{} driver:0 end", now());
        let driver = File { process: "driver".to_owned(), bytes: driver.into_bytes() };
        let files: Vec<_> = files.into_iter().chain([driver]).collect();
        let limits = Limits { late_ms: 600_000, ..Limits::default() };
        let violations = history::check(&History::read(&files), &limits);
        let words: Vec<_> = violations.iter().map(ToString::to_string).collect();
        let locks = self.locks.load(Ordering::Relaxed);
        let longest = *self.longest.lock().expect("not poisoned");
        let said = format!(
            "{locks} locks, {} violations; longest without a lock {longest:?}",
            words.len()
        );
        assert!(words.is_empty(), "{said}\n{}", words.join("\n"));
        said
    }
}

/// `CLOCK_BOOTTIME` in nanoseconds.
fn now() -> i64 {
    // SAFETY: all zeros is a value of this plain C structure.
    let mut time: libc::timespec = unsafe { mem::zeroed() };
    // SAFETY: `time` may be written to.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &raw mut time) };
    assert_eq!(result, 0, "there is such a clock");
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// Random numbers. Their sequence depends only on the seed.
fn dice(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    move |below| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    }
}

/// Locks and counts until it is told to stop. Returns its log.
fn work(number: u64, manager: &Manager, board: &Board) -> File {
    let Load { ttl_ms, hold_ms, some_vanish, .. } = board.load;
    let process = format!("w{number}");
    let mut log = format!("{} {process}:0 begin pid={}\n", now(), 100_000 + number);
    let mut roll = dice(number + 1);
    let mut say = |time: i64, words: String| _ = writeln!(log, "{time} {process}:0 {words}");
    while !board.stops.load(Ordering::Relaxed) {
        let which = usize::try_from(roll(4)).expect("small");
        let resource = RESOURCES[which];
        let lease = Lease::new();
        say(now(), format!("call op=try_lock resource={resource} ttl={ttl_ms} bound=5000"));
        let status = manager.try_lock(resource, ttl_ms, 100, &lease);
        let (before, left_ms, after) = (now(), lease.remaining_ms(), now());
        if status != REDLOCK_OK {
            assert!(
                [REDLOCK_TAKEN, REDLOCK_UNREACHABLE].contains(&status),
                "{status:?}: {}",
                lease.message()
            );
            let name = if status == REDLOCK_TAKEN { "TAKEN" } else { "UNREACHABLE" };
            say(after, format!("return op=try_lock resource={resource} status={name} held=0"));
            continue;
        }
        board.note_lock();
        let token = lease.token();
        let until = before + left_ms * 1_000_000;
        let until_max = after + (left_ms + 1) * 1_000_000;
        let held = if left_ms > 0 {
            format!("held=1 token={token} until={until} until_max={until_max}")
        } else {
            "held=0".to_owned()
        };
        say(after, format!("return op=try_lock resource={resource} status=OK {held}"));
        if left_ms == 0 {
            continue;
        }
        // A write takes no time, and does not begin with little time left.
        if lease.remaining_ms() > ttl_ms / 3 {
            let value = board.counters[which].load(Ordering::SeqCst) + 1;
            let of = format!("resource={resource} token={token} value={value}");
            say(now(), format!("writing {of}"));
            if lease.remaining_ms() > ttl_ms / 5 {
                board.counters[which].store(value, Ordering::SeqCst);
                say(now(), format!("wrote {of}"));
            } else {
                say(now(), format!("abandon {of}"));
            }
        }
        let pause = if roll(10) == 0 { roll(hold_ms) } else { roll(20) };
        thread::sleep(Duration::from_millis(pause));
        if some_vanish && roll(12) == 0 {
            say(now(), format!("drop resource={resource} token={token}"));
            continue;
        }
        say(now(), format!("call op=unlock resource={resource} bound=5000 token={token}"));
        let status = manager.unlock(&lease);
        let name = match status {
            REDLOCK_OK => "OK",
            REDLOCK_UNREACHABLE => "UNREACHABLE",
            _ => "LOST",
        };
        say(now(), format!("return op=unlock resource={resource} status={name} held=0"));
    }
    say(now(), "end".to_owned());
    File { process, bytes: log.into_bytes() }
}

/// Has workers lock through these managers while `drive` runs. Checks that there is one holder at a time. Returns what
/// happened, in words.
pub(crate) fn run(managers: &[Manager], load: Load, drive: impl FnOnce(&Board) + Send) -> String {
    let board = Board::new(load);
    let files: Vec<File> = thread::scope(|scope| {
        let board = &board;
        let places = (0..load.workers).zip(managers.iter().cycle());
        let workers: Vec<_> =
            places.map(|(it, manager)| scope.spawn(move || work(it, manager, board))).collect();
        let driving = scope.spawn(move || {
            board.await_lock();
            drive(board);
        });
        let driven = driving.join();
        board.stops.store(true, Ordering::Relaxed);
        let files = workers.into_iter().map(|it| it.join().expect("it ends")).collect();
        driven.expect("what is to happen succeeds");
        files
    });
    board.check(files)
}
