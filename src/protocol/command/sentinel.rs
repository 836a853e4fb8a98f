//! The questions to a Sentinel: where the master is that it watches, and to be told of another master.

use redis::Value;

use super::answer::failure_of;
use super::handshake::Credentials;
use crate::protocol::failure::Failure;
use crate::protocol::refusal::Refusal;

/// The channel on which Sentinels announce a new master.
const CHANNEL: &str = "+switch-master";

/// A server's host and port, as a Sentinel names them. They must be checked before they are quoted.
pub(crate) type MasterLocation = (String, u16);

/// A conversation with one Sentinel.
pub(crate) struct SentinelQuery {
    master: String,
    logs_in: bool,
    /// The number of replies so far.
    replies: usize,
    found: Option<MasterLocation>,
}

/// The result of a reply.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    More,
    /// This is the master. `will_tell` says whether the Sentinel will announce another one.
    Found {
        at: MasterLocation,
        will_tell: bool,
    },
    Refused(Failure),
}

impl SentinelQuery {
    /// Asks for this master. The bytes to send are appended to the outbox.
    pub(crate) fn new(
        master: &str,
        credentials: Option<&Credentials>,
        outbox: &mut Vec<u8>,
    ) -> Self {
        if let Some(Credentials { user, password }) = credentials {
            outbox.extend(redis::cmd("AUTH").arg(user).arg(password).get_packed_command());
        }
        let mut ask = redis::cmd("SENTINEL");
        ask.arg("GET-MASTER-ADDR-BY-NAME").arg(master);
        outbox.extend(ask.get_packed_command());
        outbox.extend(redis::cmd("SUBSCRIBE").arg(CHANNEL).get_packed_command());
        Self { master: master.to_owned(), logs_in: credentials.is_some(), replies: 0, found: None }
    }

    /// Whether the Sentinel has answered anything.
    pub(crate) fn has_begun(&self) -> bool {
        self.replies > 0
    }

    /// Handles the next reply.
    pub(crate) fn handle_reply(&mut self, reply: &Value) -> Heard {
        self.replies += 1;
        match self.replies - usize::from(self.logs_in) {
            0 => match reply {
                Value::Okay => Heard::More,
                Value::ServerError(error) => Heard::Refused(failure_of(error)),
                _ => Heard::Refused(Failure::ProtocolError),
            },
            1 => match whereabouts(reply) {
                Ok(found) => {
                    self.found = Some(found);
                    Heard::More
                }
                Err(failure) => Heard::Refused(failure),
            },
            _ => match (self.found.take(), reply) {
                (Some(at), Value::Array(said)) if is_word(said.first(), "subscribe") => {
                    Heard::Found { at, will_tell: true }
                }
                // This user may not subscribe.
                (Some(at), Value::ServerError(_)) => Heard::Found { at, will_tell: false },
                _ => Heard::Refused(Failure::ProtocolError),
            },
        }
    }

    /// A new master of ours, according to a message on the channel. None if the message is about something
    /// else.
    pub(crate) fn new_master(&self, message: &Value) -> Option<MasterLocation> {
        let Value::Array(parts) = message else { return None };
        let [kind, channel, Value::BulkString(text)] = &parts[..] else { return None };
        if !is_word(Some(kind), "message") || !is_word(Some(channel), CHANNEL) {
            return None;
        }
        let words: Vec<&str> = str::from_utf8(text).ok()?.split(' ').collect();
        let [name, _, _, host, port] = words[..] else { return None };
        (name == self.master).then_some(())?;
        Some((host.to_owned(), port_of(port)?))
    }
}

fn is_word(value: Option<&Value>, word: &str) -> bool {
    matches!(value, Some(Value::BulkString(it)) if it == word.as_bytes())
}

/// The meaning of the reply to `SENTINEL GET-MASTER-ADDR-BY-NAME`.
fn whereabouts(reply: &Value) -> Result<MasterLocation, Failure> {
    match reply {
        Value::Nil => Err(Failure::Refused(Refusal::UnknownMaster)),
        Value::ServerError(error) => Err(match failure_of(error) {
            unknown if unknown.is_of_no_command() => Failure::Refused(Refusal::NotSentinel),
            failure => failure,
        }),
        Value::Array(parts) => match &parts[..] {
            [Value::BulkString(host), Value::BulkString(port)] => {
                let text = |bytes: &[u8]| str::from_utf8(bytes).ok().map(str::to_owned);
                let port = text(port).and_then(|port| port_of(&port));
                text(host).zip(port).ok_or(Failure::ProtocolError)
            }
            _ => Err(Failure::ProtocolError),
        },
        _ => Err(Failure::ProtocolError),
    }
}

fn port_of(text: &str) -> Option<u16> {
    text.parse().ok().filter(|&port| port > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(bytes: &[u8]) -> Value {
        redis::parse_redis_value(bytes).expect("a reply")
    }

    fn query(credentials: Option<&Credentials>) -> SentinelQuery {
        SentinelQuery::new("m", credentials, &mut Vec::new())
    }

    fn after(replies: &[&[u8]]) -> Heard {
        let mut it = query(None);
        let mut heard = Heard::More;
        for reply in replies {
            assert_eq!(heard, Heard::More);
            heard = it.handle_reply(&parse(reply));
        }
        heard
    }

    const ADDRESS: &[u8] = b"*2\r\n$9\r\n127.0.0.1\r\n$4\r\n6379\r\n";
    const SUBSCRIBED: &[u8] = b"*3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n";

    #[test]
    fn a_query_asks_a_sentinel_and_subscribes() {
        let at = ("127.0.0.1".to_owned(), 6379);
        let heard = after(&[ADDRESS, SUBSCRIBED]);
        assert_eq!(heard, Heard::Found { at: at.clone(), will_tell: true });
        let heard = after(&[ADDRESS, b"-NOPERM no\r\n"]);
        assert_eq!(heard, Heard::Found { at, will_tell: false });
        let mut outbox = Vec::new();
        let credentials = Credentials { user: Some("u".into()), password: "p".into() };
        let mut it = SentinelQuery::new("m", Some(&credentials), &mut outbox);
        assert!(outbox.starts_with(b"*3\r\n$4\r\nAUTH\r\n$1\r\nu\r\n$1\r\np\r\n"));
        assert_eq!(it.handle_reply(&Value::Okay), Heard::More);
        assert_eq!(it.handle_reply(&parse(ADDRESS)), Heard::More);
    }

    #[test]
    fn refusals_of_a_sentinel_have_own_messages() {
        let refused = |reply: &[u8]| match after(&[reply]) {
            Heard::Refused(failure) => failure.to_string(),
            heard => format!("{heard:?}"),
        };
        assert_eq!(refused(b"*-1\r\n"), "unknown master");
        assert_eq!(refused(b"-ERR unknown command 'SENTINEL'\r\n"), "not a Sentinel");
        assert!(refused(b"-NOAUTH secret\r\n").starts_with("NOAUTH: password required"));
        assert!(refused(b"-NOPERM secret\r\n").starts_with("NOPERM: user lacks"));
        let protocol_error: [&[u8]; 6] = [
            b"*3\r\n$1\r\na\r\n$1\r\n1\r\n$1\r\nb\r\n",
            b"+OK\r\n",
            b"*1\r\n$1\r\na\r\n",
            b"*2\r\n$1\r\na\r\n$1\r\n0\r\n",
            b"*2\r\n$1\r\na\r\n$5\r\n65536\r\n",
            b"*2\r\n$1\r\n\xFF\r\n$1\r\n1\r\n",
        ];
        protocol_error
            .iter()
            .for_each(|it| assert!(refused(it).contains("protocol error"), "{it:?}"));
        assert!(matches!(after(&[ADDRESS, b"+OK\r\n"]), Heard::Refused(Failure::ProtocolError)));
    }

    #[test]
    fn only_messages_about_our_master_count() {
        let it = query(None);
        let message = |channel: &str, text: &str| {
            let part = |text: &str| Value::BulkString(text.into());
            it.new_master(&Value::Array(vec![part("message"), part(channel), part(text)]))
        };
        let moved = Some(("10.0.0.2".to_owned(), 2));
        assert_eq!(message(CHANNEL, "m 10.0.0.1 1 10.0.0.2 2"), moved);
        for text in ["n 10.0.0.1 1 10.0.0.2 2", "m", "", "m 10.0.0.1 1 10.0.0.2 x", "m a 1 b 2 c"] {
            assert_eq!(message(CHANNEL, text), None, "{text}");
        }
        assert_eq!(message("+sdown", "m 10.0.0.1 1 10.0.0.2 2"), None);
        assert_eq!(it.new_master(&parse(SUBSCRIBED)), None);
        assert_eq!(it.new_master(&parse(b"*2\r\n$4\r\npong\r\n$0\r\n\r\n")), None);
    }
}
