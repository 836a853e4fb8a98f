//! What servers have to tell other parts of the library.

use redis::Value;

use super::health::Health;
use crate::protocol::command::Answer;
use crate::protocol::command::waking::resource_of;
use crate::protocol::log_line::LogLine;
use crate::protocol::op_id::OpId;
use crate::protocol::token::Token;

/// What a server has to tell other parts of the library.
#[derive(Default)]
pub(crate) struct Effects {
    /// Reset by every connection that is lost, or cannot be made.
    pub(crate) health: Health,
    /// Whether something happened that a thread in poll does not know of.
    pub(crate) changed: bool,
    /// Whether a server may have something to do or to send, although nothing was asked and nothing was due: its connection
    /// has changed, or data was read outside of its turn.
    pub(crate) server_may_be_due: bool,
    pub(crate) deliveries: Vec<Delivery>,
    pub(crate) pushes: Vec<Pushed>,
    pub(crate) lines: Vec<LogLine>,
    /// Whether a server was found whose numbers for fencing tokens are to be restored.
    pub(crate) restores: bool,
}

/// An answer for the call that holds the ticket.
pub(crate) struct Delivery {
    pub(crate) ticket: OpId,
    pub(crate) server: usize,
    pub(crate) answer: Answer,
    /// Whether a byte of the request may have been sent.
    pub(crate) sent: bool,
}

/// A server's push message that a resource is free.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Pushed {
    pub(crate) server: usize,
    pub(crate) resource: Vec<u8>,
    /// How many of the deliveries came before it.
    pub(crate) behind: usize,
}

impl Effects {
    /// Notes a server's push messages. Messages over another channel than ours are left out.
    pub(crate) fn note_pushes(
        &mut self,
        server: usize,
        channel: Option<Token>,
        pushes: impl Iterator<Item = Value>,
    ) {
        for push in pushes {
            let resource = channel.and_then(|channel| resource_of(push, &channel));
            let behind = self.deliveries.len();
            self.pushes.extend(resource.map(|resource| Pushed { server, resource, behind }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pushes_over_foreign_channels_are_ignored() {
        let push = |channel: &str| {
            let text =
                format!(">3\r\n$7\r\nmessage\r\n${}\r\n{channel}\r\n$1\r\nr\r\n", channel.len());
            redis::parse_redis_value(text.as_bytes()).unwrap()
        };
        let (ours, other) = (Token::from_random([0xAB; 20]), Token::from_random([1; 20]));
        let name = format!("redlock:w:{}", &ours.as_str()[..32]);
        for (channel, is_heard) in [(Some(ours), true), (Some(other), false), (None, false)] {
            let mut effects = Effects::default();
            effects.note_pushes(2, channel, [push(&name), Value::Okay, push("x")].into_iter());
            let pushed = Pushed { server: 2, resource: b"r".to_vec(), behind: 0 };
            assert_eq!(effects.pushes == [pushed], is_heard);
        }
    }
}
