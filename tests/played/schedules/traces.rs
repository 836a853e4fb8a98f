//! Fixed plays. Each shows how a lock that a majority had lost came back, in a version of the library that
//! set keys again during an extension. The schedule is the whole trace, and so is the story.

use std::rc::Rc;

use crate::schedules::play::play;
use crate::schedules::schedule::{
    Call, ClientPlan, Fault, Hitch, Mishap, Schedule, ServerPlan, Sin, Step, Weather, What,
};
use crate::schedules::simulate::story_of;
use crate::world::clocks::MS;
use crate::world::store::Dialect;

const TTL_MS: i64 = 10_000;

/// Three servers. Nothing goes wrong except the given faults.
fn schedule(clients: Vec<ClientPlan>, faults: Vec<Fault>) -> Schedule {
    let server = ServerPlan {
        ahead: 0,
        per_million: 1_000_000,
        early_ms: 0,
        dialect: Dialect::Plain,
        password: false,
    };
    Schedule {
        sins: vec![Sin::LostKeys],
        weather: Weather { least: 200_000, most: 200_000, ..Weather::CALM },
        servers: vec![server; 3],
        clients,
        faults,
        ..Schedule::empty()
    }
}

fn client(others: Vec<Vec<usize>>, steps: Vec<Step>) -> ClientPlan {
    ClientPlan {
        list: vec![0, 1, 2],
        others,
        ahead: 0,
        per_million: 1_000_000,
        drift: 0.01,
        tries: 1,
        delay_ms: 5,
        connect_ms: 50,
        reply_ms: 5,
        callers: vec![steps],
        hitches: Vec::new(),
    }
}

/// A call that starts this many milliseconds after the previous one.
fn step(pause_ms: i64, call: Call) -> Step {
    Step { pause: pause_ms * MS, ..Step::of(call) }
}

fn flush(at_ms: i64, server: usize) -> Fault {
    Fault { at: at_ms * MS, lasts: 0, what: What::Flush { server } }
}

/// The results of client 0, call by call. Checks that the play shows no violation.
fn told(schedule: Schedule) -> Vec<String> {
    let schedule = Rc::new(schedule);
    let story = story_of(&schedule);
    assert_eq!(play(&schedule, false).violation, None, "{story}");
    let told = story.lines().filter(|it| it.contains("client 0.0 was told"));
    let words = told.filter_map(|it| it.split(": ").nth(1)?.split([' ', ':']).next());
    // After these come the calls that end each play.
    words.map(str::to_owned).collect()
}

const LOCK: Call = Call::TryLock { ttl_ms: TTL_MS, wait_ms: 0 };
const EXTEND: Call = Call::Extend { ttl_ms: TTL_MS };
const CONFIRM: Call = Call::Confirm { least_ms: 100 };

/// Server 0 loses the key and is slow; the first extension succeeds by 1 and 2. Then 1 loses the key, too,
/// and somebody else holds the lock for a moment. Now 0 carries out the extension, and nobody receives its
/// answer. By 0 and 2 the lock must not be vouched for.
#[test]
fn a_late_answer_does_not_bring_a_lost_lock_back() {
    for second in [CONFIRM, EXTEND, Call::Continue { ttl_ms: TTL_MS }] {
        let slow = Mishap::Lose { server: 0, lasts: 20 * MS };
        let holder = vec![
            step(0, LOCK),
            Step { mishap: Some((0, slow)), ..step(5, EXTEND) },
            step(30, second),
            step(5, EXTEND),
        ];
        let rival = vec![step(12, LOCK), step(1, Call::Unlock)];
        let clients = vec![client(vec![], holder), client(vec![], rival)];
        let told = told(schedule(clients, vec![flush(10, 1)]));
        assert_eq!(told[..2], ["OK", "OK"], "{second:?}");
        assert_eq!(told[2..4], ["Lost", "Lost"], "{second:?}");
    }
}

/// Two servers have lost the key, and only one of them is heard to report it. That knowledge belongs to the
/// server, however the next manager counts: in its order, the other server is the one that lost it.
#[test]
fn another_order_of_servers_does_not_bring_a_lost_lock_back() {
    for second in [CONFIRM, EXTEND] {
        let silent = Mishap::Stall { server: 1, back: false, lasts: 12 * MS };
        let holder = vec![
            step(0, LOCK),
            Step { mishap: Some((0, silent)), ..step(5, EXTEND) },
            Step { manager: 1, ..step(20, second) },
            Step { manager: 1, ..step(1, EXTEND) },
        ];
        let clients = vec![client(vec![vec![1, 0, 2]], holder)];
        let told = told(schedule(clients, vec![flush(4, 0), flush(4, 1)]));
        assert_eq!(told[..2], ["OK", "Unreachable"], "{second:?}");
        assert_eq!(told[2..4], ["Lost", "Lost"], "{second:?}");
    }
}

/// A process is kept from running for longer than a server may take to reply, at any of its steps. The
/// servers answered as soon as they were asked, and the process must report that.
#[test]
fn a_paused_process_does_not_call_servers_silent() {
    let calls = [Call::IsLocked, LOCK, EXTEND, CONFIRM, Call::Unlock];
    let mut stopped = 0;
    for at_step in 1..200 {
        let steps = calls.map(|call| step(1, call)).to_vec();
        let hitches = vec![Hitch { step: at_step, lasts: Some(300 * MS) }];
        let client = ClientPlan { hitches, ..client(vec![], steps) };
        let schedule = schedule(vec![client], vec![]);
        stopped += usize::from(story_of(&Rc::new(schedule.clone())).contains("is stopped"));
        // The first call makes the connections, and these have a limit of their own.
        assert_eq!(told(schedule)[1..5], ["OK"; 4], "stopped at step {at_step}");
    }
    assert!(stopped > 50, "{stopped} of the steps were taken");
}
