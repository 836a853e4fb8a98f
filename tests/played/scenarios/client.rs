//! A client: the library in a process of its own, and its calls, which return statuses.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::cluster::{Cluster, MS, Scene, Trip, Verb, Way};
use crate::manager::call::{AcquireOptions, Call, Patience};
use crate::manager::canceller::Canceller;
use crate::manager::event::Event;
use crate::manager::lease::Lease;
use crate::manager::redlock::RedLock;
use crate::protocol::error::{Error, Status};
use crate::protocol::lock_kind::LockKind;
use crate::schedules::generate::PASSWORD;
use crate::world::network::FIRST_PORT;
use crate::world::turns::Stall;

pub(crate) struct Client {
    pub(crate) me: usize,
    pub(crate) manager: RedLock,
    scene: Scene,
    /// Earlier requests are ignored when the pauses are computed.
    paused_since: Cell<i64>,
}

pub(crate) type Said = Result<(), Status>;

impl Client {
    /// A client with the default settings, and with a clock that is ahead by this amount.
    pub(crate) fn new(scene: Scene, ahead: i64) -> Self {
        let me = scene.with(|world| world.add_client(ahead, 1_000_000));
        let manager = RedLock::new();
        // Most scenarios are about clients that ask by themselves.
        manager.settings().set_waking(false);
        for server in 0..scene.servers() {
            let port = i32::from(FIRST_PORT) + server as i32;
            manager.add_server_url("127.0.0.1", port).expect("an address");
        }
        Self { me, manager, scene, paused_since: Cell::new(0) }
    }

    /// How often it tries, and the mean pause.
    pub(crate) fn tries(self, count: i32, delay_ms: i32) -> Self {
        self.manager.settings().set_retry(count, delay_ms).expect("they are in bounds");
        self
    }

    /// A client that is told of releases, and tells of its own. Its random number is always the smallest.
    pub(crate) fn woken(self) -> Self {
        self.manager.settings().set_waking(true);
        self.rig(Some(0));
        self
    }

    /// How long it waits for a reply.
    pub(crate) fn waits_ms(self, reply_ms: i64) -> Self {
        self.manager.settings().set_timeouts(1500, reply_ms).expect("they are in bounds");
        self
    }

    /// Sets the source of the servers' password, which is asked while a call waits for it. The source says
    /// whether its password is right.
    pub(crate) fn asks(self, is_known: impl Fn() -> bool + 'static) -> Self {
        let source = Source(Box::new(is_known));
        let source = Arc::new(move |_: &str| {
            let password = if source.ask() { PASSWORD } else { "another" };
            Some(password.as_bytes().to_owned())
        });
        self.manager.settings().set_password_source(None, Some(source)).expect("it can be set");
        self
    }

    pub(crate) fn world(&self) -> Scene {
        self.scene
    }

    pub(crate) fn way(&self, server: usize) -> Way {
        Way { client: self.me, server }
    }

    /// The random number of the next pauses; `None`: it is left to chance.
    pub(crate) fn rig(&self, number: Option<u64>) {
        self.scene.with(|world| world.clients[self.me].rigged = number);
    }

    /// Once, at the `nth` look at the clock from now on, this time passes before the clock is read.
    pub(crate) fn stall_once(&self, nth: u32, ns: i64) {
        self.scene
            .with(|world| world.clients[self.me].stall = Some(Stall { looks: nth, lasts: ns }));
    }

    /// Whether it has been kept from its clock since.
    pub(crate) fn has_stalled(&self) -> bool {
        self.scene.with(|world| world.clients[self.me].stall.is_none())
    }

    /// The time of that.
    pub(crate) fn stalled_at(&self) -> i64 {
        self.scene.with(|world| world.clients[self.me].stalled_at)
    }

    /// How often it has waited for something, or looked for it.
    pub(crate) fn polls(&self) -> u64 {
        self.scene.with(|world| world.clients[self.me].polls)
    }

    /// Its pauses between two tries that asked the first server, if each was answered after the usual time.
    pub(crate) fn pauses(&self) -> Vec<i64> {
        let Trip { there, back, .. } =
            self.scene.with(|it| it.script.as_ref().map(|it| it.usual)).unwrap_or_default();
        let asked: Vec<i64> = self.asked_at(0, Verb::Acquire);
        asked.windows(2).map(|it| it[1] - it[0] - there - back).collect()
    }

    /// Ignores the pauses so far.
    pub(crate) fn begin_pauses(&self) {
        self.paused_since.set(self.scene.now());
    }

    /// When this server executed this kind of request for it.
    pub(crate) fn asked_at(&self, server: usize, verb: Verb) -> Vec<i64> {
        let since = self.paused_since.get();
        self.scene.with(|world| {
            let done = world.script.iter().flat_map(|it| &it.done).filter(|it| it.at > since);
            let mine = done.filter(|it| (it.client, it.server, it.verb) == (self.me, server, verb));
            mine.map(|it| it.at).collect()
        })
    }

    fn call<T>(&self, call: impl FnOnce(&RedLock) -> Result<T, Error>) -> Result<T, Status> {
        self.scene.call(self.me, || call(&self.manager)).map_err(|it| it.status())
    }

    fn run(&self, call: Call<'_>, lease: &mut Lease) -> Said {
        self.call(|it| it.run(call, lease))
    }

    /// Connects to all servers.
    pub(crate) fn connected(self) -> Self {
        self.connect_to_all();
        self
    }

    #[track_caller]
    pub(crate) fn connect_to_all(&self) {
        let said = self.scene.call(self.me, || self.manager.connect(0));
        said.expect("a quorum");
        // Most worlds have servers without notes. These are connected, and not guarded.
        assert!(self.manager.servers().iter().all(|it| it.is_connected));
    }

    pub(crate) fn lock(&self, resource: &str, ttl_ms: i64, lease: &mut Lease) -> Said {
        let options = Call::acquire(resource.as_bytes(), ttl_ms);
        self.run(
            Call::Acquire(AcquireOptions { patience: Patience::TriesOfSettings, ..options }),
            lease,
        )
    }

    pub(crate) fn try_lock(
        &self,
        resource: &str,
        ttl_ms: i64,
        wait_ms: i64,
        lease: &mut Lease,
    ) -> Said {
        self.acquire((resource, &LockKind::Exclusive), ttl_ms, wait_ms, lease)
    }

    /// A lock of any kind, with this waiting time.
    pub(crate) fn acquire(
        &self,
        (resource, kind): (&str, &LockKind),
        ttl_ms: i64,
        wait_ms: i64,
        lease: &mut Lease,
    ) -> Said {
        let (resource, kind) = (resource.as_bytes(), kind.clone());
        let patience = Patience::Ms(wait_ms);
        let options = AcquireOptions { resource, kind, ttl_ms, patience, keep: None };
        self.run(Call::Acquire(options), lease)
    }

    /// Turns an exclusive lock into a shared one.
    pub(crate) fn downgrade(&self, lease: &mut Lease) -> Said {
        self.run(Call::Downgrade, lease)
    }

    /// Cancels the call of one of its threads on that lease.
    pub(crate) fn cancel(&self, canceller: &Canceller) {
        self.scene.call(self.me, || self.manager.cancel(canceller));
    }

    pub(crate) fn continue_lock(&self, resource: &str, ttl_ms: i64, lease: &mut Lease) -> Said {
        self.run(Call::Continue { resource: resource.as_bytes(), ttl_ms }, lease)
    }

    pub(crate) fn extend(&self, lease: &mut Lease, ttl_ms: i64) -> Said {
        self.run(Call::Extend { ttl_ms }, lease)
    }

    pub(crate) fn unlock(&self, lease: &mut Lease) -> Said {
        self.run(Call::Unlock, lease)
    }

    pub(crate) fn unlock_after(&self, lease: &mut Lease, least_ms: i64) -> Said {
        self.run(Call::UnlockAfter { least_ms }, lease)
    }

    /// Asks no server.
    pub(crate) fn retain(&self, lease: &mut Lease) -> Said {
        self.call(|_| lease.retain())
    }

    pub(crate) fn confirm(&self, lease: &mut Lease, least_ms: i64) -> Said {
        self.run(Call::Confirm { least_ms }, lease)
    }

    pub(crate) fn is_locked(&self, resource: &str) -> Result<bool, Status> {
        self.call(|it| it.is_locked(resource.as_bytes()))
    }

    /// For how long the resource is still locked, if it is.
    pub(crate) fn left_ms(&self, resource: &str) -> Result<Option<i64>, Status> {
        self.call(|it| it.inspect(resource.as_bytes()).map(|it| it.left_ms))
    }

    /// Keeps a lock alive. The scenario drives, by [`Self::event`].
    pub(crate) fn keep_alive(&self, lease: &mut Lease) -> Said {
        self.call(|it| {
            it.own()?.has_event_loop.store(true, Ordering::Relaxed);
            it.keep_alive(lease, Box::new(()))
        })
    }

    /// Begins to take a lock.
    #[track_caller]
    pub(crate) fn submit(&self, resource: &str, ttl_ms: i64) {
        self.submit_waiting((resource, &LockKind::Exclusive), ttl_ms, 0);
    }

    /// Begins to take a lock of any kind, with this waiting time.
    #[track_caller]
    pub(crate) fn submit_waiting(
        &self,
        (resource, kind): (&str, &LockKind),
        ttl_ms: i64,
        wait_ms: i64,
    ) {
        let (resource, kind) = (resource.as_bytes(), kind.clone());
        let patience = Patience::Ms(wait_ms);
        let options = AcquireOptions { resource, kind, ttl_ms, patience, keep: None };
        let call = Call::Acquire(options);
        let said = self.call(|it| it.submit(call, Lease::new(), Box::new(())));
        assert_eq!(said, Ok(()));
    }

    /// The next event, if there is one within this time: the end of a submitted call, or that a lock is lost.
    pub(crate) fn event(&self, wait_ms: i64) -> Option<Said> {
        let event = self.call(|it| it.next_event(wait_ms)).expect("there is no fault");
        event.map(|event| match event {
            Event::Done { outcome, .. } => outcome.map_err(|it| it.status()),
            Event::Lost { error, .. } => Err(error.status()),
        })
    }

    /// Gives a lock away, and returns its ticket.
    pub(crate) fn detach(&self, lease: &mut Lease) -> Result<String, Status> {
        self.call(|it| it.detach(lease, 100_000))
    }

    pub(crate) fn adopt(&self, ticket: &str, lease: &mut Lease) -> Said {
        self.run(Call::Adopt { ticket: ticket.as_bytes() }, lease)
    }

    /// Takes a lock, which must succeed.
    #[track_caller]
    pub(crate) fn take(&self, resource: &str, ttl_ms: i64) -> Lease {
        let mut lease = Lease::new();
        assert_eq!(self.lock(resource, ttl_ms, &mut lease), Ok(()));
        lease
    }

    /// Whether a lease that is believed to hold its lock does so. No request is sent then.
    pub(crate) fn still_holds(&self, lease: &mut Lease) -> bool {
        self.lock("another", 10_000, lease) == Err(Status::InvalidArgument)
    }

    /// When the validity that a call has just granted ends, in true time; at most 1 ms too early.
    pub(crate) fn end_of(&self, lease: &Lease) -> i64 {
        self.scene.with(|world| {
            let clock = &world.clients[self.me].clock;
            clock.when(clock.read(world.now) + lease.validity_ms() * MS)
        })
    }
}

/// Belongs to the thread that plays the world, as everything in the world does.
struct Source(Box<dyn Fn() -> bool>);

// SAFETY: it is called only by callers in that world, and all of these are on that one thread.
unsafe impl Send for Source {}
// SAFETY: as above.
unsafe impl Sync for Source {}

impl Source {
    fn ask(&self) -> bool {
        (self.0)()
    }
}

impl Cluster {
    /// A client with the default settings and a clock that is right.
    pub(crate) fn client(&self) -> Client {
        Client::new(**self, 0)
    }
}

/// The token of a lease that has one.
#[track_caller]
pub(crate) fn token(lease: &Lease) -> String {
    lease.token().expect("it has a token").to_owned()
}
