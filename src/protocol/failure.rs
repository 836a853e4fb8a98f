//! The reasons why a server gave no usable answer. The texts never quote the server.

use std::fmt;
use std::net::SocketAddr;

use crate::protocol::electors::Electors;
use crate::protocol::refusal::Refusal;

/// The reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// There is no connection. The text says why.
    NotConnected(String),
    /// The connection was lost while the request was under way. The text says how.
    Lost(String),
    /// The server did not answer within the available time.
    NoAnswer { ms: i64 },
    /// The server has owed answers for so long that it is not asked anything more.
    Behind { ms: i64 },
    /// So many requests wait for the server that it is not asked anything more.
    Full,
    /// The server does not push messages: it has no RESP3, or this user may not use it.
    Mute,
    /// The server has not answered the attempt to take a permit, so it is not asked to move to another one.
    NotMoved,
    /// The server answered with an error, or cannot serve.
    Refused(Refusal),
    /// The server is a cluster node, and another node has the key.
    Moved { to: Option<SocketAddr> },
    /// The slot with all keys of a cluster voter is at another node, or on its way there.
    SlotMoved,
    /// The server answered something that no server should.
    ProtocolError,
    /// The server lost its memory `ago_s` seconds ago. Its grants count again in `left_s` seconds.
    Forgot { ago_s: i64, left_s: i64 },
    /// The server's clock was set forward by `by_ms` milliseconds, seen `ago_s` seconds ago. Its grants
    /// count again in `left_s` seconds.
    Stepped { by_ms: i64, ago_s: i64, left_s: i64 },
    /// The server has lost the numbers of its fencing tokens. They can be restored in `left_s` seconds at the earliest;
    /// 0: now.
    Unfenced { left_s: i64 },
    /// The hash of the numbers for fencing tokens contains something else.
    NoFences,
    /// The server's clock is so far ahead that its numbers would soon be used up.
    ClockBeyond,
    /// The key of the set of readers contains something else.
    NoReaders,
    /// The server did not note that locks have such a long TTL.
    Unnoted,
    /// So many Sentinels name the server as the master, or another one, and so many are needed of all.
    Unconfirmed { by: Electors, named: usize, needed: usize, of: usize },
}

impl Failure {
    /// The meaning of an error reply that has this code, followed by this text.
    pub(crate) fn of_error(code: &str, text: &str) -> Self {
        if code == "MOVED" {
            // The text is the number of the slot and a place. The place is reported if it is an address.
            let to = text.split(' ').nth(1).and_then(|place| place.parse().ok());
            return Self::Moved { to };
        }
        Self::Refused(Refusal::of_error(code, text))
    }

    /// What the server refuses, if it does.
    pub(crate) fn refusal(&self) -> Option<Refusal> {
        match self {
            Self::Refused(refusal) => Some(*refusal),
            _ => None,
        }
    }

    fn is_refusal(&self, judge: impl Fn(Refusal) -> bool) -> bool {
        self.refusal().is_some_and(judge)
    }

    /// Whether the user or the password was wrong, in the reply to a login.
    pub(crate) fn is_of_the_password(&self) -> bool {
        self.is_refusal(Refusal::is_of_the_password)
    }

    /// Whether the server has granted the request but cannot vouch for the grant.
    pub(crate) fn is_of_memory(&self) -> bool {
        matches!(
            self,
            Self::Forgot { .. } | Self::Stepped { .. } | Self::Unnoted | Self::Unfenced { .. }
        )
    }

    /// Whether the command was wrong: this user may not use it, or the server does not know it.
    pub(crate) fn is_of_the_command(&self) -> bool {
        self.is_refusal(Refusal::is_of_the_command)
    }

    /// Whether the form of a request was wrong: this user may not use the command, the server does not know
    /// it, or it names keys of two slots.
    pub(crate) fn is_of_the_form(&self) -> bool {
        self.is_refusal(Refusal::is_of_the_form)
    }

    /// Whether the next try will fail in the same way, unless a person changes something: the rights of the user, the
    /// names, the servers, or what another program has put under the name.
    pub(crate) fn is_lasting(&self) -> bool {
        let is_of_values = matches!(self, Self::NoReaders | Self::NoFences | Self::Moved { .. });
        is_of_values || self.is_of_the_form() || self.is_of_another_type()
    }

    /// Whether the key has a value of another type. So it does not have a lock.
    pub(crate) fn is_of_another_type(&self) -> bool {
        *self == Self::Refused(Refusal::WrongType)
    }

    /// Whether the server was sent the hash of a script that it does not know.
    pub(crate) fn is_of_no_script(&self) -> bool {
        *self == Self::Refused(Refusal::NoScript)
    }

    /// Whether the server does not know the command.
    pub(crate) fn is_of_no_command(&self) -> bool {
        self.is_refusal(|it| matches!(it, Refusal::UnknownCommand(_)))
    }

    /// Whether the server is now a replica.
    pub(crate) fn is_of_a_replica(&self) -> bool {
        self.is_refusal(Refusal::is_of_a_replica)
    }

    /// Whether the failure concerns the kind of request, or its key, rather than the server as a whole.
    pub(crate) fn is_of_the_kind(&self) -> bool {
        matches!(self, Self::Moved { .. }) || self.is_refusal(Refusal::is_of_the_kind)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotConnected(why) => write!(f, "not connected: {why}"),
            Self::Lost(how) => write!(f, "connection lost: {how}"),
            Self::NoAnswer { ms } => write!(f, "timed out after {ms} ms"),
            Self::Behind { ms } => write!(f, "not asked: no reply for {ms} ms"),
            Self::Full => f.write_str("not asked: too many requests are queued for it"),
            Self::Mute => f.write_str("no wake-ups: RESP3 or pub/sub not available"),
            Self::NotMoved => {
                f.write_str("no reply to the first request, so not asked for another permit")
            }
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Moved { to } => {
                f.write_str("MOVED: cluster node without this key")?;
                to.map_or(Ok(()), |to| write!(f, " (it is on {to})"))?;
                f.write_str(": use redis-cluster://")
            }
            Self::SlotMoved => {
                f.write_str("the slot of the tag is at another node, or on its way there")
            }
            Self::ProtocolError => f.write_str("protocol error: unexpected reply"),
            Self::Forgot { ago_s, left_s } => {
                write!(f, "new, or lost its data {ago_s} s ago: no vote for another {left_s} s")
            }
            Self::Stepped { by_ms, ago_s, left_s } => write!(
                f,
                "clock jumped forward by {by_ms} ms {ago_s} s ago: no vote for another {left_s} s"
            ),
            Self::Unfenced { left_s: 0 } => f.write_str(
                "lost its fencing counters: they are being restored from the other servers",
            ),
            Self::Unfenced { left_s } => write!(
                f,
                "lost its fencing counters: they can be restored from the other servers in {left_s} s"
            ),
            Self::NoFences => f.write_str(
                "key redlock:fence holds something other than fencing counters: delete the key",
            ),
            Self::ClockBeyond => f.write_str(
                "no fencing tokens, because the clock is past the year 2112: set the clock",
            ),
            Self::NoReaders => f.write_str(
                "the key of the resource with :r appended holds something other than readers",
            ),
            Self::Unnoted => {
                f.write_str("could not store the longest TTL in the key redlock:guard")
            }
            Self::Unconfirmed { by, named, needed, of } => write!(
                f,
                "no vote: {named} of {of} {} name the same {}, {needed} needed",
                by.name(),
                by.office()
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moved_error_names_the_owner_of_the_key() {
        let words = |text: &str| Failure::of_error("MOVED", text).to_string();
        assert!(words("3999 127.0.0.1:6381").contains("(it is on 127.0.0.1:6381): use"));
        for text in ["", "3999", "3999 s3cret:1", "3999 :6381"] {
            assert!(words(text).contains("without this key: use"), "{text}");
        }
        assert!(Failure::Moved { to: None }.is_of_the_kind());
    }
}
