//! The library is a guest, also when it uses TLS. Programs of `tests/programs/c` check its effects in their
//! process, over servers with TLS.

use crate::support::proxy::Traffic;
use crate::support::{Cluster, Fault, Program, Proxy, Server, wait_until};

const AUTHORITY: &str = "REDLOCK_TEST_TLS_CA";

/// The environment with which a program trusts these servers.
fn trust(cluster: &Cluster) -> [(&'static str, String); 1] {
    [(AUTHORITY, cluster.authority_file().expect("they have TLS"))]
}

#[track_caller]
fn runs(name: &str) {
    let cluster = Cluster::start_tls(3);
    Program::compile(name).start_in(&trust(&cluster), &cluster.urls()).ends_well();
}

#[test]
fn threads_signals_and_descriptors_are_left_alone() {
    runs("guest_manners");
}

#[test]
fn descriptors_are_given_back() {
    let cluster = Cluster::start_tls(3);
    let program = Program::compile("guest_descriptors");
    let mut program = program.start_in(&trust(&cluster), &cluster.urls());
    loop {
        match &*program.hears_a_word() {
            "break the connections" => cluster.iter().for_each(Server::hang_up),
            "freeze the servers" => cluster.iter().for_each(|it| it.freeze()),
            "kill the servers" => cluster.iter().for_each(|it| it.kill()),
            _ => break,
        }
        program.says("done");
    }
    program.ends_well();
}

/// Handshakes that fail in every way: refused by us, by them, cut short, stalled.
#[test]
fn descriptors_and_memory_of_failed_handshakes_are_freed() {
    let cluster = Cluster::start_tls(3);
    let strangers = crate::strangers::of_many_kinds();
    let urls: Vec<_> = strangers.iter().map(|it| it.url.clone()).collect();
    let arguments = [urls, cluster.urls()].concat();
    Program::compile("tls_failing").start_in(&trust(&cluster), &arguments).ends_well();
}

#[test]
fn faults_print_nothing() {
    let program = Program::compile("guest_silent");
    for fault in [Fault::KILLED, Fault::FROZEN, Fault::PASSWORD, Fault::LOADING] {
        let cluster = Cluster::start_tls(3);
        let mut program = program.start_in(&trust(&cluster), &cluster.urls());
        program.hears("called");
        cluster.iter().take(2).for_each(fault.strike);
        program.says("go on");
        program.ends_well();
        cluster.iter().take(2).for_each(fault.mend);
    }
}

#[test]
fn strange_answers_print_nothing() {
    let cluster = Cluster::start_tls(1);
    let strangers = crate::strangers::of_many_kinds();
    let urls: Vec<_> = strangers.iter().map(|it| it.url.clone()).collect();
    let mut program = Program::compile("guest_silent").start_in(&trust(&cluster), &urls);
    program.hears("called");
    program.says("go on");
    program.ends_well();
}

/// Nothing is sent over the parent's connections when a child locks, forks, and ends: neither a request nor the
/// closing message of TLS.
#[test]
fn a_lease_and_its_connections_belong_to_one_process() {
    let cluster = Cluster::start_tls(3);
    let proxies: Vec<_> = cluster.iter().map(Proxy::to).collect();
    let urls: Vec<_> = proxies.iter().map(Proxy::url).collect();
    let mut program = Program::compile("fork_lease").start_in(&trust(&cluster), &urls);

    program.hears("the parent has a lock");
    cluster.wait_until_everywhere("parents");
    cluster.wait_until_everywhere("continued");
    let parents: Vec<Vec<Traffic>> = proxies.iter().map(Proxy::connections).collect();
    assert!(parents.iter().all(|it| it.len() == 1 && it[0].requests > 0 && !it[0].has_ended));
    program.says("go on");
    program.hears("the child has a lock");
    cluster.wait_until_everywhere("childs");
    program.says("go on");
    program.hears("the child has locked");
    cluster.wait_until_gone("childs");
    cluster.wait_until_gone("grandchilds");
    program.says("go on");

    program.hears("the children have ended");
    for (proxy, before) in proxies.iter().zip(&parents) {
        let now = proxy.connections();
        assert_eq!(
            now[0].of_the_client(),
            before[0].of_the_client(),
            "something came over the parent's connection, or its end"
        );
        assert_eq!(now.len(), 3, "child and grandchild have connections of their own");
        wait_until("the connections of the children are closed", || {
            proxy.connections()[1..].iter().all(|it| it.has_ended)
        });
    }
    program.says("go on");
    program.hears("the parent has released");
    for key in ["parents", "continued"] {
        cluster.wait_until_gone(key);
    }
    for (proxy, before) in proxies.iter().zip(&parents) {
        let now = proxy.connections();
        assert!(now[0].requests > before[0].requests, "the parent did not go on with its own");
        assert!(now.len() == 3 && !now[0].has_ended, "{now:?}");
    }
    program.says("go on");
    program.ends_well();
}

#[test]
fn a_child_of_many_locking_threads_locks_on_its_own() {
    let cluster = Cluster::start_tls(3);
    let program = Program::compile("fork_threads");
    let mut program = program.start_in(&trust(&cluster), &cluster.urls());
    for word in ["all are locking", "all are locking still"] {
        program.hears(word);
        program.says("go on");
    }
    program.ends_well();
    for key in ["child", "childs", "thread-0", "thread-15"] {
        cluster.wait_until_gone(key);
    }
}

#[test]
fn no_child_hangs_in_a_storm_of_forks() {
    runs("fork_storm");
}

#[test]
fn a_child_can_free_objects_of_other_threads() {
    runs("fork_free");
}

#[test]
fn a_child_keeps_descriptors_that_it_opened_itself() {
    runs("fork_descriptors");
}

#[test]
fn signals_are_harmless() {
    runs("signals_timer");
}

#[test]
fn threads_may_end_in_any_way() {
    runs("thread_ends");
}

#[test]
fn a_lease_may_be_used_by_many_threads_at_once() {
    let cluster = Cluster::start_tls(3);
    let program = Program::compile("guest_share");
    let mut program = program.start_in(&trust(&cluster), &cluster.urls());
    program.hears("used");
    program.says("go on");
    program.ends_well();
}
