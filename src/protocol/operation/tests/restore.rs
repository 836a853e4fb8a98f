//! Restoring the numbers of servers that have lost them: what is read, and what is written where.

use super::world::WALL_US;
use super::*;
use crate::protocol::command::Verb::{ReadFences, RestoreFences};
use crate::protocol::command::guard::MemoryId;
use crate::protocol::command::{Capabilities, Encoder, Fences, FencesState, NotedMemory};
use crate::protocol::operation::restore::Restore;

const TO_RESTORE: FencesState = FencesState::ToRestore { may_go_by_clock: false };
const OVERDUE: FencesState = FencesState::ToRestore { may_go_by_clock: true };

/// A server has numbers up to this one, of its own memory.
fn has(server: usize, state: FencesState, greatest: i64) -> Word {
    let life = MemoryId::from_random(server as u64 + 1);
    let memory = NotedMemory { life, generation: 3 };
    (server, Answer::Fences(Fences { greatest, state, seen_ms: 5, memory: Some(memory) }))
}

fn restore(servers: usize) -> Play {
    let mut play = Play::of(servers);
    assert_eq!(play.submit(Restore::default()), [Ask(ReadFences, 500)]);
    play
}

/// The last arguments of what was told last.
fn written(play: &Play) -> String {
    let request = play.world.told.as_ref().expect("something is told");
    let mut encoder = Encoder::default();
    let bytes = request.encoded(Capabilities::default(), &mut encoder).whole();
    let text = String::from_utf8(bytes).expect("all of it is text");
    let words: Vec<&str> = text.split("\r\n").filter(|it| !it.starts_with(['$', '*'])).collect();
    words[words.len() - 8..].join(" ")
}

#[test]
fn lost_counters_are_restored_from_other_servers() {
    let mut play = restore(3);
    let words =
        [has(0, TO_RESTORE, 2), has(1, FencesState::Whole, 9), has(2, FencesState::Whole, 7)];
    assert_eq!(play.hear(0, &words), [Tell(RestoreFences, vec![0]), ended("stopped")]);
    assert_eq!(written(&play), "3 0000000000000001 9 0 1000000 0 5 ");
}

#[test]
fn with_too_few_answers_the_clock_restores_counters() {
    let mut play = restore(3);
    assert_eq!(play.hear(0, &[has(2, OVERDUE, 2), down(0)]), []);
    let acts = play.at(500).time_is_up(0);
    assert_eq!(acts, [Tell(RestoreFences, vec![2]), ended("stopped")]);
    assert_eq!(written(&play), format!("3 0000000000000003 2 {WALL_US} 1000000 1 5 "));
}

#[test]
fn a_server_that_is_slow_is_not_replaced_by_the_clock() {
    let mut play = restore(3);
    assert_eq!(play.hear(0, &[has(2, TO_RESTORE, 2), down(0)]), []);
    assert_eq!(play.at(500).time_is_up(0), [ended("stopped")]);
}

#[test]
fn only_lost_counters_are_restored() {
    let mut play = restore(5);
    let words = [
        has(0, OVERDUE, 1),
        has(1, FencesState::Whole, 2),
        has(2, FencesState::Lost { ago_ms: 9 }, 3),
        has(3, FencesState::ByClock, 4),
        (4, Answer::Failed(Failure::NoFences)),
    ];
    let acts = play.hear(0, &words);
    assert_eq!(acts, [Tell(RestoreFences, vec![0]), ended("stopped")]);
    let mut play = restore(3);
    let words = [has(0, TO_RESTORE, 1), has(1, TO_RESTORE, 5), has(2, FencesState::ByClock, 3)];
    let told = [0, 1, 2].map(|server| Tell(RestoreFences, vec![server]));
    let acts = play.hear(0, &words);
    assert_eq!(acts, told.into_iter().chain([ended("stopped")]).collect::<Vec<_>>());
    assert_eq!(written(&play), format!("3 0000000000000003 5 {WALL_US} 1000000 0 5 "));
}

#[test]
fn a_cancelled_restore_writes_nothing() {
    let mut play = restore(3);
    play.hear(0, &[has(0, TO_RESTORE, 1)]);
    let acts = play.happen(0, Event::Cancelled { sent: ServerSet::default() });
    assert_eq!(acts, [ended("stopped")]);
}
