use redis::Value::{self, Array, Int};

use super::super::samples::{NOW, TICKET, fresh, request, send, settle};
use super::super::*;
use crate::protocol::command::guard::Borne;
use crate::protocol::command::{Capabilities, Verb};
use crate::protocol::conn::close_reason::CloseReason;
use crate::protocol::conn::guard::{Forgotten, Guard};
use crate::protocol::log_line::Level;

const LIFE: &str = "00000000000000ff";

/// The note of this memory, which the server has had since it was new.
fn note(life: &str) -> Value {
    let text = format!("1 a{} 3 -1 10000 {life}", "0".repeat(39));
    Value::BulkString(text.into_bytes())
}

/// The queue of a server that has this note.
fn guarded() -> Queue {
    let mut queue = fresh();
    let Some(Borne::Note(note)) = Borne::of(&note(LIFE)) else { panic!() };
    queue.lasting.memories.judge(&note, NOW);
    queue.guard = Guard::of(&note, 60_000, None, NOW, &queue.rules);
    queue
}

/// Sends the request at [`NOW`], and has the script answer these numbers after so many milliseconds.
fn ask(queue: &mut Queue, verb: Verb, numbers: &[i64], after_ms: i64) -> Answer {
    let told = ask_of(queue, verb, numbers, after_ms, LIFE);
    told.expect("the connection holds")
}

fn ask_of(
    queue: &mut Queue,
    verb: Verb,
    numbers: &[i64],
    after_ms: i64,
    life: &str,
) -> Result<Answer, CloseReason> {
    queue.push(&request(verb), Some(TICKET), NOW);
    send(queue, NOW);
    let mut replies = vec![Array(numbers.iter().map(|&it| Int(it)).collect()), note(life)];
    if verb == Verb::AcquireFenced {
        let word = |digits: &str| Value::BulkString(digits.as_bytes().to_vec());
        replies.push(Array(vec![word("60"), word("0")]));
    }
    let settled = queue.settle(&mut replies, NOW.plus_ms(after_ms));
    settled.map(|it| it.expect("it is not sent once more").answer)
}

#[test]
fn each_server_gets_the_memory_id_of_its_counters() {
    let fenced = request(Verb::AcquireFenced);
    for (mut queue, ends_with) in [(guarded(), LIFE), (fresh(), "----------------")] {
        queue.push(&fenced, Some(TICKET), NOW);
        let mut outbox = Vec::new();
        queue.send(&mut outbox, Capabilities::default(), NOW);
        let text = String::from_utf8(outbox).unwrap();
        let end = format!("$4\r\n3285\r\n$16\r\n{ends_with}\r\n");
        assert!(text.contains(&end), "{text}");
    }
}

#[test]
fn a_server_with_lost_counters_has_no_fenced_vote() {
    // The TTL is 10 s, and 1 % of it is allowed for each of the two clocks. All is rounded up.
    for (ago_ms, left_s) in [(0, 11), (10_203, 0), (10_202, 1)] {
        let told = ask(&mut guarded(), Verb::AcquireFenced, &[-2, ago_ms], 0);
        assert_eq!(told, Answer::Failed(Failure::Unfenced { left_s }), "{ago_ms}");
        assert_eq!(told.asks_to_restore(), left_s == 0);
    }
    // A deposed master may have drawn numbers for a second more.
    let mut successor = guarded();
    successor.guard = successor.guard.with_lead(1_022);
    let told = ask(&mut successor, Verb::AcquireFenced, &[-2, 10_203], 0);
    assert_eq!(told, Answer::Failed(Failure::Unfenced { left_s: 2 }));
    let told = ask(&mut guarded(), Verb::AcquireFenced, &[-5, 7], 0);
    assert_eq!(told, Answer::Granted { number: 7 });
}

#[test]
fn a_renamed_memory_ends_the_connection() {
    let other = LIFE.replace("ff", "fe");
    for (verb, numbers) in [(Verb::AcquireFenced, &[-2, 7][..]), (Verb::ReadFences, &[1, 7, 0, 0])]
    {
        let told = ask_of(&mut guarded(), verb, numbers, 0, &other);
        assert_eq!(told, Err(CloseReason::Forgotten(Forgotten)));
    }
}

#[test]
fn the_state_of_the_counters_is_reported_per_change() {
    let mut queue = guarded();
    for (numbers, state, words) in [
        (&[-5, 7], None, ""),
        (&[-2, 7], Some(Numbers::Lost), "not restored yet"),
        (&[-2, 8], None, "not restored yet"),
        (&[-3, 9], Some(Numbers::ByClock), "restarted from the clock"),
        (&[-5, 9], Some(Numbers::Known), ""),
    ] {
        ask(&mut queue, Verb::AcquireFenced, numbers, 0);
        assert_eq!(queue.news_of_numbers(), state, "{numbers:?}");
        assert!(queue.caveat().contains(words) && queue.caveat().is_empty() == words.is_empty());
    }
}

#[test]
fn a_refused_counter_is_reported() {
    let mut queue = guarded();
    let damaged = [3, 0, 0, 0];
    assert_eq!(ask(&mut queue, Verb::ReadFences, &damaged, 0), Answer::Failed(Failure::NoFences));
    assert_eq!(queue.news_of_numbers(), Some(Numbers::Damaged));
    ask(&mut queue, Verb::ReadFences, &[0, 7, 0, 5], 0);
    assert_eq!(queue.news_of_numbers(), Some(Numbers::Lost));
    ask(&mut queue, Verb::AcquireFenced, &[-1, 0], 0);
    assert_eq!(queue.news_of_numbers(), Some(Numbers::Damaged));
    // Over another connection, because a script that was sent before goes by its hash.
    let mut queue = guarded();
    queue.push(&request(Verb::ReadFences), Some(TICKET), NOW);
    send(&mut queue, NOW);
    let noperm = redis::parse_redis_value(b"-NOPERM no\r\n").unwrap();
    settle(&mut queue, &[noperm, note(LIFE)]).unwrap();
    assert!(matches!(queue.news_of_numbers(), Some(Numbers::Forbidden(_))));
    let line = queue.numbers.line();
    let said = ["no fencing tokens", "+hmget", "~redlock:fence", "NOPERM: user lacks"];
    assert!(line.0 == Level::Warning && said.iter().all(|it| line.1.contains(it)), "{line:?}");
    assert_eq!(Numbers::Known.line().0, Level::Info);
}

#[test]
fn read_counters_belong_to_a_memory() {
    let told = ask(&mut guarded(), Verb::ReadFences, &[1, 7, 0, 0], 0);
    let Answer::Fences(Fences { greatest: 7, state: FencesState::Whole, memory, .. }) = told else {
        panic!("{told:?}");
    };
    assert_eq!(
        memory.map(|it| (it.life.as_str().to_owned(), it.generation)),
        Some((LIFE.to_owned(), 3))
    );
    let mut blind = fresh();
    blind.push(&request(Verb::ReadFences), Some(TICKET), NOW);
    send(&mut blind, NOW);
    let told = settle(&mut blind, &[Array([1, 7, 0, 0].map(Int).to_vec())]).unwrap();
    assert!(matches!(told.answer, Answer::Failed(_)), "{told:?}");
}

/// What counts is the moment when the numbers of all servers were asked for, because the other servers may have
/// been read right then.
#[test]
fn counters_are_restored_after_all_old_attempts() {
    // The longest TTL in use is the one of the note.
    let wait_ms = guarded().rules.wait_ms(10_000);
    for (ago_ms, after_ms, due) in [
        (wait_ms + 1, 0, Some(false)),
        (wait_ms, 0, None),
        (wait_ms + 9, 9, None),
        (wait_ms + 10, 9, Some(false)),
        (wait_ms + UNREAD_MS, 0, Some(false)),
        (wait_ms + UNREAD_MS + 1, 0, Some(true)),
    ] {
        let told = ask(&mut guarded(), Verb::ReadFences, &[0, 7, ago_ms, 5], after_ms);
        let Answer::Fences(fences) = told else { panic!("{told:?}") };
        let said = match fences.state {
            FencesState::ToRestore { may_go_by_clock } => Some(may_go_by_clock),
            _ => None,
        };
        assert_eq!(said, due, "{ago_ms} {after_ms} {fences:?}");
    }
}
