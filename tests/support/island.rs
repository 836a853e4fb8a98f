//! A network of its own for a test, in which packets between two places can be dropped. Servers, Sentinels and clients are
//! all on loopback, as in other tests. What is to be cut off connects from [`MAINLAND`].

use std::env;
use std::process::{Command, Stdio};

use super::product::product;
use super::sentinels::{Group, Sentinel};
use super::servers::Server;

/// The address from which Sentinels and the copies of a master connect, and all nodes of a cluster except the one that is to
/// be cut off.
const MAINLAND: &str = "127.0.0.2";

/// That of the node that is to be cut off. It connects to others as well as they do to it.
const ISLE: &str = "127.0.0.3";

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

/// What a node of a cluster needs for that.
const NODE: [&str; 4] = ["--protected-mode", "no", "--cluster-announce-ip", "127.0.0.1"];

/// The setting for the address from which a server connects. Before Redis 7.0 it is the first one that it listens on.
fn source(address: &str) -> (&'static str, Vec<&str>) {
    match product().is_before_7() {
        true => ("bind", vec![address, "127.0.0.1"]),
        false => ("bind-source-addr", vec![address]),
    }
}

/// The arguments of a server that connects to others from this address, with these more.
fn arguments(more: &[&str], address: &str) -> Vec<String> {
    let (name, values) = source(address);
    let name = format!("--{name}");
    more.iter().chain(&[&*name]).chain(&values).map(|&it| it.to_owned()).collect()
}

/// A server that connects to others from the mainland.
pub(crate) fn server() -> Server {
    let arguments = arguments(&SERVER, MAINLAND);
    Server::start_with(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
}

/// The arguments of a node of a cluster. The first one can be cut off.
pub(crate) fn node(nth: usize) -> Vec<String> {
    arguments(&NODE, if nth == 0 { ISLE } else { MAINLAND })
}

/// A Sentinel on the mainland, of three.
pub(crate) fn sentinel(group: &Group) -> Sentinel {
    let (name, values) = source(MAINLAND);
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
    between("add", MAINLAND, server.port());
}

pub(crate) fn heal(server: &Server) {
    between("del", MAINLAND, server.port());
}

/// The same for the first node of a cluster. The nodes talk to each other on these ports, of which the first one is its own.
pub(crate) fn cut_off_node(server: &Server, buses: &[u16]) {
    each_way_of_node(server, buses, "add");
}

pub(crate) fn heal_node(server: &Server, buses: &[u16]) {
    each_way_of_node(server, buses, "del");
}

fn each_way_of_node(server: &Server, buses: &[u16], verb: &str) {
    [server.port(), buses[0]].into_iter().for_each(|port| between(verb, MAINLAND, port));
    ip(&format!("rule {verb} pref 1 from {ISLE} ipproto tcp blackhole"));
    ip(&format!("rule {verb} pref 2 to {ISLE} ipproto tcp blackhole"));
    // A node that cannot connect from its own address tries it from this one.
    buses.iter().for_each(|port| between(verb, "127.0.0.1", *port));
}

/// What is sent from this address to this port, and back.
fn between(verb: &str, address: &str, port: u16) {
    ip(&format!("rule {verb} pref 1 from {address} ipproto tcp dport {port} blackhole"));
    ip(&format!("rule {verb} pref 2 to {address} ipproto tcp sport {port} blackhole"));
}

#[track_caller]
fn ip(words: &str) {
    let output = Command::new("ip").args(words.split(' ')).output();
    let output = output.expect("ip (iproute2) can be run");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {words}: {said}");
}
