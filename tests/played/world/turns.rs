//! Decides whose turn it is. Each caller of the library is a thread of a client. One of them runs until it
//! waits for something, or is stopped.

use std::thread;

use crate::schedules::plants::Plant;
use crate::schedules::promises::Promise;
use crate::schedules::schedule::At;
use crate::system::socket::Watched;
use crate::world::clocks::MS;
use crate::world::coroutine;
use crate::world::{Event, World, with};

/// How often callers may wait for nothing while no time passes.
const IDLE_MAX: u32 = 1_000;

/// How often callers may find something ready, and leave it, while no time passes.
const READY_MAX: u32 = 100_000;

/// A thread of a client.
pub(crate) struct Caller {
    pub(crate) client: usize,
    /// The manager of the client through which it makes its call.
    pub(crate) manager: usize,
    /// Counts its pauses.
    pause: u64,
    state: State,
    watched: Vec<Watched>,
    /// The look at the clock at which it is delayed.
    pub(crate) stall: Option<Stall>,
}

/// The caller is delayed once, for this time, at the last of this many looks at the clock.
#[derive(Clone, Copy)]
pub(crate) struct Stall {
    pub(crate) looks: u32,
    pub(crate) lasts: i64,
}

impl Stall {
    /// Counts a look. Returns the delay, if this is the look with the delay.
    fn count(stall: &mut Option<Self>) -> Option<i64> {
        let it = stall.as_mut()?;
        it.looks -= 1;
        stall.take_if(|it| it.looks == 0).map(|it| it.lasts)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Running,
    /// Until its time has passed.
    Resting,
    /// Until its time has passed, or something that it watches is ready.
    Watching,
    /// Until somebody gives this signal.
    Waiting {
        signal: usize,
    },
    /// It will continue in a moment.
    Woken,
}

/// The running caller has reached a point at which the system might stop it.
pub(crate) fn step() {
    if with(World::take_step) {
        coroutine::pause();
    }
}

/// The running caller is about to look at its clock.
pub(crate) fn look() {
    if with(World::take_stall) {
        coroutine::pause();
    }
}

/// The other callers of the same client may run first.
pub(crate) fn take_turns() {
    if with(World::take_turn) {
        coroutine::pause();
    }
}

/// Stops the running caller, which has set the reason.
pub(crate) fn pause() {
    coroutine::pause();
}

/// Stops the running caller for this time.
pub(crate) fn sleep(ns: i64) {
    with(|world| {
        let until = world.now + ns;
        world.rest(State::Resting, Some(until));
    });
    coroutine::pause();
}

/// Stops the running caller until somebody signals.
pub(crate) fn wait_for(signal: usize) {
    with(|world| world.rest(State::Waiting { signal }, None));
    coroutine::pause();
}

/// Wakes the callers of the same client that wait for this signal.
pub(crate) fn signal(signal: usize) {
    with(|world| {
        for caller in 0..world.callers.len() {
            if world.callers[caller].state == (State::Waiting { signal }) {
                world.wake(caller);
            }
        }
    });
}

impl World {
    /// Adds a caller, which begins now.
    pub(crate) fn add_caller(&mut self, client: usize) -> usize {
        let caller = self.callers.len();
        let watched = Vec::new();
        let state = State::Resting;
        self.callers.push(Caller { client, manager: 0, pause: 1, state, watched, stall: None });
        self.clients[client].callers += 1;
        self.at(self.now, Event::GoOn { caller, pause: 1 });
        caller
    }

    /// Adds a caller of a scenario, which begins at this time.
    pub(crate) fn add_caller_at(&mut self, client: usize, at: i64) -> usize {
        let spare = self.script.as_mut().and_then(|it| it.spare.pop());
        let caller = spare.unwrap_or_else(|| {
            let (state, watched) = (State::Resting, Vec::new());
            self.callers.push(Caller { client, manager: 0, pause: 0, state, watched, stall: None });
            self.callers.len() - 1
        });
        let it = &mut self.callers[caller];
        (it.client, it.state, it.stall) = (client, State::Resting, None);
        it.pause += 1;
        let pause = it.pause;
        self.at(at, Event::GoOn { caller, pause });
        caller
    }

    /// Whether the caller continues now. The callers of a stopped client do not.
    pub(crate) fn goes_on(&mut self, caller: usize, pause: u64) -> bool {
        let it = &mut self.callers[caller];
        if it.pause != pause || it.state == State::Running {
            return false;
        }
        let stopped_until = self.clients[it.client].stopped_until;
        if stopped_until > self.now {
            self.at(stopped_until, Event::GoOn { caller, pause });
            return false;
        }
        it.state = State::Running;
        self.running = Some(caller);
        true
    }

    pub(crate) fn stop_running(&mut self) {
        self.running = None;
    }

    /// The running caller.
    pub(crate) fn current(&self) -> Option<usize> {
        self.running
    }

    /// The running caller uses another manager from now on.
    pub(crate) fn go_through(&mut self, manager: usize) {
        if let Some(caller) = self.running {
            self.callers[caller].manager = manager;
        }
    }

    /// The running caller is a thread of this client from now on.
    pub(crate) fn go_as(&mut self, client: usize) {
        if let Some(caller) = self.running {
            self.callers[caller].client = client;
        }
    }

    pub(crate) fn current_manager(&self) -> usize {
        self.running.map_or(0, |it| self.callers[it].manager)
    }

    pub(crate) fn current_client(&self) -> Option<usize> {
        self.running.map(|it| self.callers[it].client)
    }

    fn rest(&mut self, state: State, until: Option<i64>) {
        let Some(caller) = self.running else { panic!("nobody runs who could wait") };
        let it = &mut self.callers[caller];
        it.state = state;
        it.pause += 1;
        let pause = it.pause;
        if let Some(until) = until {
            self.at(until, Event::GoOn { caller, pause });
        }
    }

    /// The caller continues in a moment.
    pub(crate) fn wake(&mut self, caller: usize) {
        let it = &mut self.callers[caller];
        if matches!(it.state, State::Running | State::Woken) {
            return;
        }
        it.state = State::Woken;
        it.pause += 1;
        let pause = it.pause;
        let most = self.weather.wake;
        let later = if most > 0 { self.turns.between(0, most) } else { 0 };
        self.at(self.now + later, Event::GoOn { caller, pause });
    }

    /// Returns whether the running caller is kept from its clock.
    fn take_stall(&mut self) -> bool {
        let Some(caller) = self.running.filter(|_| !thread::panicking()) else { return false };
        let now = self.now;
        let it = &mut self.callers[caller];
        let lasts = Stall::count(&mut it.stall)
            .or_else(|| Stall::count(&mut self.clients[it.client].stall));
        if let Some(lasts) = lasts {
            self.clients[self.callers[caller].client].stalled_at = now;
            self.rest(State::Resting, Some(now + lasts));
        }
        lasts.is_some()
    }

    /// Returns whether the running caller stops.
    fn take_step(&mut self) -> bool {
        let Some(client) = self.current_client() else { return false };
        if thread::panicking() {
            return false;
        }
        let Some(hitch) = self.clients[client].take_step() else { return false };
        let Some(lasts) = hitch.lasts else {
            self.say(|world| format!("{} ends at its step {}", world.who(), hitch.step));
            self.crash(client, false);
            return false;
        };
        self.say(|world| format!("{} is stopped for {}", world.who(), At(lasts)));
        self.stop(client, lasts);
        self.rest(State::Resting, Some(self.now));
        true
    }

    fn take_turn(&mut self) -> bool {
        let Some(client) = self.current_client() else { return false };
        if self.script.is_some() {
            return false;
        }
        let has_company = self.clients[client].callers > 1 && !self.clients[client].is_gone;
        if !has_company || thread::panicking() || !self.turns.once_in(3) {
            return false;
        }
        let later = self.turns.between(0, 20_000);
        self.rest(State::Resting, Some(self.now + later));
        true
    }

    /// Whether there is no need to wait. Otherwise the running caller is about to wait.
    pub(crate) fn look(&mut self, watched: &mut [Watched], until: i64) -> bool {
        let Some(caller) = self.running else { return true };
        let client = self.callers[caller].client;
        self.clients[client].polls += 1;
        self.look_at_kept(client);
        if self.clients[client].is_gone {
            let next = self.clients[client].read(self.now) + MS;
            self.clients[client].skip_to(until.max(next));
            if self.clients[client].callers > 1 && !self.note_ready(watched) {
                // Another caller of the client may have to do something first.
                self.rest(State::Resting, Some(self.now + MS));
                return false;
            }
        }
        if self.note_ready(watched) {
            return !self.takes_nothing(client);
        }
        if self.clients[client].read(self.now) >= until {
            return !self.spins(client);
        }
        let late = if self.is_broken(Plant::Oversleeps) { 2_000 * MS } else { 0 };
        let until = until.saturating_add(late);
        let until = self.clients[client].clock.when(until);
        self.callers[caller].watched.clear();
        self.callers[caller].watched.extend_from_slice(watched);
        self.rest(State::Watching, Some(until));
        false
    }

    /// Whether a client waits for nothing, again and again without any time passing. It is then not
    /// continued.
    fn spins(&mut self, client: usize) -> bool {
        let (since, count) = self.idle;
        self.idle = (self.now, if since == self.now { count + 1 } else { 0 });
        let spins = self.idle.1 > IDLE_MAX && !self.clients[client].is_gone;
        if spins {
            self.records.violate(Promise::InTime, "a call waits for no time, again and again");
            self.rest(State::Resting, None);
        }
        spins
    }

    /// Whether a client leaves what is ready as it is, again and again. It is then not continued.
    fn takes_nothing(&mut self, client: usize) -> bool {
        let (since, count) = self.ready;
        self.ready = (self.now, if since == self.now { count + 1 } else { 0 });
        let takes_nothing = self.ready.1 > READY_MAX && !self.clients[client].is_gone;
        if takes_nothing {
            self.records
                .violate(Promise::InTime, "what is ready is left as it is, again and again");
            self.rest(State::Resting, None);
        }
        takes_nothing
    }

    /// Notes what is ready. Returns whether something is.
    pub(crate) fn note_ready(&self, watched: &mut [Watched]) -> bool {
        let mut is_ready = false;
        for it in watched {
            it.revents = 0;
            if let Ok(which) = usize::try_from(it.fd) {
                it.revents = self.readiness(which, it.events & libc::POLLOUT != 0);
                is_ready |= it.revents != 0;
            }
        }
        is_ready
    }

    /// Something may be ready: the callers that watch it continue.
    pub(crate) fn notice(&mut self, client: usize, which: usize) {
        for caller in 0..self.callers.len() {
            let it = &self.callers[caller];
            if it.client != client || it.state != State::Watching {
                continue;
            }
            let watched = it.watched.iter().find(|it| usize::try_from(it.fd) == Ok(which));
            let for_writing = |it: &Watched| it.events & libc::POLLOUT != 0;
            if watched.is_some_and(|it| self.readiness(which, for_writing(it)) != 0) {
                self.wake(caller);
            }
        }
    }
}
