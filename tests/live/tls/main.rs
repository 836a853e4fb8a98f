//! TLS and log-ins: which servers the library trusts, what it tells servers that it does not trust, and what
//! happens to connections that an attacker cuts or changes. The servers have certificates of an authority that
//! the tests create.

#[path = "../../support/mod.rs"]
mod support;

#[cfg(feature = "tls")]
mod attacks;
#[cfg(feature = "tls")]
mod authorities;
#[cfg(feature = "tls")]
mod certificates;
#[cfg(feature = "tls")]
mod clients;
mod credentials;
#[cfg(feature = "tls")]
mod face;
#[cfg(feature = "tls")]
mod front;
#[cfg(feature = "tls")]
mod life;
#[cfg(feature = "tls")]
mod manners;
#[cfg(feature = "tls")]
mod mixups;
#[cfg(feature = "tls")]
mod names;
mod passwords;
#[cfg(feature = "tls")]
mod privileges;
#[cfg(feature = "tls")]
mod rig;
#[cfg(feature = "tls")]
mod strangers;
#[cfg(feature = "tls")]
mod tickets;
#[cfg(feature = "tls")]
mod versions;
mod without;
