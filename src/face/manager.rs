//! The manager, as Rust programs have it.

use std::fmt;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::future::Acquire;
use super::lease::Lease;
use super::options::Options;
use super::server::ServerInfo;
use super::shared::Shared;
use super::slot::{self, Tag};
use super::ticket::Ticket;
use super::time::{duration, ms};
use crate::error::Error;
use crate::lease::Lease as PlainLease;

/// A lock manager: some servers, and how they are used. Any number of threads may lock through one, and they share
/// its connections. A clone is the same manager.
///
/// # Blocking calls
///
/// They need nobody else: the thread that waits does what is due.
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
/// Futures (`…_async`) and locks that are kept ([`Options::keep_alive`]) go on only while somebody drives the
/// manager. There are two ways, and a program chooses one:
///
/// - *A thread of the manager*: [`super::Builder::background_thread`]. Then any executor can poll the futures, and nothing
///   else is to be done.
/// - *A loop of the program*: [`Manager::descriptor`] is readable whenever something is due; then the loop calls
///   [`Manager::drive`]. That goes with any runtime that can wait for a descriptor, and starts no thread.
///
/// A manager that has neither refuses futures and keeping, in words, rather than to let them wait for ever.
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
/// The connections are closed when the last clone, lease and future are dropped. Nothing is waited for.
#[derive(Clone)]
pub struct Manager {
    shared: Arc<Shared>,
}

/// Who holds a resource: see [`Manager::inspect`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Holder {
    /// For how long it is locked still, unless it is extended; none: for ever, by somebody who set no time.
    pub left: Option<Duration>,
    /// How many have it, if they have it shared ([`Options::shared`]): as many as a quorum of servers has at the least.
    /// None: somebody has it alone.
    pub readers: Option<u64>,
}

impl Manager {
    pub(super) fn of(shared: Shared) -> Self {
        Self { shared: Arc::new(shared) }
    }

    /// Takes a lock, and waits for that as the options say.
    ///
    /// # Errors
    ///
    /// [`crate::Status::Taken`]: somebody else has it. [`crate::Status::Unreachable`]: too few servers answered.
    /// [`crate::Status::TooSlow`]: they answered too late. Nothing stays locked then.
    /// [`crate::Status::InvalidArgument`], [`crate::Status::NoServers`], [`crate::Status::Forked`],
    /// [`crate::Status::Internal`]. The words name the servers, and what each has said.
    pub fn acquire(&self, options: &Options) -> Result<Lease, Error> {
        let news = self.shared.news_for(options)?;
        let keep = options.keeps_alive().then(|| Tag::Kept(Arc::clone(&news)).boxed());
        let mut plain = PlainLease::new();
        self.shared.core.acquire(options.plain(keep), &mut plain)?;
        Ok(Lease::of(Arc::clone(&self.shared), plain, news))
    }

    /// Takes a lock, as a future. It begins when it is first polled. To drop it cancels the call, and leaves nothing
    /// locked: a lock that was granted already is released, without waiting.
    pub fn acquire_async(&self, options: &Options) -> Acquire {
        Acquire::of_options(Arc::clone(&self.shared), options.clone())
    }

    /// Takes over the lock of a ticket ([`Lease::detach`]). The servers are asked, and nothing is changed on them: the
    /// lease has what is left of the lock. A ticket is to be adopted once.
    ///
    /// # Errors
    ///
    /// [`crate::Status::Lost`]: the lock has ended. [`crate::Status::Unreachable`]: too few servers answered, and the
    /// ticket is as good as before. [`crate::Status::InvalidArgument`]: it is no ticket.
    pub fn adopt(&self, ticket: &Ticket) -> Result<Lease, Error> {
        let mut plain = PlainLease::new();
        self.shared.core.adopt(ticket.as_str().as_bytes(), &mut plain)?;
        Ok(Lease::of(Arc::clone(&self.shared), plain, Arc::default()))
    }

    /// The same as a future. To drop it cancels the call. If the lock was taken over just then, it is released.
    pub fn adopt_async(&self, ticket: &Ticket) -> Acquire {
        Acquire::of_ticket(Arc::clone(&self.shared), ticket.clone())
    }

    /// Asks the servers who holds a resource: none, if nobody has it on a quorum.
    ///
    /// # Errors
    ///
    /// [`crate::Status::Unreachable`]: too few servers answered to tell.
    pub fn inspect(&self, resource: impl AsRef<[u8]>) -> Result<Option<Holder>, Error> {
        let found = self.shared.core.inspect(resource.as_ref())?;
        let readers = found.readers.map(i64::unsigned_abs);
        let holder = |left_ms: i64| {
            let left = (left_ms >= 0).then(|| duration(left_ms));
            Holder { left, readers }
        };
        Ok(found.left_ms.map(holder))
    }

    /// Connects now, rather than with the first lock, and waits for that up to `timeout`; zero: as long as connecting
    /// may take. Returns words about servers that are not up, or have no vote, although a quorum is up; empty if all
    /// is well.
    ///
    /// # Errors
    ///
    /// [`crate::Status::Unreachable`]: there is no quorum. The words say why, server by server.
    pub fn connect(&self, timeout: Duration) -> Result<String, Error> {
        self.shared.core.connect(ms(timeout))
    }

    /// What is known of each server, in the order in which they were added. Nobody is asked.
    pub fn servers(&self) -> Vec<ServerInfo> {
        self.shared.core.servers().iter().map(ServerInfo::from).collect()
    }

    /// A descriptor that is readable (level-triggered) whenever [`Manager::drive`] has something to do. Wait for
    /// nothing else than to read it, never read from it, and do not close it: it belongs to the manager. Who asks for
    /// it promises to drive. A forked child has one of its own.
    ///
    /// # Errors
    ///
    /// [`crate::Status::NoServers`]; [`crate::Status::Internal`]: the system has none to give, or no epoll.
    pub fn descriptor(&self) -> Result<RawFd, Error> {
        self.shared.is_driven.store(true, Ordering::Relaxed);
        self.shared.core.descriptor()
    }

    /// Does what is due for futures and for locks that are kept, and wakes whoever waits for them. It waits for
    /// nothing, but for the resolver where the name of a server has to be looked up.
    ///
    /// # Errors
    ///
    /// [`crate::Status::NoServers`], [`crate::Status::Forked`], [`crate::Status::Internal`].
    pub fn drive(&self) -> Result<(), Error> {
        self.drive_for(Duration::ZERO)
    }

    /// The same, and waits up to `time` until there is news: a future that is ready, a lock that cannot be kept. For a
    /// thread of the program that does nothing else.
    ///
    /// # Errors
    ///
    /// As for [`Manager::drive`].
    pub fn drive_for(&self, time: Duration) -> Result<(), Error> {
        self.shared.is_driven.store(true, Ordering::Relaxed);
        let core = &self.shared.core;
        let mut wait_ms = ms(time);
        while let Some(event) = core.next_event(wait_ms)? {
            slot::deliver(event, |lease| core.discard(lease));
            wait_ms = 0;
        }
        Ok(())
    }
}

impl fmt::Debug for Manager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.servers().into_iter().map(|it| it.name).collect();
        f.debug_struct("Manager").field("servers", &names).finish()
    }
}
