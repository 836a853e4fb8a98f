//! Real servers: each is a process of the chosen program with a port and a directory of its own.

use std::fmt::Write;
use std::ops::Deref;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard};
use std::{fs, io, iter, thread};

use super::client::Manager;
use super::directory::Directory;
use super::process::Process;
use super::product::{self, Product};
use super::resp::{Connection, Reply};
use super::tls::{Authority, Identity};
use super::wait::wait_until;
use super::{ports, program};

/// The longest TTL that was in use on servers before. Few tests use a longer one.
const LONG_TTL_MS: i64 = 600_000;

/// A server. It ends with its owner and leaves nothing behind. Any thread may use all of it, so a test can
/// break a server during calls of other threads on it.
pub(crate) struct Server {
    /// The port that the tests use. Clients use it as well, unless the server uses TLS.
    port: u16,
    tls: Option<Tls>,
    environment: Vec<(&'static str, String)>,
    arguments: Vec<String>,
    process: Mutex<Process>,
    connection: Mutex<Option<Connection>>,
    directory: Directory,
}

impl Server {
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// With more arguments for the server, such as `["--maxmemory", "1"]`.
    pub(crate) fn start_with(arguments: &[&str]) -> Self {
        Self::start_in(&[], arguments)
    }

    /// Like [`Server::start_with`], with these environment variables.
    pub(crate) fn start_in(environment: &[(&'static str, String)], arguments: &[&str]) -> Self {
        Self::start_on(|| None, environment, arguments)
    }

    /// A server that clients reach over TLS, with this identity. If it asks clients for their identity, it
    /// trusts this authority. The tests use its plain port, which it also has.
    pub(crate) fn start_tls(
        authority: &Arc<Authority>,
        identity: &Identity,
        arguments: &[&str],
    ) -> Self {
        let tls = || {
            let (authority, identity) = (Arc::clone(authority), identity.clone());
            Some(Tls { port: ports::free(), authority, identity })
        };
        Self::start_on(tls, &[], arguments)
    }

    fn start_on(
        tls: impl Fn() -> Option<Tls>,
        environment: &[(&'static str, String)],
        arguments: &[&str],
    ) -> Self {
        let environment = environment.to_vec();
        let directory = Directory::new();
        let arguments: Vec<_> = arguments.iter().map(|&argument| argument.to_owned()).collect();
        for _ in 0..20 {
            let (port, tls) = (ports::free(), tls());
            if let Some(process) = launch(port, tls.as_ref(), &directory, &environment, &arguments)
            {
                let (process, connection) = (Mutex::new(process), Mutex::new(None));
                let server =
                    Self { port, tls, environment, arguments, process, connection, directory };
                server.be_in_use(LONG_TTL_MS);
                return server;
            }
        }
        let log = fs::read_to_string(directory.join("log")).unwrap_or_default();
        panic!("{} does not start with {arguments:?}:\n{log}", product::program());
    }

    /// Writes a note of its memory, as on a server that was in use before, with locks of this TTL. Then it
    /// has a vote at once, whichever other servers can be asked. A server that refuses connections or
    /// writes gets no note.
    pub(crate) fn be_in_use(&self, longest_ttl_ms: i64) {
        self.be_in_use_for("", longest_ttl_ms, "");
    }

    /// The same where keys have this before their names. These words end the note.
    pub(crate) fn be_in_use_for(&self, prefix: &str, longest_ttl_ms: i64, words: &str) {
        let Ok(mut connection) = self.connect() else { return };
        let Ok(Reply::Bulk(info)) = connection.command(&["INFO", "server"]) else { return };
        let info = String::from_utf8_lossy(&info);
        let run_id =
            info.lines().find_map(|line| line.strip_prefix("run_id:")).expect("it has one");
        // The note has a name for the memory, and says whether all of it is in a log.
        let life = &run_id[..16];
        let has_log = self.arguments.windows(2).any(|it| it == ["--appendfsync", "always"]);
        let logged = if has_log { " a" } else { "" };
        let note = format!("1 {run_id} 1 -1 {longest_ttl_ms} {life}{logged}{words}");
        let _ = connection.command(&["SET", &format!("{prefix}redlock:guard"), &note]);
        // The numbers of its fencing tokens belong to the same memory.
        let fence = format!("{prefix}redlock:fence");
        let _ = connection.command(&["HSET", &fence, "life", life]);
        let _ = connection.command(&["CONFIG", "RESETSTAT"]);
    }

    /// Deletes the note of its memory, as on a server that was just set up.
    pub(crate) fn be_new(&self) {
        self.must(&["DEL", "redlock:guard", "redlock:fence"]);
    }

    /// The port for clients.
    pub(crate) fn port(&self) -> u16 {
        self.tls.as_ref().map_or(self.port, |it| it.port)
    }

    /// As in "127.0.0.1:6379", which is also its name in messages.
    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port())
    }

    /// As in "redis://127.0.0.1:6379", or "rediss://127.0.0.1:6379".
    pub(crate) fn url(&self) -> String {
        format!("{}://{}", self.scheme(), self.address())
    }

    /// "redis", or "rediss".
    pub(crate) fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "rediss" } else { "redis" }
    }

    /// The authority that its clients must trust: the path of a PEM file; `None` without TLS.
    pub(crate) fn authority_file(&self) -> Option<String> {
        self.tls.as_ref().map(|it| it.authority.file())
    }

    /// A connection of the tests, without TLS.
    pub(crate) fn connect(&self) -> io::Result<Connection> {
        Connection::open(&format!("127.0.0.1:{}", self.port))
    }

    /// The path of the unix socket that every server listens on besides its port.
    pub(crate) fn unix_socket(&self) -> String {
        self.directory.join("socket")
    }

    /// The path of a file in its own directory.
    pub(crate) fn file(&self, name: &str) -> String {
        self.directory.join(name)
    }

    /// Stops the process: connections stay up, the kernel accepts requests, nothing is answered.
    pub(crate) fn freeze(&self) {
        self.process().freeze();
    }

    /// Ends `freeze`. Requests that were sent in between are now executed.
    pub(crate) fn resume(&self) {
        self.process().resume();
    }

    /// Ends it at once. From then on connections are refused.
    pub(crate) fn kill(&self) {
        *self.connection.lock().expect("not poisoned") = None;
        self.process().kill();
    }

    /// Restarts it on the same port: empty, unless it was started with an append-only file.
    pub(crate) fn restart(&self) {
        self.kill();
        let mut process = self.process();
        let Self { tls, directory, environment, arguments, .. } = self;
        // A process that looks for a free port may occupy the port for a moment.
        wait_until("the server starts again on its port", || {
            let started = launch(self.port, tls.as_ref(), directory, environment, arguments);
            started.map(|it| *process = it).is_some()
        });
    }

    /// Restarts it on another port, as [`Self::restart`] does.
    pub(crate) fn restart_elsewhere(&mut self) {
        self.kill();
        self.port = ports::free();
        self.restart();
    }

    /// Restarts it on the same port, at another address besides 127.0.0.1. It was started with such an address as
    /// the last argument.
    pub(crate) fn move_to(&mut self, address: &str) {
        self.arguments.pop();
        self.arguments.push(address.to_owned());
        self.restart();
    }

    /// Sends the server a command. The connection is kept, so a password set later does not lock it out.
    #[track_caller]
    pub(crate) fn command(&self, words: &[&str]) -> Reply {
        let mut kept = self.connection.lock().expect("not poisoned");
        let mut connection = match kept.take() {
            Some(connection) => connection,
            None => self.connect().expect("the server can be reached"),
        };
        let reply = connection.command(words).expect("the server answers");
        *kept = Some(connection);
        reply
    }

    /// A command that must succeed.
    #[track_caller]
    pub(crate) fn must(&self, words: &[&str]) -> Reply {
        let reply = self.command(words);
        assert!(!matches!(reply, Reply::Error(_)), "{words:?}: {reply:?}");
        reply
    }

    /// The number of its keys, without the note of its memory and the numbers of fencing tokens.
    #[track_caller]
    pub(crate) fn locks(&self) -> i64 {
        let others = ["redlock:guard", "redlock:fence"].iter().filter(|it| self.exists(it)).count();
        self.must(&["DBSIZE"]).integer() - others as i64
    }

    /// The value of a key.
    #[track_caller]
    pub(crate) fn get(&self, key: &str) -> Option<String> {
        self.command(&["GET", key]).text()
    }

    #[track_caller]
    pub(crate) fn exists(&self, key: &str) -> bool {
        self.command(&["EXISTS", key]).integer() == 1
    }

    /// The remaining TTL of a key in milliseconds; -1 if it never expires, -2 if there is no such key.
    #[track_caller]
    pub(crate) fn pttl(&self, key: &str) -> i64 {
        self.command(&["PTTL", key]).integer()
    }

    /// When a key ends, by the server's clock in milliseconds: `PEXPIRETIME`, also for servers before Redis
    /// 7.0; -1 never, -2 if there is no such key. The clock must not advance while the TTL is read.
    #[track_caller]
    pub(crate) fn ends_at(&self, key: &str) -> i64 {
        const SCRIPT: &str = "local function now() local t=redis.call('TIME') \
            return t[1]*1000+math.floor(t[2]/1000) end \
            local known=redis.pcall('PEXPIRETIME',KEYS[1]) \
            if type(known)=='number' then return known end \
            local before,left repeat before=now() left=redis.call('PTTL',KEYS[1]) until now()==before \
            return left<0 and left or before+left";
        self.must(&["EVAL", SCRIPT, "1", key]).integer()
    }

    /// The connections of clients, as the server numbers them, without the one that asks.
    #[track_caller]
    pub(crate) fn clients(&self) -> Vec<u64> {
        let list = self.must(&["CLIENT", "LIST", "TYPE", "normal"]).text().expect("a list");
        let own = self.must(&["CLIENT", "ID"]).integer();
        let id = |line: &str| line.strip_prefix("id=")?.split(' ').next()?.parse().ok();
        list.lines().filter_map(id).filter(|&it: &u64| i64::try_from(it) != Ok(own)).collect()
    }

    /// Closes the connections of all clients except the one that asks.
    #[track_caller]
    pub(crate) fn hang_up(&self) {
        self.must(&["CLIENT", "KILL", "TYPE", "normal"]);
    }

    /// How often a command was called, such as "set" or "evalsha", from outside or by a script.
    #[track_caller]
    pub(crate) fn calls(&self, command: &str) -> u64 {
        let prefix = format!("cmdstat_{command}:calls=");
        let statistics = self.command(&["INFO", "commandstats"]).text().unwrap_or_default();
        statistics
            .lines()
            .find_map(|line| line.strip_prefix(&prefix)?.split(',').next()?.parse().ok())
            .unwrap_or(0)
    }

    /// How often a script was run, sent with its text or by its hash.
    #[track_caller]
    pub(crate) fn scripts(&self) -> u64 {
        self.calls("eval") + self.calls("evalsha")
    }

    /// The requests of clients while `body` runs, as the server reports them: a script with its text.
    #[track_caller]
    pub(crate) fn requests_in(&self, body: impl FnOnce()) -> Vec<String> {
        const END: &str = "the end of what is looked at";
        let mut told = self.connect().expect("the server can be reached");
        assert!(told.command(&["MONITOR"]).is_ok_and(|it| it.is_ok()));
        body();
        self.must(&["ECHO", END]);
        let lines = iter::from_fn(|| told.reply().expect("the server tells it").text());
        lines.take_while(|line| !line.contains(END)).collect()
    }

    fn process(&self) -> MutexGuard<'_, Process> {
        self.process.lock().expect("not poisoned")
    }
}

/// The TLS settings of a server.
struct Tls {
    port: u16,
    authority: Arc<Authority>,
    identity: Identity,
}

impl Tls {
    /// Clients need no certificate, unless later arguments require one.
    fn arguments(&self) -> Vec<String> {
        let (authority, identity) = (self.authority.file(), &self.identity);
        let port = self.port.to_string();
        let options = [
            ["--tls-port", &port],
            ["--tls-cert-file", &identity.certificate],
            ["--tls-key-file", &identity.key],
            ["--tls-ca-cert-file", &authority],
            ["--tls-auth-clients", "no"],
        ];
        // valgrind cannot follow the effect of the processor's AES instructions on single bits.
        let chacha = ["--tls-ciphersuites", "TLS_CHACHA20_POLY1305_SHA256"];
        let is_under_a_tool = !program::words_of("REDLOCK_TEST_UNDER").is_empty();
        let ciphers = chacha.iter().filter(|_| is_under_a_tool);
        options.as_flattened().iter().chain(ciphers).map(|&it| it.to_owned()).collect()
    }
}

/// A running server that answers on the port; `None` if a port was taken after all.
fn launch(
    port: u16,
    tls: Option<&Tls>,
    directory: &Directory,
    environment: &[(&'static str, String)],
    arguments: &[String],
) -> Option<Process> {
    let program = if tls.is_some() { product::tls_program() } else { product::program() };
    let settings: &[_] = match Product::of(&program).is_before_7() {
        true => &[],
        false => {
            &["--enable-debug-command", "local", "--loading-process-events-interval-bytes", "1024"]
        }
    };
    let mut command = Command::new(program);
    command
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "-::1"])
        .args(["--unixsocket", &directory.join("socket")])
        .args(["--dir", &directory.join("."), "--logfile", &directory.join("log")])
        .args(["--save", "", "--appendonly", "no", "--daemonize", "no"])
        // So that a test can make it load slowly, and send it requests meanwhile.
        .args(["--rdbcompression", "no"])
        .args(settings)
        .args(tls.map(Tls::arguments).unwrap_or_default())
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let process = Process::start(&mut command).expect("the program was run before");
    let mut up = false;
    wait_until("the server starts", || {
        up = answers(port, process.id());
        up || process.has_ended()
    });
    up.then_some(process)
}

/// Whether this process answers on the port. If two test programs chose the same port at the same time, the
/// other program's server may answer. A server that wants a password, or is loading, is up as well.
fn answers(port: u16, process: u32) -> bool {
    let Ok(mut connection) = Connection::open(&format!("127.0.0.1:{port}")) else { return false };
    match connection.command(&["INFO", "server"]) {
        Ok(Reply::Bulk(text)) => {
            let expected = format!("process_id:{process}");
            String::from_utf8_lossy(&text).lines().any(|line| line == expected)
        }
        Ok(Reply::Error(_)) => true,
        _ => false,
    }
}

/// Independent servers, as a lock requires.
pub(crate) struct Cluster {
    servers: Vec<Server>,
}

impl Cluster {
    pub(crate) fn start(count: usize) -> Self {
        Self::start_each(count, Server::start)
    }

    /// Servers that are reached over TLS, each with its own certificate from the same authority.
    pub(crate) fn start_tls(count: usize) -> Self {
        let authority = Arc::new(Authority::new());
        Self::start_each(count, || Server::start_tls(&authority, &authority.server(), &[]))
    }

    /// Each of them is started by this function.
    pub(crate) fn start_each(count: usize, start: impl Fn() -> Server + Sync) -> Self {
        let servers = thread::scope(|scope| {
            let starting: Vec<_> = (0..count).map(|_| scope.spawn(&start)).collect();
            starting.into_iter().map(|server| server.join().expect("it starts")).collect()
        });
        Self { servers }
    }

    /// How many servers are necessary to hold a lock.
    pub(crate) fn quorum(&self) -> usize {
        self.servers.len() / 2 + 1
    }

    pub(crate) fn urls(&self) -> Vec<String> {
        self.servers.iter().map(Server::url).collect()
    }

    /// The authority that clients of these servers must trust: the path of a PEM file; `None` without TLS.
    pub(crate) fn authority_file(&self) -> Option<String> {
        self.servers.first().and_then(Server::authority_file)
    }

    /// The settings of a program for servers with TLS: their URLs, and the authority that it must trust.
    pub(crate) fn tls_environment(&self) -> [(&'static str, String); 2] {
        let authority = self.authority_file().expect("they have TLS");
        [("REDLOCK_TEST_TLS_SERVERS", self.urls().join(",")), ("REDLOCK_TEST_TLS_CA", authority)]
    }

    /// A new manager of these servers.
    pub(crate) fn manager(&self) -> Manager {
        Manager::of(&self.servers)
    }

    /// How many of the servers have the key.
    #[track_caller]
    pub(crate) fn having(&self, key: &str) -> usize {
        self.servers.iter().filter(|server| server.exists(key)).count()
    }

    /// Returns when no server has the key.
    #[track_caller]
    pub(crate) fn wait_until_gone(&self, key: &str) {
        wait_until("the key is gone from all servers", || self.having(key) == 0);
    }

    /// Returns when every server has the key. A call returns when a quorum has answered, and the others
    /// follow.
    #[track_caller]
    pub(crate) fn wait_until_everywhere(&self, key: &str) {
        wait_until("the key is on all servers", || self.having(key) == self.servers.len());
    }

    /// The value under the key on each server, for messages of failed tests.
    pub(crate) fn describe(&self, key: &str) -> String {
        self.servers.iter().fold(String::new(), |mut text, server| {
            let (value, pttl) = (server.get(key), server.pttl(key));
            let _ = writeln!(text, "{}: {value:?} for {pttl} ms", server.address());
            text
        })
    }
}

impl FromIterator<Server> for Cluster {
    fn from_iter<I: IntoIterator<Item = Server>>(servers: I) -> Self {
        Self { servers: servers.into_iter().collect() }
    }
}

impl Deref for Cluster {
    type Target = [Server];

    fn deref(&self) -> &[Server] {
        &self.servers
    }
}
