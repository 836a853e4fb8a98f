//! A client as the network knows it: its calls that wait, its clock, and whether it is awake; and
//! the transport that its locker has.

use std::collections::BTreeMap;
use std::rc::Rc;

use redlock::command::{Answer, Request};
use redlock::failure::Failure;
use redlock::inquiry::Inquiry;
use redlock::moment::Moment;
use redlock::server_set::ServerSet;
use redlock::transport::{Errand, Patience, Tally, Transport};

use crate::link::Way;
use crate::server::Clock;
use crate::world::{Event, World};

/// For how long a client that looks at its clock is kept from it.
pub(crate) type Stall = Box<dyn FnMut() -> i64>;

#[derive(Default)]
pub(crate) struct Peer {
    pub(crate) clock: Clock,
    calls: BTreeMap<u64, Call>,
    last_call: u64,
    is_asleep: bool,
    /// What came while it was asleep.
    held: Vec<Event>,
    pub(crate) stall: Option<Stall>,
    /// How long its pauses were.
    pub(crate) pauses: Vec<i64>,
    /// When it last paused for no time, and how often since then without asking anybody.
    idle: (i64, usize),
}

/// A call that waits for answers; without a tally, for its time alone.
#[derive(Default)]
struct Call {
    tally: Option<Inquiry>,
    pending: ServerSet,
    sent: ServerSet,
    is_decided: bool,
    /// When its time is up, in truth.
    until: i64,
}

/// Threads do not look so often whether it is their turn while no time passes.
const IDLE_MAX: usize = 100;

impl Peer {
    pub(crate) fn new(clock: Clock) -> Self {
        Self { clock, ..Self::default() }
    }

    /// Keeps the event for later if the client is asleep, else gives it back.
    pub(crate) fn hold(&mut self, event: Event) -> Option<Event> {
        if self.is_asleep {
            self.held.push(event);
            return None;
        }
        Some(event)
    }

    pub(crate) fn is_busy(&self) -> bool {
        !self.calls.is_empty()
    }

    pub(crate) fn note_sent(&mut self, call: u64, server: usize) {
        if let Some(call) = self.calls.get_mut(&call) {
            call.sent = call.sent.with(server);
        }
    }

    fn open(&mut self) -> u64 {
        self.last_call += 1;
        self.calls.insert(self.last_call, Call::default());
        self.last_call
    }

    fn note_pause(&mut self, now: i64, pause: i64) {
        self.pauses.push(pause);
        let (since, count) = self.idle;
        self.idle = if pause <= 0 && since == now { (now, count + 1) } else { (now, 0) };
        assert!(self.idle.1 < IDLE_MAX, "it spins");
    }

    fn stands_by(&mut self, call: u64) -> Option<&mut Call> {
        self.calls.get_mut(&call).filter(|it| it.tally.is_none() && !it.is_decided)
    }

    fn is_done(&self, call: u64) -> bool {
        !self.is_asleep && self.calls.get(&call).is_none_or(|it| it.is_decided)
    }
}

impl World {
    /// The client does nothing for so long, and time goes on for everybody: it is suspended.
    pub(crate) fn suspend(&self, client: usize, ms: i64) {
        self.peer(client).is_asleep = true;
        self.after_ms(ms, move |world| {
            world.peer(client).is_asleep = false;
            let held = std::mem::take(&mut world.peer(client).held);
            held.into_iter().for_each(|event| event(world));
        });
    }

    /// Tells a call what a server answered.
    pub(crate) fn hear(&self, way: Way, call: u64, answer: Answer) {
        let now = self.now();
        let mut peer = self.peer(way.client);
        let now = Moment::from_nanos(peer.clock.read(now));
        let Some(call) = peer.calls.get_mut(&call) else { return };
        if call.pending.contains(way.server) {
            call.pending = call.pending.without(way.server);
            if let Some(tally) = &mut call.tally {
                call.is_decided |= tally.handle_answer(way.server, answer, now);
            }
        }
    }

    fn set_until(&self, client: usize, call: u64, until: Moment) {
        let mut peer = self.peer(client);
        let until = peer.clock.when(until.as_nanos());
        if let Some(call) = peer.calls.get_mut(&call) {
            call.until = until;
        }
    }

    fn until(&self, client: usize, call: u64) -> i64 {
        self.peer(client).calls.get(&call).map_or(0, |it| it.until)
    }

    /// Waits until the call is decided or its time is up, and mends connections meanwhile.
    fn finish(&self, client: usize, call: u64, until: Moment) -> (Option<Inquiry>, ServerSet) {
        self.ways(client).for_each(|way| self.mend(way));
        self.set_until(client, call, until);
        // Its time may be another by and by: somebody may ask on its behalf.
        while !self.peer(client).is_done(call) && self.now() < self.until(client, call) {
            let until = self.until(client, call);
            self.wait(until, move |world| {
                world.peer(client).is_done(call) || world.until(client, call) != until
            });
        }
        // It may be woken past its time, and then finds what has come meanwhile.
        self.wait(i64::MAX, move |world| !world.peer(client).is_asleep);
        for way in self.ways(client) {
            self.link(way).abandon(call);
            let failure = Failure::NoAnswer { ms: 0 };
            if !self.peer(client).is_done(call) {
                self.hear(way, call, Answer::Failed(failure));
            }
        }
        let call = self.peer(client).calls.remove(&call).expect("it is closed once");
        (call.tally, call.sent)
    }
}

/// The transport of one client.
pub(crate) struct Network {
    pub(crate) world: Rc<World>,
    pub(crate) me: usize,
}

impl Network {
    /// Has a tally told of all servers, as `ask` does it for each.
    fn give(&self, call: u64, tally: Inquiry, ask: impl Fn(Way)) {
        self.world.peer(self.me).idle = (0, 0);
        if let Some(call) = self.world.peer(self.me).stands_by(call) {
            (call.tally, call.pending) = (Some(tally), ServerSet::first(self.world.servers()));
        } else {
            return;
        }
        self.world.ways(self.me).for_each(ask);
    }

    fn ask_for(&self, call: u64, request: Request, tally: Inquiry, reply_ms: i64) {
        let request = Rc::new(request);
        self.give(call, tally, |way| self.world.ask(way, &request, call, reply_ms));
    }

    /// What the client's clock says; nobody is kept from looking.
    fn clock(&self) -> Moment {
        Moment::from_nanos(self.world.peer(self.me).clock.read(self.world.now()))
    }

    fn send(&self) {
        self.world.ways(self.me).for_each(|way| self.world.send(way));
    }

    fn finish(&self, call: u64, until: Moment) -> (Inquiry, ServerSet) {
        let (tally, sent) = self.world.finish(self.me, call, until);
        (tally.expect("it was given one"), sent)
    }
}

impl Transport<Inquiry> for Network {
    type Standby = u64;

    fn now(&self) -> Moment {
        let stall = self.world.peer(self.me).stall.as_mut().map_or(0, |it| it());
        if stall > 0 {
            self.world.run_until(self.world.now() + stall);
        }
        self.clock()
    }

    fn connect(&self, tally: Inquiry, _enough: usize, patience: Patience) -> Inquiry {
        let call = self.world.peer(self.me).open();
        self.give(call, tally, |way| {
            self.world.hurry(way);
            self.world.await_connection(way, call, patience.reply_ms);
        });
        self.send();
        self.finish(call, patience.until).0
    }

    fn is_connected(&self, enough: usize, reply_ms: i64, _now: Moment) -> bool {
        let (ways, now) = (self.world.ways(self.me), self.world.now());
        ways.filter(|&way| self.world.link(way).is_keeping_up(reply_ms, now)).count() >= enough
    }

    fn ask_then(
        &self,
        request: Request,
        tally: Inquiry,
        patience: Patience,
        then: impl FnOnce() -> Option<Errand<u64, Inquiry>>,
    ) -> (Inquiry, ServerSet) {
        let call = self.world.peer(self.me).open();
        self.ask_for(call, request, tally, patience.reply_ms);
        if let Some(it) = then() {
            self.ask_for(it.on_behalf_of, it.request, it.tally, it.patience.reply_ms);
            self.world.set_until(self.me, it.on_behalf_of, it.patience.answer_by());
        }
        self.send();
        self.finish(call, patience.answer_by())
    }

    fn tell(&self, request: Request) -> ServerSet {
        let request = Rc::new(request);
        let ways = self.world.ways(self.me).filter(|it| request.is_for(it.server));
        let told = ways.filter(|&way| self.world.tell(way, &request));
        told.map(|way| way.server).collect()
    }

    fn stand_by(&self, begin: impl FnOnce(u64, Moment) -> Moment) -> Option<(Inquiry, ServerSet)> {
        let call = self.world.peer(self.me).open();
        let now = self.clock();
        let until = begin(call, now);
        self.world.peer(self.me).note_pause(self.world.now(), until - now);
        let (tally, sent) = self.world.finish(self.me, call, until);
        tally.map(|it| (it, sent))
    }

    fn call_off(&self, standby: u64) {
        if let Some(call) = self.world.peer(self.me).stands_by(standby) {
            call.is_decided = true;
        }
    }
}
