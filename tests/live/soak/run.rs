//! A soak from beginning to end.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use crate::fleet::{self, Fleet};
use crate::ground::{Ground, SERVERS};
use crate::history::{self, File, History, Limits, Rule, Violation};
use crate::journal::{self, Journal, hash};
use crate::plan::Plan;
use crate::report::Report;
use crate::storm::{Faults, Storm};
use crate::support::client::{Lease, Manager};
use crate::support::directory::Directory;
use redlock::ffi::status::RedLockStatus;

/// The longest TTL of a shared resource, of worker/worker.c, and a little more.
const TTL_MAX: Duration = Duration::from_millis(4000);

/// A contended resource must be available again within this time.
const RECOVERY_MS: i64 = 20_000;

/// How long a call may wait for a processor after its time is up, on a machine with so much other load. The
/// lateness of this process is added, doubled.
const LATE: Duration = Duration::from_secs(2);

pub(crate) fn run(plan: &Plan) -> Report {
    let logs = Logs { directory: Directory::new(), seed: plan.seed };
    let (faults, mut violations) = work(plan, logs.directory.path());
    let late = LATE + 2 * faults.lateness;
    let limits = Limits { late_ms: late.as_millis() as i64, ..Limits::default() };
    let files = logs.read();
    let history = History::read(&files);
    violations.extend(history::check(&history, &limits));
    let mut report = Report::new(plan, &history, faults, violations);
    if !report.is_clean() && !plan.is_lawless {
        report.kept = Some(logs.keep());
    }
    report
}

/// Everything that leaves lines in logs. Returns the violations that the logs do not show.
fn work(plan: &Plan, logs: &Path) -> (Faults, Vec<Violation>) {
    let ground = Ground::new();
    let journal = Journal::new(logs);
    let mut fleet = Fleet::start(plan, &journal, logs, &ground);
    let faults = Storm::new(plan, &ground, &mut fleet, &journal).rage();
    let healed = journal::now();
    journal.say_at(healed, "healed");
    let manager = Manager::at(&ground.addresses());
    let again = (0..plan.resources).map(fleet::resource);
    let found = again.filter_map(|it| have_again(&it, &manager, &journal)).collect();
    // Releases that were waiting for a server are sent in the course of other calls.
    thread::sleep(plan.calm);
    fleet.rest();
    list(&ground, &journal, healed);
    fleet.end();
    thread::sleep(TTL_MAX);
    list(&ground, &journal, healed);
    for (resource, value) in fleet.counters() {
        journal.say(format_args!("counter resource={resource} value={value}"));
    }
    journal.say("end");
    (faults, found)
}

/// Takes and releases a lock in competition with all other clients. If it cannot, returns the reason.
fn have_again(resource: &str, manager: &Manager, journal: &Journal) -> Option<Violation> {
    let lease = Lease::new();
    let bound = RECOVERY_MS + 2000;
    journal.say(format_args!("call op=try_lock resource={resource} ttl=1000 bound={bound}"));
    let status = manager.try_lock(resource, 1000, RECOVERY_MS, &lease);
    let (time, left_ms) = (journal::now(), lease.remaining_ms());
    let until = time + left_ms * 1_000_000;
    let until_max = journal::now() + (left_ms + 1) * 1_000_000;
    let begin = format!("return op=try_lock resource={resource} status={}", name(status));
    if status != RedLockStatus::REDLOCK_OK {
        journal.say_at(time, format_args!("{begin} held=0"));
        let words =
            format!("{resource}, {RECOVERY_MS} ms after the last fault: {}", lease.message());
        return Some(Violation::new(Rule::NotRecovered, words, &[]));
    }
    let token = hash(&lease.token());
    let held = format!("held=1 token={token} until={until} until_max={until_max}");
    journal.say_at(time, format_args!("{begin} {held}"));
    journal.say(format_args!("call op=unlock resource={resource} bound=2000 token={token}"));
    let status = name(manager.unlock(&lease));
    journal.say(format_args!("return op=unlock resource={resource} status={status} held=0"));
    None
}

/// The form in logs.
fn name(status: RedLockStatus) -> String {
    format!("{status:?}").trim_start_matches("REDLOCK_").to_owned()
}

fn list(ground: &Ground, journal: &Journal, settled: i64) {
    journal.say(format_args!("listing settled={settled}"));
    for number in 0..SERVERS {
        for key in ground.keys(number) {
            journal.say(format_args!(
                "left server=s{number} resource={} token={} pttl={}",
                key.name, key.token, key.pttl_ms
            ));
        }
    }
}

/// The logs. They are kept if something went wrong, so that it can be investigated.
struct Logs {
    directory: Directory,
    seed: u64,
}

impl Logs {
    fn read(&self) -> Vec<File> {
        let mut paths = self.paths();
        paths.sort();
        let read = |path: PathBuf| File {
            process: path.file_stem().expect("it has a name").to_string_lossy().into_owned(),
            bytes: fs::read(&path).expect("it can be read"),
        };
        paths.into_iter().map(read).collect()
    }

    fn paths(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.directory.path()).expect("the logs are there").flatten();
        let is_log = |path: &PathBuf| path.extension().is_some_and(|it| it == "log");
        entries.map(|it| it.path()).filter(is_log).collect()
    }

    /// Copies them to a directory that is not removed.
    fn keep(&self) -> PathBuf {
        let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("soak-{}", self.seed));
        let _ = fs::remove_dir_all(&place);
        fs::create_dir_all(&place).expect("a directory can be made");
        for path in self.paths() {
            let name = path.file_name().expect("it has a name");
            fs::copy(&path, place.join(name)).expect("it can be copied");
        }
        place
    }
}

impl Drop for Logs {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("The logs are in {}", self.keep().display());
        }
    }
}
