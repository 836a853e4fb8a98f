//! Calls that make no sense.

use crate::support::{Cluster, Program, Server};

/// A C program makes all combinations of bad and good arguments, twice. Then it checks whether the second time
/// has cost memory or descriptors. `tests/live/ffi` checks the words of such calls.
#[test]
fn x01_thousands_of_bad_calls_send_nothing() {
    let cluster = Cluster::start(3);
    let mut program = Program::compile("guest_misuse").start(&cluster.urls());
    program.hears("held");
    cluster.wait_until_everywhere("held");
    let look = |server: &Server| (server.get("held"), statistics(server));
    let before: Vec<_> = cluster.iter().map(look).collect();
    program.says("go on");
    let refused = program.hears_a_word();
    let count = refused.strip_prefix("refused ").and_then(|it| it.parse::<u32>().ok());
    let Some(count) = count else { return program.ends_well() };
    println!("{count} bad calls, and all of them again");
    assert!(count >= 2_000, "only {count}");
    for (server, (token, (commands, connections))) in cluster.iter().zip(before) {
        // A look is two commands.
        assert_eq!(look(server), (token, (commands + 2, connections)), "something was sent");
        assert_eq!(server.locks(), 1);
    }
    program.says("go on");
    program.ends_well();
    cluster.wait_until_gone("held");
}

/// How many commands the server has carried out before this one, and how many connections it has had.
fn statistics(server: &Server) -> (u64, u64) {
    let text = server.must(&["INFO", "stats"]).text().expect("statistics");
    let number =
        |name: &str| text.lines().find_map(|it| it.strip_prefix(name)?.trim().parse().ok());
    let commands = number("total_commands_processed:").expect("it counts its commands");
    (commands, number("total_connections_received:").expect("it counts its connections"))
}
