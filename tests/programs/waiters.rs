//! What a waiter costs the servers: as much in every language as in C.

use std::process::Command;
use std::thread;

use crate::compilers;
use crate::go::go;
use crate::library;
use crate::node::{self, node};
use crate::python::python;
use crate::ruby::ruby;
use crate::support::resp::Reply;
use crate::support::{Server, wait_until};
use crate::workshop::Workshop;

const C: &str = r#"
#include "redlock.h"
int main(int argc, char **argv);
int main(int argc, char **argv) {
    RedLock *rl = RedLock_New();
    RedLockLease *lease = RedLockLease_New();
    RedLockStatus status = RedLock_AddServerUrl(rl, argv[argc - 1], 0);
    if (status == REDLOCK_OK) {
        /* OFF */
        status = RedLock_TryLock(rl, "held", 60000, WAIT_MS, lease);
    }
    RedLockLease_Free(lease);
    RedLock_Free(rl);
    return status == REDLOCK_TAKEN ? 0 : 1;
}
"#;

const CPP: &str = r#"
#include "redlock.hpp"
int main(int argc, char **argv) {
    redlock::Manager manager({argv[argc - 1]});
    /* OFF */
    redlock::Mutex mutex(manager, "held", std::chrono::minutes(1));
    return mutex.try_lock_for(std::chrono::milliseconds(WAIT_MS)) ? 1 : 0;
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

const WAIT_MS: &str = "5000";

/// How many times as many requests as the waiter in C a waiter may send. The pauses are random, and a busy
/// machine may stop any of them for a while. A waiter that restarts its pauses every quarter of a second sends
/// five times as many.
const MOST: u64 = 2;

/// They wait at the same time, each at its own server, so that other load on the machine is the same for all of
/// them.
#[test]
fn waiters_in_all_languages_ask_no_more_than_in_c() {
    let workshop = Workshop::new();
    let waiters = [
        ("C", in_c_as(&workshop, &timed())),
        ("Python", in_python_as(&workshop, &timed())),
        ("asyncio", in_asyncio_as(&workshop, &timed())),
        ("Ruby", in_ruby_as(&workshop, &timed())),
        ("Go", in_go_as(&workshop, &timed())),
        ("Node.js", in_node_as(&workshop, &timed())),
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

/// How often a waiter tries to take a lock that another client holds, or checks whether it is held.
fn asked(workshop: &Workshop, mut waiter: Command) -> u64 {
    let server = Server::start();
    server.must(&["SET", "held", "theirs"]);
    workshop.succeed(waiter.arg(server.url()));
    server.calls("set") - 1 + server.calls("exists")
}

/// A waiter in any language joins the queue and is told, unless that is turned off.
#[test]
fn waiters_in_all_languages_are_woken_unless_turned_off() {
    let workshop = Workshop::new();
    let off: [(&str, Waiter, Changes<'_>); 7] = [
        ("C", in_c_as, &[("/* OFF */", "RedLock_SetWaking(rl, false);")]),
        ("C++", in_cpp_as, &[("/* OFF */", "manager.set_waking(false);")]),
        ("Python", in_python_as, &[("(sys.argv[1])", "(sys.argv[1], waking=False)")]),
        ("asyncio", in_asyncio_as, &[("(sys.argv[1])", "(sys.argv[1], waking=False)")]),
        ("Ruby", in_ruby_as, &[("(ARGV[0])", "(ARGV[0], waking: false)")]),
        ("Go", in_go_as, &[("New(", "NewWithOptions(redlock.Options{NoWaking: true}, ")]),
        ("Node.js", in_node_as, &[("[process.argv[2]]", "[process.argv[2]], { waking: false }")]),
    ];
    for (language, waiter, changes) in off {
        let waits = [("WAIT_MS", "1000")];
        let server = Server::start();
        server.must(&["SET", "held", "theirs"]);
        let changes = [changes, &waits].concat();
        workshop.succeed(waiter(&workshop, &changes).arg(server.url()));
        for command in ["hello", "subscribe", "zadd"] {
            assert_eq!(server.calls(command), 0, "{language}: {command}");
        }
        assert!(server.calls("set") > 3, "{language} asks by itself");
        is_told(&workshop, language, waiter(&workshop, &[("WAIT_MS", "60000")]));
    }
}

/// The waiter is far behind other waiters, which are gone. It is told, and takes the lock without looking
/// again.
fn is_told(workshop: &Workshop, language: &str, mut waiter: Command) {
    const LINE: &str = "held:w";
    let server = Server::start();
    server.must(&["SET", "held", "theirs"]);
    let run = thread::scope(|scope| {
        let running = scope.spawn(|| workshop.run(waiter.arg(server.url())));
        wait_until("it stands in line", || server.must(&["ZCARD", LINE]).integer() == 1);
        let Reply::Array(first) = server.must(&["ZRANGE", LINE, "0", "0"]) else { panic!() };
        let channel = first[0].text().expect("a channel");
        for other in 0..40 {
            server.must(&["ZADD", LINE, "1", &format!("gone:{other}")]);
        }
        let looked = server.calls("exists");
        wait_until("it looks how far behind it is", || server.calls("exists") > looked);
        server.must(&["DEL", "held"]);
        server.must(&["ZREM", LINE, &channel]);
        let looked = server.calls("exists");
        assert_eq!(server.must(&["PUBLISH", &channel, "held"]).integer(), 1, "{language} listens");
        let run = running.join().expect("it ends");
        assert_eq!(server.calls("exists"), looked, "{language} was told");
        run
    });
    // The programs fail when they take the lock.
    assert!(!run.status.success(), "{language} has it: {}", run.stderr);
}

/// Each pair is a text and its replacement.
type Changes<'a> = &'a [(&'a str, &'a str)];

type Waiter = fn(&Workshop, Changes<'_>) -> Command;

fn changed(code: &str, changes: Changes<'_>) -> String {
    changes.iter().fold(code.to_owned(), |code, (from, to)| code.replace(from, to))
}

fn in_c_as(workshop: &Workshop, changes: Changes<'_>) -> Command {
    let source = workshop.write("waiter.c", &changed(C, changes));
    let compiler = compilers::c(&["c11"]).next().expect("one");
    Command::new(workshop.build(compiler, &[&source]))
}

fn in_cpp_as(workshop: &Workshop, changes: Changes<'_>) -> Command {
    let source = workshop.write("waiter.cpp", &changed(CPP, changes));
    let compiler = compilers::cxx(&["c++11"]).next().expect("one");
    Command::new(workshop.build(compiler, &[&source]))
}

fn in_python_as(workshop: &Workshop, changes: Changes<'_>) -> Command {
    python(&workshop.write("waiter.py", &changed(PYTHON, changes)))
}

fn in_asyncio_as(workshop: &Workshop, changes: Changes<'_>) -> Command {
    python(&workshop.write("tasks.py", &changed(ASYNCIO, changes)))
}

fn in_ruby_as(workshop: &Workshop, changes: Changes<'_>) -> Command {
    let ours = library::root().join("bindings/ruby/lib/redlock");
    let script = changed(RUBY, changes).replace("LIBRARY", &ours.to_string_lossy());
    ruby(&workshop.write("waiter.rb", &script))
}

fn in_node_as(workshop: &Workshop, changes: Changes<'_>) -> Command {
    let ours = library::root().join("bindings/node");
    let script = changed(NODE, changes).replace("LIBRARY", &ours.to_string_lossy());
    node(&workshop.write("waiter.js", &script), &node::build(workshop, "cc"))
}

fn timed() -> [(&'static str, &'static str); 1] {
    [("WAIT_MS", WAIT_MS)]
}

fn in_go_as(workshop: &Workshop, changes: Changes<'_>) -> Command {
    let ours = library::root().join("bindings/go");
    let module = format!(
        "module waiter\ngo 1.19\nrequire redlock.example/redlock v0.0.0\n\
         replace redlock.example/redlock => {}\n",
        ours.display()
    );
    let module = workshop.write("go/go.mod", &module);
    workshop.write("go/main.go", &changed(GO, changes));
    let program = workshop.fresh("waiter");
    let module = module.parent().expect("it is in a directory");
    workshop.succeed(go(module).args(["build", "-o"]).arg(&program).arg("."));
    Command::new(program)
}
