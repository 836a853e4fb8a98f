//! A server's identity, what data it keeps, and whether it can be a voter at all. This comes from what the
//! server says about itself when a connection begins (`INFO`, `CONFIG GET`).
//!
//! What this user may not ask is left out. Nothing is then known about it, and nothing is held against the
//! server. What a server says is never quoted unchecked. Only numbers, known words, and the letters of a
//! version are quoted.

use redis::Value;

use super::script::script;
use crate::protocol::failure::Failure;
use crate::protocol::refusal::Refusal;

/// The identity of a server process. Each start of a server process draws a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunId([u8; RUN_ID_LENGTH]);

const RUN_ID_LENGTH: usize = 40;

/// The maximum length of a version that is reported.
const VERSION_MAX: usize = 31;

/// What a server says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    run_id: Option<RunId>,
    version: String,
    role: Option<Role>,
    is_cluster_node: bool,
    keeps: Option<Keeps>,
    /// Whether the log is being written anew. If it was turned on just now, it is not complete yet.
    is_rewriting_log: bool,
    eviction: Option<&'static str>,
    may_evict: bool,
    /// Its data may lack the last changes of the primary whose replica it was.
    promotion: Option<RunId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Primary,
    Replica,
    Sentinel,
}

/// What part of its data outlives a server process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keeps {
    /// Nothing, or a snapshot from time to time.
    NoLog,
    /// A log of all changes. When it is written to the disk is not known.
    Log,
    /// The same, with the words for when it is written.
    LogSynced(&'static str),
}

/// The values of `maxmemory-policy` in Redis 7 and Valkey 9, and of `appendfsync`.
const POLICIES: [&str; 9] = [
    NO_EVICTION,
    "allkeys-lru",
    "allkeys-lfu",
    "allkeys-random",
    "allkeys-lrm",
    "volatile-lru",
    "volatile-lfu",
    "volatile-random",
    "volatile-ttl",
];
const NO_EVICTION: &str = "noeviction";
const ALWAYS: &str = "log, synced always";
const LOGS: [(&str, &str); 3] =
    [("always", ALWAYS), ("everysec", "log, synced every second"), ("no", "log, never synced")];

/// Asks whether the server was promoted. The reply to `INFO` itself has another form since `HELLO 3`, and is
/// long.
pub(crate) fn ask_promotion() -> Vec<u8> {
    let mut command = redis::cmd("EVAL");
    command.arg(PROMOTION).arg(0);
    command.get_packed_command()
}

pub(crate) static PROMOTION: &str = script!("promotion.lua");

/// What a server says of its role, according to its reply to [`ask_promotion`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RoleTold {
    /// This user may not ask.
    Nothing,
    /// A replica, even if it takes writes.
    Replica,
    /// A primary, and its last promotion. None if it never was a replica, or some time after its promotion.
    Primary { promotion: Option<RunId> },
}

impl RoleTold {
    pub(crate) fn of(reply: &Value) -> Self {
        match text(reply) {
            Ok(Some("replica")) => Self::Replica,
            Ok(Some(id)) => Self::Primary { promotion: RunId::parse(id) },
            _ => Self::Nothing,
        }
    }
}

impl RunId {
    /// An id that begins with this hexadecimal digit.
    #[cfg(test)]
    pub(crate) fn sample(digit: char) -> Self {
        Self::parse(&format!("{digit}{}", "0".repeat(RUN_ID_LENGTH - 1))).expect("an id")
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let bytes: [u8; RUN_ID_LENGTH] = text.as_bytes().try_into().ok()?;
        let is_one = bytes.iter().all(u8::is_ascii_hexdigit);
        // Some proxies return the same digit everywhere, for every server.
        (is_one && bytes.iter().any(|&byte| byte != bytes[0])).then_some(Self(bytes))
    }

    /// As the server writes it.
    pub fn as_str(&self) -> &str {
        str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl Identity {
    /// A server that logs all that it grants, or nothing. Nothing else is known of it.
    #[cfg(test)]
    pub(crate) fn durable(is_durable: bool) -> Self {
        let keeps = if is_durable { Keeps::LogSynced(ALWAYS) } else { Keeps::NoLog };
        Self { keeps: Some(keeps), ..Self::default() }
    }

    /// The same while the log is written anew.
    #[cfg(test)]
    pub(crate) fn rewriting() -> Self {
        Self { is_rewriting_log: true, ..Self::durable(true) }
    }

    /// A server that was promoted, and has this previous id.
    #[cfg(test)]
    pub(crate) fn promoted(id: RunId) -> Self {
        Self { promotion: Some(id), ..Self::durable(true) }
    }

    /// A server of which nothing is known but its process, and one that is a replica.
    #[cfg(test)]
    pub(crate) fn of_process(id: RunId) -> Self {
        Self { run_id: Some(id), ..Self::default() }
    }

    #[cfg(test)]
    pub(crate) fn replica() -> Self {
        Self { role: Some(Role::Replica), ..Self::default() }
    }

    /// Whether it has said that it is a replica.
    pub(crate) fn is_replica(&self) -> bool {
        self.role == Some(Role::Replica)
    }

    /// The server's run id, if it gives one.
    pub fn run_id(&self) -> Option<RunId> {
        self.run_id
    }

    /// Set if the server was a replica since its process began, and was promoted. Each promotion draws another
    /// one. It says nothing if it is missing: a server forgets it some time after its last replica has left
    /// (`repl-backlog-ttl`).
    pub(crate) fn promotion(&self) -> Option<RunId> {
        self.promotion
    }

    /// The program, as in "7.0.15" or "valkey 9.1.0". Empty if the server does not say.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// "primary", "replica" or "sentinel". Empty if the server does not say.
    pub fn role(&self) -> &'static str {
        match self.role {
            None => "",
            Some(Role::Primary) => "primary",
            Some(Role::Replica) => "replica",
            Some(Role::Sentinel) => "sentinel",
        }
    }

    /// Whether it is a node of a cluster, even if the cluster has no other one.
    pub fn is_cluster_node(&self) -> bool {
        self.is_cluster_node
    }

    /// What part of its data outlives its process, in words. Empty if the server does not say.
    pub fn keeps(&self) -> &'static str {
        match self.keeps {
            None => "",
            Some(Keeps::NoLog) => "no log",
            Some(Keeps::Log) => "log",
            Some(Keeps::LogSynced(words)) => words,
        }
    }

    /// Whether all that it grants now outlives its process, if it says so.
    pub(crate) fn is_durable(&self) -> Option<bool> {
        match self.keeps? {
            Keeps::NoLog => Some(false),
            Keeps::Log => None,
            Keeps::LogSynced(words) => Some(words == ALWAYS && self.promotion.is_none()),
        }
    }

    /// Whether all that it grants from now on outlives its process.
    pub(crate) fn logs_all(&self) -> bool {
        self.is_durable() == Some(true) && !self.is_rewriting_log
    }

    /// Which keys it evicts when its memory is full, as in its configuration. Empty if the server does not
    /// say.
    pub fn eviction(&self) -> &'static str {
        self.eviction.unwrap_or_default()
    }

    /// `INFO server`.
    pub(super) fn learn_program(&mut self, reply: &Value) -> Result<(), Failure> {
        let Some(text) = text(reply)? else { return Ok(()) };
        self.run_id = field(text, "run_id").and_then(RunId::parse);
        // Valkey also gives the Redis version that it resembles.
        let valkey = field(text, "valkey_version").map(|version| format!("valkey {version}"));
        let version = valkey.or_else(|| field(text, "redis_version").map(str::to_owned));
        let is_of_one = |letter: char| letter.is_ascii_alphanumeric() || ".- ".contains(letter);
        self.version = version
            .unwrap_or_default()
            .chars()
            .take(VERSION_MAX)
            .filter(|&it| is_of_one(it))
            .collect();
        let mode = field(text, "redis_mode").or_else(|| field(text, "server_mode"));
        self.is_cluster_node = mode == Some("cluster");
        if mode == Some("sentinel") {
            self.role = Some(Role::Sentinel);
            return Err(Failure::Refused(Refusal::Sentinel));
        }
        Ok(())
    }

    /// `INFO replication`.
    pub(super) fn learn_role(&mut self, reply: &Value) -> Result<(), Failure> {
        let Some(text) = text(reply)? else { return Ok(()) };
        self.role = match field(text, "role") {
            Some("master") => Some(Role::Primary),
            Some("slave" | "replica") => Some(Role::Replica),
            _ => None,
        };
        // As in the reply to [`ask_promotion`].
        self.promotion = field(text, "master_replid2").and_then(RunId::parse);
        match self.role {
            Some(Role::Replica) => Err(Failure::Refused(Refusal::Replica)),
            _ => Ok(()),
        }
    }

    /// `INFO memory`.
    pub(super) fn learn_memory(&mut self, reply: &Value) -> Result<(), Failure> {
        let Some(text) = text(reply)? else { return Ok(()) };
        let policy = field(text, "maxmemory_policy");
        self.eviction = policy.and_then(|policy| known(&POLICIES, policy));
        let is_limited = field(text, "maxmemory").is_some_and(|limit| limit != "0");
        self.may_evict = is_limited && policy.is_some_and(|policy| policy != NO_EVICTION);
        Ok(())
    }

    /// Fails if the server evicts keys when its memory is full.
    pub(super) fn check_eviction(&self) -> Result<(), Failure> {
        if self.may_evict { Err(Failure::Refused(Refusal::MayEvict)) } else { Ok(()) }
    }

    /// `INFO persistence`.
    pub(super) fn learn_persistence(&mut self, reply: &Value) -> Result<(), Failure> {
        let Some(text) = text(reply)? else { return Ok(()) };
        self.keeps = match field(text, "aof_enabled") {
            Some("0") => Some(Keeps::NoLog),
            Some("1") => Some(Keeps::Log),
            _ => None,
        };
        let is_set = |name| field(text, name) == Some("1");
        self.is_rewriting_log =
            is_set("aof_rewrite_in_progress") || is_set("aof_rewrite_scheduled");
        Ok(())
    }

    /// `CONFIG GET appendfsync`.
    pub(super) fn learn_syncing(&mut self, reply: &Value) -> Result<(), Failure> {
        let values = match reply {
            Value::ServerError(_) => return Ok(()),
            Value::Array(values) => values,
            _ => return Err(Failure::ProtocolError),
        };
        let Some(Value::BulkString(value)) = values.get(1) else { return Ok(()) };
        let words = LOGS.iter().find(|(name, _)| name.as_bytes() == value);
        if let (Some(Keeps::Log), Some((_, words))) = (self.keeps, words) {
            self.keeps = Some(Keeps::LogSynced(words));
        }
        Ok(())
    }
}

/// The text of a reply. None if the request was refused, or the reply is no text.
fn text(reply: &Value) -> Result<Option<&str>, Failure> {
    match reply {
        Value::BulkString(bytes) => Ok(str::from_utf8(bytes).ok()),
        Value::ServerError(_) => Ok(None),
        _ => Err(Failure::ProtocolError),
    }
}

/// The value of `name:value`, on a line of its own.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim_end)
}

fn known(words: &[&'static str], word: &str) -> Option<&'static str> {
    words.iter().copied().find(|known| *known == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0123456789abcdef0123456789abcdef01234567";

    fn bulk(text: &str) -> Value {
        Value::BulkString(text.as_bytes().to_vec())
    }

    fn error() -> Value {
        redis::parse_redis_value(b"-NOPERM no\r\n").unwrap()
    }

    #[test]
    fn an_identity_is_read_from_the_server() {
        let mut it = Identity::default();
        let program =
            format!("# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\nrun_id:{ID}\r\n");
        assert_eq!(it.learn_program(&bulk(&program)), Ok(()));
        assert_eq!(it.learn_role(&bulk("role:master\r\nconnected_slaves:0\r\n")), Ok(()));
        assert_eq!(
            it.learn_memory(&bulk("maxmemory:0\r\nmaxmemory_policy:allkeys-lru\r\n")),
            Ok(())
        );
        assert_eq!(it.learn_persistence(&bulk("loading:0\r\naof_enabled:1\r\n")), Ok(()));
        assert_eq!(it.keeps(), "log");
        let pair = Value::Array(vec![bulk("appendfsync"), bulk("always")]);
        assert_eq!(it.learn_syncing(&pair), Ok(()));
        assert_eq!((it.run_id().unwrap().as_str(), it.version()), (ID, "7.0.15"));
        assert_eq!(
            (it.role(), it.keeps(), it.eviction()),
            ("primary", "log, synced always", "allkeys-lru")
        );
        let valkey = "redis_version:7.2.4\r\nvalkey_version:9.1.0\r\n";
        assert_eq!(it.learn_program(&bulk(valkey)), Ok(()));
        assert_eq!((it.version(), it.run_id()), ("valkey 9.1.0", None));
    }

    #[test]
    fn an_unsuitable_server_is_refused_with_a_reason() {
        let mut it = Identity::default();
        let refused = |judged: Result<(), Failure>, words: &str| {
            let told = judged.expect_err("it is refused").to_string();
            assert!(told.contains(words), "{told}");
        };
        refused(it.learn_role(&bulk("role:slave\r\n")), "replica");
        refused(it.learn_program(&bulk("redis_mode:sentinel\r\n")), "Sentinel");
        refused(it.learn_program(&bulk("server_mode:sentinel\r\n")), "Sentinel");
        for (mode, is_one) in [
            ("redis_mode:cluster", true),
            ("server_mode:cluster", true),
            ("redis_mode:standalone", false),
        ] {
            assert_eq!(it.learn_program(&bulk(mode)), Ok(()));
            assert_eq!(it.is_cluster_node(), is_one, "{mode}");
        }
        let evicting = "maxmemory:1048576\r\nmaxmemory_policy:volatile-ttl\r\n";
        assert_eq!(it.learn_memory(&bulk(evicting)), Ok(()));
        refused(it.check_eviction(), "noeviction");
        // This also holds for a policy of a later version.
        assert_eq!(it.learn_memory(&bulk("maxmemory:1\r\nmaxmemory_policy:other\r\n")), Ok(()));
        refused(it.check_eviction(), "noeviction");
        let kept = "maxmemory:1048576\r\nmaxmemory_policy:noeviction\r\n";
        assert_eq!(it.learn_memory(&bulk(kept)), Ok(()));
        assert_eq!(it.check_eviction(), Ok(()));
    }

    #[test]
    fn an_always_synced_log_is_lost_only_in_a_failover() {
        let mut it = Identity::default();
        let primary = |replid2: &str| bulk(&format!("role:master\r\nmaster_replid2:{replid2}\r\n"));
        assert_eq!(it.learn_persistence(&bulk("aof_enabled:1\r\n")), Ok(()));
        assert_eq!(it.is_durable(), None);
        let pair = Value::Array(vec![bulk("appendfsync"), bulk("always")]);
        assert_eq!(it.learn_syncing(&pair), Ok(()));
        assert_eq!(it.learn_role(&primary(&"0".repeat(40))), Ok(()));
        assert_eq!(it.is_durable(), Some(true));
        assert!(it.logs_all());
        for begun in ["aof_rewrite_in_progress:1", "aof_rewrite_scheduled:1"] {
            let rewriting = format!("aof_enabled:1\r\n{begun}\r\n");
            assert_eq!(it.learn_persistence(&bulk(&rewriting)), Ok(()));
            assert_eq!(it.learn_syncing(&pair), Ok(()));
            assert!(it.is_durable() == Some(true) && !it.logs_all());
        }
        assert_eq!(it.learn_role(&primary(ID)), Ok(()));
        assert_eq!(it.is_durable(), Some(false));
        assert_eq!(it.learn_persistence(&bulk("aof_enabled:0\r\n")), Ok(()));
        assert_eq!(it.is_durable(), Some(false));
    }

    #[test]
    fn a_former_replica_reports_it_until_it_forgets() {
        let mut it = Identity::default();
        let primary = |replid2: &str| bulk(&format!("role:master\r\nmaster_replid2:{replid2}\r\n"));
        for (replid2, promotion) in
            [("0".repeat(40), None), (ID.to_owned(), RunId::parse(ID)), ("0".repeat(40), None)]
        {
            assert_eq!(it.learn_role(&primary(&replid2)), Ok(()));
            assert_eq!(it.promotion(), promotion);
            assert_eq!(RoleTold::of(&bulk(&replid2)), RoleTold::Primary { promotion });
        }
        assert_eq!(RoleTold::of(&bulk("replica")), RoleTold::Replica);
        for silent in [error(), Value::Nil, Value::Okay] {
            assert_eq!(RoleTold::of(&silent), RoleTold::Nothing);
        }
    }

    #[test]
    fn an_unknown_identity_is_left_out() {
        let mut it = Identity::default();
        type Learn = fn(&mut Identity, &Value) -> Result<(), Failure>;
        let all: [Learn; 5] = [
            Identity::learn_program,
            Identity::learn_role,
            Identity::learn_memory,
            Identity::learn_persistence,
            Identity::learn_syncing,
        ];
        for learn in all {
            assert_eq!(learn(&mut it, &error()), Ok(()));
            assert_eq!(learn(&mut it, &Value::Okay), Err(Failure::ProtocolError));
        }
        for learn in &all[..4] {
            for text in ["", "run_id", "run_id:\r\nrole:\r\n", "maxmemory:5\r\naof_enabled:\r\n"] {
                assert_eq!(learn(&mut it, &bulk(text)), Ok(()), "{text}");
            }
            assert_eq!(learn(&mut it, &Value::BulkString(vec![0xFF; 9])), Ok(()));
        }
        assert_eq!(it, Identity::default());
    }

    #[test]
    fn an_identity_is_never_quoted() {
        let mut it = Identity::default();
        let odd = "redis_version:7\u{1b}[31m<\u{fc}>0\r\nrun_id:zz\r\nmaxmemory_policy:secret\r\n";
        assert_eq!(it.learn_program(&bulk(odd)), Ok(()));
        assert_eq!((it.version(), it.run_id()), ("731m0", None));
        assert_eq!(it.learn_memory(&bulk(odd)), Ok(()));
        assert_eq!(it.eviction(), "");
        let long = format!("redis_version:{}\r\n", "1".repeat(99));
        assert_eq!(it.learn_program(&bulk(&long)), Ok(()));
        assert_eq!(it.version().len(), VERSION_MAX);
        assert_eq!(RunId::parse(&"0".repeat(40)), None);
        assert_eq!(RunId::parse(&ID[1..]), None);
    }
}
