//! TLS towards a server without TLS, and no TLS towards a server with it: how each case looks from here, and
//! what to report.
//!
//! A server without TLS takes the beginning of a handshake for an incomplete command and waits for the rest.
//! Or it answers, in its own protocol, with an error. A server with TLS that is greeted without TLS sends an
//! alert, or closes without an answer.

use super::wire::Wire;
use crate::protocol::servers::address::Address;

/// The first byte of a TLS alert. No reply begins with it.
pub(super) const ALERT: Option<u8> = Some(0x15);

/// The server answered a greeting without TLS with an alert.
pub(super) const SPEAKS_TLS: &str = "the server expects TLS (use rediss://)";

/// Why the other end may have closed a connection that has just begun, or not answered on it. Without TLS,
/// `has_spoken` is set if it has sent anything.
pub(super) fn hint(wire: &Wire, has_spoken: bool, place: Option<&Address>) -> &'static str {
    match (wire, place) {
        (Wire::Tls(_), _) if wire.is_silent() => ": it may not support TLS (use redis://)",
        (Wire::Plain(_), Some(Address::Ip(_) | Address::Name(..))) if !has_spoken => {
            " after the first request: it may expect TLS (use rediss://)"
        }
        _ => "",
    }
}

/// What the other end has not done, while the connection is not usable for that reason, and a possible cause.
pub(super) fn lacking(wire: &Wire) -> String {
    let what = match wire.is_shaking_hands() {
        true if wire.is_silent() => "no reply in the TLS handshake",
        true => "TLS handshake not completed",
        false => "no reply",
    };
    format!(": connection accepted, but {what}{}", hint(wire, true, None))
}
