//! A client: the real locker, on a network and with dice that are played.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use redlock::locker::Locker;
use redlock::settings::Settings;
use redlock::token::Entropy;
use redlock::transport::endpoint::Endpoint;
use redlock::transport::roster::Roster;
use redlock::{Error, Lease, Status};

use crate::link::Way;
use crate::peer::{Network, Peer, Stall};
use crate::server::Clock;
use crate::world::{Cluster, MS, World};

/// Random numbers that come again with the same seed.
pub(crate) struct Dice(Cell<u64>);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Cell::new(seed))
    }

    /// The next number of Steele, Lea and Flood's SplitMix64.
    pub(crate) fn roll(&self) -> u64 {
        self.0.set(self.0.get().wrapping_add(0x9E37_79B9_7F4A_7C15));
        let mut it = self.0.get();
        it = (it ^ (it >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        it = (it ^ (it >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        it ^ (it >> 31)
    }

    /// From `least` to `most`, both included.
    pub(crate) fn between(&self, least: i64, most: i64) -> i64 {
        let span = most.abs_diff(least) + 1;
        least + i64::try_from(self.roll() % span).expect("the span is one of i64")
    }

    /// Once in so many times.
    pub(crate) fn once_in(&self, times: i64) -> bool {
        self.between(1, times) == 1
    }

    pub(crate) fn pick<T: Copy>(&self, from: &[T]) -> T {
        from[self.between(0, from.len() as i64 - 1) as usize]
    }
}

/// What a locker draws tokens and pauses from.
pub(crate) struct Source {
    dice: Dice,
    /// The random number of the next pauses, if it is not left to chance.
    pub(crate) rigged: Rc<Cell<Option<u64>>>,
}

impl Entropy for Source {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), Error> {
        if let (8, Some(number)) = (bytes.len(), self.rigged.get()) {
            bytes.copy_from_slice(&number.to_ne_bytes());
            return Ok(());
        }
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.dice.roll().to_ne_bytes()[..chunk.len()]);
        }
        Ok(())
    }
}

/// A client, and how it calls: with statuses for an answer.
pub(crate) struct Client {
    pub(crate) me: usize,
    pub(crate) settings: Arc<Settings>,
    pub(crate) rigged: Rc<Cell<Option<u64>>>,
    world: Rc<World>,
    locker: Locker<Network, Source>,
}

pub(crate) type Said = Result<(), Status>;

impl Client {
    pub(crate) fn new(world: &Rc<World>, clock: Clock) -> Self {
        let me = world.add_peer(Peer::new(clock));
        let settings = Arc::<Settings>::default();
        let rigged = Rc::<Cell<Option<u64>>>::default();
        let source = Source { dice: Dice::new(1 + me as u64), rigged: Rc::clone(&rigged) };
        let network = Network { world: Rc::clone(world), me };
        let endpoint = |it| Endpoint::parse("127.0.0.1", 7001 + it as i32).expect("an address");
        let roster = Roster::new((0..world.servers()).map(endpoint).collect());
        let locker = Locker::new(network, source, roster, Arc::clone(&settings));
        Self { me, settings, rigged, world: Rc::clone(world), locker }
    }

    /// How often it tries, and the mean pause.
    pub(crate) fn tries(self, count: i32, delay_ms: i32) -> Self {
        self.settings.set_retry(count, delay_ms).expect("they are in bounds");
        self
    }

    /// How long it waits for a reply.
    pub(crate) fn waits_ms(self, reply_ms: i64) -> Self {
        self.settings.set_timeouts(1500, reply_ms).expect("they are in bounds");
        self
    }

    pub(crate) fn world(&self) -> &World {
        &self.world
    }

    pub(crate) fn way(&self, server: usize) -> Way {
        Way { client: self.me, server }
    }

    /// Connects to all servers.
    pub(crate) fn connected(self) -> Self {
        self.connect_to_all();
        self
    }

    #[track_caller]
    pub(crate) fn connect_to_all(&self) {
        assert_eq!(self.locker.connect(0).map_err(|it| it.to_string()), Ok(String::new()));
    }

    pub(crate) fn lock(&self, resource: &str, ttl_ms: i64, lease: &mut Lease) -> Said {
        said(self.locker.lock(resource.as_bytes(), ttl_ms, lease))
    }

    pub(crate) fn try_lock(
        &self,
        resource: &str,
        ttl_ms: i64,
        wait_ms: i64,
        lease: &mut Lease,
    ) -> Said {
        said(self.locker.try_lock(resource.as_bytes(), ttl_ms, wait_ms, lease))
    }

    /// TryLock for `wait_ms`, in slices: as bindings do it whose callers cannot be interrupted within C.
    pub(crate) fn try_lock_in_slices(
        &self,
        resource: &str,
        ttl_ms: i64,
        (wait_ms, slice_ms): (i64, i64),
        lease: &mut Lease,
    ) -> Said {
        let end = self.world.now() + wait_ms * MS;
        loop {
            let left_ms = (end - self.world.now() + MS - 1) / MS;
            let said = self.try_lock_slice(resource, ttl_ms, (left_ms, slice_ms), lease);
            if said.is_ok() || self.world.now() >= end {
                return said;
            }
        }
    }

    pub(crate) fn try_lock_slice(
        &self,
        resource: &str,
        ttl_ms: i64,
        wait_and_slice_ms: (i64, i64),
        lease: &mut Lease,
    ) -> Said {
        said(self.locker.try_lock_slice(resource.as_bytes(), ttl_ms, wait_and_slice_ms, lease))
    }

    pub(crate) fn continue_lock(&self, resource: &str, ttl_ms: i64, lease: &mut Lease) -> Said {
        said(self.locker.continue_lock(resource.as_bytes(), ttl_ms, lease))
    }

    pub(crate) fn extend(&self, lease: &mut Lease, ttl_ms: i64) -> Said {
        said(self.locker.extend(lease, ttl_ms))
    }

    pub(crate) fn unlock(&self, lease: &mut Lease) -> Said {
        said(self.locker.unlock(lease))
    }

    pub(crate) fn confirm(&self, lease: &mut Lease, least_ms: i64) -> Said {
        said(self.locker.confirm(lease, least_ms))
    }

    pub(crate) fn is_locked(&self, resource: &str) -> Result<bool, Status> {
        self.locker.is_locked(resource.as_bytes()).map_err(|it| it.status())
    }

    /// Takes a lock, which has to succeed.
    #[track_caller]
    pub(crate) fn take(&self, resource: &str, ttl_ms: i64) -> Lease {
        let mut lease = Lease::new();
        assert_eq!(self.lock(resource, ttl_ms, &mut lease), Ok(()));
        lease
    }

    /// Whether the lease holds its lock, asked of one that is thought to: nothing is sent then.
    pub(crate) fn still_holds(&self, lease: &mut Lease) -> bool {
        self.lock("another", 10_000, lease) == Err(Status::InvalidArgument)
    }

    /// When the validity ends that a call has just granted, in truth; at most 1 ms too early.
    pub(crate) fn end_of(&self, lease: &Lease) -> i64 {
        let clock = self.world.peer(self.me).clock;
        clock.when(clock.read(self.world.now()) + lease.validity_ms() * MS)
    }
}

impl Cluster {
    /// A client with the default settings and a clock that is right.
    pub(crate) fn client(&self) -> Client {
        Client::new(&self.0, Clock::default())
    }
}

fn said(result: Result<(), Error>) -> Said {
    result.map_err(|it| it.status())
}

/// Once, when the clock is looked at for the `nth` time from now on, so long passes before it is seen.
pub(crate) fn stall_once(nth: usize, ns: i64) -> Stall {
    let mut looks = 0;
    Box::new(move || {
        looks += 1;
        if looks == nth { ns } else { 0 }
    })
}

/// The token of a lease that has one.
#[track_caller]
pub(crate) fn token(lease: &Lease) -> String {
    lease.token().expect("it has a token").to_owned()
}
