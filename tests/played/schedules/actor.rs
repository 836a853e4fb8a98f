//! A caller of the library. It makes its calls one after the other, and has each of them judged.

mod closing;
mod listening;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

pub(crate) use self::closing::{clear_up, close};
use crate::manager::call::{AcquireOptions, Call as LeaseCall, Patience};
use crate::manager::event::Tag;
use crate::manager::lease::Lease;
use crate::manager::redlock::RedLock;
use crate::protocol::error::{Error, Status};
use crate::protocol::keeper::Keeper;
use crate::protocol::lock_kind::LockKind;
use crate::schedules::generate::CONNECTS_FOR;
use crate::schedules::handed::Offer;
use crate::schedules::kept::Attends;
use crate::schedules::plants::{self, Plant};
use crate::schedules::promises::Promise;
use crate::schedules::records::{resource_of, slot_of};
use crate::schedules::schedule::{ALL, At, Call, How, RESOURCES, SLOTS, Step, name_of};
use crate::schedules::verdicts::{Asked, Told};
use crate::world::clocks::MS;
use crate::world::store::tag;
use crate::world::turns;
use crate::world::{self, Event, START, World};

/// The state of a caller.
pub(crate) struct Actor {
    pub(crate) client: usize,
    tries: i32,
    /// The first manager has the client's list.
    pub(crate) managers: Vec<RedLock>,
    /// How many calls were submitted; and the ends of calls that one of its callers received for another.
    submitted: Cell<usize>,
    ends: RefCell<BTreeMap<usize, Ended>>,
    /// The calls whose event was received.
    told: RefCell<BTreeSet<usize>>,
    /// How many locks were requested to be kept.
    kept: Cell<usize>,
    /// Keeping requests that outlive their leases, if that is the planted fault.
    leaked: RefCell<Vec<Keeper>>,
}

/// A submitted call that has ended: its lease, its result, and when somebody took its event.
type Ended = (Lease, Result<(), Error>, i64);

impl Actor {
    pub(crate) fn new(client: usize, tries: i32, managers: Vec<RedLock>) -> Self {
        let (submitted, ends, told, kept, leaked) = Default::default();
        Self { client, tries, managers, submitted, ends, told, kept, leaked }
    }

    /// Makes the calls; fewer, if the client ends before.
    pub(crate) fn run(&self, steps: &[Step]) {
        if world::with(|world| world.schedule.connects_first) {
            self.connect();
        }
        self.begin_event_loops();
        let mut leases: [Lease; SLOTS] = Default::default();
        for step in steps {
            let pause = self.pause(step, &leases[step.slot]);
            match step.drives {
                true => self.drive(step.manager, pause),
                false => turns::sleep(pause),
            }
            if world::with(|world| world.clients[self.client].is_gone) {
                return;
            }
            self.take(*step, &mut leases[step.slot]);
        }
        leases.iter_mut().for_each(|lease| self.let_go(lease));
    }

    /// A manager keeps locks only for a program that asks for events, as this one will.
    fn begin_event_loops(&self) {
        let keeps = |world: &mut World| {
            world.schedule.steps().any(|it| it.keeps || matches!(it.call, Call::KeepAlive))
        };
        if world::with(keeps) {
            let own = |manager: &RedLock| manager.own().map(Arc::clone);
            for own in self.managers.iter().filter_map(|manager| own(manager).ok()) {
                own.has_event_loop.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Connects to all servers, or to as many as can be reached soon.
    fn connect(&self) {
        const TRIES: usize = 40;
        for (which, manager) in self.managers.iter().enumerate() {
            world::with(|world| world.go_through(which));
            for _ in 0..TRIES {
                let _ = manager.connect(0);
                if manager.servers().iter().all(|it| it.is_connected) {
                    break;
                }
                turns::sleep(10 * MS);
            }
        }
        turns::sleep(START + CONNECTS_FOR - world::with(|world| world.now));
    }

    /// Drops the lease.
    fn let_go(&self, lease: &mut Lease) {
        world::with(|world| world.note_dropped(lease));
        if world::with(|world| world.is_broken(Plant::KeepsOn)) {
            self.leaked.borrow_mut().extend(lease.keeper.clone());
        }
        *lease = Lease::new();
    }

    fn pause(&self, step: &Step, lease: &Lease) -> i64 {
        let end = step.before_end.zip(lease.lock.as_ref()).map(|(before, hold)| {
            let until = hold.valid_until().as_nanos();
            let left = |world: &World| world.clients[self.client].clock.when(until) - world.now;
            world::with(|world| left(world)) - before
        });
        end.filter(|it| *it > 0).unwrap_or(step.pause)
    }

    /// Makes a call. Returns its result, unless the client ended meanwhile.
    pub(crate) fn take(&self, step: Step, lease: &mut Lease) -> Option<Result<(), Error>> {
        let asked = self.begin(step, lease);
        let number = self.begin_keeping(&step, lease);
        let keep = || number.map(|number| Box::new(number) as Tag);
        let is_semaphore = world::with(|world| world.schedule.permits > 0);
        let own_call = Arc::clone(&lease.call);
        world::with(|world| world.note_call_on_kept(&asked, &own_call));
        let is_submitted = step.how != How::Blocks && is_submitted(step.call);
        let attends = |enters| {
            let (client, manager) = (self.client, step.manager);
            world::with(|world| match enters {
                _ if is_submitted => {}
                true => world.enter(client, manager, Attends::Drives),
                false => world.leave(client, manager, Attends::Drives),
            });
        };
        attends(true);
        let manager = &self.managers[step.manager];
        let (mut found, mut told_at) = (None, None);
        let resource = first_of(step.resource).as_bytes();
        let takes_options = is_semaphore || step.resource == ALL;
        let patience = Patience::Tries(self.tries.into());
        let mut run = |call: LeaseCall<'_>| manager.run(call, lease);
        let said = match step.call {
            _ if is_submitted => self.submit(&step, keep(), lease, &mut told_at),
            Call::Lock { ttl_ms } if step.keeps || step.shares || takes_options => {
                run(acquire(&step, ttl_ms, patience, keep()))
            }
            Call::Lock { ttl_ms } => run(acquire(&step, ttl_ms, Patience::TriesOfSettings, None)),
            Call::TryLock { ttl_ms, wait_ms } => {
                run(acquire(&step, ttl_ms, Patience::Ms(wait_ms), keep()))
            }
            Call::KeepAlive => manager.keep_alive(lease, keep().expect("it is to be kept")),
            Call::Continue { ttl_ms } => run(LeaseCall::Continue { resource, ttl_ms }),
            Call::Extend { ttl_ms } => run(LeaseCall::Extend { ttl_ms }),
            Call::Confirm { least_ms } => run(LeaseCall::Confirm { least_ms }),
            Call::Unlock => run(LeaseCall::Unlock),
            Call::Downgrade => run(LeaseCall::Downgrade),
            Call::IsLocked => manager.is_locked(resource).map(|it| found = Some(it)),
            Call::Detach => manager.detach(lease, 100_000).map(|ticket| {
                let resource = resource_of(lease.resource());
                world::with(|world| world.records.offers.push(Offer { resource, ticket }));
            }),
            Call::Adopt => match world::with(|world| take_offer(world, step.resource)) {
                None => Ok(()),
                Some(offer) => {
                    found = Some(true);
                    let said =
                        manager.run(LeaseCall::Adopt { ticket: offer.ticket.as_bytes() }, lease);
                    if said.as_ref().is_err_and(|it| it.status() != Status::Lost) {
                        // The ticket can still be used.
                        world::with(|world| world.records.offers.push(offer));
                    }
                    said
                }
            },
            Call::Forget => {
                self.let_go(lease);
                Ok(())
            }
        };
        attends(false);
        if let Some(ttl_ms) = step.call.ttl_ms().filter(|_| said.is_ok())
            && world::with(|world| world.is_broken(Plant::ReturnsLate))
        {
            turns::sleep(ttl_ms * MS);
        }
        let told = Told {
            said,
            at: told_at.unwrap_or_else(|| world::with(|world| world.now)),
            absent: lease.absent().to_owned(),
            found,
            tag: tag_of(lease),
            valid_until: lease.lock.as_ref().map_or(0, |it| it.valid_until().as_nanos()),
            slot: lease.lock.as_ref().map_or(0, |it| slot_of(&it.key().resource)),
            fence: lease.fencing_token(),
            granted_until: lease.lock.as_ref().map_or(0, |it| it.deadline().as_nanos()),
            has_ended: lease.lock.as_ref().is_some_and(|it| it.has_ended()),
            is_shared: lease.is_shared(),
        };
        let hold = lease.lock.as_ref().filter(|_| told.said.is_ok());
        world::with(|world| {
            if !world.clients[self.client].is_gone {
                world.note_call_on_kept_ended(&asked, &told, &own_call);
            }
        });
        let said = self.end(&asked, told)?;
        if let Some(number) = number {
            world::with(|world| world.note_keeping(self.client, number, hold));
        }
        Some(said)
    }

    /// Returns the number of the request to keep a lock, if this call has one.
    fn begin_keeping(&self, step: &Step, lease: &Lease) -> Option<usize> {
        if !step.keeps && !matches!(step.call, Call::KeepAlive) {
            return None;
        }
        let number = self.kept.get();
        self.kept.set(number + 1);
        world::with(|world| world.begin_keeping(self.client, step.manager, number, lease));
        Some(number)
    }

    fn begin(&self, step: Step, lease: &Lease) -> Asked {
        let hold = lease.lock.as_ref();
        let is_detached = hold.is_some_and(|it| it.is_detached());
        world::with(|world| {
            world.go_through(step.manager);
            if let Some((after, mishap)) = step.mishap {
                world.at(world.now + after, Event::Befall { client: self.client, mishap });
            }
            world.say(|world| {
                let Step { call, slot, manager, .. } = step;
                let through =
                    if manager > 0 { format!(" through manager {manager}") } else { "".into() };
                let resource = name_of(step.resource);
                format!("{}, lease {slot}{through}: {resource} {call:?}", world.who())
            });
            let mut asked = Asked {
                call: step.call,
                client: self.client,
                manager: step.manager,
                resource: step.resource,
                tag: tag_of(lease).filter(|_| !is_detached),
                is_detached,
                is_held: hold.is_some_and(|it| {
                    let shown = world.clients[self.client].read(world.now);
                    !it.has_ended() && it.valid_until().as_nanos() > shown
                }),
                valid_until: hold.map_or(0, |it| it.valid_until().as_nanos()),
                longest_ttl_ms: hold.map_or(0, |it| it.longest_ttl_ms()),
                at: world.now,
                shown: world.clients[self.client].read(world.now),
                stopped: world.clients[self.client].stopped,
                may_be_cancelled: matches!(step.how, How::Submits { cancelled_after: Some(_) }),
                greeted: 0,
                drawn: world.records.drawn,
                extensions: 0,
                releases: 0,
            };
            world.note_call(&mut asked);
            asked
        })
    }

    fn end(&self, asked: &Asked, mut told: Told) -> Option<Result<(), Error>> {
        world::with(|world| {
            if world.clients[self.client].is_gone {
                return None;
            }
            world.say(|world| {
                let clock = &world.clients[self.client].clock;
                let until = || At(clock.when(told.valid_until) - START);
                let words = match (&told.said, told.tag) {
                    (Err(error), _) => format!("{:?}: {error}", error.status()),
                    (Ok(()), Some(tag)) => {
                        format!("OK <{:04x}> until {}", tag & 0xFFFF, until())
                    }
                    (Ok(()), None) => format!("OK {}", told.found.map_or("", yes_or_no)),
                };
                let took = At(world.now - asked.at);
                format!("{} was told after {took}: {words}", world.who())
            });
            world.note_result(asked, &told);
            plants::distort(world, asked, &mut told);
            world.judge(asked, &told);
            Some(told.said)
        })
    }
}

fn acquire<'a>(step: &Step, ttl_ms: i64, patience: Patience, keep: Option<Tag>) -> LeaseCall<'a> {
    let (resource, kind) = match step.resource {
        // In either order.
        ALL if step.slot == 0 => (RESOURCES[0], several(RESOURCES)),
        ALL => (RESOURCES[1], several([RESOURCES[1], RESOURCES[0]])),
        resource if step.shares => (RESOURCES[resource], LockKind::Shared),
        resource => (RESOURCES[resource], kind_of_one()),
    };
    let resource = resource.as_bytes();
    LeaseCall::Acquire(AcquireOptions { resource, kind, ttl_ms, patience, keep })
}

/// A permit, if the schedule uses semaphores.
fn kind_of_one() -> LockKind {
    world::with(|world| match world.schedule.permits {
        0 => LockKind::Exclusive,
        of => LockKind::Permit { of: of + u16::from(world.is_broken(Plant::MorePermits)) },
    })
}

fn several(names: [&'static str; 2]) -> LockKind {
    LockKind::Several(names.iter().map(|name| Arc::from(name.as_bytes())).collect())
}

/// If there are several resources, it does not matter which one is given first.
fn first_of(resource: usize) -> &'static str {
    RESOURCES.get(resource).copied().unwrap_or(RESOURCES[0])
}

/// Whether the call has a form that does not block.
fn is_submitted(call: Call) -> bool {
    !matches!(
        call,
        Call::Continue { .. }
            | Call::IsLocked
            | Call::KeepAlive
            | Call::Detach
            | Call::Adopt
            | Call::Forget
    )
}

/// The first ticket for this resource that nobody has adopted.
fn take_offer(world: &mut World, resource: usize) -> Option<Offer> {
    let offers = &mut world.records.offers;
    let place = offers.iter().position(|it| it.resource == resource)?;
    Some(offers.remove(place))
}

fn yes_or_no(found: bool) -> &'static str {
    if found { "(locked)" } else { "(free)" }
}

fn tag_of(lease: &Lease) -> Option<u64> {
    lease.lock.as_ref().map(|it| tag(it.token().as_bytes()))
}

fn violate(promise: Promise, words: String) {
    world::with(|world| world.records.violate(promise, words));
}
