//! TLS, by rustls: the trusted certificates and our own. The data then goes through a `Session`.

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
use crate::fork::ForkMutex;
use crate::protocol::argument::Argument;
use crate::protocol::error::Error;
use crate::protocol::servers::address::Address;
use crate::system::files;
use crate::system::socket::Socket;

/// Whether this build has TLS.
/// The settings of TLS. They can be changed while connections are in use.
#[derive(Default)]
pub struct Tls {
    settings: ForkMutex<Settings>,
}

#[derive(Clone, Default)]
struct Settings {
    /// The trusted certificates. If none were given, those that the system trusts.
    ca: Option<Arc<RootCertStore>>,
    identity: Option<Arc<CertifiedKey>>,
    server_name: Option<ServerName<'static>>,
    skips_verify: bool,
    /// The certificates that the system trusts, once they were read, or why they could not be read.
    system: Option<Result<Arc<RootCertStore>, String>>,
    /// The configuration that follows from all settings, made when it is needed.
    config: Option<Arc<ClientConfig>>,
    /// How often the settings were changed.
    changes: u64,
}

impl Tls {
    /// Trusts only the certificates in this PEM file, or those that the system trusts.
    pub fn set_ca(&self, file: Option<&[u8]>) -> Result<(), Error> {
        let ca = file.map(trust::of_file).transpose()?.map(Arc::new);
        // The system's certificates are read again when they are asked for again, if they were needed before.
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

    /// Expects this name in the certificates of all servers, or each server's own name.
    pub fn set_server_name(&self, name: Option<&str>) -> Result<(), Error> {
        let parse = |name: &str| ServerName::try_from(name.to_owned());
        let name = name.map(parse).transpose().map_err(|_| {
            Error::argument(Argument::ServerName, "is not a valid host name or IP address")
        })?;
        self.change(|settings| settings.server_name = name)
    }

    /// Accepts every server without verifying its identity.
    pub fn set_skip_verify(&self, skips: bool) -> Result<(), Error> {
        self.change(|settings| settings.skips_verify = skips)
    }

    /// Reads all needed files in advance. A failure is reported when they are needed.
    pub fn prepare(&self) {
        let _ = self.config();
    }

    /// Begins TLS over a socket that is connected.
    pub(super) fn begin(&self, place: &Address, socket: Socket) -> Result<Session, String> {
        let (config, name) = self.config()?;
        let name = name
            .or_else(|| place.certificate_name())
            .ok_or("TLS needs a host name or an IP address")?;
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

    /// The configuration, and the name that all servers must have, if there is one. Slow work is done with no
    /// mutex held, because a forked child might find the mutex locked.
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
        // A failure is kept as well, so that a server that is tried again and again does not cause a new read
        // each time.
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
                None => return Err("the system's trusted certificates were not read".to_owned()),
            },
        };
        let mut config = match &self.identity {
            Some(it) => {
                let always = SingleCertAndKey::from(Arc::clone(it));
                builder.with_client_cert_resolver(Arc::new(always))
            }
            None => builder.with_no_client_auth(),
        };
        // Connections are made so seldom that resuming one saves nothing. The kept state would be behind a
        // mutex, which a forked child may find locked.
        config.resumption = Resumption::disabled();
        Ok(Arc::new(config))
    }
}

/// The contents of the file that an argument names.
fn read(argument: Argument, path: &[u8]) -> Result<Vec<u8>, Error> {
    if path.is_empty() {
        return Err(Error::argument(argument, "is empty"));
    }
    files::read(path).map_err(|error| words::of_reading(argument, &error))
}

/// This provider is small and builds with only a C compiler. It keeps no state that a fork would copy,
/// because its random numbers come from the system each time.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::servers::endpoint::Endpoint;

    #[test]
    fn a_certificate_is_for_the_host_of_the_url() {
        let name = |host: &str| {
            let url = format!("redis://{host}:1");
            let endpoint = Endpoint::parse(&url, 0).expect("a good URL");
            endpoint.place().expect("a place").certificate_name().map(|it| it.to_str().into_owned())
        };
        assert_eq!(name("127.0.0.1").as_deref(), Some("127.0.0.1"));
        assert_eq!(name("[::1]").as_deref(), Some("::1"));
        assert_eq!(name("Redis-1.example.").as_deref(), Some("redis-1.example"));
        assert_eq!(Address::Name("fe80::1%eth0".to_owned(), 1).certificate_name(), {
            let address: std::net::IpAddr = "fe80::1".parse().expect("an address");
            Some(ServerName::IpAddress(address.into()))
        });
    }

    #[test]
    fn a_setting_makes_a_new_configuration() {
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
