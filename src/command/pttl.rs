//! How long a key has to live: asked along with other questions.

use redis::Value;

use super::encoder::Encoder;

/// What it says of a key that is not there.
pub(super) const NO_KEY: i64 = -2;

pub(super) fn encode(key: &[u8], encoder: &mut Encoder) {
    encoder.put(|command| command.arg("PTTL").arg(key));
}

/// How long that is, by a number that was said; none if there was no key. Below 0: for ever.
pub(super) fn left_ms(said: i64) -> Option<i64> {
    (said != NO_KEY).then_some(said)
}

/// What it said: `Some(None)` if there is no key or it was not allowed to say, none if it is no such reply.
#[allow(clippy::option_option)]
pub(super) fn decode(reply: &Value) -> Option<Option<i64>> {
    match reply {
        Value::ServerError(_) => Some(None),
        &Value::Int(said) => Some(left_ms(said)),
        _ => None,
    }
}
