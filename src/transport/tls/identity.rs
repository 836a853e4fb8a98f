//! Our certificate, for servers that ask for one.

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

use super::words;
use crate::protocol::argument::Argument;
use crate::protocol::error::Error;

/// The certificate with its chain, and its key.
pub(super) fn of_files(
    certificate_file: &[u8],
    key_file: &[u8],
    provider: &CryptoProvider,
) -> Result<CertifiedKey, Error> {
    let chain = chain_of(certificate_file)?;
    let key = key_of(key_file)?;
    CertifiedKey::from_der(chain, key, provider).map_err(|error| match error {
        rustls::Error::InconsistentKeys(_) => {
            words::of_file(Argument::KeyFile, "the key does not match the certificate")
        }
        rustls::Error::InvalidCertificate(_) => {
            words::of_file(Argument::CertificateFile, &words::of(&error))
        }
        error => words::of_file(Argument::KeyFile, &words::of(&error)),
    })
}

fn chain_of(path: &[u8]) -> Result<Vec<CertificateDer<'static>>, Error> {
    let fault = |what: &str| words::of_file(Argument::CertificateFile, what);
    let bytes = super::read(Argument::CertificateFile, path)?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    match chain {
        Err(_) => Err(fault("not a PEM file")),
        Ok(chain) if chain.is_empty() => Err(fault("no certificate in PEM format in the file")),
        Ok(chain) => Ok(chain),
    }
}

fn key_of(path: &[u8]) -> Result<PrivateKeyDer<'static>, Error> {
    let fault = |what: &str| words::of_file(Argument::KeyFile, what);
    let bytes = super::read(Argument::KeyFile, path)?;
    let has = |words: &str| bytes.windows(words.len()).any(|window| window == words.as_bytes());
    PrivateKeyDer::from_pem_slice(&bytes).map_err(|_| {
        if has("BEGIN ENCRYPTED PRIVATE KEY") || has("Proc-Type: 4,ENCRYPTED") {
            fault("encrypted keys are not supported")
        } else {
            fault("no private key in PEM format in the file")
        }
    })
}
