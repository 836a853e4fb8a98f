//! Error messages for a person.

use std::io;

use rustls::{AlertDescription, CertificateError, PeerIncompatible};

use crate::protocol::argument::Argument;
use crate::protocol::error::Error;

/// A file that is of no use. Its name is never quoted, because the caller may have passed the contents
/// instead of the name. A string does not show whether it is a name or a key.
pub(super) fn of_file(argument: Argument, what: &str) -> Error {
    Error::argument(argument, format!("cannot be used: {what}"))
}

/// A file that cannot be read. The message contains neither its name, as above, nor the number of the error.
pub(super) fn of_reading(argument: Argument, error: &io::Error) -> Error {
    let words = error.to_string();
    let words = words.split(" (os error").next().unwrap_or_default().to_lowercase();
    Error::argument(argument, format!("cannot be read: {words}"))
}

/// Why we cannot talk to a server, or why the server does not talk to us.
pub(super) fn of(error: &rustls::Error) -> String {
    use rustls::Error as E;
    match error {
        E::InvalidCertificate(error) => of_certificate(error),
        E::AlertReceived(alert) => of_alert(*alert),
        E::InvalidMessage(_) => "the server does not support TLS".to_owned(),
        E::InappropriateMessage { .. } | E::InappropriateHandshakeMessage { .. } => {
            "TLS protocol error: unexpected message".to_owned()
        }
        E::PeerIncompatible(PeerIncompatible::ServerDoesNotSupportTls12Or13) => {
            "the server supports neither TLS 1.2 nor TLS 1.3".to_owned()
        }
        E::DecryptError => "TLS protocol error: data was modified in transit".to_owned(),
        other => format!("TLS error: {other}"),
    }
}

fn of_certificate(error: &CertificateError) -> String {
    use CertificateError as C;
    let words = match error {
        C::Expired | C::ExpiredContext { .. } => "certificate has expired",
        C::NotValidYet | C::NotValidYetContext { .. } => "certificate is not valid yet",
        C::Revoked => "certificate was revoked",
        C::UnknownIssuer => "certificate signed by an unknown authority",
        C::NotValidForName | C::NotValidForNameContext { .. } => {
            "certificate is for another host name"
        }
        C::BadSignature => "certificate has an invalid signature",
        C::UnsupportedSignatureAlgorithmContext { .. }
        | C::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            "certificate has an unsupported signature, or only the name of its authority is trusted"
        }
        C::BadEncoding => "certificate cannot be parsed",
        C::InvalidPurpose | C::InvalidPurposeContext { .. } => {
            "certificate is not a server certificate"
        }
        C::Other(other) => return of_other(&format!("{other:?}")),
        other => return format!("invalid certificate: {other:?}"),
    };
    words.to_owned()
}

/// Errors that only webpki names.
fn of_other(error: &str) -> String {
    let known = [
        (
            "CaUsedAsEndEntity",
            "certificate is a CA certificate: the server needs one that the CA signed",
        ),
        ("UnsupportedCertVersion", "certificate has an old X.509 version: version 3 is needed"),
    ];
    let words = known.iter().find(|entry| error.contains(entry.0)).map(|entry| entry.1.to_owned());
    words.unwrap_or_else(|| format!("invalid certificate: {error}"))
}

fn of_alert(alert: AlertDescription) -> String {
    use AlertDescription as A;
    let words = match alert {
        A::CertificateRequired => "server requires a client certificate",
        A::UnknownCA => "server does not trust the authority of the client certificate",
        A::CertificateExpired => "client certificate has expired",
        A::BadCertificate | A::CertificateUnknown | A::UnsupportedCertificate => {
            "server rejected the client certificate"
        }
        A::ProtocolVersion => "server and client have no TLS version in common",
        A::HandshakeFailure | A::InsufficientSecurity => {
            "server rejected the TLS handshake: it may need a client certificate or other ciphers"
        }
        A::UnrecognisedName => "server does not know this host name",
        other => return format!("server rejected the TLS handshake: {other:?}"),
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
