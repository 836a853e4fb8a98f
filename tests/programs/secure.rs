//! The example that uses TLS, and the servers that readers start to try things out.

use std::path::PathBuf;
use std::process::Command;

use crate::compilers::{self, Compiler};
use crate::library;
use crate::support::directory::Directory;
use crate::support::{ports, product, wait_until};
use crate::workshop::{Run, Workshop};

const GCC: Compiler = Compiler { program: "gcc", standard: "c11" };

/// Servers that c-examples/servers.sh has started. The same script ends them.
pub(crate) struct Showroom {
    workshop: Workshop,
    place: Directory,
    pub(crate) port: u16,
}

impl Showroom {
    pub(crate) fn open() -> Self {
        let mut tries = 0;
        loop {
            let port = ports::free();
            let room = Self { workshop: Workshop::new(), place: Directory::new(), port };
            let run = room.script("up", &[&port.to_string()]);
            if run.status.success() {
                return room;
            }
            tries += 1;
            // Another test may have one of its six ports.
            assert!(tries < 20, "{}\n{}", run.stdout, run.stderr);
        }
    }

    pub(crate) fn script(&self, action: &str, more: &[&str]) -> Run {
        self.workshop.run(script(action).arg(self.directory()).args(more))
    }

    pub(crate) fn directory(&self) -> PathBuf {
        self.place.path().join("my servers")
    }

    fn ca_file(&self) -> PathBuf {
        self.directory().join("ca.pem")
    }

    fn urls(&self) -> Vec<String> {
        (100..103).map(|it| format!("rediss://localhost:{}", self.port + it)).collect()
    }

    fn plain(&self) -> Vec<String> {
        (0..3).map(|it| format!("127.0.0.1:{}", self.port + it)).collect()
    }
}

/// The script, with its action.
pub(crate) fn script(action: &str) -> Command {
    let mut command = Command::new("sh");
    command.arg(library::root().join("c-examples/servers.sh")).arg(action);
    command.env("REDIS_SERVER", product::tls_program());
    command
}

impl Drop for Showroom {
    fn drop(&mut self) {
        self.script("down", &[]);
    }
}

fn build(workshop: &Workshop, compiler: Compiler) -> PathBuf {
    workshop.build(compiler, &["c-examples/secure.c"])
}

#[test]
fn the_tls_example_locks_on_the_script_servers() {
    let (room, workshop) = (Showroom::open(), Workshop::new());
    let plain = workshop.build(GCC, &["c-examples/quick_start.c"]);
    // On a busy machine one of the new servers may answer the handshake too late. Then the others count as
    // having lost their memory, and have their votes ten seconds later.
    wait_until("the servers have their votes", || {
        workshop.run(Command::new(&plain).args(room.plain())).status.success()
    });
    for compiler in compilers::c(&["c11"]) {
        let program = build(&workshop, compiler);
        let run = workshop.succeed(Command::new(&program).arg(room.ca_file()).args(room.urls()));
        assert_eq!(run.stderr, "");
        assert!(run.stdout.contains("in secret"), "{}", run.stdout);
    }
    workshop.succeed(Command::new(&plain).args(room.plain()));
}

#[test]
fn the_example_names_the_error() {
    let (room, workshop) = (Showroom::open(), Workshop::new());
    let program = build(&workshop, GCC);
    let failure = |command: &mut Command| {
        let run = workshop.run(command);
        assert_eq!(run.status.code(), Some(1), "{}", run.stderr);
        run.stderr
    };
    let mut with_key = Command::new(&program);
    with_key.arg(room.directory().join("server.key")).args(room.urls());
    assert!(failure(&mut with_key).contains("no certificate in PEM format in the file"));
    let mut with_stranger = Command::new(&program);
    with_stranger.arg(room.directory().join("server.pem")).args(room.urls());
    assert!(failure(&mut with_stranger).contains("unknown authority"));
    let mut with_password = Command::new(&program);
    with_password.arg(room.ca_file()).args(room.urls()).env("REDIS_PASSWORD", "s3cret");
    let said = failure(&mut with_password);
    assert!(said.contains("password") && !said.contains("s3cret"), "{said}");
}
