//! The manager: the servers, the settings, and the state of each process that uses them.

use std::os::fd::RawFd;
use std::sync::Arc;

use crate::manager::background::{Background, EventSink};
use crate::manager::call::Call;
use crate::manager::canceller::Canceller;
use crate::manager::conclusion;
use crate::manager::event::{self, Event, Tag};
use crate::manager::inspection::{Inspection, Permits};
use crate::manager::lease::Lease;
use crate::manager::log::{Log, Logger};
use crate::manager::process_state::ProcessStates;
use crate::manager::runtime::Runtime;
use crate::manager::server_list::ServerList;
use crate::manager::settings::Settings;
use crate::protocol::argument::Argument;
use crate::protocol::error::{Error, Status};
use crate::protocol::lock_ticket::LockTicket;
use crate::protocol::operation::Ended;
use crate::protocol::operation::connect::Connect;
use crate::protocol::operation::detach::Detach;
use crate::protocol::servers::endpoint::Endpoint;
use crate::protocol::servers::roster::Roster;
use crate::protocol::stats;
use crate::protocol::stats::Stats;
use crate::system::process::this_process;
use crate::transport::server::ServerSnapshot;

/// Why a manager must be driven: see [`RedLock::check_driver`].
pub(crate) const KEPT: &str = "a lock must be kept alive";

/// Where a caller keeps the lease of a call.
pub(crate) trait LeaseHolder {
    /// Makes a step of a call on the lease.
    fn with(&mut self, step: &mut dyn FnMut(&mut Lease) -> Result<(), Error>) -> Result<(), Error>;

    /// Whether the lock that a call has reported as held may not be held any more. A holder that takes turns with other
    /// threads says so without waiting for its turn.
    fn may_be_over(&self) -> bool {
        true
    }
}

impl LeaseHolder for Lease {
    fn with(&mut self, step: &mut dyn FnMut(&mut Lease) -> Result<(), Error>) -> Result<(), Error> {
        step(self)
    }
}

/// A lock manager. Any number of threads may take locks through one manager, and they share its connections.
///
/// Each call has the meaning, the arguments and the failures of the C function with the same name.
#[derive(Default)]
pub struct RedLock {
    pub(crate) settings: Arc<Settings>,
    log: Arc<Log>,
    pub(crate) servers: ServerList,
    pub(crate) states: ProcessStates,
    background: Arc<Background>,
}

impl RedLock {
    /// A manager without servers, with the default settings.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a server: a host and a port, or a URL and port 0.
    pub fn add_server_url(&self, host_or_url: &str, port: i32) -> Result<(), Error> {
        // Many programs pass a list of servers, and no message quotes what was passed: it may have a password.
        let number = self.servers.iter().count() + 1;
        let endpoint = Endpoint::parse(host_or_url, port)
            .map_err(|words| Error::invalid(format!("server {number}: {words}")))?;
        if !self.states.is_empty() {
            let words = "servers cannot be added after the first call that contacts servers";
            return Err(Error::invalid(words));
        }
        self.servers.add(endpoint)
    }

    /// Connects now. If a quorum is up, returns a message about the servers that are not up, have no vote, or are not
    /// guarded.
    pub fn connect(&self, timeout_ms: i64) -> Result<String, Error> {
        self.ask(|own| {
            Error::check_time(Argument::Timeout, timeout_ms, 0..=i64::MAX)?;
            let absent = conclusion::words(own.run(Box::new(Connect::new(timeout_ms)), None))?;
            let snapshots = own.snapshots();
            let remarks = snapshots.iter().filter_map(ServerSnapshot::remark);
            let said = Some(absent).filter(|it| !it.is_empty()).into_iter().chain(remarks);
            Ok(said.collect::<Vec<_>>().join(", "))
        })
    }

    /// What can be set. Each setting may be changed at any time.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Sets the logger. It is called when servers are lost or come back, at the end of calls that ask servers.
    pub fn set_logger(&self, logger: Option<Logger>) -> Result<(), Error> {
        self.log.set(logger)
    }

    /// Makes a call on a lease, and waits for its end.
    pub fn run(&self, call: Call<'_>, lease: &mut Lease) -> Result<(), Error> {
        self.ask_on(lease, |lease| self.run_quietly(call, lease))
    }

    /// The same for a caller that uses [`Self::ask_on`] itself.
    pub(crate) fn run_quietly(&self, call: Call<'_>, lease: &mut Lease) -> Result<(), Error> {
        if call.keeps() {
            self.check_driver(KEPT)?;
        }
        call.run(self.own()?, lease)
    }

    /// Begins a call on a lease. The event of its end returns the lease.
    pub fn submit(&self, call: Call<'_>, lease: Lease, tag: Tag) -> Result<(), Error> {
        call.submit(self.own()?, lease, tag)
    }

    /// Gives a lock away. Returns its ticket, which must fit in `room` bytes, including a NUL.
    pub fn detach(&self, lease: &mut Lease, room: usize) -> Result<String, Error> {
        let mut ticket = String::new();
        self.ask_on(lease, |lease| {
            ticket = self.detach_quietly(lease, room)?;
            Ok(())
        })?;
        Ok(ticket)
    }

    /// The same for a caller that uses [`Self::ask_on`] itself.
    pub(crate) fn detach_quietly(&self, lease: &mut Lease, room: usize) -> Result<String, Error> {
        let own = self.own()?;
        let view = own.view(lease.required_lock()?)?;
        lease.check_one_level()?;
        let ticket = LockTicket::of(view.held_lock()).to_text();
        if ticket.len() >= room {
            let needed = ticket.len() + 1;
            let words = format!("the ticket needs a buffer of {needed} bytes, but it has {room}");
            return Err(Error::invalid(words));
        }
        own.continued().forget(view.held_lock());
        match own.run(Box::new(Detach::new(view)), None)? {
            Ended::Detached => {
                lease.keeper = None;
                Ok(ticket)
            }
            _ => Err(Error::invalid("the lock is in use by another call")),
        }
    }

    /// What is known of each server, in the order in which they were added. No server is asked.
    pub fn servers(&self) -> Vec<ServerSnapshot> {
        match self.states.known() {
            Some(own) => own.snapshots(),
            None => self.servers.iter().map(ServerSnapshot::of_unknown).collect(),
        }
    }

    /// Asks the servers whether anybody holds a resource.
    pub fn is_locked(&self, resource: &[u8]) -> Result<bool, Error> {
        self.ask(|own| Inspection::ask(own, resource, false)).map(|it| it.left_ms.is_some())
    }

    /// Asks the servers whether anybody holds a resource, and for how long.
    pub fn inspect(&self, resource: &[u8]) -> Result<Inspection, Error> {
        self.ask(|own| Inspection::ask(own, resource, true))
    }

    /// Asks the servers how many permits of a semaphore with `of` permits are taken.
    pub fn inspect_permits(&self, resource: &[u8], of: u16) -> Result<Permits, Error> {
        self.ask(|own| Permits::ask(own, resource, of))
    }

    /// Keeps a held lock alive until it is released.
    pub fn keep_alive(&self, lease: &mut Lease, tag: Tag) -> Result<(), Error> {
        let own = self.own()?;
        // A lock that is lost is reported as lost, whether or not anything drives the manager.
        event::view_to_keep(own, lease)?;
        self.check_driver(KEPT)?;
        event::keep_alive(own, lease, tag)
    }

    /// Fails if nothing drives the manager in this process once all blocking calls have ended: what is to be done then
    /// would wait for ever.
    pub(crate) fn check_driver(&self, what: &str) -> Result<(), Error> {
        if self.background.is_wanted() || self.own()?.has_driver() {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "{what}, but nothing drives the manager: enable its background thread \
             (RedLock_SetBackgroundThread; in Rust, background_thread(true)), or watch its descriptor"
        )))
    }

    /// Does the work that is due for submitted calls and kept locks, and waits for an event for at most
    /// `wait_ms`. 0 means not to wait, and a negative value means to wait forever.
    pub fn next_event(&self, wait_ms: i64) -> Result<Option<Event>, Error> {
        let event = self.ask(|own| Event::next(own, own.until(wait_ms)))?;
        self.in_time(event)
    }

    /// Waits for the end of the submitted call that uses the lease of the canceller, for at most `wait_ms`. 0 means
    /// not to wait, and a negative value means to wait forever. If it has ended, there is no other event for it.
    pub fn wait(&self, canceller: &Canceller, wait_ms: i64) -> Result<Option<Event>, Error> {
        let event = self.ask(|own| Event::of_call(own, canceller.call(), own.until(wait_ms)))?;
        self.in_time(event)
    }

    /// Sets whether there is a thread that drives when no other thread does.
    pub fn set_background_thread(&self, is_wanted: bool) -> Result<(), Error> {
        let own = self.states.known();
        if !is_wanted {
            return self.background.end(|| own.into_iter().for_each(|own| own.end_standing_by()));
        }
        self.background.want()?;
        own.map_or(Ok(()), |own| self.background.start_if_lacking(own))
    }

    /// Sets the function that gets events on that thread.
    pub(crate) fn set_event_sink(&self, sink: Option<EventSink>) -> Result<(), Error> {
        self.background.set_sink(sink)?;
        self.states.known().into_iter().for_each(|own| own.end_standing_by());
        Ok(())
    }

    /// A descriptor that is readable whenever [`Self::next_event`] has work to do or an event to return.
    pub fn descriptor(&self) -> Result<RawFd, Error> {
        self.own()?.descriptor()
    }

    /// Cancels the call on this manager, blocking or submitted, that uses the lease of the canceller. Without
    /// such a call this does nothing.
    pub fn cancel(&self, canceller: &Canceller) {
        self.states.known().into_iter().for_each(|own| own.cancel(canceller.call()));
    }

    /// Ends all submitted calls and all waits for events, because nobody will ask for events any more.
    pub(crate) fn abandon(&self) {
        if let Some(own) = self.states.known() {
            own.abandon();
            event::discard_kept(own);
            if !self.background.tells_events() {
                event::discard_untold(own);
            }
        }
    }

    /// Cancels the submitted call of the canceller, whose end is kept for a caller that will not come. Releases what
    /// it has taken.
    pub(crate) fn discard_call(&self, canceller: &Canceller) {
        self.states.known().into_iter().for_each(|own| event::discard_call(own, canceller.call()));
    }

    /// Releases the lock of a lease that is no longer wanted, without waiting.
    pub(crate) fn discard(&self, lease: &Lease) {
        self.states.known().into_iter().for_each(|own| event::discard(own, lease));
    }

    /// Closes a forked child's copies of its parent's sockets. Does nothing in the process that made the
    /// sockets. This is for a child that releases the manager without having used it.
    pub fn close_inherited(&self) {
        self.states.close_inherited();
    }

    /// Looks up the names of servers that may have moved.
    pub(crate) fn look_up(&self) -> Result<(), Error> {
        self.ask(Runtime::look_up_due)
    }

    /// Whether [`Self::look_up`] would ask the resolver now. Who asks that does so, and threads that wait for events
    /// leave the resolver to it.
    pub(crate) fn is_look_up_due(&self) -> bool {
        self.settings.look_up_aside();
        self.states.known().is_some_and(|own| own.is_look_up_due())
    }

    /// Makes a call that asks servers. When it holds nothing any more, passes the pending log lines to the logger. A
    /// password callback or a logger may fork. Then the result of the call belongs to the parent, and the child does not
    /// take it as its own.
    fn ask<T>(&self, call: impl FnOnce(&Runtime) -> Result<T, Error>) -> Result<T, Error> {
        let process = this_process();
        let outcome = self.own().and_then(|own| call(own));
        self.log.tell();
        if this_process() == process { outcome } else { Err(Error::forked_within()) }
    }

    /// The same for a call on a lease. If it reports a lock as held, the lock must still be held when the logger has
    /// returned: see [`event::in_time`].
    pub(crate) fn ask_on(
        &self,
        holder: &mut dyn LeaseHolder,
        call: impl FnOnce(&mut Lease) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let process = this_process();
        let mut call = Some(call);
        let outcome = holder.with(&mut |lease| call.take().map_or(Ok(()), |call| call(lease)));
        let has_taken_time = self.log.tell();
        if this_process() != process {
            return holder.with(&mut |_| Err(Error::forked_within()));
        }
        if !has_taken_time || outcome.is_err() || !holder.may_be_over() {
            return outcome;
        }
        holder.with(&mut |lease| self.check_in_time(lease))
    }

    /// The event, for a caller that gets it now.
    fn in_time(&self, event: Option<Event>) -> Result<Option<Event>, Error> {
        let Some(event) = event else { return Ok(None) };
        let own = self.states.known().ok_or_else(Error::forked_within)?;
        Ok(Some(event.in_time(own)))
    }

    /// Fails if the lock that a call has reported as held has ended since: see [`event::in_time`].
    pub(crate) fn check_in_time(&self, lease: &mut Lease) -> Result<(), Error> {
        self.states.known().map_or(Ok(()), |own| event::in_time(own, lease))
    }

    /// The state of the manager that belongs to this process.
    pub(crate) fn own(&self) -> Result<&Arc<Runtime>, Error> {
        let own = self.states.own(|| self.server_list(), &self.settings, &self.log)?;
        self.background.start_if_lacking(own)?;
        Ok(own)
    }

    /// For a program that adds no server later.
    pub(crate) fn needs_servers(&self) -> Result<(), Error> {
        self.server_list().map(drop)
    }

    /// The list of servers at the time of the first call that needs it.
    fn server_list(&self) -> Result<Roster, Error> {
        let endpoints: Vec<_> = self.servers.iter().cloned().collect();
        match endpoints.is_empty() {
            true => Err(Error::new(Status::NoServers, "no server was added")),
            false => Ok(Roster::new(endpoints)),
        }
    }
}

/// The manager's statistics, and its trace of locks in the log.
impl RedLock {
    /// The statistics of this process. Asks no server.
    pub fn stats(&self) -> Stats {
        if let Some(own) = self.states.known() {
            return own.stats();
        }
        let unknown = self.servers.iter().map(ServerSnapshot::of_unknown);
        Stats { servers: unknown.map(Into::into).collect(), ..Stats::default() }
    }

    /// The same in the text format of Prometheus.
    pub fn stats_text(&self) -> String {
        stats::text(&self.stats(), env!("CARGO_PKG_VERSION"))
    }
}
