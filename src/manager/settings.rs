//! The settings of a manager, with the bounds of each.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::protocol::argument::Argument;
use crate::protocol::command::handshake::Credentials;
use crate::protocol::conn::guard::{Mode, Rules};
use crate::protocol::conn::login::{Login, PasswordSource};
use crate::protocol::error::Error;
use crate::protocol::policy::Policy;
use crate::protocol::quorum::validity::{Drift, TTL_MAX_MS};
use crate::protocol::stats::Tracing;
use crate::transport::security::Security;
use crate::transport::tls::Tls;

/// The maximum timeout for a server: a day.
const TIMEOUT_MAX_MS: i64 = 24 * 3600 * 1000;

/// The settings of a manager. Each may be changed and read at any time, also in a child. The exception is a
/// child that was forked during a change of the credentials or of the TLS settings: it can neither change nor
/// read those.
#[derive(Debug, Default)]
pub struct Settings {
    policy: Arc<Policy>,
    access: Arc<Security>,
    guard: Arc<Rules>,
    looks_up_aside: AtomicBool,
}

impl Settings {
    pub fn set_retry(&self, count: i32, delay_ms: i32) -> Result<(), Error> {
        if count < 1 {
            let words = format!("is {count}: it must be at least 1");
            return Err(Error::argument(Argument::Tries, words));
        }
        Error::check_time(Argument::RetryDelay, delay_ms.into(), 0..=i32::MAX.into())?;
        self.policy.set_retry(count.into(), delay_ms.into());
        Ok(())
    }

    pub fn set_timeouts(&self, connect_ms: i64, reply_ms: i64) -> Result<(), Error> {
        Error::check_time(Argument::ConnectTimeout, connect_ms, 1..=TIMEOUT_MAX_MS)?;
        Error::check_time(Argument::ReplyTimeout, reply_ms, 0..=TIMEOUT_MAX_MS)?;
        self.policy.set_timeouts(connect_ms, reply_ms);
        Ok(())
    }

    pub fn set_drift(&self, factor: f64) -> Result<(), Error> {
        let Some(drift) = Drift::new(factor) else {
            let words = format!("is {factor}: it must be at least 0 and less than 1");
            return Err(Error::argument(Argument::DriftFactor, words));
        };
        self.policy.set_drift(drift);
        self.guard.set_drift(drift);
        Ok(())
    }

    /// Sets how to guard against servers that forget their locks.
    pub fn set_guard(&self, mode: Mode, longest_ms: i64, cap_ms: i64) -> Result<(), Error> {
        Error::check_time(Argument::LongestTtl, longest_ms, 0..=TTL_MAX_MS)?;
        Error::check_time(Argument::GuardCap, cap_ms, 0..=TTL_MAX_MS)?;
        self.guard.set(mode, longest_ms, cap_ms);
        Ok(())
    }

    /// Sets whether locks that are taken from now on have a fencing token.
    pub fn set_fencing(&self, enabled: bool) {
        self.policy.set_fencing(enabled);
    }

    /// From now on the program looks up names itself, in a thread that may wait for the resolver.
    pub(crate) fn look_up_aside(&self) {
        self.looks_up_aside.store(true, Ordering::Relaxed);
    }

    pub(crate) fn looks_up_aside(&self) -> bool {
        self.looks_up_aside.load(Ordering::Relaxed)
    }

    /// Sets which events of locks are logged.
    pub(crate) fn set_tracing(&self, tracing: Tracing) {
        self.policy.set_tracing(tracing);
    }

    /// Sets whether a release wakes a waiting client. For clients that wait it applies from the next
    /// connections on. For releases by this manager it applies at once.
    pub fn set_waking(&self, enabled: bool) {
        self.policy.set_waking(enabled);
    }

    /// Sets whether a master that Sentinels watch needs a majority of them for its vote. It applies from the next
    /// connections on.
    pub fn set_failover_guard(&self, enabled: bool) {
        self.policy.set_failover_guard(enabled);
    }

    /// Sets the user and the password for servers whose URLs name none.
    pub fn set_credentials(
        &self,
        user: Option<&[u8]>,
        password: Option<&[u8]>,
    ) -> Result<(), Error> {
        check_user(user)?;
        if password.is_some_and(<[u8]>::is_empty) {
            return Err(Error::argument(Argument::Password, "is empty"));
        }
        let login = match (user, password) {
            (None, None) => Login::Nobody,
            (user, password) => {
                let user = user.map(<[u8]>::to_owned);
                Login::Known(Credentials { user, password: password.unwrap_or_default().into() })
            }
        };
        self.access.set_login(login)
    }

    /// Sets the function that provides passwords.
    pub fn set_password_source(
        &self,
        user: Option<&[u8]>,
        source: Option<PasswordSource>,
    ) -> Result<(), Error> {
        check_user(user)?;
        let user = user.map(<[u8]>::to_owned);
        self.access.set_login(source.map_or(Login::Nobody, |source| Login::Asked { user, source }))
    }

    pub fn policy(&self) -> &Arc<Policy> {
        &self.policy
    }

    pub fn guard(&self) -> &Arc<Rules> {
        &self.guard
    }

    /// What can be set for servers with TLS.
    pub fn tls(&self) -> &Tls {
        self.access.tls()
    }

    pub fn access(&self) -> &Arc<Security> {
        &self.access
    }
}

fn check_user(user: Option<&[u8]>) -> Result<(), Error> {
    match user {
        Some([]) => {
            Err(Error::argument(Argument::User, "is empty: leave it out for the default user"))
        }
        _ => Ok(()),
    }
}
