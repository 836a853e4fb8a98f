//! The bench's own Redis servers. They use free ports of this machine, and write nothing to disk.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::Outcome;
use super::cluster::Cluster;
use super::contenders::Contenders;
use super::process::{Leashed, go_on};
use super::talk::Talk;

const PATIENCE: Duration = Duration::from_secs(10);

/// Calls of a script, by its text and by its hash.
const SCRIPTS: [&str; 2] = ["eval", "evalsha"];

/// Commands that are not counted as requests: commands that scripts call, commands that travel in the same write
/// as a SET, and the commands of the count itself.
const NO_REQUESTS: [&str; 15] = [
    "get",
    "del",
    "exists",
    "time",
    "pttl",
    "pexpiretime",
    "pexpire",
    "zadd",
    "zrem",
    "zrank",
    "zpopmin",
    "publish",
    "mget",
    "info",
    "quit",
];

/// Ends all servers when dropped.
pub(crate) struct Servers {
    all: Vec<Server>,
    dir: PathBuf,
}

/// A Redis server, a Sentinel, or a node of a cluster.
pub(crate) struct Server {
    process: Leashed,
    pub(crate) port: u16,
    /// The port for other nodes of a cluster.
    pub(crate) bus: u16,
}

pub(crate) enum Role {
    Server,
    /// With these lines of its file, which it rewrites.
    Sentinel(String),
    Node,
}

impl Servers {
    pub(crate) fn start(count: usize, dir: &Path) -> Outcome<Self> {
        let all = (0..count).map(|_| Server::start(dir, &Role::Server)).collect::<Outcome<_>>()?;
        Ok(Self { all, dir: dir.to_owned() })
    }

    pub(crate) fn ports(&self) -> Vec<String> {
        self.all.iter().map(|s| s.port.to_string()).collect()
    }

    pub(crate) fn processes(&self) -> impl Iterator<Item = u32> {
        self.all.iter().map(|s| s.process.0.id())
    }

    /// The server stops answering, but stays connected.
    pub(crate) fn freeze(&self, which: usize) {
        self.all[which].process.freeze();
    }

    /// The server and its connections are gone.
    pub(crate) fn kill(&self, which: usize) {
        self.all[which].process.kill();
    }

    /// A frozen server goes on.
    pub(crate) fn thaw(&self, which: usize) {
        self.all[which].process.thaw();
    }

    /// A killed server comes back on its port, with no keys.
    pub(crate) fn restart(&mut self, which: usize, dir: &Path) -> Outcome<()> {
        let port = self.all[which].port;
        let mut server = Server::start_on(port, dir, &Role::Server)?;
        if !server.wait_until_up()? {
            return Err(format!("redis-server did not come back on port {port}").into());
        }
        self.all[which] = server;
        Ok(())
    }

    /// Starts three Sentinels that watch all servers, each under the name m and its port.
    pub(crate) fn watch_all(&self) -> Outcome<Vec<Server>> {
        let monitor = |it: &Server| format!("sentinel monitor m{0} 127.0.0.1 {0} 2\n", it.port);
        let sentinel = Role::Sentinel(self.all.iter().map(monitor).collect());
        (0..3).map(|_| Server::start(&self.dir, &sentinel)).collect()
    }

    /// Starts a cluster beside them.
    pub(crate) fn cluster(&self) -> Outcome<Cluster> {
        Cluster::start(&self.dir)
    }

    /// Another client holds this many resources, for ten minutes.
    pub(crate) fn occupy(&self, key: &str, count: usize) -> Outcome<()> {
        for server in &self.all {
            let set = |number| format!("SET {key}:{number} x PX 600000\r\n");
            let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, server.port))?;
            stream.set_read_timeout(Some(PATIENCE))?;
            let all: String = (0..count).map(set).collect();
            stream.write_all(all.as_bytes())?;
            let mut replies = vec![0; count * "+OK\r\n".len()];
            stream.read_exact(&mut replies)?;
        }
        Ok(())
    }

    /// How many renewals all servers together have executed, and how many other requests. The renewal script
    /// calls three commands, which the servers count as well.
    pub(crate) fn renewals(&self) -> Outcome<(u64, u64)> {
        let (mut renewals, mut calls) = (0, 0);
        for server in &self.all {
            for (command, count) in command_calls(server.port)? {
                renewals += if SCRIPTS.contains(&&*command) { count } else { 0 };
                calls += if ["info", "quit"].contains(&&*command) { 0 } else { count };
            }
        }
        Ok((renewals, calls.saturating_sub(4 * renewals)))
    }

    /// Watches what this server is asked from now on.
    pub(crate) fn watch(&self, which: usize) -> Outcome<Watched> {
        Watched::begin(self.all[which].port)
    }

    /// Puts a program in front of these servers whose replies come later. With ticks, the program takes less processor
    /// time, and the replies come up to a tick later still.
    pub(crate) fn delay(
        &self,
        which: Range<usize>,
        [delay, tick]: [Duration; 2],
        contenders: &Contenders,
    ) -> Outcome<Delay> {
        let mut command = Command::new(contenders.programs.path("delay"));
        command.args([delay, tick].map(|it| it.as_micros().to_string()));
        command.args(self.all[which.clone()].iter().map(|it| it.port.to_string()));
        let mut talk = Talk::begin(&mut command)?;
        let ports = which.map(|_| talk.hear(PATIENCE)).collect::<Outcome<_>>()?;
        Ok(Delay { talk, ports })
    }

    /// The requests that all servers together have executed, except a server that cannot answer. A server also
    /// counts the commands that a script calls, although no client has sent them.
    pub(crate) fn sent(&self, but: Option<usize>) -> Outcome<Sent> {
        let mut sent = Sent::default();
        for (_, server) in self.all.iter().enumerate().filter(|it| Some(it.0) != but) {
            for (command, calls) in command_calls(server.port)? {
                sent.all += if NO_REQUESTS.contains(&&*command) { 0 } else { calls };
                sent.sets += if command == "set" { calls } else { 0 };
                sent.scripts += if SCRIPTS.contains(&&*command) { calls } else { 0 };
            }
        }
        Ok(sent)
    }
}

/// Requests, by their commands.
#[derive(Default)]
pub(crate) struct Sent {
    pub(crate) all: u64,
    /// Includes those that scripts call.
    pub(crate) sets: u64,
    pub(crate) scripts: u64,
}

impl Sent {
    pub(crate) fn since(&self, before: &Self) -> Self {
        Self {
            all: self.all - before.all,
            sets: self.sets - before.sets,
            scripts: self.scripts - before.scripts,
        }
    }
}

/// Servers whose replies are delayed as long as this value lives.
pub(crate) struct Delay {
    talk: Talk,
    /// The ports through which they are reached.
    pub(crate) ports: Vec<String>,
}

impl Delay {
    pub(crate) fn process_id(&self) -> u32 {
        self.talk.process_id()
    }
}

/// The requests that one server receives, as it reports them.
pub(crate) struct Watched(TcpStream);

/// One request: when the server received it, in seconds by its clock, and its words.
pub(crate) struct Request {
    pub(crate) at: f64,
    pub(crate) words: String,
}

impl Watched {
    fn begin(port: u16) -> Outcome<Self> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(b"MONITOR\r\n")?;
        let mut reply = [0; 5];
        stream.read_exact(&mut reply)?;
        if reply != *b"+OK\r\n" {
            return Err("a server does not tell of its requests".into());
        }
        Ok(Self(stream))
    }

    /// All requests until now, except those that scripts make.
    pub(crate) fn end(mut self) -> Outcome<Vec<Request>> {
        // The reply to this is the last thing that the server sends.
        self.0.write_all(b"QUIT\r\n")?;
        let mut told = String::new();
        self.0.read_to_string(&mut told)?;
        let request = |line: &str| {
            let (at, words) = line.strip_prefix('+')?.split_once(' ')?;
            let is_sent = !words.split(']').next()?.ends_with(" lua");
            is_sent.then_some(Request { at: at.parse().ok()?, words: words.to_owned() })
        };
        Ok(told.lines().filter_map(request).collect())
    }
}

impl Server {
    /// Another process may take the free port first. Then the server ends, and another port is tried.
    pub(crate) fn start(dir: &Path, role: &Role) -> Outcome<Self> {
        for _ in 0..5 {
            let mut server = Self::start_on(free_port()?, dir, role)?;
            if server.wait_until_up()? {
                return Ok(server);
            }
        }
        Err("redis-server ended as soon as it was started, five times".into())
    }

    fn start_on(port: u16, dir: &Path, role: &Role) -> Outcome<Self> {
        let (home, bus) = (dir.join(format!("server-{port}")), free_port()?);
        fs::create_dir_all(&home)?;
        let mut command = command(port, &home, role)?;
        if matches!(role, Role::Node) {
            command.args(["--cluster-enabled", "yes", "--cluster-port", &bus.to_string()]);
        }
        Ok(Self { process: Leashed::start(&mut command)?, port, bus })
    }

    /// Returns false if the server ended instead.
    fn wait_until_up(&mut self) -> Outcome<bool> {
        let patience = Instant::now() + PATIENCE;
        while Instant::now() < patience {
            go_on()?;
            let answers = answers(self.port);
            if self.process.0.try_wait()?.is_some() {
                return Ok(false);
            }
            if answers {
                return Ok(true);
            }
            thread::sleep(Duration::from_millis(5));
        }
        Err(format!("redis-server on port {} is not up after 10 s", self.port).into())
    }
}

fn command(port: u16, home: &Path, role: &Role) -> Outcome<Command> {
    let mut command = Command::new("redis-server");
    if let Role::Sentinel(watched) = role {
        let file = home.join("sentinel.conf");
        fs::write(&file, watched)?;
        command.arg(file).arg("--sentinel");
    } else {
        command.args(["--save", "", "--appendonly", "no"]);
    }
    command
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--dir"])
        .arg(home)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    Ok(command)
}

fn free_port() -> Outcome<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

fn answers(port: u16) -> bool {
    let ask = || {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        stream.write_all(b"PING\r\n")?;
        let mut reply = [0; 7];
        stream.read_exact(&mut reply)?;
        std::io::Result::Ok(reply == *b"+PONG\r\n")
    };
    ask().unwrap_or(false)
}

/// Everything that a server says to one command. An error reply is a failure.
pub(crate) fn ask(port: u16, command: &str) -> Outcome<String> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(format!("{command}\r\nQUIT\r\n").as_bytes())?;
    let mut reply = String::new();
    stream.read_to_string(&mut reply)?;
    match reply.strip_prefix('-') {
        Some(error) => Err(format!("{command}: {error}").into()),
        None => Ok(reply),
    }
}

/// Parses lines such as `cmdstat_set:calls=5,usec=40,...`.
fn command_calls(port: u16) -> Outcome<Vec<(String, u64)>> {
    let reply = ask(port, "INFO commandstats")?;
    let calls = |line: &str| {
        let (command, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
        Some((command.to_owned(), rest.split(',').next()?.parse().ok()?))
    };
    Ok(reply.lines().filter_map(calls).collect())
}
