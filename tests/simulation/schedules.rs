//! Random schedules: a few clients, a few servers, and everything goes wrong that may. Every hold is
//! written down in true time, and no two of one resource may overlap.
//!
//! So that it is known that a fault would be found, there are schedules, too, in which the servers
//! break their side of the bargain.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::env;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::thread;

use redlock::token::Token;
use redlock::transport::command::Verb;
use redlock::{Lease, Status};

use crate::client::{Client, Dice, token};
use crate::faults::{self, Sins};
use crate::history::{History, is_borne_out};
use crate::link::{SILENCE_MIN_MS, Way};
use crate::server::Deed;
use crate::world::{Cluster, MS, World};

const SEEDS: u64 = 3_000;
/// Which seed to play, and no other.
const SEED: &str = "REDLOCK_SEED";

/// For so long the clients are at it, and things go wrong.
const SPAN_MS: i64 = 2_000;
const TTLS_MS: [i64; 4] = [100, 300, 600, LONGEST_TTL_MS];
const LONGEST_TTL_MS: i64 = 1_000;
const RESOURCES: [&str; 2] = ["a", "b"];
/// How many leases a client has for each.
const HANDLES: usize = 2;

#[test]
fn nobody_ever_holds_what_another_holds() {
    let seeds = match env::var(SEED) {
        Ok(seed) => {
            let seed = seed.parse().expect("a number");
            seed..seed + 1
        }
        Err(_) => 0..SEEDS,
    };
    let mut holds = 0;
    for seed in seeds.clone() {
        let played = catch_unwind(AssertUnwindSafe(|| play(seed, Sins::None)));
        holds += played.unwrap_or_else(|panic| {
            eprintln!("{SEED}={seed} plays it again");
            resume_unwind(panic)
        });
    }
    assert!(holds as u64 > 2 * (seeds.end - seeds.start), "they must not fail to do anything");
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
    (0..SEEDS).any(|seed| {
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
}

/// A client, with what it does of itself.
struct Actor {
    client: Client,
    dice: Rc<Dice>,
    history: Rc<RefCell<History>>,
    /// Some for each resource; out of their places while a call has them.
    leases: RefCell<Vec<Option<Lease>>>,
    /// Whether what a call says has to be true.
    is_strict: bool,
    rests_at: i64,
}

impl Play {
    fn new(seed: u64, sins: Sins) -> Self {
        let dice = Rc::new(Dice::new(seed));
        let cluster = Cluster::new(dice.between(1, 5) as usize);
        let history = Rc::<RefCell<History>>::default();
        let resources = dice.between(1, RESOURCES.len() as i64) as usize;
        let clients = dice.between(2, 4);
        let actors: Vec<_> = (0..clients)
            .map(|_| {
                let client = faults::client(&cluster, &dice);
                Rc::new(Actor {
                    client,
                    dice: Rc::clone(&dice),
                    history: Rc::clone(&history),
                    leases: RefCell::new(
                        (0..HANDLES * resources).map(|_| Some(Lease::new())).collect(),
                    ),
                    is_strict: sins == Sins::None,
                    rests_at: cluster.now() + SPAN_MS * MS,
                })
            })
            .collect();
        faults::unleash(&cluster, &dice, SPAN_MS, sins);
        Self { cluster, history, actors }
    }

    /// Everybody acts, calls within calls of others, until all have had enough.
    fn run(&self) {
        for actor in &self.actors {
            actor.act_later(&self.cluster);
        }
        self.cluster.run_ms(SPAN_MS);
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
        let ms = self.dice.between(0, 150);
        world.after_ms(ms, move |world| {
            if world.now() < actor.rests_at {
                actor.act(world);
                actor.act_later(world);
            }
        });
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
            self.check(is_borne_out(world, &self.client, lease), "it is taken");
            self.history.borrow_mut().granted(&self.client, lease, world.now());
        } else {
            let is_continued = lease.token().is_some();
            self.check(!is_continued || said == Err(Status::Unreachable), "it holds nothing");
        }
    }

    fn extend(&self, world: &World, resource: &str, lease: &mut Lease) {
        let ttl_ms = self.dice.pick(&TTLS_MS);
        let old = token(lease);
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
            self.check(is_borne_out(world, &self.client, lease), "it is extended");
            self.history.borrow_mut().granted(&self.client, lease, world.now());
        }
    }

    fn confirm(&self, world: &World, resource: &str, lease: &mut Lease) {
        let least_ms = self.dice.pick(&[0, 10, 100]);
        if self.client.confirm(lease, least_ms) == Ok(()) {
            let kept_until = world.kept_until(resource, &token(lease));
            self.check(world.now() + least_ms * MS <= kept_until, "it is confirmed");
        }
    }

    fn release(&self, world: &World, lease: &mut Lease) {
        let old = token(lease);
        let was_held = self.believed_until(&old);
        self.let_go(world, lease);
        let said = self.client.unlock(lease);
        // One that could not be released everywhere may be released again, or forgotten.
        let is_over = world.now() >= was_held || was_held == i64::MIN;
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
