//! Plays the inputs that `make fuzz` has found worth keeping, and a short run of mutations of them.

use std::fs;
use std::panic;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::{calls, replies, seen, urls};

/// How much time each target gets for mutations.
const TIME: Duration = Duration::from_secs(2);

#[test]
fn replies_are_parsed_by_their_bytes() {
    let seen = play("replies", replies::replies);
    for kind in [
        "Absent", "Done", "Enrolled", "Failed", "Foreign", "Found", "Free", "TooLarge", "Unwanted",
        "Woke",
    ] {
        assert!(seen.iter().any(|it| it == kind), "no reply is {kind}: {seen:?}");
    }
}

#[test]
fn hostile_server_names_do_no_harm() {
    let seen = play("urls", urls::urls);
    assert_eq!(seen, ["REDLOCK_INVALID_ARGUMENT", "REDLOCK_OK"]);
}

#[test]
fn hostile_calls_do_no_harm() {
    let seen = play("calls", calls::calls);
    for status in [
        "OK",
        "TAKEN",
        "UNREACHABLE",
        "TOO_SLOW",
        "LOST",
        "CANCELLED",
        "TOO_SHORT",
        "INVALID_ARGUMENT",
        "NO_SERVERS",
    ] {
        let status = format!("REDLOCK_{status}");
        assert!(seen.contains(&status), "no call is {status}: {seen:?}");
    }
    for event in ["EventDone", "EventLost", "NoEvent"] {
        assert!(seen.iter().any(|it| it == event), "no {event}: {seen:?}");
    }
    // With several resources: one is in the way, or the client waits for it.
    for answer in ["Blocked", "EnrolledForOne"] {
        assert!(seen.iter().any(|it| it == answer), "no reply is {answer}: {seen:?}");
    }
}

/// Plays the files of a target, and mutations. Returns what was seen with the files.
fn play(target: &str, body: fn(&[u8])) -> Vec<String> {
    let corpus = corpus(target);
    for (name, data) in &corpus {
        run(body, name, data);
    }
    let seen = seen::all();
    let mut dice = Dice(0x2545_F491_4F6C_DD1D);
    let begin = Instant::now();
    let mut runs = 0;
    while begin.elapsed() < TIME {
        let data = mutation(&corpus, &mut dice);
        run(body, &format!("mutation {runs}"), &data);
        runs += 1;
    }
    println!("{target}: {} files, {runs} mutations", corpus.len());
    seen
}

/// Runs the target. If it fails, prints the bytes.
fn run(body: fn(&[u8]), name: &str, data: &[u8]) {
    if let Err(why) = panic::catch_unwind(|| body(data)) {
        eprintln!("{name} fails, as do these bytes: \"{}\"", data.escape_ascii());
        panic::resume_unwind(why);
    }
}

/// The files of a target, in the order of their names.
fn corpus(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let entries = fs::read_dir(folder).expect("a corpus").map(|it| it.expect("a file").path());
    let named = |it: &Path| it.file_name().map(|it| it.to_string_lossy().into_owned());
    let mut files: Vec<_> = entries
        .map(|it| (named(&it).expect("a name"), fs::read(&it).expect("a file that can be read")))
        .collect();
    assert!(files.len() > 5, "there is hardly a corpus for {target}");
    files.sort();
    files
}

/// One of the files, changed in some places, or with the end of another one.
fn mutation(corpus: &[(String, Vec<u8>)], dice: &mut Dice) -> Vec<u8> {
    let mut data = corpus[dice.below(corpus.len())].1.clone();
    for _ in 0..=dice.below(4) {
        let at = dice.below(data.len() + 1);
        match dice.below(6) {
            0 => data.truncate(at),
            1 => data.insert(at, dice.byte()),
            2 if at < data.len() => {
                data.remove(at);
            }
            3 if at < data.len() => data[at] = dice.byte(),
            4 if at < data.len() => {
                data[at] = data[at].wrapping_add(dice.byte() % 5).wrapping_sub(2)
            }
            _ => {
                let other = &corpus[dice.below(corpus.len())].1;
                data.truncate(at);
                data.extend_from_slice(&other[dice.below(other.len() + 1)..]);
            }
        }
    }
    data
}

/// Random numbers, the same in each run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, count: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % count
    }

    fn byte(&mut self) -> u8 {
        self.below(256) as u8
    }
}
