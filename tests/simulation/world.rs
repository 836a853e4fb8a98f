//! A world that is played: its time passes only when something is due, and the same script always
//! plays the same. Whoever waits, plays what is due meanwhile: so calls of several clients run into
//! each other without a thread; and with some, see `threads`.

use std::cell::{Cell, RefCell, RefMut};
use std::collections::BTreeMap;
use std::ops::Deref;
use std::rc::Rc;

use crate::link::{Link, Trip, Way};
use crate::peer::Peer;
use crate::server::{Deed, Server};
use crate::threads::{self, Threads};

/// Nanoseconds: all times of the world are counted in them.
pub(crate) const MS: i64 = 1_000_000;

/// No script has so many.
const EVENTS_MAX: u64 = 200_000;

/// Something that happens.
pub(crate) type Event = Box<dyn FnOnce(&World)>;

/// How long each request and each reply takes that no script speaks of.
pub(crate) type Weather = Box<dyn FnMut(Way) -> Trip>;

pub(crate) struct World {
    now: Cell<i64>,
    sequence: Cell<u64>,
    pub(crate) threads: Threads,
    due: RefCell<BTreeMap<(i64, u64), Event>>,
    servers: Vec<RefCell<Server>>,
    peers: RefCell<Vec<Peer>>,
    /// From each client to each server in turn.
    links: RefCell<Vec<Link>>,
    pub(crate) weather: RefCell<Weather>,
    /// What the servers did, in its order.
    pub(crate) deeds: RefCell<Vec<Deed>>,
}

impl World {
    /// When it is, in truth. No client and no server can see this clock.
    pub(crate) fn now(&self) -> i64 {
        self.now.get()
    }

    /// Has something happen then.
    pub(crate) fn at(&self, time: i64, event: impl FnOnce(&Self) + 'static) {
        assert!(self.sequence.get() < EVENTS_MAX, "it goes on for ever");
        self.sequence.set(self.sequence.get() + 1);
        let key = (time.max(self.now()), self.sequence.get());
        self.due.borrow_mut().insert(key, Box::new(event));
    }

    /// Has something happen so much later.
    pub(crate) fn after_ms(&self, ms: i64, event: impl FnOnce(&Self) + 'static) {
        self.at(self.now() + ms * MS, event);
    }

    /// Lets so much time pass.
    pub(crate) fn run_ms(&self, ms: i64) {
        self.run_until(self.now() + ms * MS);
    }

    /// Lets time pass until then.
    pub(crate) fn run_until(&self, time: i64) {
        self.wait(time, |_| false);
    }

    /// Lets time pass until then, or until it is done.
    pub(crate) fn wait(&self, until: i64, is_done: impl Fn(&Self) -> bool + 'static) {
        if threads::is_played() {
            return threads::sleep(self, until, is_done);
        }
        loop {
            self.threads.play(self);
            if is_done(self) {
                return;
            }
            let event = {
                let mut due = self.due.borrow_mut();
                match due.first_entry() {
                    Some(first) if first.key().0 <= until => {
                        self.pass_to(first.key().0);
                        first.remove()
                    }
                    _ => return self.pass_to(until),
                }
            };
            event(self);
        }
    }

    /// Somebody who waited inside of a wait may have been there already.
    fn pass_to(&self, time: i64) {
        self.now.set(self.now().max(time));
    }

    pub(crate) fn server(&self, server: usize) -> RefMut<'_, Server> {
        self.servers[server].borrow_mut()
    }

    pub(crate) fn servers(&self) -> usize {
        self.servers.len()
    }

    pub(crate) fn quorum(&self) -> usize {
        self.servers() / 2 + 1
    }

    pub(crate) fn peer(&self, client: usize) -> RefMut<'_, Peer> {
        RefMut::map(self.peers.borrow_mut(), |it| &mut it[client])
    }

    pub(crate) fn peers(&self) -> usize {
        self.peers.borrow().len()
    }

    /// Returns its number.
    pub(crate) fn add_peer(&self, peer: Peer) -> usize {
        self.peers.borrow_mut().push(peer);
        self.links.borrow_mut().extend((0..self.servers()).map(|_| Link::default()));
        self.peers() - 1
    }

    pub(crate) fn link(&self, way: Way) -> RefMut<'_, Link> {
        RefMut::map(self.links.borrow_mut(), |it| &mut it[way.client * self.servers() + way.server])
    }

    /// On how many servers this value is alive.
    pub(crate) fn having(&self, resource: &str, value: &str) -> usize {
        self.lives(resource, value).into_iter().filter(|&end| end > self.now()).count()
    }

    /// On how many servers any value is alive.
    pub(crate) fn having_any(&self, resource: &str) -> usize {
        let has = |it: &RefCell<Server>| it.borrow().value(resource, self.now()).is_some();
        self.servers.iter().filter(|it| has(it)).count()
    }

    /// When the first server of a quorum will let go of this value if nothing happens: until then,
    /// and no longer, nobody else can have a quorum.
    pub(crate) fn kept_until(&self, resource: &str, value: &str) -> i64 {
        let mut lives = self.lives(resource, value);
        lives.sort_unstable_by(|a, b| b.cmp(a));
        lives[self.quorum() - 1]
    }

    fn lives(&self, resource: &str, value: &str) -> Vec<i64> {
        self.servers.iter().map(|it| it.borrow().kept_until(resource, value)).collect()
    }
}

/// A world, with what is due in it. What is due may hold the clients, and they the world: so it has
/// to be dropped first.
pub(crate) struct Cluster(pub(crate) Rc<World>);

impl Cluster {
    /// So many servers that run as they should, all of them one millisecond away.
    pub(crate) fn new(servers: usize) -> Self {
        // Not 0: a difference of two times must not be mistaken for a time.
        const START: i64 = 1_000_000 * MS;
        Self(Rc::new(World {
            now: Cell::new(START),
            sequence: Cell::default(),
            threads: Threads::default(),
            due: RefCell::default(),
            servers: (0..servers).map(|_| RefCell::default()).collect(),
            peers: RefCell::default(),
            links: RefCell::default(),
            weather: RefCell::new(Box::new(|_| Trip::default())),
            deeds: RefCell::default(),
        }))
    }
}

impl Deref for Cluster {
    type Target = World;

    fn deref(&self) -> &World {
        &self.0
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let due = std::mem::take(&mut *self.due.borrow_mut());
        drop(due);
    }
}
