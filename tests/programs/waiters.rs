//! What a waiter costs the servers: in every language as much as in C.

use std::process::Command;
use std::thread;

use crate::compilers;
use crate::go::go;
use crate::library;
use crate::node::{self, node};
use crate::python::python;
use crate::ruby::ruby;
use crate::support::Server;
use crate::workshop::Workshop;

const C: &str = r#"
#include "redlock.h"
int main(int argc, char **argv);
int main(int argc, char **argv) {
    RedLock *rl = RedLock_New();
    RedLockLease *lease = RedLockLease_New();
    RedLockStatus status = RedLock_AddServerUrl(rl, argv[argc - 1], 0);
    if (status == REDLOCK_OK) {
        status = RedLock_TryLock(rl, "held", 60000, WAIT_MS, lease);
    }
    RedLockLease_Free(lease);
    RedLock_Free(rl);
    return status == REDLOCK_TAKEN ? 0 : 1;
}
"#;

const PYTHON: &str = r#"
import sys
import redlock
try:
    redlock.Manager(sys.argv[1]).lock("held", ttl=60, wait=WAIT_MS / 1000)
    sys.exit(1)
except redlock.Taken:
    pass
"#;

const ASYNCIO: &str = r#"
import asyncio
import sys
import redlock

async def wait():
    try:
        await redlock.Manager(sys.argv[1]).alock("held", ttl=60, wait=WAIT_MS / 1000)
        sys.exit(1)
    except redlock.Taken:
        pass

asyncio.run(wait())
"#;

const RUBY: &str = r#"
require "LIBRARY"
begin
  Redlock::Manager.new(ARGV[0]).lock("held", ttl: 60, wait: WAIT_MS / 1000.0) { exit 1 }
rescue Redlock::Taken
  exit 0
end
"#;

const GO: &str = r#"package main

import (
	"context"
	"errors"
	"os"
	"time"

	"redlock.example/redlock"
)

func main() {
	manager, err := redlock.New(os.Args[1])
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), WAIT_MS*time.Millisecond)
	defer cancel()
	if _, err = manager.Lock(ctx, "held", time.Minute); !errors.Is(err, context.DeadlineExceeded) {
		panic(err)
	}
}
"#;

const NODE: &str = r#"
const { Manager } = require("LIBRARY");
new Manager([process.argv[2]]).lock("held", { ttl: 60_000, wait: WAIT_MS })
  .then(() => process.exit(1), (error) => process.exit(error.code === "TAKEN" ? 0 : 1));
"#;

const WAIT_MS: u32 = 5_000;

/// How many times as much as the one in C a waiter may ask. The pauses are random, and a busy machine
/// may stop any of them for a while. Whoever begins the pauses anew every quarter of a second asks five
/// times as much.
const MOST: u64 = 2;

/// They wait at the same time, each at a server of its own, so that what else the machine does is the
/// same for all of them.
#[test]
fn a_waiter_in_any_language_asks_no_more_than_one_in_c() {
    let workshop = Workshop::new();
    let waiters = [
        ("C", in_c(&workshop)),
        ("Python", in_python(&workshop, "waiter.py", PYTHON)),
        ("asyncio", in_python(&workshop, "tasks.py", ASYNCIO)),
        ("Ruby", in_ruby(&workshop)),
        ("Go", in_go(&workshop)),
        ("Node.js", in_node(&workshop)),
    ];
    let counts: Vec<(&str, u64)> = thread::scope(|scope| {
        let workshop = &workshop;
        let begin = |(language, waiter)| (language, scope.spawn(move || asked(workshop, waiter)));
        let running = waiters.map(begin);
        running.map(|(language, it)| (language, it.join().expect("it has waited"))).into()
    });
    println!("{counts:?}");
    let most = MOST * counts[0].1;
    assert!(counts.iter().all(|(_, asked)| (2..=most).contains(asked)), "{counts:?}");
}

/// How often a waiter asks for a lock that somebody else holds.
fn asked(workshop: &Workshop, mut waiter: Command) -> u64 {
    let server = Server::start();
    server.must(&["SET", "held", "theirs"]);
    workshop.succeed(waiter.arg(server.url()));
    server.calls("set") - 1
}

fn in_c(workshop: &Workshop) -> Command {
    let source = workshop.write("waiter.c", &timed(C));
    let compiler = compilers::c(&["c11"]).next().expect("one");
    Command::new(workshop.build(compiler, &[&source]))
}

fn in_python(workshop: &Workshop, name: &str, code: &str) -> Command {
    python(&workshop.write(name, &timed(code)))
}

fn in_ruby(workshop: &Workshop) -> Command {
    let ours = library::root().join("c-examples/ruby/redlock");
    ruby(&workshop.write("waiter.rb", &timed(RUBY).replace("LIBRARY", &ours.to_string_lossy())))
}

fn in_node(workshop: &Workshop) -> Command {
    let ours = library::root().join("c-examples/node");
    let script = timed(NODE).replace("LIBRARY", &ours.to_string_lossy());
    node(&workshop.write("waiter.js", &script), &node::build(workshop, "cc"))
}

fn in_go(workshop: &Workshop) -> Command {
    let ours = library::root().join("c-examples/go");
    let module = format!(
        "module waiter\ngo 1.19\nrequire redlock.example/redlock v0.0.0\n\
         replace redlock.example/redlock => {}\n",
        ours.display()
    );
    let module = workshop.write("go/go.mod", &module);
    workshop.write("go/main.go", &timed(GO));
    let program = workshop.fresh("waiter");
    let module = module.parent().expect("it is in a directory");
    workshop.succeed(go(module).args(["build", "-o"]).arg(&program).arg("."));
    Command::new(program)
}

fn timed(code: &str) -> String {
    code.replace("WAIT_MS", &WAIT_MS.to_string())
}
