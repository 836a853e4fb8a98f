//! The state of a server that a call did not hear from, or not recently. It is what is known when the call
//! ends, for the call's message.

use crate::failure::Failure;
use crate::moment::Moment;

/// The state of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Whether there is a connection that can be used.
    pub is_connected: bool,
    /// The state in words, as in "asked 3 ms ago, not answered yet".
    pub words: String,
}

impl Condition {
    /// There is no connection.
    pub(super) fn down(failure: &Failure) -> Self {
        Self { is_connected: false, words: failure.to_string() }
    }

    /// There is a connection, but it owes an answer.
    pub(super) fn behind(failure: &Failure) -> Self {
        Self { is_connected: true, words: failure.to_string() }
    }

    /// There is a connection. `asked_at` is the time when the server was asked, if it was.
    pub(super) fn up(asked_at: Option<Moment>, now: Moment) -> Self {
        let words = match asked_at {
            Some(at) => format!("asked {} ms ago, not answered yet", now.ms_since(at)),
            None => "connected, but not asked: it was decided without it".to_owned(),
        };
        Self { is_connected: true, words }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_is_said() {
        let now = Moment::from_nanos(1_000_000_000_000);
        let refused = Failure::NotConnected("connection refused".to_owned());
        assert_eq!(Condition::down(&refused).words, "not connected: connection refused");
        let asked = Condition::up(Some(now), now.plus_ms(3));
        assert_eq!(asked.words, "asked 3 ms ago, not answered yet");
        assert!(Condition::up(None, now).words.starts_with("connected, but not asked"));
    }
}
