//! How long a key has to live: asked along with other questions.

use redis::Value;

use super::encoder::Encoder;

/// What it says of a key that is not there.
pub(super) const NO_KEY: i64 = -2;

pub(super) fn encode(key: &[u8], encoder: &mut Encoder) {
    encoder.put(|command| command.arg("PTTL").arg(key));
}

/// What it said: `Some(None)` if there is no key or it was not allowed to say, none if it is no such reply.
#[allow(clippy::option_option)]
pub(super) fn decode(reply: &Value) -> Option<Option<i64>> {
    match reply {
        &Value::Int(NO_KEY) | Value::ServerError(_) => Some(None),
        &Value::Int(left_ms) => Some(Some(left_ms)),
        _ => None,
    }
}
