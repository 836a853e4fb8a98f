//! How servers are reached, beyond what their URLs say. It may be changed while connections are in
//! use, and is so for those made later.

use std::sync::atomic::{AtomicBool, Ordering};

use super::login::{Login, Told};
use super::tls::Tls;
use crate::error::Error;
use crate::fork::ForkMutex;

/// Who we are there, whom we trust, and whether servers are to tell us things by themselves.
#[derive(Default)]
pub struct Access {
    login: ForkMutex<Login>,
    /// Whether somebody is asked for passwords.
    asks: AtomicBool,
    tls: Tls,
    /// Whether waiters are left to ask by themselves.
    is_waking_off: AtomicBool,
}

impl Access {
    /// Sets who we are where a URL does not say.
    pub fn set_login(&self, login: Login) -> Result<(), Error> {
        let mut slot = self.login.lock()?;
        self.asks.store(matches!(login, Login::Asked { .. }), Ordering::Relaxed);
        let old = std::mem::replace(&mut *slot, login);
        // The source of passwords is somebody else's code: it is dropped with no mutex held.
        drop(slot);
        drop(old);
        Ok(())
    }

    /// Sets whether waiters are woken.
    pub fn set_waking(&self, is_waking: bool) {
        self.is_waking_off.store(!is_waking, Ordering::Relaxed);
    }

    /// Whether they are.
    pub fn is_waking(&self) -> bool {
        !self.is_waking_off.load(Ordering::Relaxed)
    }

    /// The settings of TLS.
    pub fn tls(&self) -> &Tls {
        &self.tls
    }

    pub(crate) fn asks(&self) -> bool {
        self.asks.load(Ordering::Relaxed)
    }

    /// Without a hold on the source of passwords: the caller has mutexes taken.
    pub(super) fn login(&self) -> Result<Told, Error> {
        Ok(self.login.lock()?.told())
    }
}

impl std::fmt::Debug for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Access").finish_non_exhaustive()
    }
}
