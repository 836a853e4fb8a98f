//! How servers are reached, beyond what their URLs say. The settings can be changed while connections are in
//! use. They then hold for later connections.

use std::sync::atomic::{AtomicBool, Ordering};

use super::tls::Tls;
use crate::fork::ForkMutex;
use crate::protocol::conn::login::{Login, Shared};
use crate::protocol::error::Error;

/// The login on the servers, and the trusted certificates.
#[derive(Default)]
pub struct Security {
    login: ForkMutex<Login>,
    /// Whether a callback is asked for passwords.
    asks: AtomicBool,
    tls: Tls,
}

impl Security {
    /// Sets the login for servers whose URL gives none.
    pub fn set_login(&self, login: Login) -> Result<(), Error> {
        let mut slot = self.login.lock()?;
        self.asks.store(matches!(login, Login::Asked { .. }), Ordering::Relaxed);
        let old = std::mem::replace(&mut *slot, login);
        // The password source is foreign code, so it is dropped with no mutex held.
        drop(slot);
        drop(old);
        Ok(())
    }

    /// The TLS settings.
    pub fn tls(&self) -> &Tls {
        &self.tls
    }

    pub(crate) fn asks(&self) -> bool {
        self.asks.load(Ordering::Relaxed)
    }

    /// The login, with only a weak reference to the password source, because the caller holds mutexes.
    pub(super) fn login(&self) -> Result<Shared, Error> {
        Ok(self.login.lock()?.told())
    }
}

impl std::fmt::Debug for Security {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Security").finish_non_exhaustive()
    }
}
