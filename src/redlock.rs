//! The manager: servers, settings, and the process that uses them.

use std::os::fd::RawFd;
use std::sync::Arc;

pub(crate) use crate::acquire_options::AcquireOptions;
use crate::background::{Background, EventSink};
use crate::blocking::{Inspection, Permits};
use crate::call::Call;
use crate::error::{Error, Status};
use crate::lease::Lease;
use crate::log::{Log, Logger};
use crate::moment::Moment;
use crate::process_state::ProcessStates;
use crate::runtime::Runtime;
use crate::server_list::ServerList;
use crate::settings::Settings;
use crate::submitted::{Event, Tag};
use crate::system::process::{this_process, this_thread};
use crate::transport::endpoint::Endpoint;
use crate::transport::guard::Mode;
use crate::transport::login::PasswordSource;
use crate::transport::roster::Roster;
use crate::transport::server::portrait::Portrait;

/// A lock manager. Any number of threads may lock through one, and they share its connections.
///
/// The meaning of each call, its arguments and its failures is that of the C function of the same
/// name.
#[derive(Default)]
pub struct RedLock {
    pub(crate) settings: Arc<Settings>,
    log: Arc<Log>,
    /// Whether log lines are told by who calls [`Self::tell`], and not at the end of each call.
    is_told_by_caller: bool,
    pub(crate) servers: ServerList,
    pub(crate) states: ProcessStates,
    background: Arc<Background>,
}

/// Cancels the call that uses a lease.
#[derive(Clone, Debug)]
pub struct Canceller(Arc<Call>);

impl From<&Lease> for Canceller {
    fn from(lease: &Lease) -> Self {
        Self(Arc::clone(&lease.call))
    }
}

impl RedLock {
    /// A manager without servers, with the default settings.
    pub fn new() -> Self {
        Self::default()
    }

    /// One for who holds something still when a call has ended: log lines are told by [`Self::tell`].
    pub(crate) fn told_by_caller() -> Self {
        Self { is_told_by_caller: true, ..Self::default() }
    }

    /// Whether there are log lines to tell.
    pub(crate) fn has_lines(&self) -> bool {
        self.log.has_lines()
    }

    /// Tells what log lines there are. The caller holds nothing: the logger is somebody else's code.
    /// Returns whether somebody was told something.
    pub(crate) fn tell(&self) -> bool {
        self.log.tell()
    }

    /// Adds a server: a host and a port, or a URL and port 0.
    pub fn add_server_url(&self, host_or_url: &str, port: i32) -> Result<(), Error> {
        let endpoint = Endpoint::parse(host_or_url, port).map_err(Error::invalid)?;
        if !self.states.is_empty() {
            let words = "the list was closed by the first call that asks servers";
            return Err(Error::invalid(words));
        }
        self.servers.add(endpoint)
    }

    /// Connects now. Returns words about servers that are not up, although a quorum is.
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

    /// Sets how much faster a server's clock may run than ours.
    pub fn set_clock_drift_factor(&self, factor: f64) -> Result<(), Error> {
        self.settings.set_drift(factor)
    }

    /// Sets what is done against servers that forget.
    pub fn set_restart_guard(&self, mode: Mode, longest_ms: i64, cap_ms: i64) -> Result<(), Error> {
        self.settings.set_guard(mode, longest_ms, cap_ms)
    }

    /// Sets whether locks that are taken from now on have a fencing token.
    pub fn set_fencing(&self, enabled: bool) {
        self.settings.set_fencing(enabled);
    }

    /// Sets whether who waits for a lock is woken when it is released.
    pub fn set_waking(&self, enabled: bool) {
        self.settings.set_waking(enabled);
    }

    /// Sets who is told of servers that are lost or come back, at the end of calls that ask servers.
    pub fn set_logger(&self, logger: Option<Logger>) -> Result<(), Error> {
        self.log.set(logger)
    }

    /// Sets who is trusted to say who a server is: those in a PEM file, or those whom the system trusts.
    pub fn set_tls_ca(&self, file: Option<&[u8]>) -> Result<(), Error> {
        self.settings.access().tls().set_ca(file)
    }

    /// Sets the certificate, with its key, for servers that want one.
    pub fn set_tls_certificate(&self, files: Option<(&[u8], &[u8])>) -> Result<(), Error> {
        self.settings.access().tls().set_certificate(files)
    }

    /// Sets the name that all servers' certificates have to be for.
    pub fn set_tls_server_name(&self, name: Option<&str>) -> Result<(), Error> {
        self.settings.access().tls().set_server_name(name)
    }

    /// Sets whether servers are believed without any proof.
    pub fn set_tls_insecure_skip_verify(&self, skip: bool) -> Result<(), Error> {
        self.settings.access().tls().set_skip_verify(skip)
    }

    /// Sets who we are on servers whose URLs do not say.
    pub fn set_credentials(
        &self,
        user: Option<&[u8]>,
        password: Option<&[u8]>,
    ) -> Result<(), Error> {
        self.settings.set_credentials(user, password)
    }

    /// Sets who is asked for the passwords of servers whose URLs do not say.
    pub fn set_password_source(
        &self,
        user: Option<&[u8]>,
        source: Option<PasswordSource>,
    ) -> Result<(), Error> {
        self.settings.set_password_source(user, source)
    }

    /// Takes a lock, with the tries of [`Self::set_retry`].
    pub fn lock(&self, resource: &[u8], ttl_ms: i64, lease: &mut Lease) -> Result<(), Error> {
        self.ask(|own| own.lock(resource, ttl_ms, lease))
    }

    /// Takes a lock, trying for a time.
    pub fn try_lock(
        &self,
        resource: &[u8],
        ttl_ms: i64,
        wait_ms: i64,
        lease: &mut Lease,
    ) -> Result<(), Error> {
        self.ask(|own| own.try_lock(resource, ttl_ms, wait_ms, lease))
    }

    /// Takes a lock, trying for a time of which this call is a slice.
    pub fn try_lock_slice(
        &self,
        resource: &[u8],
        ttl_ms: i64,
        wait_and_slice_ms: (i64, i64),
        lease: &mut Lease,
    ) -> Result<(), Error> {
        self.own()?.try_lock_slice(resource, ttl_ms, wait_and_slice_ms, lease)
    }

    /// Takes a lock, or renews what this manager continued before.
    pub fn continue_lock(
        &self,
        resource: &[u8],
        ttl_ms: i64,
        lease: &mut Lease,
    ) -> Result<(), Error> {
        self.ask(|own| own.continue_lock(resource, ttl_ms, lease))
    }

    /// Gives a lock a new TTL.
    pub fn extend(&self, lease: &mut Lease, ttl_ms: i64) -> Result<(), Error> {
        self.ask(|own| own.extend(lease, ttl_ms))
    }

    /// Releases a lock.
    pub fn unlock(&self, lease: &mut Lease) -> Result<(), Error> {
        self.ask(|own| own.unlock(lease))
    }

    /// Asks the servers whether a lock is still there for so long.
    pub fn confirm(&self, lease: &mut Lease, least_ms: i64) -> Result<(), Error> {
        self.ask(|own| own.confirm(lease, least_ms))
    }

    /// Gives a lock away. Returns its ticket, which is to have room in so many bytes, with a NUL.
    pub fn detach(&self, lease: &mut Lease, room: usize) -> Result<String, Error> {
        self.ask(|own| own.detach(lease, room))
    }

    /// Takes over the lock of a ticket.
    pub fn adopt(&self, ticket: &[u8], lease: &mut Lease) -> Result<(), Error> {
        self.ask(|own| own.adopt(ticket, lease))
    }

    /// What is known of each server, in the order in which they were added. Nobody is asked.
    pub fn servers(&self) -> Vec<Portrait> {
        match self.states.known() {
            Some(own) => own.portraits(),
            None => self.servers.iter().map(Portrait::of_unknown).collect(),
        }
    }

    /// Asks the servers whether anybody holds a resource.
    pub fn is_locked(&self, resource: &[u8]) -> Result<bool, Error> {
        self.ask(|own| own.inspect(resource, false)).map(|it| it.left_ms.is_some())
    }

    /// Asks the servers whether anybody holds a resource, and for how long still.
    pub fn inspect(&self, resource: &[u8]) -> Result<Inspection, Error> {
        self.ask(|own| own.inspect(resource, true))
    }

    /// How many permits of a semaphore are taken, of so many.
    pub fn inspect_permits(&self, resource: &[u8], of: u16) -> Result<Permits, Error> {
        self.ask(|own| own.inspect_permits(resource, of))
    }

    /// Takes a lock as the options say, and waits for that.
    pub fn acquire(&self, options: AcquireOptions<'_>, lease: &mut Lease) -> Result<(), Error> {
        self.ask(|own| {
            let (demand, keep) = options.demand(own, Some(this_thread()));
            own.acquire(&demand, keep, lease)
        })
    }

    /// Begins to take a lock as the options say. The lease comes back with the event.
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

    /// Begins to ask the servers whether a lock is still there for so long.
    pub fn submit_confirm(&self, lease: Lease, least_ms: i64, tag: Tag) -> Result<(), Error> {
        self.own()?.submit_confirm(lease, least_ms, tag)
    }

    /// Begins to take over the lock of a ticket. The lease comes back with the event.
    pub fn submit_adopt(&self, ticket: &[u8], lease: Lease, tag: Tag) -> Result<(), Error> {
        self.own()?.submit_adopt(ticket, lease, tag)
    }

    /// Keeps a lock that is held until it is released.
    pub fn keep_alive(&self, lease: &mut Lease, tag: Tag) -> Result<(), Error> {
        self.own()?.keep_alive(lease, tag)
    }

    /// Does what is due for submitted calls and kept locks, and waits for so long for an event: not at all for
    /// 0, for ever for less.
    pub fn next_event(&self, wait_ms: i64) -> Result<Option<Event>, Error> {
        self.ask(|own| {
            let until = match wait_ms {
                ..0 => Moment::NEVER,
                _ => own.now().plus_ms(wait_ms),
            };
            own.next_event(until)
        })
    }

    /// Sets whether there is a thread that drives when nobody else does.
    pub fn set_background_thread(&self, is_wanted: bool) -> Result<(), Error> {
        let own = self.states.known();
        if !is_wanted {
            return self.background.end(|| own.into_iter().for_each(|own| own.end_standing_by()));
        }
        self.background.want()?;
        own.map_or(Ok(()), |own| self.background.start_if_lacking(own))
    }

    /// Sets who is told events by that thread.
    pub(crate) fn set_event_sink(&self, sink: Option<EventSink>) -> Result<(), Error> {
        self.background.set_sink(sink)?;
        self.states.known().into_iter().for_each(|own| own.end_standing_by());
        Ok(())
    }

    /// A descriptor that is readable whenever [`Self::next_event`] has something to do or to tell.
    pub fn descriptor(&self) -> Result<RawFd, Error> {
        self.own()?.descriptor()
    }

    /// Ends the call that uses the lease of the canceller, blocking or submitted, if there is one on this
    /// manager.
    pub fn cancel(&self, canceller: &Canceller) {
        if let Some(own) = self.states.known() {
            own.cancel(&canceller.0);
        }
    }

    /// Ends all submitted calls, and all waits for events: nobody will ask for events any more.
    pub(crate) fn abandon(&self) {
        if let Some(own) = self.states.known() {
            own.abandon();
            if !self.background.tells_events() {
                own.discard_untold();
            }
        }
    }

    /// Releases the lock of a lease that nobody wants, without waiting.
    pub(crate) fn discard(&self, lease: &Lease) {
        if let Some(own) = self.states.known() {
            own.discard(lease);
        }
    }

    /// Closes, in a forked child, its copies of the parent's sockets; in the process that made them
    /// it does nothing. For a child that lets go of the manager without having used it.
    pub fn close_inherited(&self) {
        self.states.close_inherited();
    }

    /// Makes a call that asks servers. Who is asked for a password, or told a line, may fork: then what
    /// the call has done it has done for the parent, and the child does not take it for its own.
    pub(crate) fn ask<T>(
        &self,
        call: impl FnOnce(&Runtime) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let process = this_process();
        let outcome = self.own().and_then(|own| call(own));
        if !self.is_told_by_caller {
            self.tell();
        }
        if this_process() == process { outcome } else { Err(Error::forked_within()) }
    }

    /// What belongs to this process.
    pub(crate) fn own(&self) -> Result<&Arc<Runtime>, Error> {
        let own = self.states.own(|| self.server_list(), &self.settings, &self.log)?;
        self.background.start_if_lacking(own)?;
        Ok(own)
    }

    /// The list as it is when the first call needs it.
    fn server_list(&self) -> Result<Roster, Error> {
        let endpoints: Vec<_> = self.servers.iter().cloned().collect();
        match endpoints.is_empty() {
            true => Err(Error::new(Status::NoServers, "no server was added")),
            false => Ok(Roster::new(endpoints)),
        }
    }
}
