//! A network of its own for a test, in which packets between two places can be dropped. Servers, Sentinels and clients are
//! all on loopback, as in other tests. What is to be cut off connects from [`MAINLAND`].

use std::env;
use std::process::{Command, Stdio};

use super::product::product;
use super::sentinels::{Group, Sentinel};
use super::servers::Server;

/// The address from which Sentinels and the copies of a master connect.
const MAINLAND: &str = "127.0.0.2";

/// Which Sentinels and servers also need: they take connections from [`MAINLAND`], and clients find them at another
/// address than the one that they connect from.
const SENTINEL: [&str; 2] = ["protected-mode no", "sentinel announce-ip 127.0.0.1"];
const SERVER: [&str; 6] = [
    "--protected-mode",
    "no",
    "--replica-announce-ip",
    "127.0.0.1",
    "--repl-diskless-sync-delay",
    "0",
];

/// The setting for the address from which a server connects. Before Redis 7.0 it is the first one that it listens on.
fn source() -> (&'static str, Vec<&'static str>) {
    match product().is_before_7() {
        true => ("bind", vec![MAINLAND, "127.0.0.1"]),
        false => ("bind-source-addr", vec![MAINLAND]),
    }
}

/// A server that connects to others from the mainland.
pub(crate) fn server() -> Server {
    let (name, values) = source();
    let name = format!("--{name}");
    let arguments: Vec<_> = SERVER.into_iter().chain([&*name]).chain(values).collect();
    Server::start_with(&arguments)
}

/// A Sentinel on the mainland, of three.
pub(crate) fn sentinel(group: &Group) -> Sentinel {
    let (name, values) = source();
    let line = format!("{name} {}", values.join(" "));
    let lines: Vec<_> = SENTINEL.into_iter().chain([&*line]).collect();
    Sentinel::start_with(&[group.master_port()], 2, &lines)
}

/// Runs an ignored test of this program in a network of its own. Linux makes one for root, and for others if the
/// system lets them (`kernel.apparmor_restrict_unprivileged_userns`, the settings of a container).
#[track_caller]
pub(crate) fn run_apart(test: &str) {
    let this = env::current_exe().expect("the program has a path");
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--net"]).arg(this);
    command.args(["--exact", "--ignored", "--nocapture", test]).stdin(Stdio::null());
    let output = command.output().expect("unshare (util-linux) can be run");
    let said = [&output.stdout[..], &output.stderr].map(String::from_utf8_lossy).concat();
    // Without a test of this name, nothing would fail.
    let has_run = said.contains("test result: ok. 1 passed");
    assert!(has_run, "{test} in a network of its own: {}\n{said}", output.status);
}

/// Makes the network ready for packets, and for rules that come before the one for local addresses.
pub(crate) fn prepare() {
    ip("link set lo up");
    ip("rule add pref 100 lookup local");
    ip("rule del pref 0");
}

/// From now on, nothing that is sent from the mainland to this server arrives, nor what it sends there.
pub(crate) fn cut_off(server: &Server) {
    each_way(server, "add");
}

pub(crate) fn heal(server: &Server) {
    each_way(server, "del");
}

fn each_way(server: &Server, verb: &str) {
    let port = server.port();
    ip(&format!("rule {verb} pref 1 from {MAINLAND} ipproto tcp dport {port} blackhole"));
    ip(&format!("rule {verb} pref 2 to {MAINLAND} ipproto tcp sport {port} blackhole"));
}

#[track_caller]
fn ip(words: &str) {
    let output = Command::new("ip").args(words.split(' ')).output();
    let output = output.expect("ip (iproute2) can be run");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {words}: {said}");
}
