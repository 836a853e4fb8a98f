//! A certificate authority of the tests, and the certificates that it signs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose, PKCS_RSA_SHA256, date_time_ymd,
};

use super::directory::Directory;

/// The names in a good server's certificate.
pub(crate) const HERE: [&str; 3] = ["127.0.0.1", "::1", "localhost"];

/// A long enough time, in hours.
const DAYS: i64 = 30 * 24;

/// ring cannot generate such keys, so this one is included. It protects nothing.
const RSA_KEY: &str = include_str!("tls/rsa.pem");

/// Signs certificates, and keeps them in files that are removed with it.
pub(crate) struct Authority {
    name: String,
    issuer: CertifiedIssuer<'static, KeyPair>,
    directory: Directory,
    number: AtomicU32,
}

/// A certificate and its key, as paths of PEM files.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Authority {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Self::of_name(format!("Authority {number} of the tests"))
    }

    /// Another authority with the same name.
    pub(crate) fn impostor(&self) -> Self {
        Self::of_name(self.name.clone())
    }

    fn of_name(name: String) -> Self {
        let key = KeyPair::generate().expect("a key can be made");
        let issuer = CertifiedIssuer::self_signed(authority(&name), key);
        let issuer = issuer.expect("a certificate can be signed");
        let this = Self { name, issuer, directory: Directory::new(), number: AtomicU32::new(0) };
        this.write("ca.pem", this.issuer.pem());
        this
    }

    /// The path of its own certificate, for everyone that trusts it.
    pub(crate) fn file(&self) -> String {
        self.directory.join("ca.pem")
    }

    /// Its own certificate.
    pub(crate) fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// The same, as bytes.
    pub(crate) fn der(&self) -> Vec<u8> {
        self.issuer.der().to_vec()
    }

    /// A good server on this machine.
    pub(crate) fn server(&self) -> Identity {
        self.server_named(&HERE)
    }

    /// A server with these names or addresses.
    pub(crate) fn server_named(&self, names: &[&str]) -> Identity {
        self.sign(server(names))
    }

    /// A server whose certificate expired an hour ago.
    pub(crate) fn expired(&self) -> Identity {
        self.sign(valid(server(&HERE), -DAYS, -1))
    }

    /// A server whose certificate becomes valid in an hour.
    pub(crate) fn not_yet_valid(&self) -> Identity {
        self.sign(valid(server(&HERE), 1, DAYS))
    }

    /// A server with a self-signed certificate: this authority is not involved.
    pub(crate) fn self_signed(&self) -> Identity {
        let key = KeyPair::generate().expect("a key can be made");
        let certificate = server(&HERE).self_signed(&key).expect("a certificate can be signed");
        self.keep(&certificate.pem(), &key.serialize_pem())
    }

    /// A server with an RSA key.
    pub(crate) fn rsa(&self) -> Identity {
        self.sign_rsa(server(&HERE))
    }

    /// A server whose certificate is signed by an authority that this one has signed. Its file contains
    /// both.
    pub(crate) fn chained(&self) -> Identity {
        let (certificate, between, key) = self.two_steps(server(&HERE));
        self.keep(&(certificate + &between), &key)
    }

    /// The same, but its file lacks the certificate in between.
    pub(crate) fn chained_with_a_gap(&self) -> Identity {
        let (certificate, _, key) = self.two_steps(server(&HERE));
        self.keep(&certificate, &key)
    }

    /// A client.
    pub(crate) fn client(&self) -> Identity {
        self.sign(client())
    }

    /// A client whose certificate expired an hour ago.
    pub(crate) fn expired_client(&self) -> Identity {
        self.sign(valid(client(), -DAYS, -1))
    }

    /// A client with an RSA key.
    pub(crate) fn rsa_client(&self) -> Identity {
        self.sign_rsa(client())
    }

    /// A client whose certificate is signed by an authority that this one has signed.
    pub(crate) fn chained_client(&self) -> Identity {
        let (certificate, between, key) = self.two_steps(client());
        self.keep(&(certificate + &between), &key)
    }

    /// The certificate of a client with this key.
    pub(crate) fn client_of_key(&self, key: &str) -> String {
        let pair = KeyPair::from_pem(key).expect("the key is a good one");
        let certificate = client().signed_by(&pair, &self.issuer);
        self.keep(&certificate.expect("a certificate can be signed").pem(), key).certificate
    }

    /// A file with this content.
    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> String {
        let path = self.directory.join(name);
        fs::write(&path, text).expect("it can be written");
        // A server refuses keys that others may read.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("it is ours");
        path
    }

    fn sign(&self, parameters: CertificateParams) -> Identity {
        let key = KeyPair::generate().expect("a key can be made");
        let certificate = parameters.signed_by(&key, &self.issuer);
        let certificate = certificate.expect("a certificate can be signed");
        self.keep(&certificate.pem(), &key.serialize_pem())
    }

    fn sign_rsa(&self, parameters: CertificateParams) -> Identity {
        let key = KeyPair::from_pkcs8_pem_and_sign_algo(RSA_KEY, &PKCS_RSA_SHA256);
        let key = key.expect("the key is a good one");
        let certificate = parameters.signed_by(&key, &self.issuer);
        self.keep(&certificate.expect("a certificate can be signed").pem(), RSA_KEY)
    }

    /// A certificate, the certificate of an authority in between, and the key of the first.
    fn two_steps(&self, parameters: CertificateParams) -> (String, String, String) {
        let key = KeyPair::generate().expect("a key can be made");
        let between = CertifiedIssuer::signed_by(authority("One in between"), key, &self.issuer);
        let between = between.expect("a certificate can be signed");
        let key = KeyPair::generate().expect("a key can be made");
        let certificate = parameters.signed_by(&key, &between);
        let certificate = certificate.expect("a certificate can be signed");
        (certificate.pem(), between.pem(), key.serialize_pem())
    }

    fn keep(&self, certificate: &str, key: &str) -> Identity {
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        Identity {
            certificate: self.write(&format!("certificate-{number}.pem"), certificate),
            key: self.write(&format!("key-{number}.pem"), key),
        }
    }
}

fn authority(name: &str) -> CertificateParams {
    let mut parameters = named(name, &[]);
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    parameters
}

fn server(names: &[&str]) -> CertificateParams {
    let mut parameters = named("A server of the tests", names);
    parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    parameters
}

fn client() -> CertificateParams {
    let mut parameters = named("A client of the tests", &[]);
    parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    parameters
}

fn named(subject: &str, names: &[&str]) -> CertificateParams {
    let names: Vec<_> = names.iter().map(|&it| it.to_owned()).collect();
    let mut parameters = CertificateParams::new(names).expect("these are names");
    parameters.distinguished_name.push(DnType::CommonName, subject);
    parameters.use_authority_key_identifier_extension = true;
    valid(parameters, -DAYS, DAYS)
}

/// The same, valid from and until this many hours from now.
fn valid(mut parameters: CertificateParams, from: i64, until: i64) -> CertificateParams {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock that is set");
    let hours = |count: i64| {
        let since = now.as_secs().checked_add_signed(count * 60 * 60).expect("not that long ago");
        date_time_ymd(1970, 1, 1) + Duration::from_secs(since)
    };
    (parameters.not_before, parameters.not_after) = (hours(from), hours(until));
    parameters
}
