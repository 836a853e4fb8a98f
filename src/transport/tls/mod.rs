//! TLS, by rustls: whom we trust, and who we are. What is said then goes through a `Session`.

mod identity;
mod session;
mod trust;
mod words;

use std::sync::Arc;

use rustls::client::{ClientConfig, Resumption};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::ServerName;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConnection, RootCertStore};

pub(super) use self::session::Session;
use super::place::Place;
use crate::error::Error;
use crate::fork::ForkMutex;
use crate::system::files;
use crate::system::socket::Socket;

/// Whether there is TLS.
pub(super) const IS_THERE: bool = true;

/// The settings of TLS. They may be changed while connections are in use.
#[derive(Default)]
pub struct Tls {
    settings: ForkMutex<Settings>,
}

#[derive(Clone, Default)]
struct Settings {
    /// Whom we trust; if nobody was named, whom the system trusts.
    ca: Option<Arc<RootCertStore>>,
    identity: Option<Arc<CertifiedKey>>,
    server_name: Option<ServerName<'static>>,
    skips_verify: bool,
    /// Whom the system trusts, once that was read, or why it could not be.
    system: Option<Result<Arc<RootCertStore>, String>>,
    /// What all of it comes to, made when it is needed.
    config: Option<Arc<ClientConfig>>,
    /// How often it was changed.
    changes: u64,
}

impl Tls {
    /// Trusts those in this PEM file alone, or those whom the system trusts.
    pub fn set_ca(&self, file: Option<&[u8]>) -> Result<(), Error> {
        let ca = file.map(trust::of_file).transpose()?.map(Arc::new);
        // Whom the system trusts is read again when it is asked for again, if it was needed before.
        let was_read = self.settings.lock()?.system.is_some();
        let system = (ca.is_none() && was_read).then(|| trust::of_system().map(Arc::new));
        self.change(|settings| {
            settings.ca = ca;
            settings.system = system.or_else(|| settings.system.take());
        })
    }

    /// Shows servers the certificate in the first of these PEM files, with the key in the second.
    pub fn set_certificate(&self, files: Option<(&[u8], &[u8])>) -> Result<(), Error> {
        let of_files = |(certificate, key)| identity::of_files(certificate, key, &provider());
        let identity = files.map(of_files).transpose()?.map(Arc::new);
        self.change(|settings| settings.identity = identity)
    }

    /// Looks for this name in the certificates of all servers, or for each server's own.
    pub fn set_server_name(&self, name: Option<&str>) -> Result<(), Error> {
        let parse = |name: &str| ServerName::try_from(name.to_owned());
        let name = name.map(parse).transpose().map_err(|_| {
            Error::invalid("name is neither the name of a host nor an address".to_owned())
        })?;
        self.change(|settings| settings.server_name = name)
    }

    /// Believes every server to be who it says it is.
    pub fn set_skip_verify(&self, skips: bool) -> Result<(), Error> {
        self.change(|settings| settings.skips_verify = skips)
    }

    /// Reads what there is to read before it is needed. A failure shows when it is.
    pub fn prepare(&self) {
        let _ = self.config();
    }

    /// Begins to talk over a socket that is connected.
    pub(super) fn begin(&self, place: &Place, socket: Socket) -> Result<Session, String> {
        let (config, name) = self.config()?;
        let name = name.or_else(|| name_of(place)).ok_or("TLS needs a name or an address")?;
        let connection = ClientConnection::new(config, name).map_err(|error| words::of(&error))?;
        Ok(Session::new(connection, socket))
    }

    fn change(&self, change: impl FnOnce(&mut Settings)) -> Result<(), Error> {
        let mut settings = self.settings.lock()?;
        change(&mut settings);
        settings.config = None;
        settings.changes += 1;
        Ok(())
    }

    /// What the settings come to, and the name that all servers are to have, if there is one. What takes
    /// long is done with no mutex held, which a forked child might find locked.
    fn config(&self) -> Result<(Arc<ClientConfig>, Option<ServerName<'static>>), String> {
        let settings = self.settings.lock().map_err(|error| error.to_string())?.clone();
        if let Some(config) = settings.config {
            return Ok((config, settings.server_name));
        }
        let needs_system = settings.ca.is_none() && !settings.skips_verify;
        let system = match &settings.system {
            None if needs_system => Some(trust::of_system().map(Arc::new)),
            known => known.clone(),
        };
        let config = settings.build(system.as_ref());
        let mut now = self.settings.lock().map_err(|error| error.to_string())?;
        // A failure as well: a server that is tried again and again is not to have it read each time.
        now.system = now.system.take().or(system);
        if now.changes == settings.changes {
            now.config = config.as_ref().ok().map(Arc::clone);
        }
        Ok((config?, settings.server_name))
    }
}

impl Settings {
    fn build(
        &self,
        system: Option<&Result<Arc<RootCertStore>, String>>,
    ) -> Result<Arc<ClientConfig>, String> {
        let provider = provider();
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider));
        let builder = builder.with_safe_default_protocol_versions();
        let builder = builder.map_err(|error| words::of(&error))?;
        let builder = match (self.skips_verify, &self.ca) {
            (true, _) => {
                let anybody = Arc::new(trust::Anybody(provider));
                builder.dangerous().with_custom_certificate_verifier(anybody)
            }
            (false, Some(ca)) => builder.with_root_certificates(Arc::clone(ca)),
            (false, None) => match system {
                Some(Ok(system)) => builder.with_root_certificates(Arc::clone(system)),
                Some(Err(why)) => return Err(why.clone()),
                None => return Err("whom the system trusts was not read".to_owned()),
            },
        };
        let mut config = match &self.identity {
            Some(it) => {
                let always = SingleCertAndKey::from(Arc::clone(it));
                builder.with_client_cert_resolver(Arc::new(always))
            }
            None => builder.with_no_client_auth(),
        };
        // A connection is made so seldom that resuming one saves nothing; and what is kept for that
        // lies behind a mutex, which a forked child may find locked.
        config.resumption = Resumption::disabled();
        Ok(Arc::new(config))
    }
}

/// All that is in the file that an argument names.
fn read(argument: &str, path: &[u8]) -> Result<Vec<u8>, Error> {
    if path.is_empty() {
        return Err(Error::invalid(format!("{argument} is empty")));
    }
    files::read(path).map_err(|error| words::of_reading(argument, &error))
}

/// The name that the server's certificate has to be for.
fn name_of(place: &Place) -> Option<ServerName<'static>> {
    match place {
        Place::Address(address) => Some(ServerName::IpAddress(address.ip().into())),
        Place::Name(name, _) => {
            // Neither the zone of an address nor the dot at the end of a name is a part of it.
            let name = name.split('%').next().unwrap_or_default();
            let name = name.strip_suffix('.').unwrap_or(name);
            ServerName::try_from(name.to_owned()).ok()
        }
        Place::Path(_) => None,
    }
}

/// Whether a certificate can be for the server's name.
pub(super) fn check_name(place: &Place) -> Result<(), String> {
    match name_of(place) {
        Some(_) => Ok(()),
        None => Err("its host is a name that no certificate can be for".to_owned()),
    }
}

/// The one that is small, builds with a C compiler alone, and keeps no state that a fork would copy:
/// its random numbers come from the system, each time.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

#[cfg(test)]
mod tests {
    use super::super::endpoint::Endpoint;
    use super::*;

    #[test]
    fn a_certificate_is_for_the_name_or_the_address_in_the_url() {
        let name = |host: &str| {
            let url = format!("redis://{host}:1");
            let endpoint = Endpoint::parse(&url, 0).expect("a good URL");
            name_of(endpoint.place().expect("a place")).map(|it| it.to_str().into_owned())
        };
        assert_eq!(name("127.0.0.1").as_deref(), Some("127.0.0.1"));
        assert_eq!(name("[::1]").as_deref(), Some("::1"));
        assert_eq!(name("Redis-1.example.").as_deref(), Some("redis-1.example"));
        assert_eq!(name_of(&Place::Name("fe80::1%eth0".to_owned(), 1)), {
            let address: std::net::IpAddr = "fe80::1".parse().expect("an address");
            Some(ServerName::IpAddress(address.into()))
        });
    }

    #[test]
    fn what_is_set_is_made_into_a_new_configuration() {
        let tls = Tls::default();
        tls.set_skip_verify(true).unwrap();
        let config = || tls.config().unwrap().0;
        let first = config();
        assert!(Arc::ptr_eq(&first, &config()));
        tls.set_server_name(Some("other.example")).unwrap();
        assert!(!Arc::ptr_eq(&first, &config()));
        assert!(tls.set_server_name(Some("no name")).is_err());
    }
}
