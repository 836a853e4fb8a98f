//! Talks to servers: knows sockets and where replies end, and nothing of what is asked, of quorums and votes.
//!
//! The manager asks all servers at once through [`Transport`], and has a [`Tally`] that is told each
//! answer as it comes and says when it has heard enough. The [`reactor::Reactor`] does that over
//! sockets.

pub mod access;
mod addresses;
mod asking;
mod calls;
pub mod condition;
pub mod endpoint;
mod entries;
mod health;
mod inbox;
mod link;
pub mod login;
mod mixup;
mod predecessor;
mod queue;
pub mod reactor;
mod remarks;
mod reply;
pub mod roster;
mod server;
#[cfg_attr(not(feature = "tls"), path = "tls/absent.rs")]
pub mod tls;
mod wire;

use std::sync::atomic::{AtomicI64, Ordering};

use self::condition::Condition;
use crate::command::{Answer, Request};
use crate::moment::Moment;
use crate::server_set::ServerSet;

/// Hears the answers to one request.
pub trait Tally: Send {
    /// A server's answer, heard at `now`. Each server is heard at most once. Returns whether nothing
    /// more needs to be heard. Called by whichever thread happens to read the answer, with a mutex
    /// held: it only counts.
    fn handle_answer(&mut self, server: usize, answer: Answer, now: Moment) -> bool;

    /// Whether it is to be told how things stand with a server, now that the call ends.
    fn wants_condition(&self, _server: usize) -> bool {
        false
    }

    /// How things stand with a server of which it wants to know.
    fn note_condition(&mut self, _server: usize, _condition: Condition) {}
}

/// How long to wait for answers.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// When that began: now, or a moment ago.
    pub since: Moment,
    /// When to wait no longer in any case. Servers that have not answered by then have
    /// [`crate::failure::Failure::NoAnswer`].
    pub until: Moment,
    /// How long a server may take to answer a request, since it was sent. One that owes an answer for
    /// longer is not asked at all.
    pub reply_ms: i64,
}

/// What the manager needs of the world: servers to ask, and time.
pub trait Transport<T: Tally> {
    /// Names somebody who stands by.
    type Standby: Copy;

    /// Now, on the clock that all moments here are on.
    fn now(&self) -> Moment;

    /// Whether this process is the one whose connections these are. Who is asked for a password may
    /// fork, so it is to be looked at after [`Self::ask_for_passwords`] and [`Self::connect`]; what is
    /// not ours is left alone.
    fn is_ours(&self) -> bool {
        true
    }

    /// Makes connections and waits until the tally has heard enough; [`Answer::Done`] is a
    /// connection to a server that keeps up with what it is asked. Names are looked up, which may
    /// take its time, only if fewer than `enough` servers are promising without. In a process that
    /// is not the one of [`Self::is_ours`], the tally has heard nothing.
    fn connect(&self, tally: T, enough: usize, patience: Patience) -> T;

    /// Whether so many such connections are there already, as far as can be told without waiting.
    fn is_connected(&self, enough: usize, reply_ms: i64, now: Moment) -> bool;

    /// Looks up the names that were left out since enough servers seemed to do without. Returns whether
    /// there were any: then it may be worth while to connect once more.
    fn look_up_the_rest(&self) -> bool {
        false
    }

    /// Asks for passwords without which servers cannot be connected to, which may take its time: for
    /// calls that can wait, since they have no lock yet that ends meanwhile.
    fn ask_for_passwords(&self) {}

    /// Asks all servers, and waits until the tally has heard enough. Requests that were sent go on
    /// after that, with nobody waiting for them; those that were not sent yet never will be, but to
    /// servers that they must reach ([`Request::must_reach`]). Also tells to which servers a byte of the request may
    /// have been sent.
    fn ask(&self, request: Request, tally: T, patience: Patience) -> (T, ServerSet) {
        self.ask_then(request, tally, patience, || None)
    }

    /// Asks, and behind that, in the same breath, asks on behalf of somebody who stands by: nobody
    /// else's request comes between the two on any server. `then` says what; it is called with
    /// nobody else asking, and before a byte is sent.
    fn ask_then(
        &self,
        request: Request,
        tally: T,
        patience: Patience,
        then: impl FnOnce() -> Option<Errand<Self::Standby, T>>,
    ) -> (T, ServerSet);

    /// Sends a request to the servers that it is for ([`Request::is_for`]), behind what was sent to them
    /// before, and waits for nothing. To a server that it must reach it goes later if it cannot go now; to
    /// others it goes now or never. Returns the servers for which it was queued.
    fn tell(&self, request: Request) -> ServerSet;

    /// Waits until the moment that `begin` gives (it is told what time it is), and meanwhile does what is due on the connections.
    /// If another thread asks on behalf of this one, waits for the answers instead, and returns what
    /// [`Self::ask`] would. `begin` is called with nobody else asking.
    fn stand_by(
        &self,
        begin: impl FnOnce(Self::Standby, Moment) -> Moment,
    ) -> Option<(T, ServerSet)>;

    /// Ends the wait of somebody who stands by, if nobody asks on behalf of it already.
    fn call_off(&self, standby: Self::Standby);
}

/// Something to ask on behalf of somebody else.
pub struct Errand<S, T> {
    /// Who stands by.
    pub on_behalf_of: S,
    pub request: Request,
    pub tally: T,
    pub patience: Patience,
}

/// How long a server may take. Changed while connections are in use.
#[derive(Debug)]
pub struct Timeouts {
    connect_ms: AtomicI64,
    reply_ms: AtomicI64,
}

impl Timeouts {
    /// For connecting, and once more for the log-in. CRedLock's value.
    const CONNECT_MS: i64 = 1500;

    /// Sets both, in milliseconds. 0 for a reply: a part of the TTL.
    pub fn set(&self, connect_ms: i64, reply_ms: i64) {
        self.connect_ms.store(connect_ms, Ordering::Relaxed);
        self.reply_ms.store(reply_ms, Ordering::Relaxed);
    }

    /// For connecting.
    pub fn connect_ms(&self) -> i64 {
        self.connect_ms.load(Ordering::Relaxed)
    }

    /// For a reply to a request about a lock of this TTL. The Redlock page advises 5 to 50 ms for a
    /// TTL of 10 s; a twentieth of it leaves room for networks that are slower.
    pub fn reply_ms(&self, ttl_ms: i64) -> i64 {
        match self.reply_ms.load(Ordering::Relaxed) {
            0 => Self::default_reply_ms(ttl_ms),
            set => set,
        }
    }

    /// The same, if nothing else was set.
    pub fn default_reply_ms(ttl_ms: i64) -> i64 {
        (ttl_ms / 20).clamp(25, 500)
    }
}

impl Patience {
    /// When a request is waited for no longer that was sent at once.
    pub fn answer_by(&self) -> Moment {
        self.since.plus_ms(self.reply_ms).min(self.until)
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { connect_ms: AtomicI64::new(Self::CONNECT_MS), reply_ms: AtomicI64::new(0) }
    }
}

/// Names a call that waits for answers. Never used twice, so an answer that comes late finds nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    place: usize,
    generation: u64,
}
