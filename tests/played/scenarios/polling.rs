//! Beside clients that poll and tell nobody: a waiting client of ours notices that the lock changes hands, and
//! polls, too.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use super::cluster::Verb::{self, Acquire, Look, Told};
use super::cluster::{Cluster, Scene};
use super::crowd::{Crowd, LONG, waits};
use super::processes::{LINE, done, nothing_is_left, processes};
use crate::manager::lease::Lease;
use crate::protocol::lock_kind::LockKind;

/// A client of another library that wants the lock again and again: it has it for `hold_ms`, and wants it again
/// `rest_ms` after that. After a refusal it asks again 10 to 20 ms later. It ends at `until_ms`.
struct Foreign {
    hold_ms: i64,
    rest_ms: i64,
    until_ms: i64,
    turns: Cell<usize>,
    /// How often it has asked a server for the lock.
    asked: Cell<usize>,
}

impl Foreign {
    fn of(cluster: &Cluster, (hold_ms, rest_ms): (i64, i64), until_ms: i64) -> Rc<Self> {
        let (turns, asked) = Default::default();
        let foreign = Rc::new(Self { hold_ms, rest_ms, until_ms, turns, asked });
        Rc::clone(&foreign).come(**cluster, 0);
        foreign
    }

    fn come(self: Rc<Self>, world: Scene, at_ms: i64) {
        if at_ms >= self.until_ms {
            return;
        }
        self.asked.set(self.asked.get() + 1);
        let next_ms = if world.having_any("r") == 0 {
            self.turns.set(self.turns.get() + 1);
            let token = format!("foreign {at_ms}");
            (0..world.servers()).for_each(|it| world.put(it, "r", &token, LONG));
            world.after_ms(self.hold_ms, |world| world.lose(0..world.servers(), "r"));
            self.hold_ms + self.rest_ms
        } else {
            10 + (7 * self.asked.get() as i64) % 11
        };
        world.after_ms(next_ms, move |world| self.come(world, at_ms + next_ms));
    }

    /// How many requests a server had from it: it releases after each try, as such clients do.
    fn requests(&self) -> usize {
        2 * self.asked.get()
    }
}

/// Takes the lock for 2 ms, again and again. Returns how often it had it at the end.
fn greedy(crowd: &Crowd, until_ms: i64) -> Rc<Cell<usize>> {
    let turns = Rc::new(Cell::new(0));
    let count = Rc::clone(&turns);
    crowd.thread(10, move |crowd| {
        let mut lease = Lease::new();
        while crowd.now_ms() < until_ms {
            if crowd.call('b', &mut lease, waits(until_ms - crowd.now_ms())) == Ok(()) {
                count.set(count.get() + 1);
                crowd.run_until_ms(crowd.now_ms() + 2);
                assert_eq!(crowd.unlock(&mut lease), Ok(()));
            }
        }
    });
    turns
}

/// The same for a lock of this kind, which is not compared with the history of the others.
fn greedy_for(crowd: &Crowd, kind: LockKind, until_ms: i64) -> Rc<Cell<usize>> {
    let turns = Rc::new(Cell::new(0));
    let count = Rc::clone(&turns);
    crowd.thread(10, move |crowd| {
        let mut lease = Lease::new();
        while crowd.now_ms() < until_ms {
            let left_ms = until_ms - crowd.now_ms();
            if crowd.client.acquire(("r", &kind), LONG, left_ms, &mut lease) == Ok(()) {
                count.set(count.get() + 1);
                crowd.run_until_ms(crowd.now_ms() + 2);
                assert_eq!(crowd.client.unlock(&mut lease), Ok(()));
            }
        }
    });
    turns
}

/// How often the first server was asked for the lock, or for a place in line, between these moments.
fn asked(crowd: &Crowd, from_ms: i64, to_ms: i64) -> usize {
    asked_at(crowd).into_iter().filter(|at| (from_ms..to_ms).contains(at)).count()
}

fn asked_at(crowd: &Crowd) -> Vec<i64> {
    let mut all = [Acquire, Look].map(|verb: Verb| done(crowd, 0, verb)).concat();
    all.sort_unstable();
    all
}

const MIDDLE: u64 = 1 << 63;

/// Processes whose dice show this number; random ones, if there is none.
fn rigged<const COUNT: usize>(cluster: &Cluster, random: Option<u64>) -> [Crowd; COUNT] {
    let all = processes(cluster);
    all.iter().for_each(|it: &Crowd| it.client.rig(random));
    all
}

#[test]
fn beside_a_polling_client_a_waiter_keeps_a_fair_share() {
    for times in [(2, 3), (9, 3), (25, 3), (2, 15)] {
        let cluster = Cluster::new(3);
        let [b] = rigged(&cluster, None);
        let foreign = Foreign::of(&cluster, times, 20_000);
        let ours = greedy(&b, 20_000);
        b.told();
        let (ours, theirs) = (ours.get(), foreign.turns.get());
        assert!(4 * ours >= ours + theirs, "{times:?}: {ours} turns beside {theirs}");
        // For each turn.
        let (we, they) = (asked_at(&b).len(), foreign.requests());
        assert!(we * theirs <= they * ours, "{times:?}: {we} and {they} requests");
        nothing_is_left(&cluster, LINE);
    }
}

#[test]
fn readers_and_waiters_for_several_keep_a_fair_share() {
    let several = LockKind::Several([&b"r"[..], b"s"].map(Arc::from).into());
    for kind in [LockKind::Shared, several] {
        let cluster = Cluster::new(3);
        let [b] = rigged(&cluster, None);
        let foreign = Foreign::of(&cluster, (9, 3), 20_000);
        let ours = greedy_for(&b, kind.clone(), 20_000);
        b.told();
        let (ours, theirs) = (ours.get(), foreign.turns.get());
        // Four fifths of an equal share. A waiter for several that begins anew each time has less than that.
        assert!(5 * ours >= 2 * (ours + theirs), "{kind:?}: {ours} turns beside {theirs}");
    }
}

/// The lock is always taken, and changes hands all the time until then.
fn always_taken(cluster: &Cluster, until_ms: i64) {
    for at_ms in (0..until_ms).step_by(8) {
        cluster.after_ms(at_ms, move |world| {
            world.lose(0..3, "r");
            (0..3).for_each(|it| world.put(it, "r", &format!("foreign {at_ms}"), LONG));
        });
    }
}

#[test]
fn one_waiter_polls_after_two_hand_overs() {
    for (random, pause_ms) in [(0, 12), (MIDDLE, 22), (u64::MAX, 31)] {
        let cluster = Cluster::new(3);
        let [b] = rigged(&cluster, Some(random));
        always_taken(&cluster, 4_000);
        "abcde".chars().for_each(|who| b.caller(who, 10, waits(3_000), 0));
        b.told();
        // It looks at the end of the usual pause, and again, and then it tries. It looks once in a second. The
        // last five are the last tries of all callers.
        let asked = asked_at(&b);
        let pauses: Vec<i64> =
            asked[2..asked.len() - 5].windows(2).map(|it| it[1] - it[0]).collect();
        assert!(pauses.iter().all(|it| (pause_ms..pause_ms + 2).contains(it)), "{pauses:?}");
        let looks = done(&b, 0, Look);
        assert_eq!(looks[0], 13);
        assert_eq!(looks[2] - looks[1], pauses[0]);
        assert!(looks[3..].windows(2).all(|it| it[1] - it[0] > 1_000), "{looks:?}");
        for server in 1..3 {
            assert_eq!(done(&b, server, Look), looks);
        }
    }
}

/// The other process has polled, too, and releases the lock as soon as it has it.
#[test]
fn a_wake_up_ends_the_polling() {
    let cluster = Cluster::new(3);
    let [a, b] = rigged(&cluster, Some(MIDDLE));
    always_taken(&cluster, 600);
    cluster.after_ms(600, |world| world.lose(0..3, "r"));
    a.caller('a', 10, waits(5_000), 300);
    b.caller('b', 20, waits(5_000), 0);
    // This one comes while its process polls. It is told by the first.
    b.caller('c', 620, waits(5_000), 300);
    a.caller('d', 1_000, waits(5_000), 0);
    let told = b.told();
    assert_eq!(b.holders(), "bacd", "{told:?}");
    assert_eq!((done(&a, 0, Told).len(), done(&b, 0, Told).len()), (2, 1));
    assert!(asked(&b, 640, 900) > 10, "{:?}", asked_at(&b));
    // It stands in line. Clients that tell nobody may be about still, so it looks three times. Then it sleeps.
    assert_eq!(asked(&a, 1_000, 1_080), 1 + 3, "{:?}", asked_at(&a));
    assert_eq!(asked(&a, 1_080, 1_200), 0, "{:?}", asked_at(&a));
    nothing_is_left(&cluster, LINE);
}

/// The holder extends its lock, as a client of another library may. That is no hand-over.
#[test]
fn extensions_by_the_holder_cause_no_polling() {
    let cluster = Cluster::new(3);
    let [b] = rigged(&cluster, Some(MIDDLE));
    (0..3).for_each(|it| cluster.put(it, "r", "foreign", 10_000));
    for at_ms in (0..6_000).step_by(1_000) {
        cluster.after_ms(at_ms, |world| {
            (0..3).for_each(|it| {
                world.lose([it], "r");
                world.put(it, "r", "foreign", 10_000);
            });
        });
    }
    b.caller('b', 10, waits(6_000), 0);
    b.told();
    // 27 looks as usual, and at most three more for each extension.
    let asked = asked_at(&b);
    assert!(asked.len() < 2 + 27 + 3 * 5 + 2, "{asked:?}");
}
