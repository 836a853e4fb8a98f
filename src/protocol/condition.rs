//! The state of a server that a call did not hear from, or not recently. It is what is known when the call
//! ends, for the call's message.

use crate::protocol::failure::Failure;
use crate::protocol::moment::Moment;

/// The state of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Whether there is a connection that can be used.
    pub is_connected: bool,
    /// The state in words, as in "no reply yet, asked 3 ms ago".
    pub words: String,
}

impl Condition {
    /// There is no connection.
    pub(crate) fn down(failure: &Failure) -> Self {
        Self { is_connected: false, words: failure.to_string() }
    }

    /// There is a connection, but it owes an answer.
    pub(crate) fn behind(failure: &Failure) -> Self {
        Self { is_connected: true, words: failure.to_string() }
    }

    /// There is a connection. `asked_at` is the time when the server was asked, if it was.
    pub(crate) fn up(asked_at: Option<Moment>, now: Moment) -> Self {
        let words = match asked_at {
            Some(at) => format!("no reply yet, asked {} ms ago", now.ms_since(at)),
            None => "connected, not asked: the result was already decided".to_owned(),
        };
        Self { is_connected: true, words }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_condition_of_a_server_is_described() {
        let now = Moment::from_nanos(1_000_000_000_000);
        let refused = Failure::NotConnected("connection refused".to_owned());
        assert_eq!(Condition::down(&refused).words, "not connected: connection refused");
        let asked = Condition::up(Some(now), now.plus_ms(3));
        assert_eq!(asked.words, "no reply yet, asked 3 ms ago");
        assert!(Condition::up(None, now).words.starts_with("connected, not asked"));
    }
}
