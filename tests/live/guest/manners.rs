//! The parts of the process that the library leaves alone, and the resources that it uses.

use crate::support::{Cluster, Fake, Fault, Program, Server, ports};

#[test]
fn threads_signals_and_descriptors_are_left_alone() {
    let cluster = Cluster::start(5);
    Program::compile("guest_manners").run(&cluster.urls());
}

#[test]
fn output_to_closed_streams_reaches_no_server() {
    let cluster = Cluster::start(3);
    Program::compile("guest_stdio").run(&cluster.urls());
}

#[test]
fn descriptors_are_given_back() {
    let cluster = Cluster::start(3);
    let mut program = Program::compile("guest_descriptors").start(&cluster.urls());
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

/// The program prints nothing itself, so any output is ours.
#[test]
fn faults_print_nothing() {
    let program = Program::compile("guest_silent");
    let faults = [
        Fault::KILLED,
        Fault::FROZEN,
        Fault::PASSWORD,
        Fault::REPLICA,
        Fault::OUT_OF_MEMORY,
        Fault::LOADING,
        Fault::FORBIDDEN,
    ];
    for fault in faults {
        let cluster = Cluster::start(3);
        let mut program = program.start(&cluster.urls());
        program.hears("called");
        cluster.iter().take(2).for_each(fault.strike);
        program.says("go on");
        program.ends_well();
        cluster.iter().take(2).for_each(fault.mend);
    }
}

#[test]
fn strange_answers_print_nothing() {
    let program = Program::compile("guest_silent");
    let fakes = [
        Fake::silent(),
        Fake::closing(),
        Fake::web(),
        Fake::answering(b"+OK\r\n"),
        Fake::answering(b"$-7\r\n"),
        Fake::answering(b"*1000000000\r\n"),
        Fake::answering(vec![0xff; 1000]),
        Fake::answering(b"-ERR %s %n\r\n"),
    ];
    let mut servers: Vec<_> = fakes.iter().map(|it| format!("redis://{}", it.address())).collect();
    servers.push(format!("redis://127.0.0.1:{}", ports::free()));
    servers.push("unix:///nowhere/to/be/found".to_owned());
    servers.push("redis://no-such-name.invalid".to_owned());
    let mut program = program.start(&servers);
    program.hears("called");
    fakes.iter().for_each(Fake::hang_up);
    program.says("go on");
    program.ends_well();
}

#[test]
fn freed_managers_release_the_memory_of_their_threads() {
    let cluster = Cluster::start(1);
    Program::compile("guest_background").run(&cluster.urls());
}

#[test]
fn an_idle_manager_needs_at_most_64_kib_and_32_per_server() {
    let program = Program::compile("guest_memory");
    for count in [1, 3, 7] {
        let cluster = Cluster::start(count);
        program.run(&[vec!["short".to_owned()], cluster.urls()].concat());
    }
}

#[test]
fn an_idle_manager_keeps_no_memory_for_long_names() {
    let cluster = Cluster::start(3);
    let arguments = [vec!["long".to_owned()], cluster.urls()].concat();
    Program::compile("guest_memory").run(&arguments);
}
