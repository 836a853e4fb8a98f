//! That a program is gone before its lock can have ended, tried many times at once: a majority of the servers is frozen
//! while programs run that ignore SIGTERM, and beat. REDLOCK_TRIALS says how often; a thousand take two minutes.

use std::env;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

use crate::command::{Outcome, redlock, start};
use crate::support::{Cluster, Server, wait_until};

const TTL: Duration = Duration::from_secs(4);

/// So many run at once.
const AT_ONCE: usize = 25;

/// By the clock that locks go by.
fn now() -> Duration {
    clock_gettime(ClockId::CLOCK_BOOTTIME).expect("a clock").into()
}

#[test]
fn a_program_ends_before_its_lock_can() {
    let trials = env::var("REDLOCK_TRIALS").ok().and_then(|it| it.parse().ok()).unwrap_or(12);
    let mut left = trials;
    let mut shortest = Duration::MAX;
    while left > 0 {
        let count = left.min(AT_ONCE);
        shortest = shortest.min(trial(count));
        left -= count;
    }
    println!("{trials} programs, each gone {shortest:?} or more before its lock could have ended");
}

/// Returns the shortest time between the end of a program and that of its lock.
fn trial(count: usize) -> Duration {
    let cluster = Cluster::start(5);
    let own = env::current_exe().expect("a path");
    let own = own.to_str().expect("text");
    let begin = |number: usize| {
        let (name, file) = (format!("r{number}"), cluster[0].file(&format!("beat{number}")));
        fs::write(&file, [0; 8]).expect("it can be written");
        // One in two has left its group.
        let mut arguments = vec!["--json", "run", "--ttl", "4s", &name, "--"];
        if number % 2 == 1 {
            arguments.extend(["setsid", "--wait"]);
        }
        arguments.extend([own, "--exact", "--ignored", "--nocapture", "trials::beats"]);
        let mut command = redlock(&cluster, &arguments);
        command.env("REDLOCK_BEAT", &file);
        (start(command), file)
    };
    let running: Vec<_> = (0..count).map(begin).collect();
    let beat = |file: &str| {
        let bytes = fs::read(file).expect("it is there");
        Duration::from_nanos(u64::from_ne_bytes(bytes.try_into().expect("8 bytes")))
    };
    wait_until("all programs beat", || running.iter().all(|it| !beat(&it.1).is_zero()));
    cluster.iter().take(3).for_each(Server::freeze);
    let frozen = now();
    let mut shortest = Duration::MAX;
    for (running, file) in running {
        let outcome = running.end();
        assert_eq!(outcome.status, Some(122), "{outcome:?}");
        let (last, end) = (beat(&file), end_of(&outcome));
        assert!(end <= frozen + TTL, "it was extended by nobody: {outcome:?}");
        assert!(last < end, "it has beaten {:?} too long: {outcome:?}", last.saturating_sub(end));
        shortest = shortest.min(end - last);
        assert!(now() > last);
    }
    shortest
}

fn end_of(outcome: &Outcome) -> Duration {
    let ended = outcome.event("ended");
    Duration::from_millis(ended["valid_until_ms"].as_u64().expect("a time"))
}

/// No test, but a program that does not want to end: it writes down, again and again, that it lives.
#[test]
#[ignore = "it is run by another test, and does not end"]
fn beats() {
    let Some(file) = env::var_os("REDLOCK_BEAT") else { return };
    for signal in [libc::SIGTERM, libc::SIGHUP, libc::SIGINT] {
        // SAFETY: no handler is set.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    let file = File::options().write(true).open(file).expect("it is there");
    loop {
        let nanos = u64::try_from(now().as_nanos()).expect("it fits");
        file.write_all_at(&nanos.to_ne_bytes(), 0).expect("it can be written");
        std::thread::sleep(Duration::from_millis(2));
    }
}
