//! Signals that come in the middle of calls.

use std::thread;

use crate::support::{Cluster, Fake, Program};

#[test]
fn f03_a_signal_every_millisecond_is_harmless() {
    let cluster = Cluster::start(3);
    // All ways to connect: an address, a name to look up, a path.
    let servers = [
        cluster[0].url(),
        format!("redis://localhost:{}", cluster[1].port()),
        format!("unix://{}", cluster[2].unix_socket()),
    ];
    Program::compile("signals_timer").run(&servers);
}

#[test]
fn f03_broken_connections_raise_no_sigpipe() {
    let cluster = Cluster::start(3);
    let closing = Fake::closing();
    let mut servers = cluster.urls();
    // A write to a path whose server has hung up is refused at once, with a signal.
    servers[1] = format!("unix://{}", cluster[1].unix_socket());
    servers[2] = format!("unix://{}", cluster[2].unix_socket());
    servers.push(format!("redis://{}", closing.address()));
    let mut program = Program::compile("signals_pipe").start(&servers);
    program.hears("locking");
    for round in 0..60 {
        thread::scope(|scope| {
            for server in cluster.iter() {
                scope.spawn(|| server.hang_up());
            }
        });
        if round % 10 == 0 {
            cluster[round / 10 % 3].restart();
        }
    }
    program.says("all is well again");
    program.ends_well();
}
