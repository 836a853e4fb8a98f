//! What a manager is made of.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
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

/// What is done against servers that forget what they granted: after a restart without their data, `FLUSHALL`, or a
/// failover to a copy. Such a server has no vote until every lock has ended that it may have forgotten.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Guard {
    /// That. If all servers are new at once, they have their votes at once.
    #[default]
    On,
    /// The same, and servers that seem to be new have no vote at first either.
    Strict,
    /// Nothing. Servers that may evict keys are let in as well.
    Off,
    /// Nothing, because the program vouches that no server ever forgets.
    Durable,
}

/// What a manager is made of. Made by [`Manager::builder`]; nothing is checked before [`Builder::build`], which asks
/// nobody.
#[derive(Default)]
#[must_use]
pub struct Builder {
    servers: Vec<String>,
    settings: Vec<Setting>,
    has_thread: bool,
}

impl Manager {
    /// Begins to make a manager.
    pub fn builder() -> Builder {
        Builder::default()
    }
}

type Setting = Box<dyn FnOnce(&RedLock) -> Result<(), Error> + Send>;

impl Builder {
    /// Adds a server: `host:port`, `[address]:port`, or a URL: `redis://[user][:password@]host[:port][/database]`,
    /// `rediss://` for TLS, `unix:///path`, `redis-sentinel://hosts/master`. All programs that are to exclude each
    /// other name the same servers, 1 to 64 independent primaries. More than half of them are a quorum.
    pub fn server(mut self, host_or_url: impl Into<String>) -> Self {
        self.servers.push(host_or_url.into());
        self
    }

    /// Adds servers; see [`Builder::server`].
    pub fn servers<S: Into<String>>(mut self, servers: impl IntoIterator<Item = S>) -> Self {
        self.servers.extend(servers.into_iter().map(Into::into));
        self
    }

    /// Whether the manager has a thread of its own, which drives futures and locks that are kept whenever no other
    /// thread does, and sleeps otherwise. It is named `redlock`, all signals are blocked in it, and it begins with
    /// the first call that asks servers. Wakers are called on it: they have to be quick. A forked child has none. The
    /// default is no.
    pub fn background_thread(mut self, is_wanted: bool) -> Self {
        self.has_thread = is_wanted;
        self
    }

    /// Whether locks have a fencing token: a number that grows with every lock of a resource. The default is no.
    pub fn fencing(self, is_wanted: bool) -> Self {
        self.set(move |manager| {
            manager.set_fencing(is_wanted);
            Ok(())
        })
    }

    /// How often [`super::Options::tries`] tries at the most by default (3), and the mean pause between two tries
    /// (200 ms). The pauses are random.
    pub fn retry(self, tries: i32, pause: Duration) -> Self {
        let pause_ms = i32::try_from(ms(pause)).unwrap_or(i32::MAX);
        self.set(move |manager| manager.set_retry(tries, pause_ms))
    }

    /// How long a server may take to connect (1.5 s), and to answer; zero, the default for an answer, is a twentieth
    /// of the TTL, at least 25 ms and at most 500 ms. At most a day.
    pub fn timeouts(self, connect: Duration, reply: Duration) -> Self {
        self.set(move |manager| manager.set_timeouts(ms(connect), ms(reply)))
    }

    /// By how much a server's clock may be faster than this machine's: 0 to less than 1, 0.01 by default. So much
    /// of each TTL is given up.
    pub fn clock_drift(self, factor: f64) -> Self {
        self.set(move |manager| manager.set_clock_drift_factor(factor))
    }

    /// What is done against servers that forget. `longest_ttl` is the longest that any client uses; zero: what is noted
    /// on the servers. `cap`: for how long a server is left without a vote at most; zero: ten minutes.
    pub fn restart_guard(self, guard: Guard, longest_ttl: Duration, cap: Duration) -> Self {
        let mode = match guard {
            Guard::On => Mode::On,
            Guard::Strict => Mode::Strict,
            Guard::Off => Mode::Off,
            Guard::Durable => Mode::Durable,
        };
        self.set(move |manager| manager.set_restart_guard(mode, ms(longest_ttl), ms(cap)))
    }

    /// Who we are on servers whose URLs do not say. Without a user it is the server's default user.
    pub fn credentials(self, user: Option<&str>, password: &str) -> Self {
        let (user, password) = (user.map(str::to_owned), password.to_owned());
        self.set(move |manager| {
            manager.set_credentials(user.as_deref().map(str::as_bytes), Some(password.as_bytes()))
        })
    }

    /// Who is asked for the password, with the name of a server, whenever a connection to it begins, in the place of
    /// one that is told once. The function may block, on the thread that drives.
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

    /// A PEM file with those who are trusted to say who a server is, in the place of those whom the system trusts.
    pub fn tls_ca_file(self, file: impl AsRef<Path>) -> Self {
        let file = file.as_ref().to_owned();
        self.set(move |manager| manager.set_tls_ca(Some(&bytes_of(file))))
    }

    /// A PEM file with this program's certificate, and one with its key, for servers that want one.
    pub fn tls_certificate(self, certificate: impl AsRef<Path>, key: impl AsRef<Path>) -> Self {
        let files = (certificate.as_ref().to_owned(), key.as_ref().to_owned());
        self.set(move |manager| {
            manager.set_tls_certificate(Some((&bytes_of(files.0), &bytes_of(files.1))))
        })
    }

    /// The name that all servers' certificates have to be for, in the place of that by which each is reached.
    pub fn tls_server_name(self, name: &str) -> Self {
        let name = name.to_owned();
        self.set(move |manager| manager.set_tls_server_name(Some(&name)))
    }

    /// Believes servers without any proof. For tests only: anybody on the way can play the server.
    pub fn tls_insecure_skip_verify(self) -> Self {
        self.set(|manager| manager.set_tls_insecure_skip_verify(true))
    }

    /// Who is told of servers that are lost or come back, one line at a time, at the end of calls and on the
    /// background thread, with nothing held. No line has a password or a token in it.
    pub fn logger(self, logger: impl Fn(Level, &str) + Send + Sync + 'static) -> Self {
        self.set(move |manager| manager.set_logger(Some(Arc::new(logger))))
    }

    /// Makes the manager. Nobody is asked: that a server cannot be reached shows at the first call.
    ///
    /// # Errors
    ///
    /// [`crate::Status::InvalidArgument`] with words that name what was wrong: a server or a setting.
    pub fn build(self) -> Result<Manager, Error> {
        let core = RedLock::new();
        for server in &self.servers {
            core.add_server_url(server, 0)?;
        }
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
        let is_driven = AtomicBool::new(self.has_thread);
        Ok(Manager::of(Shared { core, is_driven }))
    }

    fn set(mut self, setting: impl FnOnce(&RedLock) -> Result<(), Error> + Send + 'static) -> Self {
        self.settings.push(Box::new(setting));
        self
    }
}

fn bytes_of(path: PathBuf) -> Vec<u8> {
    path.into_os_string().into_encoded_bytes()
}
