//! What happens in one play, as data: so it can be printed, played again, and made smaller.

mod parts;
mod words;
mod worst;

pub(crate) use self::words::At;
use crate::schedules::plants::Plant;
use crate::world::store::{Dialect, Refusal};

/// The assumptions of the promise that a schedule may break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sin {
    /// Clients name different servers.
    SplitLists,
    /// Servers lose keys early: they are flushed, or start again without them.
    LostKeys,
    /// A server's clock leaps ahead.
    LeapingClocks,
    /// A server's clock is faster than the drift factor allows for.
    FastClocks,
    /// A client's clock stands still while it is suspended.
    StoppedClocks,
}

pub(crate) const SINS: [Sin; 5] =
    [Sin::SplitLists, Sin::LostKeys, Sin::LeapingClocks, Sin::FastClocks, Sin::StoppedClocks];

#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    pub(crate) seed: u64,
    /// The assumptions that it breaks. If none, no two holds may overlap.
    pub(crate) sins: Vec<Sin>,
    pub(crate) weather: Weather,
    pub(crate) servers: Vec<ServerPlan>,
    pub(crate) clients: Vec<ClientPlan>,
    pub(crate) faults: Vec<Fault>,
    /// Whether servers tell of their memory, so that what they grant is guarded.
    pub(crate) is_guarded: bool,
    /// Whether clients connect to all servers before anything goes wrong.
    pub(crate) connects_first: bool,
    /// Whether locks have fencing tokens.
    pub(crate) is_fenced: bool,
    /// Whether who waits is woken; and one of so many pushes is lost, none if 0.
    pub(crate) is_waking: bool,
    pub(crate) loses_pushes_in: u64,
    /// How many permits each resource has as a semaphore; 0: all are locks. Who continues a lock has one then, too,
    /// without knowing of it.
    pub(crate) permits: u16,
    /// What is broken on purpose, to see a verdict see it.
    pub(crate) plant: Option<Plant>,
}

/// How long bytes are on their way, and in what pieces they come.
#[derive(Clone, Debug)]
pub(crate) struct Weather {
    pub(crate) least: i64,
    pub(crate) most: i64,
    /// One piece in so many takes up to so much longer; none, if 0.
    pub(crate) slow_in: u64,
    pub(crate) slow: i64,
    /// One piece in so many is broken in two; none, if 0.
    pub(crate) split_in: u64,
    /// How many bytes a socket takes before it has to wait.
    pub(crate) room: usize,
    /// By how much who could go on does so later.
    pub(crate) wake: i64,
}

#[derive(Clone, Debug)]
pub(crate) struct ServerPlan {
    pub(crate) ahead: i64,
    pub(crate) per_million: i64,
    pub(crate) early_ms: i64,
    pub(crate) dialect: Dialect,
    pub(crate) password: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct ClientPlan {
    /// Which servers it knows.
    pub(crate) list: Vec<usize>,
    /// What its other managers know: the same servers in another order; or others, and then no lock
    /// may be taken through it.
    pub(crate) others: Vec<Vec<usize>>,
    pub(crate) ahead: i64,
    pub(crate) per_million: i64,
    pub(crate) drift: f64,
    pub(crate) tries: i32,
    pub(crate) delay_ms: i32,
    pub(crate) connect_ms: i64,
    pub(crate) reply_ms: i64,
    /// What each of its threads does.
    pub(crate) callers: Vec<Vec<Step>>,
    pub(crate) hitches: Vec<Hitch>,
}

/// So long after the last one, a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) pause: i64,
    /// Rather than after that pause, so long before the lease's lock ends, if it has one.
    pub(crate) before_end: Option<i64>,
    pub(crate) call: Call,
    /// Through which of the client's managers: the one with its list, or another.
    pub(crate) manager: usize,
    /// Which of the caller's leases it is about.
    pub(crate) slot: usize,
    /// Which resource, if the lease does not say.
    pub(crate) resource: usize,
    /// What happens in the midst of it, so long after its beginning.
    pub(crate) mishap: Option<(i64, Mishap)>,
    pub(crate) how: How,
    /// Whether the lock that it takes is kept.
    pub(crate) keeps: bool,
    /// Whether the caller asks for events during the pause before it, and so drives.
    pub(crate) drives: bool,
    /// Whether the lock that it takes is shared.
    pub(crate) shares: bool,
}

impl Step {
    /// This call at once, and nothing more: the caller blocks in it, and is about its first lease and resource.
    pub(crate) const fn of(call: Call) -> Self {
        Self {
            pause: 0,
            before_end: None,
            call,
            manager: 0,
            slot: 0,
            resource: 0,
            mishap: None,
            how: How::Blocks,
            keeps: false,
            drives: false,
            shares: false,
        }
    }
}

/// Who waits for the end of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// The caller does, in the call.
    Blocks,
    /// Nobody: the caller submits it, and asks for events. After so long it cancels it, if at all.
    Submits { cancelled_after: Option<i64> },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mishap {
    /// The client is stopped.
    Stop { lasts: i64 },
    /// Its connection to a server is cut.
    Cut { server: usize },
    /// Nothing arrives there, or back; it does afterwards.
    Stall { server: usize, back: bool, lasts: i64 },
    /// The server loses its keys, and nothing more arrives there for so long.
    Lose { server: usize, lasts: i64 },
}

/// How many leases a caller has.
pub(crate) const SLOTS: usize = 2;
pub(crate) const RESOURCES: [&str; 2] = ["a", "b"];

/// In the place of one of them: all at once.
pub(crate) const ALL: usize = RESOURCES.len();

/// Whether two locks of these exclude each other.
pub(crate) fn share(one: usize, other: usize) -> bool {
    one == other || [one, other].contains(&ALL)
}

pub(crate) fn name_of(resource: usize) -> &'static str {
    RESOURCES.get(resource).copied().unwrap_or("all")
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Call {
    Lock {
        ttl_ms: i64,
    },
    TryLock {
        ttl_ms: i64,
        wait_ms: i64,
    },
    Continue {
        ttl_ms: i64,
    },
    Extend {
        ttl_ms: i64,
    },
    Confirm {
        least_ms: i64,
    },
    Unlock,
    IsLocked,
    /// The lock is shared from now on.
    Downgrade,
    /// The lock is kept from now on.
    KeepAlive,
    /// The lock is given away: its ticket is for whoever comes first.
    Detach,
    /// A lock is adopted, if there is a ticket for the resource.
    Adopt,
    /// The lease is let go of, and the lock is not released.
    Forget,
}

impl Call {
    /// The TTL that it asks for, if it does.
    pub(crate) fn ttl_ms(self) -> Option<i64> {
        match self {
            Self::Lock { ttl_ms }
            | Self::TryLock { ttl_ms, .. }
            | Self::Continue { ttl_ms }
            | Self::Extend { ttl_ms } => Some(ttl_ms),
            _ => None,
        }
    }
}

/// At its step of this number, where a client might as well be stopped by the system, it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hitch {
    pub(crate) step: u64,
    /// None: it ends there.
    pub(crate) lasts: Option<i64>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    pub(crate) at: i64,
    pub(crate) lasts: i64,
    pub(crate) what: What,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum What {
    Freeze {
        server: usize,
    },
    /// It ends, and starts again: with its keys, without some, or without all.
    Kill {
        server: usize,
        keeps: Keeps,
        quietly: bool,
    },
    Cut {
        client: usize,
        server: usize,
        how: Cut,
    },
    /// Nothing arrives, in the one direction or in the other; it does afterwards.
    Stall {
        client: usize,
        server: usize,
        there: bool,
        back: bool,
    },
    Refuse {
        server: usize,
        how: Refusal,
    },
    Flush {
        server: usize,
    },
    StepClock {
        server: usize,
        by: i64,
    },
    Pause {
        client: usize,
    },
    Suspend {
        client: usize,
        is_counted: bool,
    },
    Crash {
        client: usize,
        quietly: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keeps {
    All,
    Some,
    None,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Both ends are told at once.
    Reset,
    /// The server says nothing more, and takes what it is sent.
    HalfClose,
}

impl ClientPlan {
    /// The servers of one of its managers.
    pub(crate) fn list_of(&self, manager: usize) -> &[usize] {
        manager.checked_sub(1).and_then(|it| self.others.get(it)).unwrap_or(&self.list)
    }

    /// Whether that has other servers than the first.
    pub(crate) fn is_foreign(&self, manager: usize) -> bool {
        let list = self.list_of(manager);
        list.len() != self.list.len() || list.iter().any(|it| !self.list.contains(it))
    }

    /// Whether it is ever stopped at a step of its own, or in a call.
    pub(crate) fn is_stopped(&self) -> bool {
        let mut steps = self.callers.iter().flatten();
        !self.hitches.is_empty() || steps.any(|it| it.mishap.is_some())
    }
}

impl Weather {
    pub(crate) const CALM: Self =
        Self { least: 0, most: 0, slow_in: 0, slow: 0, split_in: 0, room: 1 << 16, wake: 0 };
}

impl Schedule {
    /// One in which nobody does anything.
    pub(crate) fn empty() -> Self {
        let (sins, servers, clients, faults) = Default::default();
        let weather = Weather::CALM;
        let (is_guarded, is_fenced, connects_first, is_waking) = (false, false, false, false);
        Self {
            seed: 0,
            sins,
            weather,
            servers,
            clients,
            faults,
            is_guarded,
            is_fenced,
            is_waking,
            loses_pushes_in: 0,
            connects_first,
            permits: 0,
            plant: None,
        }
    }

    /// What each caller of each client does.
    pub(crate) fn callers_mut(&mut self) -> impl Iterator<Item = &mut Vec<Step>> {
        self.clients.iter_mut().flat_map(|it| &mut it.callers)
    }

    /// The steps of all of them.
    pub(crate) fn steps(&self) -> impl Iterator<Item = &Step> {
        self.clients.iter().flat_map(|it| &it.callers).flatten()
    }

    pub(crate) fn steps_mut(&mut self) -> impl Iterator<Item = &mut Step> {
        self.callers_mut().flatten()
    }

    /// How many resources it is about.
    pub(crate) fn resources(&self) -> usize {
        self.steps().map(|it| it.resource + 1).max().unwrap_or(1)
    }

    pub(crate) fn has(&self, sin: Sin) -> bool {
        self.sins.contains(&sin)
    }

    /// The longest TTL that it asks for.
    pub(crate) fn longest_ttl_ms(&self) -> i64 {
        self.steps().filter_map(|it| it.call.ttl_ms()).max().unwrap_or(0)
    }
}
