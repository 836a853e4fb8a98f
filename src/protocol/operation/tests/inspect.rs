//! Asking whether anybody holds a lock.

use super::super::inspect::Inspect;
use super::*;

fn inspect(play: &mut Play) {
    assert_eq!(play.submit(Inspect::new(b"r")), [Ask(Verb::Inspect, 500)]);
}

fn value(server: usize, value: &str) -> Word {
    (server, Answer::Found { value: value.into(), left_ms: 1_000 })
}

#[test]
fn a_quorum_decides_whether_a_lock_exists() {
    let mut play = Play::of(3);
    inspect(&mut play);
    assert_eq!(play.hear(0, &[value(0, "x")]), []);
    assert_eq!(play.hear(0, &[value(2, "x")]), [ended("locked")]);
    inspect(&mut play);
    assert_eq!(play.hear(1, &[gone(0)]), []);
    assert_eq!(play.hear(1, &[gone(1)]), [ended("free")]);
    inspect(&mut play);
    assert_eq!(play.hear(2, &[value(0, "x"), value(1, "y"), value(2, "z")]), [ended("free")]);
}

/// Whoever is told when a lock ends hears every server that can change that.
#[test]
fn the_end_of_a_lock_needs_all_relevant_answers() {
    let value = |server, left_ms| (server, Answer::Found { value: b"x".to_vec(), left_ms });
    let inspect = |play: &mut Play| {
        assert_eq!(play.submit(Inspect::new(b"r").with_count()), [Ask(Verb::Inspect, 500)]);
    };
    let mut play = Play::of(3);
    inspect(&mut play);
    assert_eq!(play.hear(0, &[value(0, 9_000), value(1, 5_000)]), []);
    assert_eq!(play.hear(0, &[value(2, 9_000)]), [ended("locked")]);
    inspect(&mut play);
    assert_eq!(play.hear(1, &[value(0, 9_000)]), []);
    assert_eq!(play.hear(1, &[value(2, 9_000)]), [ended("locked")]);
    inspect(&mut play);
    play.hear(2, &[value(0, 9_000), value(1, 5_000)]);
    assert_eq!(play.at(500).time_is_up(2), [ended("locked")]);
    // Whoever is only told that it is locked waits for nobody.
    assert_eq!(play.at(0).submit(Inspect::new(b"r")), [Ask(Verb::Inspect, 500)]);
    assert_eq!(play.hear(3, &[value(0, 9_000), value(1, 5_000)]), [ended("locked")]);
}

/// A holder whose lock is being made a shared one. Some servers have its token, and others the mark of readers.
#[test]
fn a_lock_in_a_downgrade_is_found_on_both_parts() {
    let token = "0123456789".repeat(4);
    let (exclusive, shared) = (|it| value(it, &token), |it| value(it, "redlock:shared"));
    let readers = |it| (it, Answer::Shared { readers: 1, left_ms: Some(1_000) });
    let mut play = Play::of(3);
    let ask = |play: &mut Play, call| {
        inspect(play);
        assert_eq!(play.hear(call, &[exclusive(0), shared(1)]), []);
        assert_eq!(play.hear(call, &[gone(2)]), [Ask(Verb::Inspect, 500)]);
    };
    ask(&mut play, 0);
    assert_eq!(play.hear(0, &[exclusive(0), gone(2), exclusive(1)]), [ended("locked")]);
    // Other readers are there.
    ask(&mut play, 1);
    assert_eq!(play.hear(1, &[exclusive(0), gone(2), readers(1)]), [ended("free")]);
    ask(&mut play, 2);
    play.hear(2, &[exclusive(0)]);
    assert_eq!(play.at(500).time_is_up(2), [ended(ONE_OF_THREE)]);
}

#[test]
fn each_possible_downgrade_is_asked_about() {
    let tokens = ["0", "1"].map(|it| it.repeat(40));
    let mut play = Play::of(3);
    inspect(&mut play);
    let first = [value(0, &tokens[0]), value(1, "redlock:shared"), value(2, &tokens[1])];
    assert_eq!(play.hear(0, &first), [Ask(Verb::Inspect, 500)]);
    let none = [value(0, &tokens[0]), gone(1), gone(2)];
    assert_eq!(play.hear(0, &none), [Ask(Verb::Inspect, 500)]);
    let found = [value(0, &tokens[0]), value(1, &tokens[0])];
    assert_eq!(play.hear(0, &found), [ended("locked")]);
    // All these questions together have the time of one.
    inspect(&mut play);
    assert_eq!(play.hear(1, &first), [Ask(Verb::Inspect, 500)]);
    assert_eq!(play.at(300).hear(1, &none), [Ask(Verb::Inspect, 500)]);
    play.at(0).hear(1, &none);
    // Once one holder is found, the servers are not asked about the others.
    inspect(&mut play);
    assert_eq!(play.hear(2, &first), [Ask(Verb::Inspect, 500)]);
    let found = [value(1, &tokens[1]), value(2, &tokens[1])];
    assert_eq!(play.hear(2, &found), [ended("locked")]);
    // A value that is not one of our tokens does not belong to a holder that becomes a reader.
    inspect(&mut play);
    let first = [value(0, "plain"), value(1, "redlock:shared"), gone(2)];
    assert_eq!(play.hear(3, &first), [ended("free")]);
}

/// Readers have the lock on two servers of four, and perhaps on the silent one. An attempt has left its token
/// on the last server.
#[test]
fn a_possible_shared_quorum_is_not_free() {
    let token = "0123456789".repeat(4);
    let readers = |it| (it, Answer::Shared { readers: 1, left_ms: Some(1_000) });
    let mut play = Play::of(4);
    inspect(&mut play);
    let marks = [value(0, "redlock:shared"), value(1, "redlock:shared")];
    assert_eq!(play.hear(0, &[refused(3), value(2, &token)]), []);
    assert_eq!(play.hear(0, &marks), [Ask(Verb::Inspect, 500)]);
    let acts = play.hear(0, &[refused(3), value(2, &token), readers(0), readers(1)]);
    assert!(matches!(&acts[..], [Act::Ended(it)] if it.starts_with("Unreachable: 3 of 4")));
    // The server has no key, so readers have the lock on no other server.
    inspect(&mut play);
    assert_eq!(play.hear(1, &[gone(3), value(2, &token)]), []);
    assert_eq!(play.hear(1, &marks), [Ask(Verb::Inspect, 500)]);
    let acts = play.hear(1, &[refused(3), value(2, &token), readers(0), readers(1)]);
    assert_eq!(acts, [ended("free")]);
}

/// A lock ends on one server before it ends on another, while a third is down.
#[test]
fn differing_answers_leave_the_result_open() {
    let mut play = Play::of(3);
    inspect(&mut play);
    let words = "Unreachable: 2 of 3 servers answered, 2 needed; but the replies differ, and the missing servers \
     could complete a quorum: b:1 OOM: out of memory";
    assert_eq!(play.hear(0, &[refused(1), value(0, "x"), gone(2)]), [ended(words)]);
}

#[test]
fn a_lock_on_all_answering_servers_exists() {
    let mut play = Play::of(3);
    inspect(&mut play);
    assert_eq!(play.hear(0, &[refused(1), value(0, "x"), value(2, "x")]), [ended("locked")]);
}

#[test]
fn too_few_answers_give_no_result() {
    let mut play = Play::of(3);
    inspect(&mut play);
    play.hear(0, &[value(0, "x")]);
    assert_eq!(play.at(500).time_is_up(0), [ended(ONE_OF_THREE)]);
}

#[test]
fn an_inspection_connects_first() {
    let mut play = Play::of(3);
    play.world.connected = 1;
    assert_eq!(play.submit(Inspect::new(b"r")), [Prepare(2)]);
    assert_eq!(play.prepared(0), [Connect(1_500)]);
    assert_eq!(play.hear(0, &[yes(0), yes(1)]), [Prepare(0)]);
    assert_eq!(play.prepared(0), [Connect(2)]);
    assert_eq!(play.at(2).time_is_up(0), [Ask(Verb::Inspect, 502)]);
    assert_eq!(play.hear(0, &[gone(0), gone(1)]), [ended("free")]);
}

#[test]
fn an_inspection_without_connections_fails() {
    let mut play = Play::of(3);
    play.world.connected = 0;
    play.submit(Inspect::new(b"r"));
    play.finds_nobody(0);
}
