//! The manager: the servers, the settings, and the state of each process that uses them.

use std::os::fd::RawFd;
use std::sync::Arc;

pub(crate) use crate::acquire_options::AcquireOptions;
use crate::background::{Background, EventSink};
use crate::blocking::{Inspection, Permits};
pub use crate::call::Canceller;
use crate::error::{Error, Status};
use crate::lease::Lease;
use crate::log::{Log, Logger};
use crate::process_state::ProcessStates;
use crate::runtime::Runtime;
use crate::server_list::ServerList;
use crate::settings::Settings;
use crate::stats;
use crate::stats::{Stats, Tracing};
use crate::submitted::{Event, Tag};
use crate::system::process::{this_process, this_thread};
use crate::transport::endpoint::Endpoint;
use crate::transport::guard::Mode;
use crate::transport::login::PasswordSource;
use crate::transport::roster::Roster;
use crate::transport::server::ServerSnapshot;

/// Why a manager must be driven: see [`RedLock::check_driver`].
pub(crate) const KEPT: &str = "a lock must be kept alive";

/// A lock manager. Any number of threads may take locks through one manager, and they share its connections.
///
/// Each call has the meaning, the arguments and the failures of the C function with the same name.
#[derive(Default)]
pub struct RedLock {
    pub(crate) settings: Arc<Settings>,
    log: Arc<Log>,
    /// Whether the caller passes log lines to the logger by [`Self::tell`]. Otherwise this happens at the end
    /// of each call.
    is_told_by_caller: bool,
    pub(crate) servers: ServerList,
    pub(crate) states: ProcessStates,
    background: Arc<Background>,
}

impl RedLock {
    /// A manager without servers, with the default settings.
    pub fn new() -> Self {
        Self::default()
    }

    /// A manager for a caller that still holds something when a call ends. This caller passes log lines to the
    /// logger by [`Self::tell`].
    pub(crate) fn told_by_caller() -> Self {
        Self { is_told_by_caller: true, ..Self::default() }
    }

    /// Whether there are log lines for the logger.
    pub(crate) fn has_lines(&self) -> bool {
        self.log.has_lines()
    }

    /// Passes the pending log lines to the logger. The caller must hold nothing, because the logger is code
    /// of the program. Returns whether the logger got a line.
    pub(crate) fn tell(&self) -> bool {
        self.log.tell()
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

    /// Connects now. If a quorum is up, returns a message about the servers that are not.
    pub fn connect(&self, timeout_ms: i64) -> Result<String, Error> {
        self.ask(|own| own.connect(timeout_ms))
    }

    /// Sets the number of tries and the mean pause between them.
    pub fn set_retry(&self, count: i32, delay_ms: i32) -> Result<(), Error> {
        self.settings.set_retry(count, delay_ms)
    }

    /// Sets how long a server may take to connect and to reply.
    pub fn set_timeouts(&self, connect_ms: i64, reply_ms: i64) -> Result<(), Error> {
        self.settings.set_timeouts(connect_ms, reply_ms)
    }

    /// Sets how much faster the clock of a server may run than the clock of this machine.
    pub fn set_clock_drift_factor(&self, factor: f64) -> Result<(), Error> {
        self.settings.set_drift(factor)
    }

    /// Sets how to guard against servers that forget their locks.
    pub fn set_restart_guard(&self, mode: Mode, longest_ms: i64, cap_ms: i64) -> Result<(), Error> {
        self.settings.set_guard(mode, longest_ms, cap_ms)
    }

    /// Sets whether locks that are taken from now on have a fencing token.
    pub fn set_fencing(&self, enabled: bool) {
        self.settings.set_fencing(enabled);
    }

    /// Sets whether a waiting client is woken when the lock is released.
    pub fn set_waking(&self, enabled: bool) {
        self.settings.set_waking(enabled);
    }

    /// Sets the logger. It is called when servers are lost or come back, at the end of calls that ask servers.
    pub fn set_logger(&self, logger: Option<Logger>) -> Result<(), Error> {
        self.log.set(logger)
    }

    /// Sets which certificates are trusted to identify servers: those in a PEM file, or those that the system
    /// trusts.
    pub fn set_tls_ca(&self, file: Option<&[u8]>) -> Result<(), Error> {
        self.settings.access().tls().set_ca(file)
    }

    /// Sets the client certificate, with its key, for servers that ask for one.
    pub fn set_tls_certificate(&self, files: Option<(&[u8], &[u8])>) -> Result<(), Error> {
        self.settings.access().tls().set_certificate(files)
    }

    /// Sets the name that the certificates of all servers must be for.
    pub fn set_tls_server_name(&self, name: Option<&str>) -> Result<(), Error> {
        self.settings.access().tls().set_server_name(name)
    }

    /// Sets whether servers are accepted without any proof of who they are.
    pub fn set_tls_insecure_skip_verify(&self, skip: bool) -> Result<(), Error> {
        self.settings.access().tls().set_skip_verify(skip)
    }

    /// Sets the user and the password for servers whose URLs name none.
    pub fn set_credentials(
        &self,
        user: Option<&[u8]>,
        password: Option<&[u8]>,
    ) -> Result<(), Error> {
        self.settings.set_credentials(user, password)
    }

    /// Sets the function that provides the passwords for servers whose URLs name none.
    pub fn set_password_source(
        &self,
        user: Option<&[u8]>,
        source: Option<PasswordSource>,
    ) -> Result<(), Error> {
        self.settings.set_password_source(user, source)
    }

    /// Takes a lock, with the number of tries from [`Self::set_retry`].
    pub fn lock(&self, resource: &[u8], ttl_ms: i64, lease: &mut Lease) -> Result<(), Error> {
        self.ask_on(lease, |own, lease| own.lock(resource, ttl_ms, lease))
    }

    /// Takes a lock, and tries for a time.
    pub fn try_lock(
        &self,
        resource: &[u8],
        ttl_ms: i64,
        wait_ms: i64,
        lease: &mut Lease,
    ) -> Result<(), Error> {
        self.ask_on(lease, |own, lease| own.try_lock(resource, ttl_ms, wait_ms, lease))
    }

    /// Takes a lock, or renews a lock that this manager continued before.
    pub fn continue_lock(
        &self,
        resource: &[u8],
        ttl_ms: i64,
        lease: &mut Lease,
    ) -> Result<(), Error> {
        self.ask_on(lease, |own, lease| own.continue_lock(resource, ttl_ms, lease))
    }

    /// Gives a lock a new TTL.
    pub fn extend(&self, lease: &mut Lease, ttl_ms: i64) -> Result<(), Error> {
        self.ask_on(lease, |own, lease| own.extend(lease, ttl_ms))
    }

    /// Releases a lock.
    pub fn unlock(&self, lease: &mut Lease) -> Result<(), Error> {
        self.ask_on(lease, |own, lease| own.unlock(lease))
    }

    /// Releases a lock whose keys stay until `least_ms` after it was taken.
    pub fn unlock_after(&self, lease: &mut Lease, least_ms: i64) -> Result<(), Error> {
        self.ask_on(lease, |own, lease| own.unlock_after(lease, least_ms))
    }

    /// Asks the servers whether a lock is still held for at least this long.
    pub fn confirm(&self, lease: &mut Lease, least_ms: i64) -> Result<(), Error> {
        self.ask_on(lease, |own, lease| own.confirm(lease, least_ms))
    }

    /// Gives a lock away. Returns its ticket, which must fit in `room` bytes, including a NUL.
    pub fn detach(&self, lease: &mut Lease, room: usize) -> Result<String, Error> {
        self.ask(|own| own.detach(lease, room))
    }

    /// Takes over the lock of a ticket.
    pub fn adopt(&self, ticket: &[u8], lease: &mut Lease) -> Result<(), Error> {
        self.ask_on(lease, |own, lease| own.adopt(ticket, lease))
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
        self.ask(|own| own.inspect(resource, false)).map(|it| it.left_ms.is_some())
    }

    /// Asks the servers whether anybody holds a resource, and for how long.
    pub fn inspect(&self, resource: &[u8]) -> Result<Inspection, Error> {
        self.ask(|own| own.inspect(resource, true))
    }

    /// Asks the servers how many permits of a semaphore with `of` permits are taken.
    pub fn inspect_permits(&self, resource: &[u8], of: u16) -> Result<Permits, Error> {
        self.ask(|own| own.inspect_permits(resource, of))
    }

    /// Takes a lock as the options say, and waits for it.
    pub fn acquire(&self, options: AcquireOptions<'_>, lease: &mut Lease) -> Result<(), Error> {
        if options.keep.is_some() {
            self.check_driver(KEPT)?;
        }
        self.ask_on(lease, |own, lease| {
            let (demand, keep) = options.demand(own, Some(this_thread()));
            own.acquire(&demand, keep, lease)
        })
    }

    /// Begins to take a lock as the options say. The event returns the lease.
    pub fn submit_acquire(
        &self,
        options: AcquireOptions<'_>,
        lease: Lease,
        tag: Tag,
    ) -> Result<(), Error> {
        let own = self.own()?;
        let (demand, keep) = options.demand(own, None);
        own.submit_acquire(&demand, keep, lease, tag)
    }

    /// Begins to give a lock a new TTL.
    pub fn submit_extend(&self, lease: Lease, ttl_ms: i64, tag: Tag) -> Result<(), Error> {
        self.own()?.submit_extend(lease, ttl_ms, tag)
    }

    /// Begins to release a lock.
    pub fn submit_unlock(&self, lease: Lease, tag: Tag) -> Result<(), Error> {
        self.own()?.submit_unlock(lease, tag)
    }

    /// Begins to release a lock whose keys stay until `least_ms` after it was taken.
    pub fn submit_unlock_after(&self, lease: Lease, least_ms: i64, tag: Tag) -> Result<(), Error> {
        self.own()?.submit_unlock_after(lease, least_ms, tag)
    }

    /// Begins to ask the servers whether a lock is still held for at least this long.
    pub fn submit_confirm(&self, lease: Lease, least_ms: i64, tag: Tag) -> Result<(), Error> {
        self.own()?.submit_confirm(lease, least_ms, tag)
    }

    /// Begins to take over the lock of a ticket. The event returns the lease.
    pub fn submit_adopt(&self, ticket: &[u8], lease: Lease, tag: Tag) -> Result<(), Error> {
        self.own()?.submit_adopt(ticket, lease, tag)
    }

    /// Keeps a held lock alive until it is released.
    pub fn keep_alive(&self, lease: &mut Lease, tag: Tag) -> Result<(), Error> {
        let own = self.own()?;
        own.view_to_keep(lease)?;
        self.check_driver(KEPT)?;
        own.keep_alive(lease, tag)
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
        let event = self.ask(|own| own.next_event(own.until(wait_ms)))?;
        Ok(event.map(|event| event.in_time(|lease| self.in_time(lease))))
    }

    /// Waits for the end of the submitted call that uses the lease of the canceller, for at most `wait_ms`. 0 means
    /// not to wait, and a negative value means to wait forever. If it has ended, there is no other event for it.
    pub fn wait(&self, canceller: &Canceller, wait_ms: i64) -> Result<Option<Event>, Error> {
        let event = self.ask(|own| own.wait_for(canceller.call(), own.until(wait_ms)))?;
        Ok(event.map(|event| event.in_time(|lease| self.in_time(lease))))
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
            own.discard_kept();
            if !self.background.tells_events() {
                own.discard_untold();
            }
        }
    }

    /// Cancels the submitted call of the canceller, whose end is kept for a caller that will not come. Releases what
    /// it has taken.
    pub(crate) fn discard_call(&self, canceller: &Canceller) {
        self.states.known().into_iter().for_each(|own| own.discard_call(canceller.call()));
    }

    /// Releases the lock of a lease that is no longer wanted, without waiting.
    pub(crate) fn discard(&self, lease: &Lease) {
        self.states.known().into_iter().for_each(|own| own.discard(lease));
    }

    /// Closes a forked child's copies of its parent's sockets. Does nothing in the process that made the
    /// sockets. This is for a child that releases the manager without having used it.
    pub fn close_inherited(&self) {
        self.states.close_inherited();
    }

    /// Looks up the names of servers that may have moved.
    pub(crate) fn look_up(&self) -> Result<(), Error> {
        self.ask(Runtime::look_up_lost)
    }

    /// Whether [`Self::look_up`] would ask the resolver now.
    pub(crate) fn is_look_up_due(&self) -> bool {
        self.states.known().is_some_and(|own| own.is_look_up_due())
    }

    /// Makes a call that asks servers. A password callback or a logger may fork. Then the result of the call
    /// belongs to the parent, and the child does not take it as its own.
    pub(crate) fn ask<T>(
        &self,
        call: impl FnOnce(&Runtime) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.ask_and_tell(call).0
    }

    /// The same. Also returns whether the logger was called, which may have taken some time.
    fn ask_and_tell<T>(
        &self,
        call: impl FnOnce(&Runtime) -> Result<T, Error>,
    ) -> (Result<T, Error>, bool) {
        let process = this_process();
        let outcome = self.own().and_then(|own| call(own));
        let was_told = !self.is_told_by_caller && self.tell();
        let is_same = this_process() == process;
        (if is_same { outcome } else { Err(Error::forked_within()) }, was_told)
    }

    /// Makes a call on a lease. If it reports a lock as held, the lock must still be held when the logger returns: see
    /// [`Runtime::in_time`].
    pub(crate) fn ask_on(
        &self,
        lease: &mut Lease,
        call: impl FnOnce(&Runtime, &mut Lease) -> Result<(), Error>,
    ) -> Result<(), Error> {
        match self.ask_and_tell(|own| call(own, lease)) {
            (Ok(()), true) => self.in_time(lease),
            (outcome, _) => outcome,
        }
    }

    /// Fails if the lock that a call has reported as held has ended since: see [`Runtime::in_time`].
    pub(crate) fn in_time(&self, lease: &mut Lease) -> Result<(), Error> {
        self.states.known().map_or(Ok(()), |own| own.in_time(lease))
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

    /// Sets which events of locks are logged.
    pub(crate) fn set_tracing(&self, tracing: Tracing) {
        self.settings.set_tracing(tracing);
    }
}

/// Shared locks.
impl RedLock {
    /// Turns an exclusive lock into a shared lock.
    pub fn downgrade(&self, lease: &mut Lease) -> Result<(), Error> {
        self.ask_on(lease, |own, lease| own.call(own.begin_downgrade(lease)?, lease))
    }

    /// Begins to turn an exclusive lock into a shared lock.
    pub fn submit_downgrade(&self, lease: Lease, tag: Tag) -> Result<(), Error> {
        let own = self.own()?;
        let begun = own.begin_downgrade(&lease)?;
        own.submit_call(begun, lease, tag);
        Ok(())
    }
}
