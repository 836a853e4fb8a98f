//! The files that TLS reads: certificates, keys, and the authorities that the system trusts.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustls::pki_types::CertificateDer;

use super::environment;

/// A file must be smaller than this, in bytes. It is far more than all authorities of a system take.
const FILE_MAX: u64 = 16 * 1024 * 1024;

/// The whole content of a file.
pub(crate) fn read(path: &[u8]) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = File::open(OsStr::from_bytes(path))?.take(FILE_MAX).read_to_end(&mut bytes)?;
    match read as u64 {
        FILE_MAX => Err(io::ErrorKind::FileTooLarge.into()),
        _ => Ok(bytes),
    }
}

/// The certificates of the authorities that the system trusts. They are where its OpenSSL looks for them,
/// or where the environment variables `SSL_CERT_FILE` and `SSL_CERT_DIR` say, if the environment can be
/// trusted. Certificates that cannot be read are left out.
pub(crate) fn trusted_certificates() -> Vec<CertificateDer<'static>> {
    match environment::is_foreign() {
        true => certificates_of_the_usual_places(),
        false => rustls_native_certs::load_native_certs().certs,
    }
}

/// Files with all certificates, each on some systems. The first file that exists is used.
#[cfg(target_os = "linux")]
const CERTIFICATE_FILES: &[&str] = &[
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/tls/cacert.pem",
    "/etc/ssl/cert.pem",
];
#[cfg(not(target_os = "linux"))]
const CERTIFICATE_FILES: &[&str] = &[
    "/etc/ssl/cert.pem",
    "/usr/local/etc/ssl/cert.pem",
    "/etc/openssl/certs/ca-certificates.crt",
    "/etc/certs/ca-certificates.crt",
    "/etc/ssl/certs/ca-certificates.crt",
];

/// Directories with one certificate in each file.
#[cfg(target_os = "linux")]
const CERTIFICATE_DIRECTORIES: &[&str] = &["/etc/ssl/certs", "/etc/pki/tls/certs"];
#[cfg(not(target_os = "linux"))]
const CERTIFICATE_DIRECTORIES: &[&str] = &["/etc/ssl/certs", "/etc/openssl/certs"];

/// rustls-native-certs reads the environment before anything else, and this cannot be turned off.
fn certificates_of_the_usual_places() -> Vec<CertificateDer<'static>> {
    let file = CERTIFICATE_FILES.iter().map(Path::new).find(|file| file.exists());
    let load = |file, directory| rustls_native_certs::load_certs_from_paths(file, directory).certs;
    let mut certificates = load(file, None);
    for directory in CERTIFICATE_DIRECTORIES {
        certificates.extend(load(None, Some(Path::new(directory))));
    }
    certificates.sort_unstable_by(|one, other| one.cmp(other));
    certificates.dedup();
    certificates
}

#[cfg(test)]
mod tests {
    use std::env;
    use std::process::Command;

    use super::*;

    /// This test runs in a process of its own, without the variables that name other places.
    #[test]
    fn the_usual_places_have_the_system_certificates() {
        const VARIABLES: [&str; 2] = ["SSL_CERT_FILE", "SSL_CERT_DIR"];
        if VARIABLES.iter().any(|it| env::var_os(it).is_some()) {
            let name = "system::files::tests::the_usual_places_have_the_system_certificates";
            let mut itself = Command::new(env::current_exe().expect("this program has a path"));
            VARIABLES.iter().for_each(|it| _ = itself.env_remove(it));
            let output = itself.args(["--exact", name]).output().expect("it can be run");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
            return;
        }
        let mut all = rustls_native_certs::load_native_certs().certs;
        all.sort_unstable_by(|one, other| one.cmp(other));
        assert!(certificates_of_the_usual_places() == all, "it is another set");
    }
}
