//! The settings from which a manager is built.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::manager::Manager;
use super::shared::Shared;
use super::slot;
use super::time::ms;
use crate::error::Error;
use crate::log::Level;
use crate::redlock::RedLock;
use crate::runtime::Runtime;
use crate::transport::guard::Mode;

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

impl Manager {
    /// Begins to build a manager.
    pub fn builder() -> Builder {
        Builder::default()
    }
}

type Setting = Box<dyn FnOnce(&RedLock) -> Result<(), Error> + Send>;

impl Builder {
    /// Adds a server: `host:port`, `[address]:port`, or a URL:
    /// `redis://[user][:password@]host[:port][/database]`, `rediss://` for TLS, `unix:///path`,
    /// `redis-sentinel://hosts/master`. All programs that must exclude each other must add the same servers: 1
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
            manager.set_fencing(is_wanted);
            Ok(())
        })
    }

    /// Sets the mean pause between two tries (200 ms by default). The pauses are random. `tries` must be at
    /// least 1 (default 3), but limits no call: [`super::Options::tries`] passes its own number.
    pub fn retry(self, tries: i32, pause: Duration) -> Self {
        let pause_ms = i32::try_from(ms(pause)).unwrap_or(i32::MAX);
        self.set(move |manager| manager.set_retry(tries, pause_ms))
    }

    /// Sets how long a server may take to connect (1.5 s by default) and to reply. A reply timeout of zero, the
    /// default, is a twentieth of the TTL, at least 25 ms and at most 500 ms. Each timeout is at most a day.
    pub fn timeouts(self, connect: Duration, reply: Duration) -> Self {
        self.set(move |manager| manager.set_timeouts(ms(connect), ms(reply)))
    }

    /// Sets how much faster the clock of a server may run than the clock of this machine: 0 to less than 1,
    /// 0.01 by default. This fraction of each TTL is given up.
    pub fn clock_drift(self, factor: f64) -> Self {
        self.set(move |manager| manager.set_clock_drift_factor(factor))
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
        self.set(move |manager| manager.set_restart_guard(mode, ms(longest_ttl), ms(cap)))
    }

    /// Sets the user and the password for servers whose URLs name none. Without a user, the server's default
    /// user applies.
    pub fn credentials(self, user: Option<&str>, password: &str) -> Self {
        let (user, password) = (user.map(str::to_owned), password.to_owned());
        self.set(move |manager| {
            manager.set_credentials(user.as_deref().map(str::as_bytes), Some(password.as_bytes()))
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
            manager.set_password_source(user, Some(Arc::new(source)))
        })
    }

    /// Sets a PEM file with the certificates that are trusted to identify servers, in place of those that the
    /// system trusts.
    pub fn tls_ca_file(self, file: impl AsRef<Path>) -> Self {
        let file = file.as_ref().to_owned();
        self.set(move |manager| manager.set_tls_ca(Some(&bytes_of(file))))
    }

    /// Sets the PEM file with this program's certificate, and the one with its key, for servers that ask for a
    /// certificate.
    pub fn tls_certificate(self, certificate: impl AsRef<Path>, key: impl AsRef<Path>) -> Self {
        let files = (certificate.as_ref().to_owned(), key.as_ref().to_owned());
        self.set(move |manager| {
            manager.set_tls_certificate(Some((&bytes_of(files.0), &bytes_of(files.1))))
        })
    }

    /// Sets the name that the certificates of all servers must be for, in place of the host by which each
    /// server is reached.
    pub fn tls_server_name(self, name: &str) -> Self {
        let name = name.to_owned();
        self.set(move |manager| manager.set_tls_server_name(Some(&name)))
    }

    /// Accepts servers without any proof of who they are. For tests only: anybody on the network path can
    /// answer in place of the server.
    pub fn tls_insecure_skip_verify(self) -> Self {
        self.set(|manager| manager.set_tls_insecure_skip_verify(true))
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
                slot::deliver(event, |lease| runtime.discard(lease));
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
