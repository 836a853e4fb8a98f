//! TLS, by rustls: whom we trust, and who we are. What is said then goes through a [`Session`].

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
use super::endpoint::Place;
use crate::error::Error;
use crate::fork::ForkMutex;
use crate::system::socket::Socket;

/// Whether there is TLS.
pub(super) const IS_THERE: bool = true;

/// The settings of TLS. They may be changed while connections are in use.
#[derive(Default)]
pub struct Tls {
    settings: ForkMutex<Settings>,
}

#[derive(Default)]
struct Settings {
    /// Whom we trust; if nobody was named, whom the system trusts.
    ca: Option<Arc<RootCertStore>>,
    identity: Option<Arc<CertifiedKey>>,
    server_name: Option<ServerName<'static>>,
    skips_verify: bool,
    /// What all of it comes to, made when it is needed.
    config: Option<Arc<ClientConfig>>,
}

impl Tls {
    /// Trusts those in this PEM file alone, or those whom the system trusts.
    pub fn set_ca(&self, file: Option<&[u8]>) -> Result<(), Error> {
        let ca = file.map(trust::of_file).transpose()?.map(Arc::new);
        self.change(|settings| settings.ca = ca)
    }

    /// Shows servers the certificate in the first of these PEM files, with the key in the second.
    pub fn set_certificate(&self, files: Option<(&[u8], &[u8])>) -> Result<(), Error> {
        let of_files = |(certificate, key)| identity::of_files(certificate, key, &provider());
        let identity = files.map(of_files).transpose()?.map(Arc::new);
        self.change(|settings| settings.identity = identity)
    }

    /// Looks for this name in the certificates of all servers, or for each server's own.
    pub fn set_server_name(&self, name: Option<&str>) -> Result<(), Error> {
        let parse = |it: &str| ServerName::try_from(it.to_owned());
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
        if let Ok(mut settings) = self.settings.lock() {
            let _ = settings.config();
        }
    }

    /// Begins to talk over a socket that is connected.
    pub(super) fn begin(&self, place: &Place, socket: Socket) -> Result<Session, String> {
        let mut settings = self.settings.lock().map_err(|error| error.to_string())?;
        let config = settings.config()?;
        let name = settings.server_name.clone();
        drop(settings);
        let name = name.or_else(|| name_of(place)).ok_or("TLS needs a name or an address")?;
        let connection = ClientConnection::new(config, name).map_err(|it| words::of(&it))?;
        Ok(Session::new(connection, socket))
    }

    fn change(&self, change: impl FnOnce(&mut Settings)) -> Result<(), Error> {
        let mut settings = self.settings.lock()?;
        change(&mut settings);
        settings.config = None;
        Ok(())
    }
}

impl Settings {
    fn config(&mut self) -> Result<Arc<ClientConfig>, String> {
        if let Some(config) = &self.config {
            return Ok(Arc::clone(config));
        }
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
            (false, None) => builder.with_root_certificates(trust::of_system()?),
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
        let config = Arc::new(config);
        self.config = Some(Arc::clone(&config));
        Ok(config)
    }
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
            name_of(endpoint.place()).map(|it| it.to_str().into_owned())
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
        let config = || tls.settings.lock().unwrap().config().unwrap();
        let first = config();
        assert!(Arc::ptr_eq(&first, &config()));
        tls.set_server_name(Some("other.example")).unwrap();
        assert!(!Arc::ptr_eq(&first, &config()));
        assert!(tls.set_server_name(Some("no name")).is_err());
    }
}
