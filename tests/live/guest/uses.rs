//! Possible uses by a program: freeing at any time, sharing a lease, and making calls from the logger.

use crate::support::{Cluster, Program, Server};

#[test]
fn a_manager_can_be_freed_at_any_moment() {
    let cluster = Cluster::start(3);
    let mut program = Program::compile("guest_free").start(&cluster.urls());
    program.hears("freed with a lock held");
    assert!(cluster.having("kept") >= cluster.quorum(), "{}", cluster.describe("kept"));
    program.says("go on");
    program.hears("freeze the servers");
    cluster.iter().for_each(Server::freeze);
    program.says("go on");
    program.ends_well();
    cluster.iter().for_each(Server::resume);
    // A release that was queued behind the requests is carried out although no call waits for it. The contended
    // lock was released through another manager, and that release may arrive before the acquire on one server.
    for key in ["kept", "other", "outstanding"] {
        cluster.wait_until_gone(key);
    }
}

#[test]
fn a_lease_may_be_used_by_many_threads_at_once() {
    let cluster = Cluster::start(3);
    let mut program = Program::compile("guest_share").start(&cluster.urls());
    program.hears("used");
    for key in ["r-0", "r-1", "r-2"] {
        cluster.wait_until_gone(key);
    }
    program.says("go on");
    program.ends_well();
}

#[test]
fn a_logger_runs_in_the_calling_thread_and_may_call_back() {
    logs("call back");
}

#[test]
fn a_logger_may_use_the_lease_of_its_call() {
    logs("use the lease");
}

#[test]
fn user_data_is_destroyed_once_after_its_last_use() {
    Program::compile("destroy").run::<&str>(&[]);
}

fn logs(how: &str) {
    let servers = [Server::start(), Server::start(), Server::start()];
    servers.iter().for_each(protect);
    let url = |it: &Server| format!("redis://:{PASSWORD}@{}", it.address());
    let arguments = [PASSWORD, how].map(str::to_owned).into_iter().chain(servers.iter().map(url));
    let arguments: Vec<_> = arguments.collect();
    let mut program = Program::compile("guest_logger").start(&arguments);
    loop {
        match &*program.hears_a_word() {
            "break the connections" => servers.iter().for_each(Server::hang_up),
            "kill a server" => servers[0].kill(),
            "start it again" => {
                servers[0].restart();
                protect(&servers[0]);
            }
            _ => break,
        }
        program.says("done");
    }
    program.ends_well();
}

const PASSWORD: &str = "s3same-0pen";

/// From now on new connections need the password.
fn protect(server: &Server) {
    server.must(&["CONFIG", "SET", "requirepass", PASSWORD]);
}
