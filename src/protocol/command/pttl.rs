//! The remaining time of a key, which is asked for along with other questions.

use redis::Value;

use super::encoder::Encoder;

/// The reply for a key that does not exist.
pub(super) const NO_KEY: i64 = -2;

pub(super) fn encode(key: &[u8], encoder: &mut Encoder) {
    encoder.put(|command| command.arg("PTTL").key(key));
}

/// The remaining time from the reply's number. None if there was no key. Below 0: for ever.
pub(super) fn left_ms(said: i64) -> Option<i64> {
    (said != NO_KEY).then_some(said)
}

/// The meaning of the reply: `Some(None)` if there is no key or the server may not tell, and none if this is
/// no such reply.
#[allow(clippy::option_option)]
pub(super) fn decode(reply: &Value) -> Option<Option<i64>> {
    match reply {
        Value::ServerError(_) => Some(None),
        &Value::Int(said) => Some(left_ms(said)),
        _ => None,
    }
}
