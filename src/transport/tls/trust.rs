//! Which certificates we trust.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, RootCertStore, SignatureScheme};

use super::words;
use crate::protocol::argument::Argument;
use crate::protocol::error::Error;
use crate::system::files;

/// The certificates in a file.
pub(super) fn of_file(path: &[u8]) -> Result<RootCertStore, Error> {
    let fault = |what: &str| words::of_file(Argument::CaFile, what);
    let bytes = super::read(Argument::CaFile, path)?;
    let mut store = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&bytes) {
        let certificate = certificate.map_err(|_| fault("not a PEM file"))?;
        store.add(certificate).map_err(|error| fault(&words::of(&error)))?;
    }
    match store.is_empty() {
        true => Err(fault("no certificate in PEM format in the file")),
        false => Ok(store),
    }
}

/// The certificates that the system trusts.
pub(super) fn of_system() -> Result<RootCertStore, String> {
    let mut store = RootCertStore::empty();
    // Systems also have certificates that no current parser can read.
    store.add_parsable_certificates(files::trusted_certificates());
    match store.is_empty() {
        true => Err("the system has no trusted certificates: set a CA file".to_owned()),
        false => Ok(store),
    }
}

/// Trusts every certificate. The signatures in the handshake are checked all the same.
#[derive(Debug)]
pub(super) struct Anybody(pub(super) Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
