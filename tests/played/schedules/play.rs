//! Plays one schedule from its beginning to its end.

use std::any::Any;
use std::rc::Rc;
use std::sync::Arc;

use crate::manager::redlock::RedLock;
use crate::protocol::conn::guard::Mode;
use crate::protocol::error::Error;
use crate::schedules::actor::{self, Actor};
use crate::schedules::generate::PASSWORD;
use crate::schedules::promises::Promise;
use crate::schedules::schedule::{At, ClientPlan, Schedule};
use crate::schedules::woken;
use crate::world::clocks::MS;
use crate::world::coroutine::Coroutine;
use crate::world::digest::Digest;
use crate::world::network::FIRST_PORT;
use crate::world::{self, START, World, masters};

/// The longest TTL of all schedules.
const LONGEST_TTL_MS: i64 = 30_000;

/// Longer than anything takes.
const LONGEST: i64 = 3_600_000 * MS;

/// The result of a play.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// The first violation, if there was one.
    pub(crate) violation: Option<String>,
    /// Whether two holds overlapped. If the schedule breaks no assumption, an overlap is a violation as
    /// well.
    pub(crate) overlapped: bool,
    /// If all overlaps are outside of what is promised: why.
    pub(crate) excuse: Option<&'static str>,
    /// Whether too many servers lacked the numbers of their fencing tokens at one time, or could not be read.
    pub(crate) too_many_lacked_numbers: bool,
    pub(crate) granted: usize,
    pub(crate) digest: Digest,
    pub(crate) events: u64,
    pub(crate) simulated: i64,
    /// How often a grant that was on its way counted as if it had been there from the start; and how often
    /// another client had the lock meanwhile.
    pub(crate) excused: u64,
    pub(crate) excused_with_rival: u64,
    /// The story of the play, if it was requested.
    pub(crate) story: Option<String>,
}

pub(crate) fn play(schedule: &Rc<Schedule>, tells: bool) -> Outcome {
    let mut world = World::new(Rc::clone(schedule));
    world.story = tells.then(String::new);
    world::set(world);
    let actors: Vec<Rc<Actor>> = schedule
        .clients
        .iter()
        .enumerate()
        .map(|(client, plan)| {
            let manager = |which| {
                let manager = manager(plan, which, schedule, tells);
                manager.settings().set_fencing(schedule.is_fenced);
                manager.settings().set_waking(schedule.is_waking);
                manager
            };
            let managers = (0..=plan.others.len()).map(manager).collect();
            Rc::new(Actor::new(client, plan.tries, managers))
        })
        .collect();
    let mut play = Play { coroutines: Vec::new() };
    for (actor, plan) in actors.iter().zip(&schedule.clients) {
        for caller in 0..plan.callers.len() {
            let (actor, schedule) = (Rc::clone(actor), Rc::clone(schedule));
            let client = actor.client;
            play.begin(client, move || actor.run(&schedule.clients[client].callers[caller]));
        }
    }
    play.finish();
    play.end_of_faults(schedule);
    let ttl_ms = schedule.longest_ttl_ms();
    let resources = schedule.resources();
    play.each(&actors, actor::clear_up);
    play.each(&actors, move |actor| actor::close(actor, ttl_ms, resources));
    play.hand_on(&actors);
    play.grow_quiet(ttl_ms.max(30_000));
    drop(actors);
    drop(play);
    let Some(mut world) = world::take() else { unreachable!("it was set") };
    let (overlapped, excuse) = find_overlap(&mut world);
    find_crowd(&mut world);
    Outcome {
        violation: world.records.violation.take(),
        overlapped,
        excuse,
        too_many_lacked_numbers: world.records.too_many_lack_numbers
            || world.servers.iter().any(|it| it.store.went_by_clock),
        granted: world.records.holds.len(),
        digest: world.digest,
        events: world.events,
        excused: world.records.excused,
        excused_with_rival: world.records.excused_with_rival,
        simulated: world.now - START,
        story: world.story.take(),
    }
}

fn find_crowd(world: &mut World) {
    if world.schedule.permits == 0 || !world.schedule.sins.is_empty() {
        return;
    }
    if let Some((count, at)) = world.crowd() {
        let words =
            format!("{count} have a permit at {}, of {}", At(at - START), world.schedule.permits);
        world.say(|_| format!("== {words}"));
        world.records.violate(Promise::AtMostPermits, words);
    }
}

fn find_overlap(world: &mut World) -> (bool, Option<&'static str>) {
    let words = world.overlap().map(|(one, two, at, excuse)| {
        let promise = match one.shared_from.min(two.shared_from) <= at {
            true => Promise::WriterAlone,
            false => Promise::OneHolder,
        };
        let who = |it: &crate::schedules::records::HeldLock| {
            format!("client {} (<{:04x}>)", it.client, it.tag & 0xFFFF)
        };
        let at = At(at - START);
        let why =
            excuse.map_or_else(String::new, |it| format!(", which the guard cannot see: {it}"));
        let words = format!("{} and {} both hold a lock at {at}{why}", who(one), who(two));
        (promise, words, excuse)
    });
    let Some((promise, words, excuse)) = words else { return (false, None) };
    world.say(|_| format!("== {words}"));
    let is_guarded = world.schedule.is_guarded && world.schedule.lives.is_some();
    if world.schedule.sins.is_empty() || is_guarded && excuse.is_none() {
        world.records.violate(promise, words);
    }
    (true, excuse)
}

/// Adds a server, or the Sentinels that watch it.
fn add(manager: &RedLock, server: usize, schedule: &Schedule) -> Result<(), Error> {
    let port = FIRST_PORT + server as u16;
    match schedule.watched {
        Some(watched) if server < watched.masters => {
            let places: Vec<_> = watched.sentinels().map(masters::place_of).collect();
            let name = masters::name_of(server);
            manager.add_server_url(&format!("redis-sentinel://{}/{name}", places.join(",")), 0)
        }
        _ if schedule.servers[server].password => {
            manager.add_server_url(&format!("redis://:{PASSWORD}@127.0.0.1:{port}/2"), 0)
        }
        _ => manager.add_server_url("127.0.0.1", port.into()),
    }
}

fn manager(plan: &ClientPlan, which: usize, schedule: &Schedule, tells: bool) -> RedLock {
    let manager = RedLock::new();
    let add = |&server: &usize| add(&manager, server, schedule);
    let settled = plan.list_of(which).iter().try_for_each(add).and_then(|()| {
        manager.settings().set_retry(plan.tries, plan.delay_ms)?;
        manager.settings().set_timeouts(plan.connect_ms, plan.reply_ms)?;
        manager.settings().set_failover_guard(schedule.watched.is_none_or(|it| it.is_led));
        if schedule.watched.is_some() {
            // The note of the longest TTL may be lost with the master, and a client may not reach the others.
            let mode = if schedule.is_guarded { Mode::On } else { Mode::Off };
            manager.settings().set_guard(mode, schedule.longest_ttl_ms(), 0)?;
        } else if schedule.voters() == 1 {
            // No other server has a note. So a client that comes late cannot tell a new server from a
            // server that has lost everything, nor how long the locks were.
            manager.settings().set_guard(Mode::Strict, LONGEST_TTL_MS, 0)?;
        }
        manager.settings().set_drift(plan.drift)
    });
    settled.expect("a schedule has settings that make sense");
    // Lines for a logger are passed on by threads that are woken for that. So a play whose story is told is the same one
    // only if every play has a logger.
    let say = move |_, words: &str| {
        if tells {
            let words = words.to_owned();
            world::with(|world| world.say(|world| format!("{} logs: {words}", world.who())));
        }
    };
    manager.set_logger(Some(Arc::new(say))).expect("it can be set");
    manager
}

struct Play {
    /// By the numbers of their callers. `None`: the coroutine has ended.
    coroutines: Vec<Option<Coroutine>>,
}

impl Play {
    fn begin(&mut self, client: usize, body: impl FnOnce() + 'static) {
        let caller = world::with(|world| world.add_caller(client));
        debug_assert_eq!(caller, self.coroutines.len());
        self.coroutines.push(Some(Coroutine::new(body)));
    }

    /// Runs the body for each client that takes part, one client after another.
    fn each(&mut self, actors: &[Rc<Actor>], body: impl Fn(&Actor) + Clone + 'static) {
        for actor in actors {
            if world::with(|world| world.has_part(actor.client)) {
                let (actor, body) = (Rc::clone(actor), body.clone());
                self.begin(actor.client, move || body(&actor));
                self.finish();
            }
        }
    }

    /// One client waits for a lock that another one holds.
    fn hand_on(&mut self, actors: &[Rc<Actor>]) {
        let Some([holder, waiter]) = woken::pair(actors) else { return };
        self.pass_until(world::with(|world| world.now) + woken::LINES_END);
        self.begin(holder.client, move || woken::hold(&holder));
        self.begin(waiter.client, move || woken::wait(&waiter));
        self.finish();
    }

    /// Plays until all callers have ended.
    fn finish(&mut self) {
        let until = world::with(|world| world.now) + LONGEST;
        while self.coroutines.iter().any(Option::is_some) {
            if !self.go_on(until) {
                world::with(|world| world.records.violate(Promise::InTime, "a call never ended"));
                return;
            }
        }
    }

    /// Resumes the next caller, unless that would be after `until`.
    fn go_on(&mut self, until: i64) -> bool {
        if world::with(|world| world.records.violation.is_some()) {
            return false;
        }
        let Some(caller) = world::with(|world| world.play(until)) else { return false };
        let Some(coroutine) = &mut self.coroutines[caller] else { return true };
        let end = coroutine.resume();
        world::with(World::stop_running);
        if let Some(end) = end {
            self.coroutines[caller] = None;
            if let Err(panic) = end {
                world::with(|world| world.records.violate(Promise::NoCrash, words_of(&panic)));
            }
        }
        true
    }

    /// Lets time pass until the last fault has ended, and everything under way has arrived.
    fn end_of_faults(&mut self, schedule: &Schedule) {
        let ends = schedule.faults.iter().map(|it| START + it.at + it.lasts);
        let now = world::with(|world| world.now);
        let last = ends.fold(now, i64::max);
        let weather = &schedule.weather;
        self.pass_until(last + weather.most + weather.slow);
        world::with(World::calm_down);
    }

    fn pass_until(&mut self, until: i64) {
        while self.go_on(until) {}
    }

    /// After the longest TTL, no key may be left.
    fn grow_quiet(&mut self, ttl_ms: i64) {
        let grace = world::with(|world| world.schedule.longest_grace());
        let until = world::with(|world| world.now) + (ttl_ms + ttl_ms / 20) * MS + grace;
        self.pass_until(until);
        world::with(|world| {
            let now = world.now;
            if world.servers.iter_mut().any(|it| it.count_keys(now) > 0) {
                world.records.violate(Promise::EndsByItself, "a key is left when the lock expired");
            }
        });
    }
}

/// The message of a panic.
fn words_of(panic: &Box<dyn Any + Send>) -> String {
    let words = panic.downcast_ref::<String>().map(String::as_str);
    let words = words.or_else(|| panic.downcast_ref::<&str>().copied());
    format!("the library panicked: {}", words.unwrap_or("no words"))
}
