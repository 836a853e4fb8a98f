//! Real Sentinels, the servers that they watch, and fake Sentinels that answer as they are told.

use std::collections::HashMap;
use std::fmt::Write;
use std::fs;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use super::directory::Directory;
use super::fake::Fake;
use super::process::Process;
use super::resp::{Connection, Reply};
use super::servers::Server;
use super::wait::wait_until;
use super::{ports, product};

/// How long a server may be silent before the Sentinels consider it down.
const DOWN_MS: i64 = 500;

/// A Sentinel in a process of its own, on a port of its own.
pub(crate) struct Sentinel {
    /// The port that the tests use. Clients use it as well, unless the Sentinel uses TLS.
    plain_port: u16,
    /// The port for clients.
    port: u16,
    /// The password that it requires, if any.
    password: Option<String>,
    process: Process,
    /// What it was told at the beginning. It rewrites its file.
    told: String,
    directory: Directory,
}

impl Sentinel {
    /// Watches these masters, each a name and a port. `quorum` Sentinels must agree that a master is down.
    pub(crate) fn start(masters: &[(&str, u16)], quorum: usize) -> Self {
        Self::start_with(masters, quorum, &[])
    }

    /// With more lines of configuration. With a certificate, the Sentinel uses TLS, and the tests use its
    /// plain port.
    pub(crate) fn start_with(masters: &[(&str, u16)], quorum: usize, more: &[&str]) -> Self {
        let directory = Directory::new();
        let file = directory.join("sentinel.conf");
        for _ in 0..20 {
            let plain_port = ports::free();
            let mut text = format!("bind 127.0.0.1\ndir {}\n", directory.join("."));
            let _ = writeln!(text, "port {plain_port}\nlogfile {}", directory.join("log"));
            let is_over_tls = more.iter().any(|line| line.starts_with("tls-cert-file"));
            let port = if is_over_tls { ports::free() } else { plain_port };
            if is_over_tls {
                let _ = writeln!(text, "tls-port {port}");
            }
            for (name, master) in masters {
                let _ = writeln!(text, "sentinel monitor {name} 127.0.0.1 {master} {quorum}");
                let _ = writeln!(text, "sentinel down-after-milliseconds {name} {DOWN_MS}");
                let _ = writeln!(text, "sentinel failover-timeout {name} 3000");
            }
            more.iter().for_each(|line| _ = writeln!(text, "{line}"));
            fs::write(&file, &text).expect("the file can be written");
            let process = run(&directory, port, is_over_tls);
            if !process.has_ended() {
                let password = more.iter().find_map(|line| line.strip_prefix("requirepass "));
                let password = password.map(str::to_owned);
                return Self { plain_port, port, password, process, told: text, directory };
            }
        }
        panic!("there is no Sentinel to be had");
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Sends it a command.
    #[track_caller]
    pub(crate) fn command(&self, words: &[&str]) -> Reply {
        let at = format!("127.0.0.1:{}", self.plain_port);
        let mut connection = Connection::open(&at).expect("it can be reached");
        if let Some(password) = &self.password {
            let reply = connection.command(&["AUTH", password]).expect("it answers");
            assert!(reply.is_ok(), "{reply:?}");
        }
        connection.command(words).expect("it answers")
    }

    /// The address of the master that it reports.
    #[track_caller]
    pub(crate) fn master_of(&self, name: &str) -> String {
        match self.command(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", name]) {
            Reply::Array(parts) => {
                parts.iter().filter_map(Reply::text).collect::<Vec<_>>().join(":")
            }
            reply => panic!("{reply:?}"),
        }
    }

    /// What it reports of a master, by the names of the fields.
    pub(crate) fn state_of(&self, name: &str) -> HashMap<String, String> {
        fields(&self.command(&["SENTINEL", "MASTER", name]))
    }

    /// Whether it knows a healthy replica of the master that could replace it.
    pub(crate) fn knows_good_replica(&self, name: &str) -> bool {
        let Reply::Array(all) = self.command(&["SENTINEL", "REPLICAS", name]) else { return false };
        all.iter().map(fields).any(|it| it["flags"] == "slave" && it["master-link-status"] == "ok")
    }

    /// Makes another server replace the master at this address. Sentinels silently give up if they know of
    /// no good replica yet.
    #[track_caller]
    pub(crate) fn fail_over(&self, name: &str, old: &str) {
        wait_until("the failover has begun", || {
            let state = self.state_of(name);
            let has_moved = format!("{}:{}", state["ip"], state["port"]) != old;
            if !has_moved && !state["flags"].contains("failover_in_progress") {
                self.command(&["SENTINEL", "FAILOVER", name]);
            }
            has_moved
        });
    }

    /// Returns when it knows this number of replicas of the master, and this number of other Sentinels.
    #[track_caller]
    pub(crate) fn await_company(&self, name: &str, replicas: usize, sentinels: usize) {
        wait_until("the Sentinel knows them all", || {
            let count = |what| match self.command(&["SENTINEL", what, name]) {
                Reply::Array(all) => all.len(),
                _ => 0,
            };
            count("REPLICAS") >= replicas && count("SENTINELS") >= sentinels
        });
    }

    /// Sets how long a master may be silent before it is down, from now on.
    pub(crate) fn be_patient_for(&self, name: &str, ms: i64) {
        let reply =
            self.command(&["SENTINEL", "SET", name, "down-after-milliseconds", &ms.to_string()]);
        assert!(reply.is_ok(), "{reply:?}");
    }

    pub(crate) fn kill(&self) {
        self.process.kill();
    }

    pub(crate) fn freeze(&self) {
        self.process.freeze();
    }

    /// Ends it and starts it again, with the file that it has written, or with the one of the beginning.
    pub(crate) fn restart(&mut self, forgets: bool) {
        self.process.kill();
        if forgets {
            let file = self.directory.join("sentinel.conf");
            fs::write(file, &self.told).expect("the file can be written");
        }
        self.process = run(&self.directory, self.port, self.port != self.plain_port);
        assert!(!self.process.has_ended(), "it starts again");
    }
}

/// Runs the Sentinel whose file is here. Returns when it listens on this port, or has ended.
fn run(directory: &Directory, port: u16, is_over_tls: bool) -> Process {
    let program = if is_over_tls { product::tls_program() } else { product::program() };
    let mut command = Command::new(program);
    let file = directory.join("sentinel.conf");
    command.args([&file, "--sentinel"]).stdout(Stdio::null()).stderr(Stdio::null());
    let process = Process::start(&mut command).expect("the program was run before");
    let log = || fs::read_to_string(directory.join("log")).unwrap_or_default();
    wait_until("the Sentinel starts", || process.has_ended() || log().contains("Sentinel ID is"));
    // Before it listens it cannot answer.
    let listens = || Connection::open(&format!("127.0.0.1:{port}")).is_ok();
    wait_until("it listens", || process.has_ended() || listens());
    process
}

/// Alternating names and values.
fn fields(reply: &Reply) -> HashMap<String, String> {
    let Reply::Array(parts) = reply else { return HashMap::new() };
    let texts: Vec<_> = parts.iter().map(|it| it.text().unwrap_or_default()).collect();
    texts.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect()
}

/// A master and its replicas.
pub(crate) struct Group {
    pub(crate) name: String,
    pub(crate) servers: Vec<Server>,
}

impl Group {
    /// The first is the master. Locks with this TTL were in use there.
    pub(crate) fn start(name: &str, count: usize, longest_ttl_ms: i64) -> Self {
        let start = || Server::start_with(&["--repl-diskless-sync-delay", "0"]);
        Self::of(name, (0..count).map(|_| start()).collect(), longest_ttl_ms)
    }

    pub(crate) fn of(name: &str, servers: Vec<Server>, longest_ttl_ms: i64) -> Self {
        let group = Self { name: name.to_owned(), servers };
        group.servers[0].be_in_use(longest_ttl_ms);
        group.servers[1..].iter().for_each(|it| group.have_follow(it, group.servers[0].port()));
        group
    }

    /// Makes a server follow the one with this port, and waits until it has all data.
    #[track_caller]
    pub(crate) fn have_follow(&self, server: &Server, port: u16) {
        assert!(anew(server, &["REPLICAOF", "127.0.0.1", &port.to_string()]).is_ok());
        wait_until("it has caught up", || {
            let info = info(server);
            info.contains(&format!("master_port:{port}")) && info.contains("master_link_status:up")
        });
    }

    pub(crate) fn master_port(&self) -> (&str, u16) {
        (&self.name, self.servers[0].port())
    }

    /// The server with this address.
    #[track_caller]
    pub(crate) fn at(&self, address: &str) -> &Server {
        let found = self.servers.iter().find(|it| it.address() == address);
        found.unwrap_or_else(|| panic!("{address} is none of {}", self.name))
    }
}

/// Asks the server over a new connection, because Sentinels close the connections of servers that they
/// promote or demote.
#[track_caller]
pub(crate) fn anew(server: &Server, words: &[&str]) -> Reply {
    let mut reply = None;
    wait_until("it answers", || {
        reply = server.connect().and_then(|mut it| it.command(words)).ok();
        reply.is_some()
    });
    reply.expect("it has answered")
}

/// What the server reports of replication.
#[track_caller]
pub(crate) fn info(server: &Server) -> String {
    anew(server, &["INFO", "replication"]).text().expect("words")
}

pub(crate) fn is_replica(server: &Server) -> bool {
    info(server).contains("role:slave")
}

/// The URL of a master that these Sentinels watch.
pub(crate) fn url(sentinels: &[String], name: &str) -> String {
    format!("redis-sentinel://{}/{name}", sentinels.join(","))
}

/// A fake Sentinel. It reports the master as it was told.
pub(crate) struct Puppet {
    fake: Fake,
    told: Arc<Mutex<Told>>,
}

#[derive(Default)]
struct Told {
    master: String,
    /// Grows with each change.
    epoch: u64,
    is_frozen: bool,
}

impl Puppet {
    /// For a master "m" at this address.
    pub(crate) fn of(master: &str) -> Self {
        let told = Told { master: master.to_owned(), ..Told::default() };
        let told = Arc::new(Mutex::new(told));
        let shared = Arc::clone(&told);
        let id = format!("{:040x}", Arc::as_ptr(&told) as usize);
        let fake = Fake::start(move |guest| {
            while let Some(bytes) = guest.read()? {
                let heard = String::from_utf8_lossy(&bytes).into_owned();
                let replies = shared.lock().expect("not poisoned").replies(&heard, &id);
                guest.write(replies.as_bytes())?;
            }
            Ok(())
        });
        Self { fake, told }
    }

    pub(crate) fn address(&self) -> String {
        self.fake.address()
    }

    pub(crate) fn fake(&self) -> &Fake {
        &self.fake
    }

    /// From now on the master is at this address.
    pub(crate) fn move_to(&self, master: &str) {
        let mut told = self.told.lock().expect("not poisoned");
        master.clone_into(&mut told.master);
        told.epoch += 1;
    }

    /// Answers nothing any more.
    pub(crate) fn freeze(&self) {
        self.told.lock().expect("not poisoned").is_frozen = true;
    }
}

impl Told {
    /// The replies to what a client has sent. Its first questions come together.
    fn replies(&self, heard: &str, id: &str) -> String {
        if self.is_frozen {
            return String::new();
        }
        let mut replies = String::new();
        if heard.contains("INFO") {
            replies += &bulk(&format!("run_id:{id}\r\n"));
        }
        if heard.contains("SENTINELS") {
            replies += "*0\r\n";
        }
        for _ in heard.matches("$6\r\nMASTER\r\n") {
            replies += &report(&self.master, self.epoch);
        }
        replies
    }
}

fn bulk(text: &str) -> String {
    format!("${}\r\n{text}\r\n", text.len())
}

/// What a Sentinel that knows no other one says of a master.
pub(crate) fn report(master: &str, epoch: u64) -> String {
    let (host, port) = master.rsplit_once(':').expect("a port");
    let fields = [
        ("name", "m"),
        ("ip", host),
        ("port", port),
        ("flags", "master"),
        ("config-epoch", &epoch.to_string()),
        ("num-other-sentinels", "0"),
    ];
    let words: String = fields.iter().map(|(name, value)| bulk(name) + &bulk(value)).collect();
    format!("*{}\r\n{words}", 2 * fields.len())
}
