//! Random schedules: a few clients, a few servers, and everything goes wrong that may. Every hold is
//! written down in true time, and no two of one resource may overlap. In half of them a client has
//! several callers, each on a thread of its own, and who waits stands in line.
//!
//! So that it is known that a fault would be found, there are schedules, too, in which the servers
//! break their side of the bargain.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::env;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::thread;

use redlock::command::Verb;
use redlock::token::Token;
use redlock::{Lease, Status};

use crate::client::{Client, Dice, token};
use crate::faults::{self, Sins};
use crate::history::{History, is_borne_out};
use crate::link::{SILENCE_MIN_MS, Way};
use crate::server::Deed;
use crate::world::{Cluster, MS, World};

const SEEDS: u64 = 3_000;
/// From this one on clients have crowds of callers.
const CROWDED: u64 = 1 << 32;
const CROWDED_SEEDS: u64 = 600;
/// Which seed to play, and no other.
const SEED: &str = "REDLOCK_SEED";

/// For so long the clients are at it, and things go wrong.
const SPAN_MS: i64 = 2_000;
const TTLS_MS: [i64; 4] = [100, 300, 600, LONGEST_TTL_MS];
const LONGEST_TTL_MS: i64 = 1_000;
const RESOURCES: [&str; 2] = ["a", "b"];
/// How many leases a caller has for each.
const HANDLES: usize = 2;
/// No call takes so long.
const LONGEST_CALL_MS: i64 = 60_000;

#[test]
fn nobody_ever_holds_what_another_holds() {
    play_all(0..SEEDS);
}

#[test]
fn nobody_in_a_crowd_ever_holds_what_another_holds() {
    play_all(CROWDED..CROWDED + CROWDED_SEEDS);
}

fn play_all(seeds: Range<u64>) {
    let seeds = match env::var(SEED) {
        Ok(seed) => {
            let seed: u64 = seed.parse().expect("a number");
            seed.max(seeds.start)..(seed + 1).min(seeds.end)
        }
        Err(_) => seeds,
    };
    let mut holds = 0;
    for seed in seeds.clone() {
        let played = catch_unwind(AssertUnwindSafe(|| play(seed, Sins::None)));
        holds += played.unwrap_or_else(|panic| {
            eprintln!("{SEED}={seed} plays it again");
            resume_unwind(panic)
        });
    }
    let seeds = seeds.end.saturating_sub(seeds.start);
    assert!(holds as u64 >= 2 * seeds, "they must not fail to do anything");
}

#[test]
fn servers_that_lose_keys_are_found_out() {
    assert!(is_found_out(Sins::LostKeys));
}

#[test]
fn servers_whose_clocks_leap_are_found_out() {
    assert!(is_found_out(Sins::LeapingClocks));
}

#[test]
fn servers_whose_clocks_are_too_fast_are_found_out() {
    assert!(is_found_out(Sins::FastClocks));
}

/// Whether two holds overlap in one of the schedules.
fn is_found_out(sins: Sins) -> bool {
    (0..SEEDS).step_by(2).flat_map(|it| [it, CROWDED + it]).any(|seed| {
        let play = Play::new(seed, sins);
        play.run();
        play.history.borrow().overlap().is_some()
    })
}

/// Returns how many locks were had.
fn play(seed: u64, sins: Sins) -> usize {
    let play = Play::new(seed, sins);
    play.run();
    play.heal_and_check();
    play.history.borrow().len()
}

struct Play {
    cluster: Cluster,
    history: Rc<RefCell<History>>,
    actors: Vec<Rc<Actor>>,
    is_crowded: bool,
}

/// Who makes the calls of a client, or some of them, and what it does of itself.
struct Actor {
    client: Rc<Client>,
    dice: Rc<Dice>,
    history: Rc<RefCell<History>>,
    /// Some for each resource; out of their places while a call has them.
    leases: RefCell<Vec<Option<Lease>>>,
    /// Whether what a call says has to be true.
    is_strict: bool,
    /// The longest time between two calls.
    idle_ms: i64,
    rests_at: i64,
}

impl Play {
    fn new(seed: u64, sins: Sins) -> Self {
        let dice = Rc::new(Dice::new(seed));
        let cluster = Cluster::new(dice.between(1, 5) as usize);
        let history = Rc::<RefCell<History>>::default();
        let is_crowded = seed >= CROWDED;
        let resources = dice.between(1, RESOURCES.len() as i64) as usize;
        let clients = dice.between(if is_crowded { 1 } else { 2 }, 4);
        let mut actors = Vec::new();
        for _ in 0..clients {
            let client = Rc::new(faults::client(&cluster, &dice));
            let callers = if is_crowded { dice.between(1, 5) } else { 1 };
            let idle_ms = if is_crowded { dice.pick(&[0, 5, 30, 150]) } else { 150 };
            actors.extend((0..callers).map(|_| {
                let leases = (0..HANDLES * resources).map(|_| Some(Lease::new())).collect();
                Rc::new(Actor {
                    client: Rc::clone(&client),
                    dice: Rc::clone(&dice),
                    history: Rc::clone(&history),
                    leases: RefCell::new(leases),
                    is_strict: sins == Sins::None,
                    idle_ms,
                    rests_at: cluster.now() + SPAN_MS * MS,
                })
            }));
        }
        faults::unleash(&cluster, &dice, SPAN_MS, sins);
        Self { cluster, history, actors, is_crowded }
    }

    /// Everybody acts, calls within calls of others or each on a thread of its own, until all have
    /// had enough.
    fn run(&self) {
        for actor in &self.actors {
            if self.is_crowded {
                let (actor, world) = (Rc::clone(actor), Rc::clone(&self.cluster.0));
                self.cluster.thread(0, move || actor.go_on(&world));
            } else {
                actor.act_later(&self.cluster);
            }
        }
        self.cluster.run_ms(SPAN_MS);
        self.cluster.end_threads(LONGEST_CALL_MS);
    }

    /// When the last fault is healed and the longest TTL is over, nothing is left, and locks are to
    /// be had as on the first day.
    fn heal_and_check(&self) {
        let history = self.history.borrow();
        assert!(history.overlap().is_none(), "{:#?}", history.overlap());
        drop(history);
        check_tokens(&self.cluster.deeds.borrow());
        faults::heal(&self.cluster);
        self.cluster.run_ms(LONGEST_TTL_MS + 2 * faults::LONGEST_MS);
        for resource in RESOURCES {
            assert_eq!(self.cluster.having_any(resource), 0, "{resource} is left");
        }
        // A connection on which nothing comes any more is given up only then.
        self.cluster.run_ms(2 * SILENCE_MIN_MS);
        for actor in &self.actors {
            actor.client.settings.set_timeouts(1_000, 500).expect("in bounds");
            let mut lease = Lease::new();
            let said = actor.client.lock("a", LONGEST_TTL_MS, &mut lease);
            assert_eq!(said, Ok(()), "client {}", actor.client.me);
            assert!(is_borne_out(&self.cluster, &actor.client, &lease));
            assert_eq!(actor.client.unlock(&mut lease), Ok(()));
            self.cluster.run_ms(10);
            assert_eq!(self.cluster.having_any("a"), 0);
        }
    }
}

/// A token is its client's own, and an acquire is sent once.
fn check_tokens(deeds: &[Deed]) {
    let mut clients = HashMap::new();
    let mut acquired = HashSet::new();
    for deed in deeds.iter().filter(|it| it.token != Token::from_random([0; 20])) {
        let (Way { client, server }, token) = (deed.way, deed.token.as_str());
        assert_eq!(*clients.entry(token).or_insert(client), client, "{deed}");
        assert!(deed.verb != Verb::Acquire || acquired.insert((token, server)), "{deed}");
    }
}

/// What is played again is told.
impl Drop for Play {
    fn drop(&mut self) {
        if thread::panicking() && env::var(SEED).is_ok() {
            self.cluster.deeds.borrow().iter().for_each(|it| eprintln!("{it}"));
        }
    }
}

impl Actor {
    fn act_later(self: &Rc<Self>, world: &World) {
        let actor = Rc::clone(self);
        let ms = self.dice.between(0, self.idle_ms);
        world.after_ms(ms, move |world| {
            if world.now() < actor.rests_at {
                actor.act(world);
                actor.act_later(world);
            }
        });
    }

    fn go_on(&self, world: &World) {
        loop {
            world.run_ms(self.dice.between(0, self.idle_ms));
            if world.now() >= self.rests_at {
                return;
            }
            self.act(world);
            // A call may have come to nothing within no time.
            world.run_until(world.now() + MS / 10);
        }
    }

    fn act(&self, world: &World) {
        let which = self.dice.between(0, self.leases.borrow().len() as i64 - 1) as usize;
        let taken = self.leases.borrow_mut()[which].take();
        let Some(mut lease) = taken else { return };
        let resource = RESOURCES[which / HANDLES];
        if let Some(token) = lease.token().filter(|it| self.believes(it, world.now())) {
            self.check(world.having(resource, token) >= world.quorum(), "a quorum has it");
        }
        match (lease.token().is_some(), self.dice.between(0, 9)) {
            (_, 0) => drop(self.client.is_locked(resource)),
            (false, _) => self.take(world, resource, &mut lease),
            (true, 1..=4) => self.release(world, &mut lease),
            (true, 5) => self.confirm(world, resource, &mut lease),
            // A fresh lease, and the old one is forgotten.
            (true, 6) => {
                self.let_go(world, &lease);
                lease = Lease::new();
            }
            (true, _) => self.extend(world, resource, &mut lease),
        }
        self.leases.borrow_mut()[which] = Some(lease);
    }

    fn take(&self, world: &World, resource: &str, lease: &mut Lease) {
        let ttl_ms = self.dice.pick(&TTLS_MS);
        let said = match self.dice.between(0, 3) {
            0 => self.client.lock(resource, ttl_ms, lease),
            1 => self.client.try_lock(resource, ttl_ms, self.dice.between(0, 500), lease),
            2 => self.client.continue_lock(resource, ttl_ms, lease),
            _ => self.client.try_lock(resource, ttl_ms, 0, lease),
        };
        if said == Ok(()) {
            self.hold(world, lease, "it is taken");
        } else {
            let is_continued = lease.token().is_some();
            self.check(!is_continued || said == Err(Status::Unreachable), "it holds nothing");
        }
    }

    fn extend(&self, world: &World, resource: &str, lease: &mut Lease) {
        let ttl_ms = self.dice.pick(&TTLS_MS);
        let old = token(lease);
        let was_released = self.history.borrow_mut().releases(&old) > 0;
        let said = if self.dice.once_in(2) {
            self.client.extend(lease, ttl_ms)
        } else {
            self.client.continue_lock(resource, ttl_ms, lease)
        };
        if lease.token() != Some(&old) {
            self.check(!self.believes(&old, world.now()), "it is not lost before its end");
            self.history.borrow_mut().ended(&old, world.now());
        }
        if said == Ok(()) {
            self.check(!was_released || token(lease) != old, "it is not brought back");
            self.hold(world, lease, "it is extended");
        }
    }

    /// A call has just said so. If it was held up, another caller may have released it meanwhile.
    fn hold(&self, world: &World, lease: &Lease, what: &str) {
        let mut history = self.history.borrow_mut();
        let is_released = history.releases(&token(lease)) > 0;
        self.check(is_released || is_borne_out(world, &self.client, lease), what);
        history.granted(&self.client, lease, world.now());
    }

    fn confirm(&self, world: &World, resource: &str, lease: &mut Lease) {
        let least_ms = self.dice.pick(&[0, 10, 100]);
        if self.client.confirm(lease, least_ms) == Ok(()) {
            let kept_until = world.kept_until(resource, &token(lease));
            let is_released = self.history.borrow_mut().releases(&token(lease)) > 0;
            let is_true = is_released || world.now() + least_ms * MS <= kept_until;
            self.check(is_true, "it is confirmed");
        }
    }

    fn release(&self, world: &World, lease: &mut Lease) {
        let old = token(lease);
        let was_held = self.believed_until(&old);
        self.history.borrow_mut().released(&old, world.now());
        let said = self.client.unlock(lease);
        // One that could not be released everywhere may be released again, or forgotten; and of two
        // callers who release it at once one comes too late.
        let is_over = world.now() >= was_held
            || was_held == i64::MIN
            || self.history.borrow_mut().releases(&old) > 1;
        self.check(is_over || said != Err(Status::Lost), "it is not lost before its end");
    }

    fn let_go(&self, world: &World, lease: &Lease) {
        self.history.borrow_mut().ended(&token(lease), world.now());
    }

    fn believes(&self, token: &str, now: i64) -> bool {
        now < self.believed_until(token)
    }

    fn believed_until(&self, token: &str) -> i64 {
        self.history.borrow_mut().of(token).map_or(i64::MIN, |it| it.until)
    }

    fn check(&self, is_right: bool, what: &str) {
        assert!(is_right || !self.is_strict, "client {}: {what}", self.client.me);
    }
}
