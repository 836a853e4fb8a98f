//! Callers of one client, each on a thread of its own, that want "r"; and their results.

use std::cell::RefCell;
use std::rc::Rc;

use super::client::{Client, Said, token};
use super::cluster::{Cluster, MS, Scene, Verb};
use super::history::{History, is_borne_out};
use crate::manager::lease::Lease;

/// So long that no key expires by itself.
pub(crate) const LONG: i64 = 100_000;

/// Which caller was told what, and how many milliseconds after the beginning.
pub(crate) type Told = (char, Said, i64);

/// The callers of one client. A clone is the same crowd.
#[derive(Clone)]
pub(crate) struct Crowd {
    pub(crate) client: Rc<Client>,
    world: Scene,
    start: i64,
    told: Rc<RefCell<Vec<Told>>>,
    history: Rc<RefCell<History>>,
}

impl Crowd {
    /// The callers of this client; time begins now.
    pub(crate) fn of(cluster: &Cluster, client: Client) -> Self {
        let (told, history) = Default::default();
        let (client, world) = (Rc::new(client), **cluster);
        Self { client, start: world.now(), world, told, history }
    }

    /// Callers of another client, in the same world and at the same time.
    pub(crate) fn and(&self, client: Client) -> Self {
        Self { client: Rc::new(client), ..self.clone() }
    }

    /// A caller that comes at this time, makes this call, and holds the lock for `hold_ms`.
    pub(crate) fn caller(
        &self,
        who: char,
        at_ms: i64,
        call: impl FnOnce(&Client, &mut Lease) -> Said + 'static,
        hold_ms: i64,
    ) {
        let take = move |crowd: &Self, lease: &mut Lease| crowd.call(who, lease, call);
        self.comer(at_ms, take, hold_ms);
    }

    /// A caller that comes at this time, takes something, and holds it for `hold_ms`.
    fn comer(
        &self,
        at_ms: i64,
        take: impl FnOnce(&Self, &mut Lease) -> Said + 'static,
        hold_ms: i64,
    ) {
        self.thread(at_ms, move |crowd| {
            let mut lease = Lease::new();
            if take(crowd, &mut lease) == Ok(()) {
                crowd.world.run_ms(hold_ms);
                // In some scripts, the servers cannot be told.
                let _ = crowd.unlock(&mut lease);
            }
        });
    }

    /// A thread that starts at this time and runs `body`.
    pub(crate) fn thread(&self, at_ms: i64, body: impl FnOnce(&Self) + 'static) {
        let crowd = self.clone();
        self.world.thread(at_ms, move || body(&crowd));
    }

    /// A call that takes or keeps the lock.
    pub(crate) fn call(
        &self,
        who: char,
        lease: &mut Lease,
        call: impl FnOnce(&Client, &mut Lease) -> Said,
    ) -> Said {
        let said = call(&self.client, lease);
        if said == Ok(()) {
            assert!(is_borne_out(self.world, &self.client, lease), "{who} is promised too much");
            self.history.borrow_mut().granted(&self.client, lease, self.world.now());
        }
        self.told.borrow_mut().push((who, said, self.now_ms()));
        said
    }

    /// A caller that comes at this time, makes this call for a lock that others may hold as well, and holds
    /// it for `hold_ms`.
    pub(crate) fn sharer(
        &self,
        who: char,
        at_ms: i64,
        call: impl FnOnce(&Client, &mut Lease) -> Said + 'static,
        hold_ms: i64,
    ) {
        let take = move |crowd: &Self, lease: &mut Lease| {
            let said = call(&crowd.client, lease);
            crowd.told.borrow_mut().push((who, said, crowd.now_ms()));
            said
        };
        self.comer(at_ms, take, hold_ms);
    }

    pub(crate) fn unlock(&self, lease: &mut Lease) -> Said {
        self.believes_no_more(lease);
        self.client.unlock(lease)
    }

    /// The holder does not believe any more that it holds the lock.
    pub(crate) fn believes_no_more(&self, lease: &Lease) {
        self.history.borrow_mut().ended(&token(lease), self.world.now());
    }

    pub(crate) fn run_until_ms(&self, ms: i64) {
        self.run_until(ms * MS);
    }

    /// A time relative to the beginning.
    pub(crate) fn run_until(&self, end: i64) {
        self.world.run_until(self.start + end);
    }

    pub(crate) fn now_ms(&self) -> i64 {
        (self.world.now() - self.start) / MS
    }

    /// The results of all callers, in order, once all have ended.
    #[track_caller]
    pub(crate) fn told(&self) -> Vec<Told> {
        self.world.end_threads(LONG);
        let history = self.history.borrow();
        assert!(history.overlap().is_none(), "{:#?}", history.overlap());
        self.told.borrow().clone()
    }

    /// The callers that held the lock, in order.
    #[track_caller]
    pub(crate) fn holders(&self) -> String {
        self.told().into_iter().filter(|it| it.1 == Ok(())).map(|it| it.0).collect()
    }

    /// What the first server did for this client, and when, in milliseconds.
    pub(crate) fn deeds(&self) -> Vec<(Verb, i64)> {
        self.deeds_of(0)
    }

    pub(crate) fn deeds_of(&self, server: usize) -> Vec<(Verb, i64)> {
        let deeds = self.world.deeds();
        let way = (self.client.me, server);
        let here = deeds.iter().filter(|it| (it.client, it.server) == way);
        here.map(|it| (it.verb, (it.at - self.start) / MS)).collect()
    }

    /// How often this client asked for the lock.
    pub(crate) fn asked(&self) -> usize {
        self.deeds().iter().filter(|it| it.0 == Verb::Acquire).count()
    }
}

/// TryLock with this waiting time.
pub(crate) fn waits(wait_ms: i64) -> impl FnOnce(&Client, &mut Lease) -> Said + 'static {
    move |client, lease| client.try_lock("r", LONG, wait_ms, lease)
}

/// Lock.
pub(crate) fn locks(client: &Client, lease: &mut Lease) -> Said {
    client.lock("r", LONG, lease)
}
