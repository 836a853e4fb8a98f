//! Redis servers of the bench's own: on free ports of this machine, writing nothing to disk.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::Outcome;
use super::contenders::Contenders;
use super::process::{Leashed, go_on};
use super::talk::Talk;

const DELAY_MS: &str = "5";

const PATIENCE: Duration = Duration::from_secs(10);

/// What releasing by script calls, and what the question itself consists of.
const NOT_SENT: [&str; 4] = ["get", "del", "info", "quit"];

/// Ends them all when dropped.
pub(crate) struct Servers(Vec<Server>);

struct Server {
    process: Leashed,
    port: u16,
}

impl Servers {
    pub(crate) fn start(count: usize, dir: &Path) -> Outcome<Self> {
        (0..count).map(|_| Server::start(dir)).collect::<Outcome<_>>().map(Self)
    }

    pub(crate) fn ports(&self) -> Vec<String> {
        self.0.iter().map(|s| s.port.to_string()).collect()
    }

    pub(crate) fn processes(&self) -> impl Iterator<Item = u32> {
        self.0.iter().map(|s| s.process.0.id())
    }

    /// One of them stops answering, but stays connected.
    pub(crate) fn freeze(&self, which: usize) {
        self.0[which].process.freeze();
    }

    /// One of them is gone, and its connections with it.
    pub(crate) fn kill(&self, which: usize) {
        self.0[which].process.kill();
    }

    /// One that was frozen goes on.
    pub(crate) fn thaw(&self, which: usize) {
        self.0[which].process.thaw();
    }

    /// One that was killed is back on its port, without any key.
    pub(crate) fn restart(&mut self, which: usize, dir: &Path) -> Outcome<()> {
        let port = self.0[which].port;
        let mut server = Server::start_on(port, dir)?;
        if !server.wait_until_up()? {
            return Err(format!("redis-server did not come back on port {port}").into());
        }
        self.0[which] = server;
        Ok(())
    }

    /// So many resources are taken by somebody, for ten minutes.
    pub(crate) fn occupy(&self, key: &str, count: usize) -> Outcome<()> {
        for server in &self.0 {
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

    /// How many renewals all of them together have served, and how many requests that were none. The
    /// script that renews calls three commands, which are counted as well.
    pub(crate) fn renewals(&self) -> Outcome<(u64, u64)> {
        let (mut renewals, mut calls) = (0, 0);
        for server in &self.0 {
            for (command, count) in command_calls(server.port)? {
                renewals += if command == "eval" { count } else { 0 };
                calls += if ["info", "quit"].contains(&&*command) { 0 } else { count };
            }
        }
        Ok((renewals, calls.saturating_sub(4 * renewals)))
    }

    /// Puts something in front of one of them that makes it slow.
    pub(crate) fn delay(&self, which: usize, contenders: &Contenders) -> Outcome<Delay> {
        let port = self.0[which].port.to_string();
        let program = contenders.programs.path("delay");
        let mut talk = Talk::begin(Command::new(program).args([DELAY_MS, &port]))?;
        let port = talk.hear(PATIENCE)?;
        Ok(Delay { talk, port })
    }

    /// How many requests all of them together have served, and how many of these were SET. What
    /// a script calls in a server is counted by it as well, but nobody has sent it.
    pub(crate) fn requests(&self) -> Outcome<(u64, u64)> {
        let (mut all, mut sets) = (0, 0);
        for server in &self.0 {
            for (command, calls) in command_calls(server.port)? {
                all += if NOT_SENT.contains(&&*command) { 0 } else { calls };
                sets += if command == "set" { calls } else { 0 };
            }
        }
        Ok((all, sets))
    }
}

/// A server behind something that delays its replies, while this lives.
pub(crate) struct Delay {
    talk: Talk,
    pub(crate) port: String,
}

impl Delay {
    pub(crate) fn process_id(&self) -> u32 {
        self.talk.process_id()
    }
}

impl Server {
    /// Another process may take the free port first; then the server ends, and the next port is
    /// tried.
    fn start(dir: &Path) -> Outcome<Self> {
        for _ in 0..5 {
            let mut server = Self::start_on(free_port()?, dir)?;
            if server.wait_until_up()? {
                return Ok(server);
            }
        }
        Err("redis-server ended as soon as it was started, five times".into())
    }

    fn start_on(port: u16, dir: &Path) -> Outcome<Self> {
        let home = dir.join(format!("server-{port}"));
        fs::create_dir_all(&home)?;
        Ok(Self { process: Leashed::start(&mut command(port, &home))?, port })
    }

    /// False if it ended instead.
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

fn command(port: u16, home: &Path) -> Command {
    let mut command = Command::new("redis-server");
    command
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
        .args(["--save", "", "--appendonly", "no", "--dir"])
        .arg(home)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
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

/// From lines such as `cmdstat_set:calls=5,usec=40,...`.
fn command_calls(port: u16) -> Outcome<Vec<(String, u64)>> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(b"INFO commandstats\r\nQUIT\r\n")?;
    let mut reply = String::new();
    stream.read_to_string(&mut reply)?;
    let calls = |line: &str| {
        let (command, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
        Some((command.to_owned(), rest.split(',').next()?.parse().ok()?))
    };
    Ok(reply.lines().filter_map(calls).collect())
}
