//! Error messages for a person.

use std::io;

use rustls::{AlertDescription, CertificateError, PeerIncompatible};

use crate::error::Error;

/// A file that is of no use. Its name is never quoted, because the caller may have passed the contents
/// instead of the name. A string does not show whether it is a name or a key.
pub(super) fn of_file(argument: &str, what: &str) -> Error {
    Error::invalid(format!("{argument} names a file that is of no use: {what}"))
}

/// A file that cannot be read. The message contains neither its name, as above, nor the number of the error.
pub(super) fn of_reading(argument: &str, error: &io::Error) -> Error {
    let words = error.to_string();
    let words = words.split(" (os error").next().unwrap_or_default().to_lowercase();
    Error::invalid(format!("{argument} names no file that can be read: {words}"))
}

/// Why we cannot talk to a server, or why the server does not talk to us.
pub(super) fn of(error: &rustls::Error) -> String {
    use rustls::Error as E;
    match error {
        E::InvalidCertificate(error) => of_certificate(error),
        E::AlertReceived(alert) => of_alert(*alert),
        E::InvalidMessage(_) => "it does not speak TLS".to_owned(),
        E::InappropriateMessage { .. } | E::InappropriateHandshakeMessage { .. } => {
            "it does not speak TLS as a server does".to_owned()
        }
        E::PeerIncompatible(PeerIncompatible::ServerDoesNotSupportTls12Or13) => {
            "it speaks no version of TLS that is safe: 1.2 or 1.3 is needed".to_owned()
        }
        E::DecryptError => "what came over TLS had been changed on the way".to_owned(),
        other => format!("TLS failed: {other}"),
    }
}

fn of_certificate(error: &CertificateError) -> String {
    use CertificateError as C;
    let words = match error {
        C::Expired | C::ExpiredContext { .. } => "its certificate has expired",
        C::NotValidYet | C::NotValidYetContext { .. } => "its certificate is not valid yet",
        C::Revoked => "its certificate was revoked",
        C::UnknownIssuer => "its certificate comes from nobody who is trusted here",
        C::NotValidForName | C::NotValidForNameContext { .. } => {
            "its certificate is for another name"
        }
        C::BadSignature => "its certificate was not signed by whom it says",
        C::UnsupportedSignatureAlgorithmContext { .. }
        | C::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            "its certificate was signed in a way that is not understood here, or by an authority that \
             only has the name of one that is trusted"
        }
        C::BadEncoding => "the certificate cannot be read",
        C::InvalidPurpose | C::InvalidPurposeContext { .. } => {
            "its certificate is not one for servers"
        }
        C::Other(other) => return of_other(&format!("{other:?}")),
        other => return format!("its certificate is of no use: {other:?}"),
    };
    words.to_owned()
}

/// Errors that only webpki names.
fn of_other(error: &str) -> String {
    let known = [
        (
            "CaUsedAsEndEntity",
            "its certificate is an authority's: it has to be one that the authority signed",
        ),
        (
            "UnsupportedCertVersion",
            "its certificate is of an old version: it has to be one of version 3",
        ),
    ];
    let words = known.iter().find(|entry| error.contains(entry.0)).map(|entry| entry.1.to_owned());
    words.unwrap_or_else(|| format!("its certificate is of no use: {error}"))
}

fn of_alert(alert: AlertDescription) -> String {
    use AlertDescription as A;
    let words = match alert {
        A::CertificateRequired => "it wants a certificate of ours",
        A::UnknownCA => "our certificate comes from nobody whom it trusts",
        A::CertificateExpired => "our certificate has expired",
        A::BadCertificate | A::CertificateUnknown | A::UnsupportedCertificate => {
            "it does not accept our certificate"
        }
        A::ProtocolVersion => "it speaks no version of TLS that we do",
        A::HandshakeFailure | A::InsufficientSecurity => {
            "it refused the TLS handshake: it may want a certificate, or ciphers that we do not speak"
        }
        A::UnrecognisedName => "it does not go by this name",
        other => return format!("it refused the TLS handshake: {other:?}"),
    };
    words.to_owned()
}

/// The words to add if the first byte of the answer to the handshake was this one.
pub(super) fn of_first(first: Option<u8>) -> &'static str {
    match first {
        // An error, or another reply.
        Some(b'-' | b'+' | b':' | b'$' | b'*') => " (use redis://)",
        _ => "",
    }
}
