//! Failovers, one after another, while workers lock: three masters, their copies, and three Sentinels that
//! watch all of them.
//!
//! `make test` runs a few. `REDLOCK_FAILOVERS=100 cargo test --test matrix m08_many -- --ignored --nocapture`
//! runs as many as requested, and prints for how long no worker got a lock. With `REDLOCK_LAWLESS=1` servers
//! that forget keep their votes, and the test must fail.

use std::fmt::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{env, iter, mem, process, thread};

use redlock::ffi::status::RedLockStatus::{REDLOCK_OK, REDLOCK_TAKEN, REDLOCK_UNREACHABLE};

use crate::history::{self, File, History, Limits};
use crate::support::sentinels::{Group, Sentinel, anew, info, url};
use crate::support::usage::{make_brief, unguarded};
use crate::support::{Lease, Manager, wait_until, wait_until_ok};

const WORKERS: u64 = 6;
const RESOURCES: [&str; 4] = ["a", "b", "c", "d"];
const TTL: i64 = 1_500;

/// The progress of the workers.
#[derive(Default)]
struct Board {
    stops: AtomicBool,
    counters: [AtomicU64; RESOURCES.len()],
    locks: AtomicU64,
    /// When the last lock was taken, and the longest time without a new lock.
    last: Mutex<Option<Instant>>,
    longest: Mutex<Duration>,
}

impl Board {
    fn note_lock(&self) {
        self.locks.fetch_add(1, Ordering::Relaxed);
        let now = Instant::now();
        let last = self.last.lock().expect("not poisoned").replace(now);
        let mut longest = self.longest.lock().expect("not poisoned");
        *longest = last.map_or(*longest, |last| longest.max(now - last));
    }

    /// Returns when a lock was taken that was requested after this.
    fn await_lock(&self) {
        let before = self.locks.load(Ordering::Relaxed);
        wait_until("a lock is had", || self.locks.load(Ordering::Relaxed) > before + WORKERS);
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

/// Locks, counts, and now and then goes away without a release. Returns its log.
fn work(number: u64, manager: &Manager, board: &Board) -> File {
    let process = format!("w{number}");
    let mut log = format!("{} {process}:0 begin pid={}\n", now(), 100_000 + number);
    let mut roll = dice(number + 1);
    let mut say = |time: i64, words: String| _ = writeln!(log, "{time} {process}:0 {words}");
    while !board.stops.load(Ordering::Relaxed) {
        let which = usize::try_from(roll(4)).expect("small");
        let resource = RESOURCES[which];
        let lease = Lease::new();
        say(now(), format!("call op=try_lock resource={resource} ttl={TTL} bound=5000"));
        let status = manager.try_lock(resource, TTL, 100, &lease);
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
        if lease.remaining_ms() > TTL / 3 {
            let value = board.counters[which].load(Ordering::SeqCst) + 1;
            let of = format!("resource={resource} token={token} value={value}");
            say(now(), format!("writing {of}"));
            if lease.remaining_ms() > TTL / 5 {
                board.counters[which].store(value, Ordering::SeqCst);
                say(now(), format!("wrote {of}"));
            } else {
                say(now(), format!("abandon {of}"));
            }
        }
        // Most holds are short. Some last as long as they may.
        let pause = if roll(10) == 0 { roll(TTL.unsigned_abs()) } else { roll(20) };
        thread::sleep(Duration::from_millis(pause));
        if roll(12) == 0 {
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

/// How a master loses its role.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Killed,
    /// A person tells the Sentinels to fail over.
    ByHand,
    /// It is resumed later, believes that it is the master, and answers.
    Frozen,
}

/// Makes another server replace the master, and makes the old master follow it.
fn fail_over(group: &Group, sentinels: &[Sentinel], way: Way, board: &Board) {
    let old = sentinels[0].master_of(&group.name);
    let old_server = group.at(&old);
    match way {
        Way::Killed => old_server.kill(),
        Way::Frozen => old_server.freeze(),
        Way::ByHand => sentinels[0].fail_over(&group.name, &old),
    }
    wait_until("another one is the master", || {
        let new = sentinels[0].master_of(&group.name);
        new != old && info(group.at(&new)).contains("role:master")
    });
    match way {
        Way::Killed => old_server.restart(),
        Way::Frozen => {
            old_server.resume();
            board.await_lock();
        }
        Way::ByHand => {}
    }
    wait_until_ok("all Sentinels agree", || settle(group, sentinels));
}

/// Makes the group's other server follow the master that the Sentinels agree on, whichever that is. On a busy
/// machine the Sentinels may consider the new master to be down, and promote the old one again.
fn settle(group: &Group, sentinels: &[Sentinel]) -> Result<(), String> {
    let address = sentinels[0].master_of(&group.name);
    for sentinel in sentinels {
        let state = sentinel.state_of(&group.name);
        let (other, flags) = (sentinel.master_of(&group.name), &state["flags"]);
        if other != address || flags != "master" {
            return Err(format!("{}: the master is {other}, {flags}", sentinel.address()));
        }
    }
    let master = group.at(&address);
    if !info(master).contains("role:master") {
        // It was told to follow another server just as the Sentinels chose it.
        anew(master, &["REPLICAOF", "NO", "ONE"]);
        return Err(format!("{address} does not know that it is the master"));
    }
    for server in group.servers.iter().filter(|it| it.address() != address) {
        if !info(server).contains(&format!("master_port:{}", master.port())) {
            anew(server, &["REPLICAOF", "127.0.0.1", &master.port().to_string()]);
        }
    }
    match sentinels.iter().find(|it| !it.knows_good_replica(&group.name)) {
        Some(sentinel) => Err(format!("{} knows of no replica that is well", sentinel.address())),
        None => Ok(()),
    }
}

/// Returns when the group's master has its vote again.
fn await_vote(manager: &Manager, place: usize) {
    let lease = Lease::new();
    wait_until("the vote is back", || {
        if manager.try_lock("vote", TTL, 0, &lease) == REDLOCK_OK {
            assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
        }
        manager.servers()[place].votes
    });
}

fn storm(failovers: usize, waits_for_votes: fn(usize) -> bool) {
    let groups: Vec<Group> = ["g1", "g2", "g3"].map(|name| Group::start(name, 2, TTL)).into();
    let masters: Vec<_> = groups.iter().map(Group::master_port).collect();
    let sentinels: Vec<_> = iter::repeat_with(|| Sentinel::start(&masters, 2)).take(3).collect();
    for (sentinel, group) in sentinels.iter().flat_map(|it| iter::repeat(it).zip(&groups)) {
        sentinel.await_company(&group.name, 1, 2);
    }
    let addresses: Vec<_> = sentinels.iter().map(Sentinel::address).collect();
    let urls: Vec<_> = groups.iter().map(|it| url(&addresses, &it.name)).collect();
    let manager = || {
        let manager = Manager::of_urls(&urls);
        make_brief(&manager);
        if env::var_os("REDLOCK_LAWLESS").is_some() { unguarded(manager) } else { manager }
    };
    let board = Board::default();
    let mut times = Vec::new();
    let files: Vec<File> = thread::scope(|scope| {
        let (board, manager) = (&board, &manager);
        let workers: Vec<_> =
            (0..WORKERS).map(|it| scope.spawn(move || work(it, &manager(), board))).collect();
        let driving = scope.spawn(|| {
            let watching = manager();
            board.await_lock();
            for number in 0..failovers {
                // Each group in each way.
                let (round, place) = (number / groups.len(), number % groups.len());
                let way = [Way::Killed, Way::ByHand, Way::Frozen][(round + place) % 3];
                fail_over(&groups[place], &sentinels, way, board);
                let began = Instant::now();
                board.await_lock();
                if waits_for_votes(number) {
                    await_vote(&watching, place);
                    times.push(began.elapsed());
                }
            }
        });
        let driven = driving.join();
        board.stops.store(true, Ordering::Relaxed);
        let files = workers.into_iter().map(|it| it.join().expect("it ends")).collect();
        driven.expect("the failovers succeed");
        files
    });
    let mut driver = format!("{} driver:0 begin pid={}\n", 1, process::id());
    for (resource, counter) in RESOURCES.iter().zip(&board.counters) {
        let value = counter.load(Ordering::SeqCst);
        let _ = writeln!(driver, "{} driver:0 counter resource={resource} value={value}", now());
    }
    let _ = writeln!(driver, "{} driver:0 end", now());
    let driver = File { process: "driver".to_owned(), bytes: driver.into_bytes() };
    let files: Vec<_> = files.into_iter().chain([driver]).collect();
    let limits = Limits { late_ms: 600_000, ..Limits::default() };
    let history = History::read(&files);
    let violations = history::check(&history, &limits);
    let words: Vec<_> = violations.iter().map(ToString::to_string).collect();
    println!(
        "{failovers} failovers, {} locks, {} violations; longest without a lock {:?}; until the vote was back at most {:?}",
        board.locks.load(Ordering::Relaxed),
        words.len(),
        board.longest.lock().expect("not poisoned"),
        times.iter().max(),
    );
    assert!(words.is_empty(), "{}", words.join("\n"));
    drop(groups);
}

#[test]
fn m08_failovers_under_load_allow_no_two_holders() {
    storm(3, |_| false);
}

/// Every second failover comes before the vote of the previous master is back.
#[test]
#[ignore = "takes minutes"]
fn m08_many_failovers_under_load_allow_no_two_holders() {
    let count = env::var("REDLOCK_FAILOVERS").ok().and_then(|it| it.parse().ok());
    storm(count.unwrap_or(100), |number| number % 2 == 0);
}
