//! TLS where there is none, and none where there is: how each of them looks from here, and what to say.
//!
//! A server without TLS takes the beginning of a handshake for a command whose end has not come, and waits
//! for that; or it says, in its own protocol, that it makes no sense. A server with TLS that is asked
//! without sends an alert, or closes without a word.

use super::place::Place;
use super::wire::Wire;

/// The first byte of a TLS alert, which begins no reply.
pub(super) const ALERT: Option<u8> = Some(0x15);

/// It answered a greeting in the clear with an alert.
pub(super) const SPEAKS_TLS: &str = "it seems to speak TLS (use rediss://)";

/// Why somebody may have broken off, or not answered, a conversation that has just begun. In the clear, it
/// has spoken if it has said anything.
pub(super) fn hint(wire: &Wire, has_spoken: bool, place: Option<&Place>) -> &'static str {
    match (wire, place) {
        (Wire::Tls(_), _) if wire.is_silent() => ": perhaps it does not speak TLS (use redis://)",
        (Wire::Plain(_), Some(Place::Address(_) | Place::Name(..))) if !has_spoken => {
            ", when it was greeted: perhaps it wants TLS (use rediss://)"
        }
        _ => "",
    }
}

/// What the other end has not done, while there is no connection for that, and why that may be.
pub(super) fn lacking(wire: &Wire) -> String {
    let what = match wire.is_shaking_hands() {
        true if wire.is_silent() => "said nothing in the TLS handshake",
        true => "did not end the TLS handshake",
        false => "said nothing",
    };
    format!(": it accepted, but {what}{}", hint(wire, true, None))
}
