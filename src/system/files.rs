//! What TLS reads of the disk: certificates and keys, and whom the system trusts.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;

use rustls::pki_types::CertificateDer;

/// Far more than all authorities of a system take.
const FILE_MAX: u64 = 16 * 1024 * 1024;

/// All that is in a file.
pub(crate) fn read(path: &[u8]) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = File::open(OsStr::from_bytes(path))?.take(FILE_MAX).read_to_end(&mut bytes)?;
    match read as u64 {
        FILE_MAX => Err(io::ErrorKind::FileTooLarge.into()),
        _ => Ok(bytes),
    }
}

/// The certificates of those whom the system trusts: where its OpenSSL looks for them, or in the
/// environment's `SSL_CERT_FILE` and `SSL_CERT_DIR`. Those that cannot be read are left out.
pub(crate) fn trusted_certificates() -> Vec<CertificateDer<'static>> {
    rustls_native_certs::load_native_certs().certs
}
