//! The error of a server that cannot show who it is.

use std::fmt;

/// The error of a server whose certificate is not accepted, in words.
#[derive(Debug)]
#[cfg_attr(not(feature = "tls"), allow(dead_code))]
pub(crate) struct CertificateError(pub(crate) String);

impl fmt::Display for CertificateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CertificateError {}
