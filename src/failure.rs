//! The reasons why a server gave no usable answer. The texts never quote the server: an error reply may
//! repeat the command, and with it a token or a password.

use std::fmt;
use std::net::SocketAddr;

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
    /// The server answered with an error. The text is the library's own.
    Refused(&'static str),
    /// The server is a cluster node, and another node has the key.
    Moved { to: Option<SocketAddr> },
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
}

impl Failure {
    /// The meaning of an error reply that has this code, followed by this text.
    pub(crate) fn of_error(code: &str, text: &str) -> Self {
        if code == "MOVED" {
            // The text is the number of the slot and a place. The place is reported if it is an address.
            let to = text.split(' ').nth(1).and_then(|place| place.parse().ok());
            return Self::Moved { to };
        }
        Self::Refused(meaning(code, text))
    }

    /// Whether the user or the password was wrong, in the reply to a login.
    pub(crate) fn is_of_the_password(&self) -> bool {
        const CODES: [&str; 3] = ["WRONGPASS", "NOAUTH", "NOPERM"];
        let is_one = |words: &str| CODES.iter().any(|code| words.starts_with(code));
        matches!(self, Self::Refused(it) if is_one(it) || it.contains("password"))
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
        matches!(self, Self::Refused(it) if it.starts_with("NOPERM") || *it == UNKNOWN_COMMAND)
    }

    /// Whether the form of a request was wrong: this user may not use the command, the server does not know
    /// it, or it names keys of two slots.
    pub(crate) fn is_of_the_form(&self) -> bool {
        let is_of_slots = matches!(self, Self::Refused(it) if it.starts_with("CROSSSLOT"));
        self.is_of_the_command()
            || is_of_slots
            || *self == Self::Refused(FORBIDDEN_COMMAND)
            || *self == Self::Refused(FORBIDDEN_IN_SCRIPT)
    }

    /// Whether the next try will fail in the same way, unless a person changes something: the rights of the user, the
    /// names, the servers, or what another program has put under the name.
    pub(crate) fn is_lasting(&self) -> bool {
        let is_of_values = matches!(self, Self::NoReaders | Self::NoFences | Self::Moved { .. });
        is_of_values || self.is_of_the_form() || self.is_of_another_type()
    }

    /// Whether the key has a value of another type. So it does not have a lock.
    pub(crate) fn is_of_another_type(&self) -> bool {
        *self == Self::Refused(WRONG_TYPE)
    }

    /// Whether the server was sent the hash of a script that it does not know.
    pub(crate) fn is_of_no_script(&self) -> bool {
        *self == Self::Refused(NO_SCRIPT)
    }

    /// Whether the server does not know the command.
    pub(crate) fn is_of_no_command(&self) -> bool {
        *self == Self::Refused(UNKNOWN_COMMAND)
    }

    /// Whether the server is now a replica.
    pub(crate) fn is_of_a_replica(&self) -> bool {
        matches!(self, Self::Refused(it) if it.starts_with("READONLY"))
    }

    /// Whether the failure concerns the kind of request, or its key, rather than the server as a whole.
    pub(crate) fn is_of_the_kind(&self) -> bool {
        const CODES: [&str; 3] = ["WRONGTYPE", "ASK", "CROSSSLOT"];
        let is_of_key = |words: &str| CODES.iter().any(|code| words.starts_with(code));
        let is_of_kind = |words: &str| words.contains("does not permit") || is_of_key(words);
        match self {
            Self::Moved { .. } => true,
            Self::Refused(it) => self.is_of_the_command() || is_of_kind(it),
            _ => false,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotConnected(why) => write!(f, "not connected: {why}"),
            Self::Lost(how) => write!(f, "connection lost: {how}"),
            Self::NoAnswer { ms } => write!(f, "no answer in {ms} ms"),
            Self::Behind { ms } => write!(f, "no answer for {ms} ms, so not asked"),
            Self::Full => write!(f, "not asked: too many requests wait for it"),
            Self::Mute => f.write_str("does not wake who waits"),
            Self::NotMoved => {
                f.write_str("no answer to the attempt, so not asked for another permit")
            }
            Self::Refused(meaning) => f.write_str(meaning),
            Self::Moved { to } => {
                f.write_str("MOVED: a cluster node that does not have the key")?;
                to.map_or(Ok(()), |to| write!(f, " ({to} has it)"))?;
                f.write_str(": use servers that are no cluster")
            }
            Self::ProtocolError => write!(f, "answered what no server should"),
            Self::Forgot { ago_s, left_s } => {
                write!(f, "lost its memory {ago_s} s ago: its vote counts again in {left_s} s")
            }
            Self::Stepped { by_ms, ago_s, left_s } => write!(
                f,
                "its clock was set forward by {by_ms} ms, seen {ago_s} s ago: its vote counts again in {left_s} s"
            ),
            Self::Unfenced { left_s: 0 } => f.write_str(
                "lost its fencing tokens: they are being restored from the other servers",
            ),
            Self::Unfenced { left_s } => write!(
                f,
                "lost its fencing tokens: they can be restored from the other servers in {left_s} s"
            ),
            Self::NoFences => f.write_str(
                "has something else than fencing tokens in its key redlock:fence: delete that key",
            ),
            Self::ClockBeyond => f.write_str(
                "its clock is beyond the year 2112, so it draws no fencing tokens: set its clock",
            ),
            Self::NoReaders => {
                write!(f, "has something else than readers in the resource's key :r")
            }
            Self::Unnoted => {
                write!(f, "has not noted in redlock:guard that locks have so long a TTL")
            }
        }
    }
}

/// Error codes of Redis and Valkey, from their documentation and sources.
const CODES: [(&str, &str); 18] = [
    ("LOADING", "LOADING: still loading its data"),
    ("MASTERDOWN", "MASTERDOWN: a replica that has lost its primary"),
    ("CLUSTERDOWN", "CLUSTERDOWN: its cluster is down"),
    ("NOAUTH", "NOAUTH: needs a password"),
    ("WRONGPASS", "WRONGPASS: does not accept the user or password"),
    ("NOPERM", "NOPERM: does not permit this user the command or the key"),
    ("READONLY", "READONLY: a read-only replica"),
    ("ASK", "ASK: a cluster node that is moving the key"),
    (
        "CROSSSLOT",
        "CROSSSLOT: a cluster node, where the keys are in several slots: use one {tag} in all names",
    ),
    ("WRONGTYPE", WRONG_TYPE),
    ("OOM", "OOM: out of memory"),
    ("MISCONF", "MISCONF: cannot save its data, so takes no writes"),
    ("NOREPLICAS", "NOREPLICAS: has too few replicas, so takes no writes"),
    ("BUSY", "BUSY: runs a script that does not end"),
    ("UNKILLABLE", "UNKILLABLE: runs a script that does not end"),
    ("TRYAGAIN", "TRYAGAIN: a cluster node that is moving the key"),
    ("DENIED", "DENIED: runs in protected mode"),
    ("NOSCRIPT", NO_SCRIPT),
];

/// Errors without a code of their own, identified by a part of their text.
const TEXTS: [(&str, &str); 9] = [
    ("max number of clients", "ERR: has its greatest number of clients"),
    ("unknown command", UNKNOWN_COMMAND),
    ("invalid expire", "ERR: does not accept the TTL"),
    ("DB index", "ERR: has no database of this number"),
    ("can't run this command", FORBIDDEN_COMMAND),
    ("ACL failure in script", FORBIDDEN_IN_SCRIPT),
    ("invalid password", "ERR: does not accept the password"),
    // The reply of `DELEX`.
    ("should be of string type", WRONG_TYPE),
    ("without any password configured", "ERR: has no password, but was given one"),
];

const WRONG_TYPE: &str = "WRONGTYPE: holds something else than a lock under this name";
const FORBIDDEN_COMMAND: &str = "ERR: does not permit this user the command";
const NO_SCRIPT: &str = "NOSCRIPT: does not know the script";
const FORBIDDEN_IN_SCRIPT: &str = "ERR: does not permit this user the command or the key";
const UNKNOWN_COMMAND: &str = "ERR: does not know the command";

/// How many bytes of a text are examined. The part after that is a name that somebody gave to a key.
const TEXT_MAX: usize = 512;

fn meaning(code: &str, text: &str) -> &'static str {
    let end = text.char_indices().map(|(place, _)| place).find(|&place| place >= TEXT_MAX);
    let text = &text[..end.unwrap_or(text.len())];
    let of_code = |code: &str| CODES.iter().find(|entry| entry.0 == code);
    // Redis before 7.0 wraps the error of a command in a script into an error of the script.
    let in_text =
        || text.split([' ', ':']).map(|word| word.trim_start_matches('-')).find_map(of_code);
    of_code(code)
        .or_else(in_text)
        .or_else(|| TEXTS.iter().find(|entry| text.contains(entry.0)))
        .map_or("answered with an error", |entry| entry.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_told_by_code_and_by_text() {
        assert!(meaning("OOM", "command not allowed").starts_with("OOM"));
        let wrapped = "Error running script (call to f_1): @user_script:1: WRONGTYPE Operation";
        assert!(meaning("ERR", wrapped).starts_with("WRONGTYPE"));
        assert!(Failure::of_error("ERR", wrapped).is_of_another_type());
        let native = "Key should be of string type if conditions are specified";
        assert!(Failure::of_error("ERR", native).is_of_another_type());
        assert!(!Failure::of_error("OOM", "no").is_of_another_type());
        let wrapped = "Error running script (call to f_1): @user_script: 1: -READONLY You can't";
        assert!(meaning("ERR", wrapped).starts_with("READONLY"));
        let denied = "ACL failure in script: User u has no permissions to run the 'get' command";
        assert!(meaning("ERR", denied).contains("not permit"));
        assert!(meaning("ERR", "max number of clients reached").contains("clients"));
    }

    #[test]
    fn a_cluster_node_tells_who_has_the_key() {
        let words = |text: &str| Failure::of_error("MOVED", text).to_string();
        assert!(words("3999 127.0.0.1:6381").contains("(127.0.0.1:6381 has it): use"));
        for text in ["", "3999", "3999 s3cret:1", "3999 :6381"] {
            assert!(words(text).contains("does not have the key: use"), "{text}");
        }
        assert!(Failure::Moved { to: None }.is_of_the_kind());
    }

    #[test]
    fn of_a_long_error_the_beginning_is_read() {
        let long = "x".repeat(TEXT_MAX);
        assert!(meaning("ERR", &format!("{long} OOM")).starts_with("answered"));
        assert!(meaning("ERR", &format!("OOM {long}")).starts_with("OOM"));
        let split = "\u{FC}".repeat(TEXT_MAX);
        assert!(meaning("ERR", &format!("x{split} OOM")).starts_with("answered"));
    }

    #[test]
    fn what_a_server_says_is_never_quoted() {
        let token = "53771BFA1E775";
        assert!(
            !meaning("ERR", &format!("unknown command 'X', with args: {token}")).contains(token)
        );
        assert_eq!(meaning(token, token), "answered with an error");
    }
}
