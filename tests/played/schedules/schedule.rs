//! The events of one play, as data. So they can be printed, played again, and reduced.

mod parts;
mod words;
mod worst;

pub(crate) use self::words::At;
use std::ops::Range;

use crate::schedules::plants::Plant;
use crate::world::store::{Dialect, Refusal};

/// The assumptions of the promise that a schedule may break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sin {
    /// Clients name different servers.
    SplitLists,
    /// Servers lose keys early: they are flushed, or restart without them.
    LostKeys,
    /// A server's clock leaps ahead.
    LeapingClocks,
    /// A server's clock is faster than the drift factor allows.
    FastClocks,
    /// A client's clock stands still while it is suspended.
    StoppedClocks,
}

pub(crate) const SINS: [Sin; 5] =
    [Sin::SplitLists, Sin::LostKeys, Sin::LeapingClocks, Sin::FastClocks, Sin::StoppedClocks];

#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    pub(crate) seed: u64,
    /// The assumptions that it breaks. If there are none, no two holds may overlap.
    pub(crate) sins: Vec<Sin>,
    pub(crate) weather: Weather,
    pub(crate) servers: Vec<ServerPlan>,
    pub(crate) clients: Vec<ClientPlan>,
    pub(crate) faults: Vec<Fault>,
    /// Whether servers report on their memory, so that their grants are guarded.
    pub(crate) is_guarded: bool,
    /// Set if servers change their lives in other ways than by losing keys.
    pub(crate) lives: Option<Lives>,
    /// Set if Sentinels watch voters.
    pub(crate) watched: Option<Watched>,
    /// Whether clients connect to all servers before anything goes wrong.
    pub(crate) connects_first: bool,
    /// Whether locks have fencing tokens.
    pub(crate) is_fenced: bool,
    /// Whether waiting clients are woken; and one of how many pushes is lost (0: none).
    pub(crate) is_waking: bool,
    pub(crate) loses_pushes_in: u64,
    /// How many permits each resource has as a semaphore; 0: all are locks. A caller that continues a lock
    /// then has a permit, too, without knowing it.
    pub(crate) permits: u16,
    /// A planted fault, to check that a verdict detects it.
    pub(crate) plant: Option<Plant>,
}

/// How long bytes are on their way, and in what pieces they arrive.
#[derive(Clone, Debug)]
pub(crate) struct Weather {
    pub(crate) least: i64,
    pub(crate) most: i64,
    /// One piece in this many takes up to `slow` longer; 0: none.
    pub(crate) slow_in: u64,
    pub(crate) slow: i64,
    /// One piece in this many is split in two; 0: none.
    pub(crate) split_in: u64,
    /// How many bytes a socket accepts before it must wait.
    pub(crate) room: usize,
    /// The delay with which a thread that can continue does so.
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
    /// The servers that it knows.
    pub(crate) list: Vec<usize>,
    /// The lists of its other managers: the same servers in another order, or other servers. In the latter
    /// case no lock may be taken through that manager.
    pub(crate) others: Vec<Vec<usize>>,
    pub(crate) ahead: i64,
    pub(crate) per_million: i64,
    pub(crate) drift: f64,
    pub(crate) tries: i32,
    pub(crate) delay_ms: i32,
    pub(crate) connect_ms: i64,
    pub(crate) reply_ms: i64,
    /// The steps of each of its threads.
    pub(crate) callers: Vec<Vec<Step>>,
    pub(crate) hitches: Vec<Hitch>,
}

/// A call, and the pause between the previous call and this one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) pause: i64,
    /// If set, and if the lease has a lock: the call starts this long before the lock ends, instead of
    /// after the pause.
    pub(crate) before_end: Option<i64>,
    pub(crate) call: Call,
    /// The manager of the client: 0 is the one with `list`, the others have other lists.
    pub(crate) manager: usize,
    /// Which of the caller's leases it uses.
    pub(crate) slot: usize,
    /// The resource, if the lease does not determine it.
    pub(crate) resource: usize,
    /// What happens during the call, and how long after its beginning.
    pub(crate) mishap: Option<(i64, Mishap)>,
    pub(crate) how: How,
    /// Whether the lock that it takes is kept.
    pub(crate) keeps: bool,
    /// Whether the caller asks for events during the pause before the call, and so drives.
    pub(crate) drives: bool,
    /// Whether the lock that it takes is shared.
    pub(crate) shares: bool,
}

impl Step {
    /// This call at once, and nothing else: the caller blocks in it, and uses its first lease and resource.
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

/// How the caller waits for the end of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// The caller blocks in the call.
    Blocks,
    /// The caller submits the call, and asks for events. It cancels the call after this time, if at all.
    Submits { cancelled_after: Option<i64> },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mishap {
    /// The client is stopped.
    Stop { lasts: i64 },
    /// The client's connection to a server is cut.
    Cut { server: usize },
    /// Data in one direction does not arrive until this time has passed.
    Stall { server: usize, back: bool, lasts: i64 },
    /// The server loses its keys, and nothing more arrives there for this time.
    Lose { server: usize, lasts: i64 },
    /// The server changes its life.
    Live { server: usize, life: Life, lasts: i64 },
}

/// The number of leases of a caller.
pub(crate) const SLOTS: usize = 2;
pub(crate) const RESOURCES: [&str; 2] = ["a", "b"];

/// Stands for all resources at once, instead of one of them.
pub(crate) const ALL: usize = RESOURCES.len();

/// Whether locks of these two exclude each other.
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
    /// The lock becomes a shared one.
    Downgrade,
    /// The lock is kept from now on.
    KeepAlive,
    /// The lock is given away. The first caller that adopts gets its ticket.
    Detach,
    /// A lock is adopted, if there is a ticket for the resource.
    Adopt,
    /// The lease is dropped, and the lock is not released.
    Forget,
}

impl Call {
    /// The TTL that the call asks for, if any.
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

/// The client is stopped at its step of this number. At each step the system might stop it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hitch {
    pub(crate) step: u64,
    /// `None`: the client ends there.
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
    /// The server ends, and starts again: with its keys, without some of them, or without all.
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
    /// Nothing arrives in the given directions until the fault ends.
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
    /// The server changes its life.
    Live {
        server: usize,
        life: Life,
    },
    /// A Sentinel learns which server is the master of this epoch. Until the fault ends, it says that a failover is in
    /// progress.
    Turn {
        sentinel: usize,
        voter: usize,
        epoch: u64,
    },
    /// The master of this epoch is promoted: with the data that the last one has now, or with the copy of that.
    TakeOver {
        voter: usize,
        epoch: u64,
        keeps: bool,
        shows: bool,
    },
    /// The last master becomes a replica of the master of this epoch.
    StepDown {
        voter: usize,
        epoch: u64,
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

/// A change in the life of a server. Each server has a copy of its data, which is empty at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Life {
    /// The copy is made anew: a snapshot, or a replica that loses touch with the server now.
    Copy,
    /// The copy takes the place of the data, and the process stays: `SWAPDB`, or an imported dump. The data is
    /// the copy from now on.
    Swap,
    /// The server restarts with the copy, as from an old file.
    RestartOld,
    /// A replica that has the copy is promoted in the place of the server. It shows that, or has forgotten it.
    Promote {
        shows: bool,
    },
    /// The copy is started as a primary, in the place of the server.
    StartCopy,
    /// The server is a replica with the data of the copy until the fault ends, and is promoted again. It shows
    /// that, or forgets it at once.
    Demote {
        shows: bool,
    },
    /// The server forgets that it was promoted: its replication backlog is freed.
    ForgetPromotion,
    /// The log is turned off: `CONFIG SET appendonly no`.
    LogOff,
    /// The server restarts, with its log turned on. If the log was off, it is an old one.
    RestartLog,
    /// The note is deleted, is damaged, or is replaced by a key of another type until the fault ends.
    DropNote,
    DamageNote,
    RetypeNote,
}

impl Life {
    /// Whether the server is down until the fault ends.
    pub(crate) fn is_restart(self) -> bool {
        matches!(self, Self::RestartOld | Self::Promote { .. } | Self::StartCopy | Self::RestartLog)
    }
}

/// What servers are at the beginning of a schedule in which one of them changes its life.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lives {
    /// Whether they have logs that are always synced.
    pub(crate) are_logged: bool,
    /// Whether they are new, and so have no note.
    pub(crate) are_new: bool,
}

/// Voters that Sentinels watch. Behind the voters, the list of the servers has one more server for each of these, which
/// can take its place, and then the Sentinels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watched {
    pub(crate) voters: usize,
    /// How many of the voters are watched, from the first one on.
    pub(crate) masters: usize,
    pub(crate) sentinels: usize,
    /// Whether a majority of the Sentinels must confirm a master. Otherwise one Sentinel is believed.
    pub(crate) is_led: bool,
}

impl Watched {
    pub(crate) fn sentinels(self) -> Range<usize> {
        let first = self.voters + self.masters;
        first..first + self.sentinels
    }

    /// The server that is the master in this epoch. The two of a voter take turns.
    pub(crate) fn owner(self, voter: usize, epoch: u64) -> usize {
        if epoch.is_multiple_of(2) { voter } else { self.voters + voter }
    }

    /// The voter to which a server belongs.
    pub(crate) fn voter_of(self, server: usize) -> usize {
        if server < self.voters { server } else { server - self.voters }
    }
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
    /// The server sends nothing more, but accepts what is sent to it.
    HalfClose,
}

impl ClientPlan {
    /// The servers of one of its managers.
    pub(crate) fn list_of(&self, manager: usize) -> &[usize] {
        manager.checked_sub(1).and_then(|it| self.others.get(it)).unwrap_or(&self.list)
    }

    /// Whether this manager has other servers than the first one.
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
    /// A schedule in which nobody does anything.
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
            lives: None,
            watched: None,
            is_fenced,
            is_waking,
            loses_pushes_in: 0,
            connects_first,
            permits: 0,
            plant: None,
        }
    }

    /// The steps of each caller of each client.
    pub(crate) fn callers_mut(&mut self) -> impl Iterator<Item = &mut Vec<Step>> {
        self.clients.iter_mut().flat_map(|it| &mut it.callers)
    }

    /// All steps of all callers.
    pub(crate) fn steps(&self) -> impl Iterator<Item = &Step> {
        self.clients.iter().flat_map(|it| &it.callers).flatten()
    }

    pub(crate) fn steps_mut(&mut self) -> impl Iterator<Item = &mut Step> {
        self.callers_mut().flatten()
    }

    /// How many servers have a vote.
    pub(crate) fn voters(&self) -> usize {
        self.watched.map_or(self.servers.len(), |it| it.voters)
    }

    /// The same schedule without that which prevents two holders.
    pub(crate) fn unguarded(mut self) -> Self {
        self.is_guarded = false;
        self.watched.iter_mut().for_each(|it| it.is_led = false);
        self
    }

    /// The number of resources in the schedule.
    pub(crate) fn resources(&self) -> usize {
        self.steps().map(|it| it.resource + 1).max().unwrap_or(1)
    }

    pub(crate) fn has(&self, sin: Sin) -> bool {
        self.sins.contains(&sin)
    }

    /// The longest TTL that a step asks for.
    pub(crate) fn longest_ttl_ms(&self) -> i64 {
        self.steps().filter_map(|it| it.call.ttl_ms()).max().unwrap_or(0)
    }
}
