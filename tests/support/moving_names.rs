//! Servers with names whose addresses move, as in a rolling restart under Kubernetes. A program in any language has
//! a lock, or waits for it, while they do. Its resolver is `tests/programs/c/resolver_shim.c`.
//!
//! Such a program gets the servers in REDLOCK_TEST_SERVERS, and its task as its last argument:
//!
//! - `keep`: it takes the lock "r" for 8 s and keeps it alive, says so in a line on its standard output, and reads its
//!   standard input to the end. The lock must still be held then. The program unlocks it, closes the manager and ends.
//! - `wait`: it has no background thread, and waits for the lock "r" without a limit. It says so in a line, and reads
//!   its standard input to the end. Then it closes the manager. That must end the call.
//! - `close`: as `keep`. When the manager is closed, the program says so in a line, waits until nothing of the manager
//!   is left in its process, and ends.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use super::directory::Directory;
use super::resp::Reply;
use super::servers::Server;
use super::wait::{finishes, wait_until, wait_until_ok};
use super::{process, program};

/// Where a server is at first, and where it is after it has moved.
const OLD: &str = "127.0.0.2";
const NEW: &str = "127.0.0.3";

const NAMES: [&str; 3] = ["a.test", "b.test", "c.test"];

/// A kept lock outlives the moves of all its servers, also while the resolver is silent.
#[track_caller]
pub(crate) fn are_followed_while_a_lock_is_kept(command: &mut Command) {
    let mut moving = Moving::start();
    let mut program = moving.run(command, "keep");
    // A server that was connected late was not asked for the lock.
    moving.is_sure_of(&[0, 1, 2]);
    moving.be_silent();
    moving.move_to(0, NEW);
    moving.await_question();
    moving.is_renewed_by(&[1]);
    moving.is_renewed_by(&[1]);
    moving.answer();
    moving.is_sure_of(&[0]);
    for server in 1..NAMES.len() {
        moving.move_to(server, NEW);
        moving.is_sure_of(&[server]);
    }
    moving.ends_while_silent(&mut program);
    wait_until("nothing is left", || moving.servers[..2].iter().all(|it| !it.exists("r")));
}

/// A call that waits is connected to all servers after they have moved, although it never lacks one.
#[track_caller]
pub(crate) fn are_followed_while_a_call_waits(command: &mut Command) {
    let mut moving = Moving::start();
    for server in &moving.servers {
        assert!(server.command(&["SET", "r", "somebody"]).is_ok());
    }
    let mut program = moving.run(command, "wait");
    for server in 0..NAMES.len() {
        moving.is_connected_to(server);
    }
    for server in 0..NAMES.len() {
        moving.move_to(server, NEW);
        moving.is_connected_to(server);
    }
    moving.ends_while_silent(&mut program);
}

/// A call that cannot go on without the resolver, because no address is known, ends when its manager is closed.
#[track_caller]
pub(crate) fn closing_ends_a_call_that_lacks_names(command: &mut Command) {
    let moving = Moving::start();
    moving.be_silent();
    let mut program = moving.run(command, "wait");
    moving.await_question();
    program.goes_on();
    program.ends_well();
}

/// Closing a manager does not wait for the resolver. When the resolver has answered, nothing of the manager is left.
#[track_caller]
pub(crate) fn can_be_closed_while_the_resolver_is_silent(command: &mut Command) {
    let mut moving = Moving::start();
    let mut program = moving.run(command, "close");
    moving.is_sure_of(&[0, 1, 2]);
    moving.be_silent();
    moving.move_to(0, NEW);
    moving.await_question();
    program.goes_on();
    program.says_something();
    moving.answer();
    program.ends_well();
}

struct Moving {
    servers: [Server; 3],
    /// What the resolver knows.
    known: Directory,
    shim: Directory,
}

impl Moving {
    fn start() -> Self {
        let bound = ["--appendonly", "yes", "--appendfsync", "always", "--bind", "127.0.0.1", OLD];
        let servers = [(); 3].map(|()| Server::start_with(&bound));
        let moving = Self { servers, known: Directory::new(), shim: Directory::new() };
        let shim = moving.shim.join("shim.so");
        program::compile("resolver_shim", ["-shared", "-fPIC"], &shim);
        NAMES.iter().for_each(|name| moving.note(name, OLD));
        moving
    }

    /// Returns when the program has said that it has begun.
    #[track_caller]
    fn run(&self, command: &mut Command, task: &str) -> Running {
        let servers =
            NAMES.iter().zip(&self.servers).map(|(name, it)| format!("{name}:{}", it.port()));
        command
            .arg(task)
            .env("REDLOCK_TEST_SERVERS", servers.collect::<Vec<_>>().join(","))
            .env("REDLOCK_TEST_NAMES", self.known.path())
            .env("LD_PRELOAD", self.shim.join("shim.so"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = process::spawn(command).expect("the program can be run");
        let output = child.stdout.take().map(BufReader::new);
        let mut program = Running { child, output };
        program.says_something();
        program
    }

    fn note(&self, name: &str, address: &str) {
        let draft = self.known.join("draft");
        fs::write(&draft, address).expect("a file can be written");
        fs::rename(draft, self.known.join(name)).expect("it can be renamed");
    }

    fn move_to(&mut self, server: usize, address: &str) {
        // First, so that nobody asks too early: the next question would come much later.
        self.note(NAMES[server], address);
        self.servers[server].move_to(address);
        wait_until("it has read its log", || {
            matches!(self.servers[server].command(&["EXISTS", "r"]), Reply::Integer(_))
        });
    }

    /// From now on the resolver says nothing.
    fn be_silent(&self) {
        let _ = fs::remove_file(self.known.join("asked"));
        fs::write(self.known.join("silent"), "").expect("a file can be written");
    }

    fn answer(&self) {
        fs::remove_file(self.known.join("silent")).expect("it is silent");
    }

    #[track_caller]
    fn await_question(&self) {
        wait_until("the resolver is asked", || Path::new(&self.known.join("asked")).exists());
    }

    /// Waits until the lock has been extended on each of these servers.
    #[track_caller]
    fn is_renewed_by(&self, servers: &[usize]) {
        let ends = || servers.iter().map(|&it| self.servers[it].ends_at("r"));
        let before: Vec<_> = ends().collect();
        wait_until_ok("the lock is renewed", || {
            match ends().zip(&before).all(|(now, before)| now > *before) {
                true => Ok(()),
                false => Err(format!("on {servers:?}: {before:?}, {:?}", self.ends())),
            }
        });
    }

    /// Waits until the lock counts on these servers. A server may have no key: it was connected late, or the key ended
    /// while the server moved. Then it is given the key, and counts after a renewal that succeeded.
    #[track_caller]
    fn is_sure_of(&self, servers: &[usize]) {
        for _ in 0..3 {
            self.is_renewed_by(servers);
        }
    }

    /// When the lock ends on each server.
    fn ends(&self) -> [i64; 3] {
        self.servers.each_ref().map(|it| it.ends_at("r"))
    }

    #[track_caller]
    fn is_connected_to(&self, server: usize) {
        // A connection that waits for news is of another type than the one that asks here.
        let has_clients = || {
            let list = self.servers[server].command(&["CLIENT", "LIST"]).text();
            list.is_some_and(|it| it.lines().count() > 1)
        };
        wait_until("it has a connection", has_clients);
    }

    /// Neither closing the manager nor the end of the program waits for the resolver.
    #[track_caller]
    fn ends_while_silent(&mut self, program: &mut Running) {
        self.be_silent();
        // Not the server whose name the resolver was silent about: that is not asked again so soon.
        self.move_to(2, OLD);
        self.await_question();
        program.goes_on();
        program.ends_well();
    }
}

/// A running program. It ends with its owner.
struct Running {
    child: Child,
    output: Option<BufReader<ChildStdout>>,
}

impl Running {
    #[track_caller]
    fn says_something(&mut self) {
        let mut output = self.output.take().expect("it is a pipe");
        let (line, output) = finishes("the program says something", move || {
            let mut line = String::new();
            output.read_line(&mut line).expect("it can be read");
            (line, output)
        });
        self.output = Some(output);
        assert_ne!(line, "", "the program has failed");
    }

    /// Ends its standard input.
    fn goes_on(&mut self) {
        drop(self.child.stdin.take());
    }

    #[track_caller]
    fn ends_well(&mut self) {
        let mut status = None;
        wait_until("the program ends", || {
            status = self.child.try_wait().expect("it is a child");
            status.is_some()
        });
        assert!(status.is_some_and(|it| it.success()), "{status:?}");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
