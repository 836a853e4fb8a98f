//! What TLS reads of the disk: certificates and keys, and whom the system trusts.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;

use rustls::pki_types::CertificateDer;

/// All that is in a file.
pub(crate) fn read(path: &[u8]) -> io::Result<Vec<u8>> {
    std::fs::read(OsStr::from_bytes(path))
}

/// The certificates of those whom the system trusts: where its OpenSSL looks for them, or in the
/// environment's `SSL_CERT_FILE` and `SSL_CERT_DIR`. Those that cannot be read are left out.
pub(crate) fn trusted_certificates() -> Vec<CertificateDer<'static>> {
    rustls_native_certs::load_native_certs().certs
}
