//! The manager for Rust programs.

use std::fmt;
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::lease::Acquire;
use super::lease::Lease;
use super::options::Options;
use super::server::ServerInfo;
use super::shared::Shared;
use super::slot;
use super::slot::Tag;
use super::ticket::Ticket;
use super::time::{duration, ms};
use crate::manager::event;
use crate::manager::lease::Lease as PlainLease;
use crate::manager::redlock::RedLock;
use crate::manager::runtime::Runtime;
use crate::protocol::conn::guard::Mode;
use crate::protocol::error::Error;
use crate::protocol::log_line::Level;

/// A lock manager: a set of servers, and the settings for their use. Any number of threads may take locks
/// through one manager, and they share its connections. A clone is the same manager.
///
/// # Blocking calls
///
/// They need no other thread: a waiting thread does the work that is due.
///
/// ```no_run
/// use std::time::Duration;
/// use redlock::{Manager, Options};
///
/// # fn main() -> Result<(), redlock::Error> {
/// let manager = Manager::builder().servers(["10.0.0.1:6379", "10.0.0.2:6379", "10.0.0.3:6379"]).build()?;
/// let options = Options::new("invoice:42", Duration::from_secs(10)).wait(Duration::from_secs(30));
/// let mut lease = manager.acquire(&options)?;
/// // ... the work, while lease.is_held() ...
/// lease.unlock()?;
/// # Ok(())
/// # }
/// ```
///
/// # Who drives
///
/// Futures (`…_async`) and locks that are kept alive ([`Options::keep_alive`]) make progress only while
/// something drives the manager. There are two ways, and a program chooses one:
///
/// - *A thread of the manager*: [`super::Builder::background_thread`]. Any executor can then poll the futures,
///   and the program has nothing else to do.
/// - *A loop of the program*: [`Manager::descriptor`] is readable whenever work is due. The loop then calls
///   [`Manager::drive`]. This works with any runtime that can wait for a descriptor, and starts no thread.
///
/// A manager that has neither refuses futures and keep-alive with a message. Otherwise they would wait forever.
///
/// ```no_run
/// # use std::time::Duration;
/// # use redlock::{Manager, Options};
/// # async fn work() {}
/// # fn main() -> Result<(), redlock::Error> {
/// #     let mut example = std::pin::pin!(example());
/// #     loop {
/// #         let mut context = std::task::Context::from_waker(std::task::Waker::noop());
/// #         if let std::task::Poll::Ready(end) = std::future::Future::poll(example.as_mut(), &mut context) {
/// #             return end;
/// #         }
/// #         std::thread::yield_now();
/// #     }
/// # }
/// # async fn example() -> Result<(), redlock::Error> {
/// let servers = ["10.0.0.1:6379", "10.0.0.2:6379", "10.0.0.3:6379"];
/// let manager = Manager::builder().servers(servers).background_thread(true).build()?;
/// let options = Options::new("invoice:42", Duration::from_secs(10)).keep_alive(true);
/// let mut lease = manager.acquire_async(&options).await?;
/// work().await; // and stop when lease.lost() is ready
/// lease.unlock_async().await?;
/// # Ok(())
/// # }
/// ```
///
/// # At its end
///
/// The connections are closed when the last clone, lease and future have been dropped. Dropping them does not
/// wait.
#[derive(Clone)]
pub struct Manager {
    shared: Arc<Shared>,
}

/// The state of a held resource, from [`Manager::inspect`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Holder {
    /// How long the resource is still held, if the lock is not extended. None: forever, because the holder set
    /// no TTL.
    pub left: Option<Duration>,
    /// The number of readers, if the lock is shared ([`Options::shared`]): a quorum of servers has at least
    /// this many. None: one holder holds the lock exclusively.
    pub readers: Option<u64>,
}

/// The state of a semaphore, from [`Manager::inspect_permits`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Permits {
    /// How many permits are taken on a quorum.
    pub taken: u16,
    /// How long the first of them is still taken, if it is not extended. None: no permit is taken, or the first one has no
    /// TTL.
    pub left: Option<Duration>,
}

impl Manager {
    /// Begins to build a manager.
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(super) fn of(shared: Shared) -> Self {
        Self { shared: Arc::new(shared) }
    }

    /// Takes a lock, and waits for it as the options say.
    ///
    /// # Errors
    ///
    /// [`crate::Status::Taken`]: another holder has the lock. [`crate::Status::Unreachable`]: too few servers
    /// answered. [`crate::Status::TooSlow`]: they answered too late. After each of these, nothing stays locked.
    /// [`crate::Status::InvalidArgument`], [`crate::Status::NoServers`], [`crate::Status::Forked`],
    /// [`crate::Status::Internal`]. The message names the servers, and what each of them answered.
    pub fn acquire(&self, options: &Options) -> Result<Lease, Error> {
        let news = Arc::default();
        let keep = options.keeps_alive().then(|| Tag::Kept(Arc::clone(&news)).boxed());
        // If the logger panics, the lease is dropped, and its lock is released.
        let mut lease = Lease::of(Arc::clone(&self.shared), PlainLease::new(), news);
        self.shared.core.run(options.call(keep), lease.plain_mut())?;
        Ok(lease)
    }

    /// [`Manager::acquire`] as a future. The call begins when the future is first polled. Dropping the future
    /// cancels the call and leaves nothing locked: a lock that was already granted is released without waiting.
    pub fn acquire_async(&self, options: &Options) -> Acquire {
        Acquire::of_options(Arc::clone(&self.shared), options.clone())
    }

    /// Takes over the lock of a ticket ([`Lease::detach`]). This asks the servers and changes nothing on them.
    /// The lease holds the lock for the time that is left. Adopt a ticket only once.
    ///
    /// # Errors
    ///
    /// [`crate::Status::Lost`]: the lock has ended. [`crate::Status::Unreachable`]: too few servers answered,
    /// and the ticket can still be adopted. [`crate::Status::InvalidArgument`]: the text is not a ticket.
    pub fn adopt(&self, ticket: &Ticket) -> Result<Lease, Error> {
        let mut lease = Lease::of(Arc::clone(&self.shared), PlainLease::new(), Arc::default());
        self.shared.core.run(ticket.call(), lease.plain_mut())?;
        Ok(lease)
    }

    /// [`Manager::adopt`] as a future. Dropping the future cancels the call. If the lock was just taken over,
    /// it is released.
    pub fn adopt_async(&self, ticket: &Ticket) -> Acquire {
        Acquire::of_ticket(Arc::clone(&self.shared), ticket.clone())
    }

    /// Asks the servers whether anybody holds a resource, and how. Returns none if nobody holds it on a quorum.
    ///
    /// # Errors
    ///
    /// [`crate::Status::Unreachable`]: too few servers answered to tell. Also while a server is down and those
    /// that answered differ, as they do for a moment when a lock ends.
    pub fn inspect(&self, resource: impl AsRef<[u8]>) -> Result<Option<Holder>, Error> {
        let found = self.shared.core.inspect(resource.as_ref())?;
        let readers = found.readers.map(i64::unsigned_abs);
        Ok(found.left_ms.map(|left_ms| Holder::new(left_ms, readers)))
    }

    /// Asks the servers how many of the permits of a resource are taken ([`Options::permit_of`]). `of` is the number of
    /// permits, 1 to 256, as all who take them say.
    ///
    /// # Errors
    ///
    /// As for [`Manager::inspect`], and [`crate::Status::InvalidArgument`]: `of` is not such a number.
    pub fn inspect_permits(&self, resource: impl AsRef<[u8]>, of: u16) -> Result<Permits, Error> {
        let found = self.shared.core.inspect_permits(resource.as_ref(), of)?;
        let left = found.left_ms.filter(|it| *it >= 0).map(duration);
        Ok(Permits { taken: found.taken, left })
    }

    /// Connects now instead of at the first lock, and waits for that up to `timeout`. Zero: as long as
    /// connecting may take. If a quorum is up, returns a message about the servers that are not up or have no
    /// vote. The message is empty if there are none.
    ///
    /// # Errors
    ///
    /// [`crate::Status::Unreachable`]: there is no quorum. The message gives the reason for each server.
    pub fn connect(&self, timeout: Duration) -> Result<String, Error> {
        self.shared.core.connect(ms(timeout))
    }

    /// Looks up the names that futures wait for ([`Manager::is_look_up_due`]), and those of servers that may have moved:
    /// those that have been unreachable for 2 s. If a server is down while a quorum is up, no call lacks it, so no call
    /// looks up its name. If all servers move, one after the other, a lock that is kept for long would be lost. This
    /// waits for the system's resolver, and holds up no other call. A background thread does it by itself.
    ///
    /// # Errors
    ///
    /// [`crate::Status::NoServers`].
    pub fn look_up(&self) -> Result<(), Error> {
        self.shared.core.look_up()
    }

    /// Whether [`Manager::look_up`] would ask the resolver now, for a call that is under way or a lock that is kept
    /// alive. Whoever drives the manager asks this before the first call and then each time, and has
    /// [`Manager::look_up`] called where a call may wait. From the first time on, futures leave the resolver to it.
    pub fn is_look_up_due(&self) -> bool {
        self.shared.core.is_look_up_due()
    }

    /// Returns what is known of each server, in the order in which they were added. No server is asked.
    pub fn servers(&self) -> Vec<ServerInfo> {
        self.shared.core.servers().iter().map(ServerInfo::from).collect()
    }

    /// Returns a descriptor that is readable (level-triggered) whenever [`Manager::drive`] has work to do. Wait
    /// only for the descriptor to become readable, never read from it, and do not close it: it belongs to the
    /// manager. A program that asks for the descriptor must drive the manager. A forked child has a descriptor
    /// of its own.
    ///
    /// # Errors
    ///
    /// [`crate::Status::NoServers`]; [`crate::Status::Internal`]: the system has no descriptor left, or no
    /// epoll.
    pub fn descriptor(&self) -> Result<RawFd, Error> {
        self.shared.core.descriptor()
    }

    /// Does the work that is due for futures and for locks that are kept alive, and wakes the tasks that wait
    /// for them. This does not wait, except for the system's resolver if the name of a server must be looked
    /// up.
    ///
    /// # Errors
    ///
    /// [`crate::Status::NoServers`], [`crate::Status::Forked`], [`crate::Status::Internal`].
    pub fn drive(&self) -> Result<(), Error> {
        self.drive_for(Duration::ZERO)
    }

    /// [`Manager::drive`], but waits up to `time` for an event: a future is ready, or a lock cannot be kept
    /// alive. For a thread of the program that does nothing else.
    ///
    /// # Errors
    ///
    /// As for [`Manager::drive`].
    pub fn drive_for(&self, time: Duration) -> Result<(), Error> {
        let core = &self.shared.core;
        let mut wait_ms = ms(time);
        while let Some(event) = core.next_event(wait_ms)? {
            slot::deliver(event, |lease| core.discard(lease));
            wait_ms = 0;
        }
        Ok(())
    }
}

impl Holder {
    /// Below 0 milliseconds: for ever.
    fn new(left_ms: i64, readers: Option<u64>) -> Self {
        Self { left: (left_ms >= 0).then(|| duration(left_ms)), readers }
    }
}

impl fmt::Debug for Manager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.servers().into_iter().map(|it| it.name).collect();
        f.debug_struct("Manager").field("servers", &names).finish()
    }
}

/// How to guard against servers that forget what they granted: by a restart without their data, by `FLUSHALL`,
/// or by a failover to a copy. Such a server has no vote until every lock that it may have forgotten has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Guard {
    /// The guard is on. If all servers are new at once, they have their votes at once.
    #[default]
    On,
    /// The guard is on, and servers that seem to be new also have no vote at first.
    Strict,
    /// The guard is off. Servers that may evict keys are accepted as well.
    Off,
    /// No guard is needed, because the program vouches that no server ever forgets what it granted.
    Durable,
}

/// The servers and the settings of a manager, from [`Manager::builder`]. Nothing is checked before
/// [`Builder::build`], which asks no server.
#[derive(Default)]
#[must_use]
pub struct Builder {
    servers: Vec<String>,
    settings: Vec<Setting>,
    has_thread: bool,
}

type Setting = Box<dyn FnOnce(&RedLock) -> Result<(), Error> + Send>;

/// The settings from which a manager is built.
impl Builder {
    /// Adds a server: `host:port`, `[address]:port`, or a URL:
    /// `redis://[user][:password@]host[:port][/database]`, `rediss://` for TLS, `unix:///path`,
    /// `redis-sentinel://hosts/master`, `redis-cluster://hosts?tag=name`. All programs that must exclude each other must add the same servers: 1
    /// to 64 independent primaries. The quorum is more than half of them.
    pub fn server(mut self, host_or_url: impl Into<String>) -> Self {
        self.servers.push(host_or_url.into());
        self
    }

    /// Adds servers; see [`Builder::server`].
    pub fn servers<S: Into<String>>(mut self, servers: impl IntoIterator<Item = S>) -> Self {
        self.servers.extend(servers.into_iter().map(Into::into));
        self
    }

    /// Sets whether the manager has a thread of its own. This thread drives futures and locks that are kept
    /// alive whenever no other thread does, and sleeps otherwise. It is named `redlock`, and all signals are
    /// blocked in it. It starts with the first call that asks servers. Wakers are called on it, so they must be
    /// quick. A forked child has no such thread. The default is no.
    pub fn background_thread(mut self, is_wanted: bool) -> Self {
        self.has_thread = is_wanted;
        self
    }

    /// Sets whether locks have a fencing token: a number that increases with every lock of a resource. The
    /// default is no.
    pub fn fencing(self, is_wanted: bool) -> Self {
        self.set(move |manager| {
            manager.settings().set_fencing(is_wanted);
            Ok(())
        })
    }

    /// Sets the mean pause between two tries (200 ms by default). The pauses are random. `tries` must be at
    /// least 1 (default 3), but limits no call: [`super::Options::tries`] passes its own number.
    pub fn retry(self, tries: i32, pause: Duration) -> Self {
        let pause_ms = i32::try_from(ms(pause)).unwrap_or(i32::MAX);
        self.set(move |manager| manager.settings().set_retry(tries, pause_ms))
    }

    /// Sets how long a server may take to connect (1.5 s by default) and to reply. A reply timeout of zero, the
    /// default, is a twentieth of the TTL, at least 25 ms and at most 500 ms. Each timeout is at most a day.
    pub fn timeouts(self, connect: Duration, reply: Duration) -> Self {
        self.set(move |manager| manager.settings().set_timeouts(ms(connect), ms(reply)))
    }

    /// Sets how much faster the clock of a server may run than the clock of this machine: 0 to less than 1,
    /// 0.01 by default. This fraction of each TTL is given up.
    pub fn clock_drift(self, factor: f64) -> Self {
        self.set(move |manager| manager.settings().set_drift(factor))
    }

    /// Sets how to guard against servers that forget their locks. `longest_ttl` is the longest TTL that any
    /// client uses. Zero: the TTL that is noted on the servers. `cap` is the longest time that a server stays
    /// without a vote. Zero: ten minutes.
    pub fn restart_guard(self, guard: Guard, longest_ttl: Duration, cap: Duration) -> Self {
        let mode = match guard {
            Guard::On => Mode::On,
            Guard::Strict => Mode::Strict,
            Guard::Off => Mode::Off,
            Guard::Durable => Mode::Durable,
        };
        self.set(move |manager| manager.settings().set_guard(mode, ms(longest_ttl), ms(cap)))
    }

    /// Sets whether a master that Sentinels watch has a vote only while a majority of all its Sentinels names it as
    /// the master. They are asked about once a second while locks are taken. So an old master that was paused or cut
    /// off while another one was elected never votes beside its successor. Without it, one Sentinel that answers is
    /// enough, and a master keeps its vote while no Sentinel can be reached: then an old master may vote beside its
    /// successor, and two clients may hold one lock. It has no effect on servers that no Sentinel watches, nor with [`Guard::Off`] or
    /// [`Guard::Durable`]. The default is yes.
    pub fn failover_guard(self, is_wanted: bool) -> Self {
        self.set(move |manager| {
            manager.settings().set_failover_guard(is_wanted);
            Ok(())
        })
    }

    /// Sets the user and the password for servers whose URLs name none. Without a user, the server's default
    /// user applies.
    pub fn credentials(self, user: Option<&str>, password: &str) -> Self {
        let (user, password) = (user.map(str::to_owned), password.to_owned());
        self.set(move |manager| {
            manager
                .settings()
                .set_credentials(user.as_deref().map(str::as_bytes), Some(password.as_bytes()))
        })
    }

    /// Sets the function that provides the password for each server whose URL names none, in place of a fixed
    /// password. The function receives the name of the server. It is called when the manager connects to the
    /// server for the first time, and again when the server did not accept the last answer. The function may
    /// block the driving thread. If it panics, it has no password now, and the call that it ran in ends: nothing of that
    /// call stays locked, and the panic goes on.
    pub fn password_source(
        self,
        user: Option<&str>,
        source: impl Fn(&str) -> Option<Vec<u8>> + Send + Sync + 'static,
    ) -> Self {
        let user = user.map(str::to_owned);
        self.set(move |manager| {
            let user = user.as_deref().map(str::as_bytes);
            manager.settings().set_password_source(user, Some(Arc::new(source)))
        })
    }

    /// Sets a PEM file with the certificates that are trusted to identify servers, in place of those that the
    /// system trusts.
    pub fn tls_ca_file(self, file: impl AsRef<Path>) -> Self {
        let file = file.as_ref().to_owned();
        self.set(move |manager| manager.settings().tls().set_ca(Some(&bytes_of(file))))
    }

    /// Sets the PEM file with this program's certificate, and the one with its key, for servers that ask for a
    /// certificate.
    pub fn tls_certificate(self, certificate: impl AsRef<Path>, key: impl AsRef<Path>) -> Self {
        let files = (certificate.as_ref().to_owned(), key.as_ref().to_owned());
        self.set(move |manager| {
            manager.settings().tls().set_certificate(Some((&bytes_of(files.0), &bytes_of(files.1))))
        })
    }

    /// Sets the name that the certificates of all servers must be for, in place of the host by which each
    /// server is reached.
    pub fn tls_server_name(self, name: &str) -> Self {
        let name = name.to_owned();
        self.set(move |manager| manager.settings().tls().set_server_name(Some(&name)))
    }

    /// Accepts servers without any proof of who they are. For tests only: anybody on the network path can
    /// answer in place of the server.
    pub fn tls_insecure_skip_verify(self) -> Self {
        self.set(|manager| manager.settings().tls().set_skip_verify(true))
    }

    /// Sets the function that is called when servers are lost or come back, with one line at a time. It is
    /// called at the end of calls, on the background thread and in [`Manager::drive_for`], with nothing held. No line
    /// contains a password or a token. If it panics at the end of a call that has taken a lock, the lock is released,
    /// and the panic goes on.
    pub fn logger(self, logger: impl Fn(Level, &str) + Send + Sync + 'static) -> Self {
        self.set(move |manager| manager.set_logger(Some(Arc::new(logger))))
    }

    /// Builds the manager. No server is asked: an unreachable server shows at the first call.
    ///
    /// # Errors
    ///
    /// [`crate::Status::InvalidArgument`], with a message that names the fault: a server or a setting.
    /// [`crate::Status::NoServers`]: no server was added.
    pub fn build(self) -> Result<Manager, Error> {
        let core = RedLock::new();
        for server in &self.servers {
            core.add_server_url(server, 0)?;
        }
        core.needs_servers()?;
        for setting in self.settings {
            setting(&core)?;
        }
        if self.has_thread {
            let sink = |event, runtime: &Runtime| {
                slot::deliver(event, |lease| event::discard(runtime, lease));
            };
            core.set_event_sink(Some(Arc::new(sink)))?;
            core.set_background_thread(true)?;
        }
        Ok(Manager::of(Shared { core }))
    }

    fn set(mut self, setting: impl FnOnce(&RedLock) -> Result<(), Error> + Send + 'static) -> Self {
        self.settings.push(Box::new(setting));
        self
    }
}

fn bytes_of(path: PathBuf) -> Vec<u8> {
    path.into_os_string().into_encoded_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_with_zero_time_left_has_an_end() {
        let left = |left_ms| Holder::new(left_ms, None).left;
        let ms = Duration::from_millis;
        assert_eq!([-1, 0, 7].map(left), [None, Some(ms(0)), Some(ms(7))]);
    }
}
