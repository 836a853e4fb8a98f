//! TLS where there is none, and none where there is: how each of them looks from here, and what to say.
//!
//! A server without TLS takes the beginning of a handshake for a command whose end has not come, and waits
//! for that; or it says, in its own protocol, that it makes no sense. A server with TLS that is asked
//! without sends an alert, or closes without a word.

/// The first byte of a TLS alert, which begins no reply.
pub(super) const ALERT: u8 = 0x15;

/// It answered a greeting in the clear with an alert.
pub(super) const SPEAKS_TLS: &str = "it seems to speak TLS (use rediss://)";

/// It closed the connection when it was greeted in the clear, and had said nothing.
pub(super) const PERHAPS_TLS: &str = ", when it was greeted: perhaps it wants TLS (use rediss://)";

/// It said nothing to the beginning of a handshake, or closed.
pub(super) const PERHAPS_PLAIN: &str = ": perhaps it does not speak TLS (use redis://)";

/// What to add to the words about a handshake that it answered with this byte first.
#[cfg(feature = "tls")]
pub(super) fn of_first(first: Option<u8>) -> &'static str {
    match first {
        // An error, or another reply.
        Some(b'-' | b'+' | b':' | b'$' | b'*') => " (use redis://)",
        _ => "",
    }
}
