//! Children of a process that locks.

use crate::support::program::Running;
use crate::support::proxy::Traffic;
use crate::support::shim::SamePid;
use crate::support::{Cluster, Program, Proxy, Server, wait_until};

#[test]
fn f01_a_lease_and_its_connections_belong_to_one_process() {
    let cluster = Cluster::start(3);
    let proxies: Vec<_> = cluster.iter().map(Proxy::to).collect();
    let urls: Vec<_> = proxies.iter().map(Proxy::url).collect();
    let mut program = Program::compile("fork_lease").start(&urls);

    program.hears("the parent has a lock");
    cluster.wait_until_everywhere("parents");
    cluster.wait_until_everywhere("continued");
    let tokens: Vec<_> = cluster.iter().map(|it| it.get("parents")).collect();
    let parents: Vec<Vec<Traffic>> = proxies.iter().map(Proxy::connections).collect();
    assert!(parents.iter().all(|it| it.len() == 1 && it[0].requests > 0 && !it[0].has_ended));
    program.says("go on");

    program.hears("the child has a lock");
    cluster.wait_until_everywhere("childs");
    assert_ne!(cluster[0].get("childs"), tokens[0]);
    program.says("go on");

    program.hears("the child has locked");
    cluster.wait_until_gone("childs");
    cluster.wait_until_gone("grandchilds");
    let used: Vec<_> = proxies.iter().map(|it| it.connections().len()).collect();
    assert_eq!(used, [3, 3, 3], "child and grandchild have connections of their own");
    program.says("go on");

    program.hears("the children have ended");
    for (proxy, before) in proxies.iter().zip(&parents) {
        let now = proxy.connections();
        assert_eq!(
            now[0].of_the_client(),
            before[0].of_the_client(),
            "something came over the parent's connection, or its end"
        );
        assert_eq!(now.len(), 3, "a child that did not lock has connected");
        wait_until("the connections of the children are closed", || {
            proxy.connections()[1..].iter().all(|it| it.has_ended)
        });
    }
    let now: Vec<_> = cluster.iter().map(|it| it.get("parents")).collect();
    assert_eq!(now, tokens, "the parent's lock is not as it was");
    program.says("go on");

    program.hears("the parent has released");
    for key in ["parents", "continued"] {
        cluster.wait_until_gone(key);
    }
    for (proxy, before) in proxies.iter().zip(&parents) {
        let now = proxy.connections();
        assert!(
            now[0].requests > before[0].requests,
            "the parent did not go on with its connection"
        );
        assert!(now.len() == 3 && !now[0].has_ended, "{now:?}");
    }
    program.says("go on");
    program.ends_well();
}

#[test]
fn f02_parent_and_child_draw_different_tokens() {
    let cluster = Cluster::start(3);
    Program::compile("fork_tokens").run(&cluster.urls());
}

#[test]
fn f01_a_child_of_many_locking_threads_locks_on_its_own() {
    let cluster = Cluster::start(3);
    let mut program = Program::compile("fork_threads").start(&cluster.urls());
    program.hears("all are locking");
    let before: Vec<_> = cluster.iter().map(Server::clients).collect();
    assert!(before.iter().all(|it| it.len() == 1), "{before:?}");
    program.says("go on");
    program.hears("all are locking still");
    for (server, before) in cluster.iter().zip(&before) {
        wait_until("the parent's connection is all there is", || server.clients() == *before);
    }
    program.says("go on");
    program.ends_well();
    for key in ["child", "childs", "thread-0", "thread-15"] {
        cluster.wait_until_gone(key);
    }
}

#[test]
fn f01_a_child_can_free_objects_of_other_threads() {
    let cluster = Cluster::start(3);
    Program::compile("fork_free").run(&cluster.urls());
}

#[test]
fn f01_no_child_hangs_in_a_storm_of_forks() {
    let cluster = Cluster::start(3);
    Program::compile("fork_storm").run(&cluster.urls());
}

#[test]
fn f01_a_child_forked_while_servers_are_added_locks() {
    let cluster = Cluster::start(3);
    Program::compile("fork_adding").run(&cluster.urls());
}

#[test]
fn f01_a_child_forked_during_the_first_call_locks() {
    Program::compile("fork_first").run::<&str>(&[]);
}

#[test]
fn f01_a_child_of_a_background_thread_process_locks() {
    let cluster = Cluster::start(3);
    Program::compile("fork_background").run(&cluster.urls());
}

#[test]
fn f01_a_child_keeps_descriptors_that_it_opened_itself() {
    let cluster = Cluster::start(3);
    Program::compile("fork_descriptors").run(&cluster.urls());
}

#[test]
fn f01_a_child_with_the_pid_of_its_parent_is_no_parent() {
    for shim in [SamePid::new(), SamePid::without_page()] {
        let program = Program::compile("fork_same_pid");
        same_pid(|urls| {
            program.start_in(&shim.environment(), &[&["shim".to_owned()], urls].concat())
        });
    }
}

/// The previous test uses a shim for this. Here the system provides it, where it is permitted.
#[test]
fn f01_pid_1_of_a_nested_namespace_is_another_process() {
    let program = Program::compile("fork_same_pid");
    same_pid(|urls| program.start(&[&["namespaces".to_owned()], urls].concat()));
}

fn same_pid(start: impl FnOnce(&[String]) -> Running) {
    let cluster = Cluster::start(3);
    let mut program = start(&cluster.urls());
    match &*program.hears_a_word() {
        "not permitted" => return program.ends_well(),
        word => assert_eq!(word, "the parent has a lock"),
    }
    cluster.wait_until_everywhere("parents");
    let tokens: Vec<_> = cluster.iter().map(|it| it.get("parents")).collect();
    let parents: Vec<_> = cluster.iter().map(Server::clients).collect();
    program.says("go on");
    for _ in 0..2 {
        program.hears("the child has a lock");
        has_its_own_connections(&cluster, &parents);
        program.says("go on");
    }
    for (server, token) in cluster.iter().zip(&tokens) {
        assert!(server.get("parents").is_none_or(|it| Some(it) == *token));
    }
    program.ends_well();
    for key in ["parents", "childs", "grandchilds"] {
        cluster.wait_until_gone(key);
    }
}

/// There is one more connection to each server, beside the earlier ones.
fn has_its_own_connections(cluster: &Cluster, before: &[Vec<u64>]) {
    for (server, before) in cluster.iter().zip(before) {
        wait_until("the child has a connection of its own, and the parent's is there", || {
            let now = server.clients();
            now.len() == before.len() + 1 && before.iter().all(|it| now.contains(it))
        });
    }
}

#[test]
fn f01_a_logger_may_fork() {
    callback_forks("logger");
}

#[test]
fn f01_a_password_callback_may_fork() {
    callback_forks("password");
}

fn callback_forks(which: &str) {
    const PASSWORD: &str = "s3same-0pen";
    let cluster = Cluster::start(3);
    for server in cluster.iter() {
        let password = format!(">{PASSWORD}");
        server.must(&["ACL", "SETUSER", "locker", "reset", "on", &password, "~*", "+@all"]);
    }
    let arguments = [vec![which.to_owned(), PASSWORD.to_owned()], cluster.urls()].concat();
    let mut program = Program::compile("fork_callback").start(&arguments);
    let mut children = 0;
    loop {
        match &*program.hears_a_word() {
            "break the connections" => cluster.iter().for_each(Server::hang_up),
            "the child has a lock" => {
                children += 1;
                // If the parent was just connecting, it may have no connection yet.
                wait_until("the child has connections of its own", || {
                    cluster.iter().all(|it| it.clients().len() == 1 || it.clients().len() == 2)
                });
            }
            _ => break,
        }
        program.says("go on");
    }
    program.ends_well();
    assert_eq!(children, 8, "every call has had a child");
    for key in ["r", "kept", "childs"] {
        cluster.wait_until_gone(key);
    }
}
