//! The error replies of servers: what each means, and how it is told.
//!
//! Nothing that a server says is quoted: an error reply may repeat the command, and with it a token or a password. The
//! name of a command is told only if it is one of `COMMANDS`.

use std::fmt;

/// What a server refuses, or why it cannot serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    Loading,
    MasterDown,
    ClusterDown,
    NoAuth,
    WrongPass,
    /// The error of a log-in without a user.
    WrongPassword,
    NoPasswordSet,
    /// The user may not do this. Inside a script, servers report it with another code.
    NoPermission {
        lacks: Lacks,
        in_script: bool,
    },
    UnknownCommand(Option<&'static str>),
    /// The same for a command in a script. No server says which.
    UnknownInScript,
    NoScript,
    ReadOnly,
    /// The role of the server is that of a replica.
    Replica,
    /// The server is a Sentinel.
    Sentinel,
    NotSentinel,
    UnknownMaster,
    MayEvict,
    Ask,
    TryAgain,
    CrossSlot,
    WrongType,
    OutOfMemory,
    CannotSave,
    TooFewReplicas,
    Busy,
    Unkillable,
    ProtectedMode,
    TooManyClients,
    InvalidTtl,
    NoDatabase,
    /// An error that is not known here.
    Other,
}

/// What the user has no permission for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lacks {
    Command(&'static str),
    /// A command that a script runs.
    SomeCommand,
    /// A key. Servers do not say which: the request knows what it names.
    Key(&'static str),
    Channel,
    /// The server says neither.
    Something,
}

/// The key, where the request is not known.
const SOME_KEY: &str = "a key";

impl Refusal {
    /// The meaning of an error reply that has this code, followed by this text.
    pub(crate) fn of_error(code: &str, text: &str) -> Self {
        let text = beginning(text);
        let of_code = |code: &str| CODES.iter().find(|entry| entry.0 == code).map(|entry| entry.1);
        // Redis before 7.0 wraps the error of a command in a script into an error of the script.
        let in_text =
            || text.split([' ', ':']).map(|word| word.trim_start_matches('-')).find_map(of_code);
        let of_text = || TEXTS.iter().find(|entry| text.contains(entry.0)).map(|entry| entry.1);
        match of_code(code).or_else(in_text).or_else(of_text).unwrap_or(Self::Other) {
            Self::NoPermission { in_script, .. } => {
                Self::NoPermission { lacks: Lacks::of_text(text), in_script }
            }
            Self::UnknownCommand(_) => Self::UnknownCommand(command_in(text, "unknown command ")),
            other => other,
        }
    }

    /// The same, where the keys of the request have these patterns.
    #[must_use]
    pub(crate) fn about_keys(self, patterns: &'static str) -> Self {
        match self {
            Self::NoPermission { lacks: Lacks::Key(_), in_script } => {
                Self::NoPermission { lacks: Lacks::Key(patterns), in_script }
            }
            other => other,
        }
    }

    /// Whether the user or the password was wrong, in the reply to a login.
    pub(crate) fn is_of_the_password(self) -> bool {
        matches!(
            self,
            Self::WrongPass
                | Self::WrongPassword
                | Self::NoPasswordSet
                | Self::NoAuth
                | Self::NoPermission { in_script: false, .. }
        )
    }

    /// Whether the command was wrong: this user may not use it, or the server does not know it.
    pub(crate) fn is_of_the_command(self) -> bool {
        matches!(self, Self::NoPermission { in_script: false, .. } | Self::UnknownCommand(_))
    }

    /// Whether the form of a request was wrong: this user may not use the command, the server does not know
    /// it, or it names keys of two slots.
    pub(crate) fn is_of_the_form(self) -> bool {
        matches!(self, Self::NoPermission { .. } | Self::UnknownCommand(_) | Self::CrossSlot)
    }

    /// Whether it concerns the kind of request, or its key, rather than the server as a whole.
    pub(crate) fn is_of_the_kind(self) -> bool {
        self.is_of_the_form() || matches!(self, Self::WrongType | Self::Ask)
    }

    /// Whether the server is a replica.
    pub(crate) fn is_of_a_replica(self) -> bool {
        matches!(self, Self::ReadOnly | Self::Replica)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Loading => "LOADING: still loading its data",
            Self::MasterDown => "MASTERDOWN: replica that has lost its primary",
            Self::ClusterDown => "CLUSTERDOWN: the cluster is down",
            Self::NoAuth => "NOAUTH: password required",
            Self::WrongPass => "WRONGPASS: authentication failed: invalid user or password",
            Self::WrongPassword => "ERR: authentication failed: invalid password",
            Self::NoPasswordSet => "ERR: a password was given, but the server has none",
            Self::NoPermission { lacks, .. } => return write!(f, "NOPERM: user lacks {lacks}"),
            Self::UnknownCommand(Some(name)) => {
                return write!(f, "ERR: unknown command {}", name.to_ascii_uppercase());
            }
            Self::UnknownCommand(None) => "ERR: unknown command",
            Self::UnknownInScript => "ERR: unknown command in a script",
            Self::NoScript => "NOSCRIPT: unknown script",
            Self::ReadOnly => "READONLY: read-only replica: use its primary",
            Self::Replica => "READONLY: replica, has no vote: use its primary",
            Self::Sentinel => "Sentinel, holds no locks: use redis-sentinel://",
            Self::NotSentinel => "not a Sentinel",
            Self::UnknownMaster => "unknown master",
            Self::MayEvict => {
                "may evict locks when memory is full: set maxmemory-policy to noeviction"
            }
            Self::Ask => "ASK: cluster node that is moving the key: use redis-cluster://",
            Self::TryAgain => {
                "TRYAGAIN: cluster node that is moving the keys: use redis-cluster://"
            }
            Self::CrossSlot => {
                "CROSSSLOT: the keys are in different cluster slots: use one {tag} in all names"
            }
            Self::WrongType => "WRONGTYPE: the key holds something other than a lock",
            Self::OutOfMemory => "OOM: out of memory",
            Self::CannotSave => "MISCONF: rejects writes, because it cannot save to disk",
            Self::TooFewReplicas => "NOREPLICAS: rejects writes, because it has too few replicas",
            Self::Busy => "BUSY: busy with a script",
            Self::Unkillable => "UNKILLABLE: busy with a script that cannot be killed",
            Self::ProtectedMode => "DENIED: protected mode is on",
            Self::TooManyClients => "ERR: max number of clients reached",
            Self::InvalidTtl => "ERR: rejects the TTL",
            Self::NoDatabase => "ERR: no database with this number",
            Self::Other => "replied with an error: see the server's log",
        })
    }
}

impl Lacks {
    fn of_text(text: &str) -> Self {
        if let Some(name) = command_in(text, "to run the ") {
            Self::Command(name)
        } else if text.contains(" channel") {
            Self::Channel
        } else if text.contains(" key") {
            Self::Key(SOME_KEY)
        } else if text.contains("can't run this command") {
            Self::SomeCommand
        } else {
            Self::Something
        }
    }
}

/// As a rule that can be given to ACL SETUSER, where that is possible.
impl fmt::Display for Lacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(name) => write!(f, "+{name}"),
            Self::SomeCommand => f.write_str("a command that a script runs"),
            Self::Key(patterns) => f.write_str(patterns),
            Self::Channel => f.write_str("&redlock:w:*"),
            Self::Something => f.write_str("a command or key"),
        }
    }
}

/// The command whose name follows `before` in quotes, if it is one that this library uses.
fn command_in(text: &str, before: &str) -> Option<&'static str> {
    let name = text.split(before).nth(1)?.split(['\'', '`']).nth(1)?;
    COMMANDS.iter().copied().find(|known| known.eq_ignore_ascii_case(name))
}

/// How many bytes of a text are examined. The part after that is a name that somebody gave to a key.
const TEXT_MAX: usize = 512;

fn beginning(text: &str) -> &str {
    let end = text.char_indices().map(|(place, _)| place).find(|&place| place >= TEXT_MAX);
    &text[..end.unwrap_or(text.len())]
}

const FORBIDDEN: Refusal = Refusal::NoPermission { lacks: Lacks::Something, in_script: false };
const FORBIDDEN_IN_SCRIPT: Refusal =
    Refusal::NoPermission { lacks: Lacks::Something, in_script: true };

/// Error codes of Redis and Valkey, from their documentation and sources.
const CODES: [(&str, Refusal); 18] = [
    ("LOADING", Refusal::Loading),
    ("MASTERDOWN", Refusal::MasterDown),
    ("CLUSTERDOWN", Refusal::ClusterDown),
    ("NOAUTH", Refusal::NoAuth),
    ("WRONGPASS", Refusal::WrongPass),
    ("NOPERM", FORBIDDEN),
    ("READONLY", Refusal::ReadOnly),
    ("ASK", Refusal::Ask),
    ("CROSSSLOT", Refusal::CrossSlot),
    ("WRONGTYPE", Refusal::WrongType),
    ("OOM", Refusal::OutOfMemory),
    ("MISCONF", Refusal::CannotSave),
    ("NOREPLICAS", Refusal::TooFewReplicas),
    ("BUSY", Refusal::Busy),
    ("UNKILLABLE", Refusal::Unkillable),
    ("TRYAGAIN", Refusal::TryAgain),
    ("DENIED", Refusal::ProtectedMode),
    ("NOSCRIPT", Refusal::NoScript),
];

/// Errors without a code of their own, identified by a part of their text.
const TEXTS: [(&str, Refusal); 12] = [
    ("max number of clients", Refusal::TooManyClients),
    ("unknown command", Refusal::UnknownCommand(None)),
    ("Unknown Redis command", Refusal::UnknownInScript),
    ("Unknown command called", Refusal::UnknownInScript),
    ("invalid expire", Refusal::InvalidTtl),
    ("DB index", Refusal::NoDatabase),
    ("can't run this command", FORBIDDEN_IN_SCRIPT),
    ("can't access at least one of the keys", FORBIDDEN_IN_SCRIPT),
    ("ACL failure in script", FORBIDDEN_IN_SCRIPT),
    ("invalid password", Refusal::WrongPassword),
    // The reply of `DELEX`.
    ("should be of string type", Refusal::WrongType),
    ("without any password configured", Refusal::NoPasswordSet),
];

/// The commands that this library sends or runs in scripts, as servers write them.
const COMMANDS: [&str; 40] = [
    "auth",
    "config",
    "config|get",
    "del",
    "delex",
    "delifeq",
    "eval",
    "evalsha",
    "exists",
    "get",
    "getrange",
    "hdel",
    "hello",
    "hgetall",
    "hmget",
    "hset",
    "info",
    "mget",
    "msetex",
    "pexpire",
    "pexpireat",
    "pexpiretime",
    "ping",
    "pttl",
    "publish",
    "select",
    "sentinel",
    "sentinel|get-master-addr-by-name",
    "set",
    "subscribe",
    "time",
    "zadd",
    "zcard",
    "zcount",
    "zpopmin",
    "zrange",
    "zrank",
    "zrem",
    "zremrangebyscore",
    "zscore",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn words(code: &str, text: &str) -> String {
        Refusal::of_error(code, text).to_string()
    }

    #[test]
    fn errors_are_known_by_code_and_text() {
        assert_eq!(Refusal::of_error("OOM", "command not allowed"), Refusal::OutOfMemory);
        let wrapped = "Error running script (call to f_1): @user_script:1: WRONGTYPE Operation";
        assert_eq!(Refusal::of_error("ERR", wrapped), Refusal::WrongType);
        let native = "Key should be of string type if conditions are specified";
        assert_eq!(Refusal::of_error("ERR", native), Refusal::WrongType);
        let wrapped = "Error running script (call to f_1): @user_script: 1: -READONLY You can't";
        assert_eq!(Refusal::of_error("ERR", wrapped), Refusal::ReadOnly);
        let full = "max number of clients reached";
        assert_eq!(Refusal::of_error("ERR", full), Refusal::TooManyClients);
        assert_eq!(Refusal::of_error("ERR", "whatever"), Refusal::Other);
    }

    /// The texts of Redis 6.2, Redis 7.0 and Valkey 9.1.
    #[test]
    fn what_a_user_lacks_is_told_as_an_acl_rule() {
        for (code, text, said) in [
            (
                "NOPERM",
                "this user has no permissions to run the 'time' command or its subcommand",
                "+time",
            ),
            (
                "NOPERM",
                "this user has no permissions to run the 'config|get' command",
                "+config|get",
            ),
            ("NOPERM", "User u has no permissions to run the 'set' command", "+set"),
            (
                "ERR",
                "ACL failure in script: User u has no permissions to run the 'get' command script: on @user_script:1.",
                "+get",
            ),
            (
                "ERR",
                "The user executing the script can't run this command or subcommand script: 1",
                "a command that a script runs",
            ),
            (
                "NOPERM",
                "this user has no permissions to access one of the keys used as arguments",
                "a key",
            ),
            ("NOPERM", "No permissions to access a key", "a key"),
            (
                "ERR",
                "The user executing the script can't access at least one of the keys mentioned",
                "a key",
            ),
            ("NOPERM", "No permissions to access a channel", "&redlock:w:*"),
            ("NOPERM", "no", "a command or key"),
            ("NOPERM", "User u has no permissions to run the 's3cret' command", "a command or key"),
        ] {
            let refusal = Refusal::of_error(code, text);
            assert_eq!(refusal.to_string(), format!("NOPERM: user lacks {said}"), "{text}");
            assert!(refusal.is_of_the_form() && refusal.is_of_the_kind(), "{text}");
            assert_eq!(refusal.is_of_the_command(), code == "NOPERM", "{text}");
        }
        let key = Refusal::of_error("NOPERM", "No permissions to access a key");
        assert_eq!(key.about_keys("~NAME").to_string(), "NOPERM: user lacks ~NAME");
        let command =
            Refusal::of_error("NOPERM", "User u has no permissions to run the 'set' command");
        assert_eq!(command.about_keys("~NAME"), command);
    }

    #[test]
    fn an_unknown_command_is_named_if_it_is_one_of_ours() {
        let redis_6 = "unknown command `GETRANGE`, with args beginning with: `s3cret`, ";
        let redis_7 = "unknown command 'getrange', with args beginning with: 's3cret' ";
        for text in [redis_6, redis_7] {
            assert_eq!(words("ERR", text), "ERR: unknown command GETRANGE");
        }
        assert_eq!(words("ERR", "unknown command 's3cret'"), "ERR: unknown command");
        let in_script = "Unknown Redis command called from script script: 1, on @user_script:1.";
        assert_eq!(words("ERR", in_script), "ERR: unknown command in a script");
    }

    #[test]
    fn every_command_of_a_script_can_be_named() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/protocol/command");
        let mut named = 0;
        for script in scripts(folder.as_ref()) {
            for call in script.split("call('").skip(1) {
                let name = call.split('\'').next().unwrap_or_default().to_ascii_lowercase();
                assert!(COMMANDS.contains(&&*name), "{name}");
                named += 1;
            }
        }
        assert!(named > 50, "{named}");
    }

    fn scripts(folder: &std::path::Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).expect("a folder");
        let paths = entries.map(|it| it.expect("an entry").path());
        paths
            .flat_map(|path| match path.extension() {
                Some(it) if it == "lua" => vec![std::fs::read_to_string(path).expect("a script")],
                _ if path.is_dir() => scripts(&path),
                _ => Vec::new(),
            })
            .collect()
    }

    #[test]
    fn only_the_start_of_a_long_error_is_read() {
        let long = "x".repeat(TEXT_MAX);
        assert_eq!(Refusal::of_error("ERR", &format!("{long} OOM")), Refusal::Other);
        assert_eq!(Refusal::of_error("ERR", &format!("OOM {long}")), Refusal::OutOfMemory);
        let split = "\u{FC}".repeat(TEXT_MAX);
        assert_eq!(Refusal::of_error("ERR", &format!("x{split} OOM")), Refusal::Other);
    }

    #[test]
    fn errors_of_servers_are_never_quoted() {
        let token = "53771BFA1E775";
        let args = format!("unknown command 'X', with args: {token}");
        assert_eq!(words("ERR", &args), "ERR: unknown command");
        assert_eq!(Refusal::of_error(token, token), Refusal::Other);
    }
}
