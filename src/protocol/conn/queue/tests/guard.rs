use super::super::samples::{NOW, TICKET, fresh, request, send, settle};
use std::sync::Arc;

use super::super::*;
use crate::protocol::command::Verb;
use crate::protocol::command::guard::Borne;
use crate::protocol::command::identity::RunId;
use crate::protocol::conn::guard::Forgotten;
use crate::protocol::conn::memories::{Lasting, Verdict};
use crate::protocol::conn::queue::samples::SERVER;

fn note(since_ms: i64, longest_ms: i64) -> Value {
    later_note(1, since_ms, longest_ms)
}

/// The note of the one memory that these tests know, of this generation.
fn later_note(generation: i64, since_ms: i64, longest_ms: i64) -> Value {
    let id = RunId::sample('a');
    let (id, life) = (id.as_str(), "0000000000000007");
    let text = format!("1 {id} {generation} {since_ms} {longest_ms} {life}");
    Value::BulkString(text.into_bytes())
}

/// The note of another memory of the same process.
fn other_note() -> Value {
    other_note_of(2)
}

fn other_note_of(generation: i64) -> Value {
    let Value::BulkString(text) = later_note(generation, -1, 10_000) else { panic!() };
    let text = String::from_utf8(text).unwrap();
    Value::BulkString(text.replace("0000000000000007", "0000000000000008").into_bytes())
}

/// What the clock shows at [`NOW`].
fn time() -> Value {
    let word = |digits: &str| Value::BulkString(digits.as_bytes().to_vec());
    Value::Array(vec![word("60"), word("0")])
}

fn refused_by_acl() -> Value {
    redis::parse_redis_value(b"-NOPERM no\r\n").unwrap()
}

/// The queue of a server that has this note and whose clock shows 60 s.
fn guarded(since_ms: i64, longest_ms: i64) -> Queue {
    let mut queue = fresh();
    let Some(Borne::Note(note)) = Borne::of(&note(since_ms, longest_ms)) else { panic!() };
    queue.lasting.memories.judge(&note, NOW);
    queue.guard = Guard::of(&note, 60_000, None, NOW, &queue.rules);
    queue
}

#[test]
fn a_grant_counts_if_the_server_knew_all_locks() {
    // The TTL is 10 s, and 1 % of it is allowed for each of the two clocks.
    for (since_ms, sent_ms, counts) in
        [(-1, 0, true), (49_797, 0, true), (49_798, 0, false), (49_798, 1, true)]
    {
        let mut queue = guarded(since_ms, 10_000);
        queue.push(&request(Verb::Acquire), Some(TICKET), NOW);
        send(&mut queue, NOW.plus_ms(sent_ms));
        let replies = [Value::Okay, Value::Int(10_000), note(since_ms, 10_000), time()];
        let told = settle(&mut queue, &replies).unwrap();
        assert_eq!(told.answer == Answer::Done, counts, "{since_ms} {sent_ms} {told:?}");
        let refused = [Value::Nil, Value::Int(5), note(since_ms, 10_000), time()];
        queue.push(&request(Verb::Acquire), Some(TICKET), NOW);
        send(&mut queue, NOW);
        let told = settle(&mut queue, &refused).unwrap();
        assert_eq!(told.answer, Answer::Foreign { left_ms: Some(5) });
    }
}

#[test]
fn a_fencing_token_of_a_forgetful_server_does_not_count() {
    let granted = Value::Array(vec![Value::Int(-5), Value::Int(7)]);
    for (verb, reply, answer) in [
        (Verb::AcquireFenced, granted, Answer::Granted { number: 7 }),
        (Verb::RaiseFence, Value::Int(1), Answer::Done),
    ] {
        for (since_ms, counts) in [(-1, true), (59_999, false)] {
            let mut queue = guarded(since_ms, 10_000);
            queue.push(&request(verb), Some(TICKET), NOW);
            send(&mut queue, NOW);
            // A request that sets no key need not show the clock.
            let replies = |note| {
                let clock = (verb == Verb::AcquireFenced).then(time);
                let replies = [reply.clone(), note].into_iter().chain(clock);
                replies.collect::<Vec<_>>()
            };
            let told = settle(&mut queue, &replies(note(since_ms, 10_000))).unwrap();
            assert_eq!(told.answer == answer, counts, "{told:?}");
            queue.push(&request(verb), Some(TICKET), NOW);
            send(&mut queue, NOW);
            let told = settle(&mut queue, &replies(other_note()));
            assert_eq!(told, Err(CloseReason::Forgotten(Forgotten)));
        }
    }
}

#[test]
fn the_longest_ttl_of_other_clients_counts() {
    let mut queue = guarded(45_000, 20_000);
    for (generation, longest_ms, left_s) in [(1, 20_000, 6), (2, 30_000, 16)] {
        queue.push(&request(Verb::Acquire), Some(TICKET), NOW);
        send(&mut queue, NOW);
        let replies =
            [Value::Okay, Value::Int(10_000), later_note(generation, 45_000, longest_ms), time()];
        let told = settle(&mut queue, &replies).unwrap();
        let doubt = Failure::Forgot { ago_s: 14, left_s };
        assert_eq!(told.answer, Answer::Failed(doubt));
    }
}

#[test]
fn a_grant_of_another_memory_ends_the_connection() {
    let busy = redis::parse_redis_value(b"-BUSY no\r\n").unwrap();
    for borne in [other_note(), Value::BulkString(Vec::new()), busy, Value::Okay] {
        let mut queue = guarded(-1, 10_000);
        queue.push(&request(Verb::Acquire), Some(TICKET), NOW);
        send(&mut queue, NOW);
        let told = settle(&mut queue, &[Value::Okay, Value::Int(10_000), borne, time()]);
        assert_eq!(told, Err(CloseReason::Forgotten(Forgotten)));
        // The waiting call is told when the connection fails all its requests.
        let mut failed = Vec::new();
        queue.fail(|ticket, was_sent| failed.push((ticket, was_sent)));
        assert_eq!(failed, [(TICKET, true)]);
    }
}

/// Another client has noted a longer TTL, or has corrected the time of the note. Then an older note of the
/// same memory is brought back.
#[test]
fn a_later_note_is_followed_and_an_older_one_is_not() {
    let mut queue = guarded(-1, 10_000);
    let mut hear = |note| {
        queue.push(&request(Verb::Acquire), Some(TICKET), NOW);
        send(&mut queue, NOW);
        settle(&mut queue, &[Value::Okay, Value::Int(10_000), note, time()])
    };
    for note in [later_note(2, -1, 20_000), later_note(3, 59_000, 20_000)] {
        assert_eq!(hear(note).unwrap().answer, Answer::Done);
    }
    assert_eq!(hear(later_note(2, -1, 20_000)), Err(CloseReason::Forgotten(Forgotten)));
}

/// It may have been a replica, and so have the memory of another server with the same note.
#[test]
fn a_quiet_server_is_asked_about_a_promotion() {
    let promoted = || Value::BulkString("ab".repeat(20).into_bytes());
    let mut queue = guarded(-1, 10_000);
    let mut ask = |at_ms, replies: &[Value]| {
        // Its clock is of no interest here.
        let now = NOW.plus_ms(at_ms);
        queue.push(&request(Verb::Acquire), Some(TICKET), now);
        let mut outbox = Vec::new();
        queue.send(&mut outbox, Capabilities::PLAIN, now);
        let settled = queue.settle(&mut replies.to_vec(), now);
        queue.lasting = Arc::default();
        let is_asked = String::from_utf8_lossy(&outbox).contains("master_replid2");
        (is_asked, settled.map(|it| it.expect("it is not sent once more").answer))
    };
    let granted = [Value::Okay, Value::Int(10_000), note(-1, 10_000), time()];
    let said = |first| [&[first][..], &granted].concat();
    assert_eq!(ask(49, &granted), (false, Ok(Answer::Done)));
    assert_eq!(ask(98, &granted), (false, Ok(Answer::Done)));
    let silent = [refused_by_acl(), Value::Nil, Value::BulkString(b"0".repeat(40))];
    for (at_ms, silent) in [150, 250, 350].into_iter().zip(silent) {
        assert_eq!(ask(at_ms, &said(silent)), (true, Ok(Answer::Done)));
        assert_eq!(ask(at_ms + 49, &granted), (false, Ok(Answer::Done)));
    }
    let forgotten = || Err(CloseReason::Forgotten(Forgotten));
    assert_eq!(ask(450, &said(promoted())), (true, forgotten()));
    // It takes writes although it is a replica.
    let replica = Value::BulkString(b"replica".to_vec());
    assert_eq!(ask(500, &said(replica)), (true, forgotten()));
}

/// The server is a replica, has another memory, or has lost a part of this one. The next connection may not find the note
/// any more.
#[test]
fn a_note_that_ends_the_connection_tells_the_longest_ttl() {
    let replica = Value::BulkString(b"replica".to_vec());
    let Value::BulkString(text) = later_note(2, -1, 60_000) else { panic!() };
    let text = String::from_utf8(text).unwrap();
    let other = text.replace("0000000000000007", "0000000000000008");
    for (at_ms, told, note) in [(200, vec![replica], text), (0, vec![], other)] {
        for granted in [Value::Okay, Value::Nil] {
            let (mut queue, now) = (guarded(-1, 10_000), NOW.plus_ms(at_ms));
            queue.push(&request(Verb::Acquire), Some(TICKET), now);
            queue.send(&mut Vec::new(), Capabilities::PLAIN, now);
            let note = Value::BulkString(note.clone().into_bytes());
            let replies = [&told[..], &[granted, Value::Int(10_000), note, time()]].concat();
            let _ = queue.settle(&mut replies.clone(), now);
            assert_eq!(queue.rules.longest_ms(), 60_000);
        }
    }
}

/// A node of a cluster that has given the slot away. Elsewhere these are words of a user who may not read the note.
#[test]
fn a_node_without_the_slot_has_no_vote() {
    let moved = || redis::parse_redis_value(b"-MOVED 1 10.0.0.1:6379\r\n").unwrap();
    let replies = |place: usize| {
        let mut replies = vec![Value::Okay, Value::Int(10_000), note(-1, 10_000), time()];
        replies[place] = moved();
        replies
    };
    for (prefix, place) in [(&b"{a}"[..], 0), (b"{a}", 1), (b"{a}", 2), (b"", 2)] {
        let mut queue = guarded(-1, 10_000);
        queue.lasting = Arc::new(Lasting::with_prefix(prefix));
        queue.push(&request(Verb::Acquire), Some(TICKET), NOW);
        send(&mut queue, NOW);
        let told = settle(&mut queue, &replies(place));
        match prefix {
            b"" => assert!(told.is_ok() && queue.guard.is_blind()),
            _ => assert_eq!(told, Err(CloseReason::SlotMoved), "{place}"),
        }
    }
}

/// Also those of the questions that the connection adds: for the note, and for waiters.
#[test]
fn each_key_of_a_slot_has_its_tag() {
    let lasting = Arc::new(Lasting::with_prefix(b"{a}"));
    let mut queue = Queue::new(SERVER, &Arc::default(), &lasting);
    queue.guard = guarded(-1, 10_000).guard;
    for verb in [Verb::Acquire, Verb::ReleaseAndWake] {
        queue.push(&request(verb), None, NOW);
    }
    let mut outbox = Vec::new();
    queue.send(&mut outbox, Capabilities::WAKING_DELIFEQ, NOW);
    let sent = String::from_utf8(outbox).expect("words");
    let words: Vec<&str> = sent.split("\r\n").collect();
    for question in ["EXISTS", "GETRANGE", "SET", "DELIFEQ"] {
        let at = words.iter().position(|it| *it == question).unwrap_or_else(|| panic!("{sent}"));
        assert!(words[at + 2].starts_with("{a}"), "{question} {}", words[at + 2]);
    }
}

/// The server was promoted, or has another memory. The next connection may find an older note.
#[test]
fn a_note_that_ends_the_connection_is_remembered() {
    let promoted = Value::BulkString("ab".repeat(20).into_bytes());
    for (at_ms, told, note, older) in [
        (200, vec![promoted], later_note(3, -1, 10_000), later_note(2, -1, 10_000)),
        (0, vec![], other_note_of(3), other_note_of(2)),
    ] {
        for granted in [Value::Okay, Value::Nil] {
            let (mut queue, now) = (guarded(-1, 10_000), NOW.plus_ms(at_ms));
            queue.push(&request(Verb::Acquire), Some(TICKET), now);
            queue.send(&mut Vec::new(), Capabilities::PLAIN, now);
            let behind = [granted, Value::Int(10_000), note.clone(), time()];
            let _ = queue.settle(&mut [&told[..], &behind].concat(), now);
            let Some(Borne::Note(older)) = Borne::of(&older) else { panic!() };
            assert_eq!(queue.lasting.memories.judge(&older, now), Verdict::Older);
        }
    }
}

/// The next connection finds the note of before, because the server has an old copy of it, and no promotion, because the
/// server has forgotten it.
#[test]
fn a_promotion_that_was_seen_counts_after_the_server_has_forgotten_it() {
    let (mut queue, now) = (guarded(-1, 10_000), NOW.plus_ms(200));
    queue.push(&request(Verb::Acquire), Some(TICKET), now);
    queue.send(&mut Vec::new(), Capabilities::PLAIN, now);
    let promoted = Value::BulkString("ab".repeat(20).into_bytes());
    let replies = [promoted, Value::Okay, Value::Int(10_000), note(-1, 10_000), time()];
    let forgotten = CloseReason::Forgotten(Forgotten);
    assert_eq!(queue.settle(&mut replies.to_vec(), now), Err(forgotten));
    let Some(Borne::Note(same)) = Borne::of(&note(-1, 10_000)) else { panic!() };
    let verdict = queue.lasting.memories.judge(&same, now.plus_ms(10));
    assert_eq!(verdict, Verdict::Sound { found_at: Some(now) });
}

/// It is promoted soon, and may not show it by then.
#[test]
fn a_refusing_replica_has_another_memory() {
    let mut queue = guarded(-1, 10_000);
    let mut ask = |replies: &[Value]| {
        queue.push(&request(Verb::Acquire), Some(TICKET), NOW);
        let mut outbox = Vec::new();
        queue.send(&mut outbox, Capabilities::PLAIN, NOW);
        let is_asked = String::from_utf8_lossy(&outbox).contains("master_replid2");
        let settled = queue.settle(&mut replies.to_vec(), NOW);
        (is_asked, settled.map(|it| it.expect("it is not sent once more").answer))
    };
    let readonly = redis::parse_redis_value(b"-READONLY no\r\n").unwrap();
    let refused = [readonly, Value::Int(-2), note(-1, 10_000), time()];
    assert!(matches!(ask(&refused), (false, Ok(Answer::Failed(_)))));
    let shows_nothing = Value::BulkString(b"0".repeat(40));
    let granted = [shows_nothing, Value::Okay, Value::Int(10_000), note(-1, 10_000), time()];
    assert_eq!(ask(&granted), (true, Err(CloseReason::Forgotten(Forgotten))));
}

#[test]
fn one_write_asks_for_the_role_once() {
    let (mut queue, later) = (guarded(-1, 10_000), NOW.plus_ms(1_000));
    for _ in 0..3 {
        queue.push(&request(Verb::Acquire), Some(TICKET), later);
    }
    let mut outbox = Vec::new();
    queue.send(&mut outbox, Capabilities::PLAIN, later);
    assert_eq!(String::from_utf8_lossy(&outbox).matches("master_replid2").count(), 1);
}

/// A slow answer may have been given at any time on its way, also just before it came.
#[test]
fn a_slow_answer_shows_no_step() {
    let word = |number: i64| Value::BulkString(number.to_string().into_bytes());
    let time = |ms: i64| Value::Array(vec![word(ms / 1_000), word(ms % 1_000 * 1_000)]);
    for capabilities in [Capabilities::PLAIN, Capabilities::EXPIRY_TIME] {
        let mut queue = guarded(-1, 10_000);
        let mut ask = |sent_ms, heard_ms, shown_ms| {
            queue.guard.role_asked(NOW.plus_ms(sent_ms));
            queue.push(&request(Verb::Acquire), Some(TICKET), NOW.plus_ms(sent_ms));
            queue.send(&mut Vec::new(), capabilities, NOW.plus_ms(sent_ms));
            let is_timed = capabilities == Capabilities::EXPIRY_TIME;
            let left = if is_timed { ends(shown_ms) } else { Value::Int(10_000) };
            let clock = (!is_timed).then(|| time(shown_ms));
            let replies = [Value::Okay, left, note(-1, 10_000)].into_iter().chain(clock);
            let settled = queue.settle(&mut replies.collect(), NOW.plus_ms(heard_ms));
            settled.expect("it fits").expect("it is not sent once more").answer
        };
        // The request took long, and then the reply did.
        for (sent_ms, heard_ms, shown_ms) in
            [(0, 100, 60_000), (100, 101, 60_100), (200, 300, 60_300), (300, 301, 60_300)]
        {
            assert_eq!(ask(sent_ms, heard_ms, shown_ms), Answer::Done, "{sent_ms}");
        }
    }
}

/// The server may have been a replica since it has answered, and the answer may have been on its way for long.
#[test]
fn a_primary_counts_from_the_request_not_the_answer() {
    let mut queue = guarded(-1, 10_000);
    let mut ask = |at_ms, heard_ms| {
        queue.push(&request(Verb::Acquire), Some(TICKET), NOW.plus_ms(at_ms));
        let mut outbox = Vec::new();
        queue.send(&mut outbox, Capabilities::PLAIN, NOW.plus_ms(at_ms));
        let is_asked = String::from_utf8_lossy(&outbox).contains("master_replid2");
        let granted = [Value::Okay, Value::Int(10_000), note(-1, 10_000), time()];
        let mut replies = [vec![Value::Nil; is_asked.into()], granted.to_vec()].concat();
        queue.settle(&mut replies, NOW.plus_ms(heard_ms)).expect("it fits");
        queue.lasting = Arc::default();
        is_asked
    };
    assert!(!ask(10, 59));
    assert!(ask(60, 60));
}

/// The server has said what it knows, and loses that before it grants anything.
#[test]
fn a_note_behind_a_refused_acquire_is_known() {
    let mut queue = guarded(45_000, 10_000);
    let mut hear = |said, note| {
        queue.push(&request(Verb::Acquire), Some(TICKET), NOW);
        queue.send(&mut Vec::new(), Capabilities::PLAIN, NOW);
        settle(&mut queue, &[said, Value::Int(10_000), note, time()])
    };
    hear(Value::Nil, later_note(3, 45_000, 30_000)).expect("it is refused");
    let forgotten = Err(CloseReason::Forgotten(Forgotten));
    for said in [Value::Okay, Value::Nil] {
        assert_eq!(hear(said.clone(), later_note(2, 45_000, 30_000)), forgotten);
        // Somebody has rewritten it.
        assert_eq!(hear(said, later_note(3, 45_000, 40_000)), forgotten);
    }
    // The note of another memory has been there in between.
    hear(Value::Nil, other_note_of(4)).expect("it is refused");
    for later in [later_note(4, 45_000, 10_000), later_note(3, 45_000, 30_000)] {
        assert_eq!(hear(Value::Okay, later), forgotten);
    }
    let doubt = queue.doubt(NOW);
    assert_eq!(doubt, Some(Failure::Forgot { ago_s: 14, left_s: 26 }));
}

/// A log that is always synced was kept through a restart, and then an older one was swapped in, from before it.
#[test]
fn an_older_note_of_an_earlier_process_behind_a_refused_acquire_is_a_loss() {
    let mut queue = guarded(-1, 10_000);
    let Value::BulkString(text) = later_note(4, -1, 10_000) else { panic!() };
    let of_other_process = |generation: &str| {
        let text = String::from_utf8(text.clone()).unwrap();
        let (a, b) = (RunId::sample('a'), RunId::sample('b'));
        let text = text.replace(a.as_str(), b.as_str()).replacen(" 4 ", generation, 1);
        Value::BulkString(text.into_bytes())
    };
    let mut hear = |said, note| {
        queue.push(&request(Verb::Acquire), Some(TICKET), NOW);
        queue.send(&mut Vec::new(), Capabilities::PLAIN, NOW);
        settle(&mut queue, &[said, Value::Int(10_000), note, time()])
    };
    hear(Value::Nil, later_note(4, -1, 10_000)).expect("it is refused");
    let forgotten = Err(CloseReason::Forgotten(Forgotten));
    assert_eq!(hear(Value::Nil, of_other_process(" 2 ")), forgotten);
    // The loss counts also if the later note is there again.
    assert!(queue.doubt(NOW).is_none(), "the connection is given up, and the next one judges");
    let later = later_note(4, -1, 10_000);
    let Some(Borne::Note(note)) = Borne::of(&later) else { panic!() };
    let verdict = queue.lasting.memories.judge(&note, NOW);
    assert_eq!(verdict, Verdict::Sound { found_at: Some(NOW) });
}

/// The reply for a key of 10 s that is set when the server's clock shows `shown_ms`.
fn ends(shown_ms: i64) -> Value {
    Value::Int(shown_ms + 10_000)
}

/// Sends an acquire, which is answered at once, `at_ms` milliseconds after [`NOW`].
fn ask(queue: &mut Queue, capabilities: Capabilities, at_ms: i64, replies: &[Value]) -> Answer {
    let now = NOW.plus_ms(at_ms);
    queue.guard.role_asked(now);
    queue.push(&request(Verb::Acquire), Some(TICKET), now);
    queue.send(&mut Vec::new(), capabilities, now);
    let settled = queue.settle(&mut replies.to_vec(), now).expect("it fits");
    settled.expect("it is not sent once more").answer
}

#[test]
fn a_grant_that_shows_a_step_is_no_vote() {
    let word = |number: i64| Value::BulkString(number.to_string().into_bytes());
    let time = |ms: i64| Value::Array(vec![word(ms / 1_000), word(ms % 1_000 * 1_000)]);
    for capabilities in [Capabilities::PLAIN, Capabilities::EXPIRY_TIME] {
        let is_timed = capabilities == Capabilities::EXPIRY_TIME;
        let granted = |ms| {
            let left = if is_timed { ends(ms) } else { Value::Int(10_000) };
            let clock = (!is_timed).then(|| time(ms));
            let replies = [Value::Okay, left, note(-1, 10_000)].into_iter().chain(clock);
            replies.collect::<Vec<_>>()
        };
        let mut queue = guarded(-1, 10_000);
        assert_eq!(ask(&mut queue, capabilities, 0, &granted(60_000)), Answer::Done);
        assert_eq!(ask(&mut queue, capabilities, 500, &granted(60_500)), Answer::Done);
        let doubted = ask(&mut queue, capabilities, 600, &granted(65_600));
        let Answer::Failed(Failure::Stepped { by_ms, ago_s: 0, left_s: 11 }) = doubted else {
            panic!("{doubted:?}");
        };
        assert!((4_990..5_000).contains(&by_ms), "{by_ms}");
        assert!(queue.doubt(NOW.plus_ms(700)).is_some());
        // 10 s, and twice 1 % of that, because both clocks may be fast.
        let last = ask(&mut queue, capabilities, 10_801, &granted(75_801));
        assert!(matches!(last, Answer::Failed(Failure::Stepped { left_s: 1, .. })), "{last:?}");
        assert_eq!(ask(&mut queue, capabilities, 10_802, &granted(75_802)), Answer::Done);
        assert!(queue.doubt(NOW.plus_ms(10_900)).is_none());
        if is_timed {
            let gone = [Value::Okay, Value::Int(-2), note(-1, 10_000)];
            assert_eq!(ask(&mut queue, capabilities, 10_850, &gone), Answer::Absent);
        }
        // A server whose clock was set back keeps its keys for longer.
        assert_eq!(ask(&mut queue, capabilities, 10_900, &granted(1_000)), Answer::Done);
    }
}

#[test]
fn the_end_of_a_key_gives_its_remaining_time() {
    let mut queue = guarded(-1, 10_000);
    let timed = Capabilities::EXPIRY_TIME;
    let granted = [Value::Okay, ends(60_000), note(-1, 10_000)];
    assert_eq!(ask(&mut queue, timed, 0, &granted), Answer::Done);
    for (end, left_ms) in [
        (Value::Int(60_307), Some(106)),
        (Value::Int(60_100), Some(0)),
        (Value::Int(-1), Some(-1)),
        (Value::Int(-2), None),
        (refused_by_acl(), None),
    ] {
        let refused = [Value::Nil, end, note(-1, 10_000)];
        let answer = ask(&mut queue, timed, 200, &refused);
        assert_eq!(answer, Answer::Foreign { left_ms });
    }
}

#[test]
fn a_longer_ttl_is_noted_before_its_use() {
    let mut queue = guarded(-1, 1_000);
    let sent = |queue: &mut Queue, verb| {
        queue.push(&request(verb), Some(TICKET), NOW);
        let mut outbox = Vec::new();
        queue.send(&mut outbox, Capabilities::default(), NOW);
        String::from_utf8(outbox).unwrap()
    };
    let first = sent(&mut queue, Verb::Acquire);
    let places = ["10000", "NX", "GETRANGE", "TIME"].map(|word| first.find(word).unwrap());
    assert!(places.is_sorted() && first.starts_with("*6\r\n$4\r\nEVAL"), "{first}");
    assert!(sent(&mut queue, Verb::Acquire).starts_with("*6\r\n$3\r\nSET"));
    let granted = [Value::Okay, Value::Int(10_000), later_note(2, -1, 10_000), time()];
    let told = settle(&mut queue, &[&[Value::Int(0)][..], &granted].concat()).unwrap();
    assert_eq!(told.answer, Answer::Done);
    // The TTL was not noted after all, so the next request has it noted again.
    let forgot = [Value::Okay, Value::Int(10_000), later_note(3, -1, 1_000), time()];
    let told = settle(&mut queue, &forgot).unwrap();
    assert_eq!(told.answer, Answer::Failed(Failure::Unnoted));
    assert!(sent(&mut queue, Verb::Extend).matches("EVAL").count() == 2);
    let extended = [Value::Int(0), Value::Array(vec![Value::Int(1), Value::Int(7)])];
    let told = settle(&mut queue, &extended).unwrap();
    assert_eq!(told.answer, Answer::Extended { left_ms: 7 });
}

#[test]
fn the_longest_noted_ttl_is_passed_on() {
    let mut queue = guarded(-1, 10_000);
    let Some(Borne::Note(other)) = Borne::of(&note(-1, 30_000)) else { panic!() };
    let _ = Guard::of(&other, 60_000, None, NOW, &queue.rules);
    queue.push(&request(Verb::Acquire), Some(TICKET), NOW);
    let mut outbox = Vec::new();
    queue.send(&mut outbox, Capabilities::default(), NOW);
    let text = String::from_utf8(outbox).unwrap();
    assert!(text.contains("$5\r\n30000\r\n$16\r\n0000000000000007"), "{text}");
}

#[test]
fn a_user_without_write_access_to_the_note_still_locks() {
    let mut queue = guarded(-1, 1_000);
    let noperm = refused_by_acl();
    for nth in 0..2 {
        queue.push(&request(Verb::Acquire), Some(TICKET), NOW);
        send(&mut queue, NOW);
        let granted = [noperm.clone(), Value::Okay, Value::Int(10_000), note(-1, 1_000), time()];
        let told = settle(&mut queue, &granted[nth..]).unwrap();
        assert_eq!(told.answer, Answer::Done, "{nth}");
    }
    assert!(!queue.guard.caveat().is_empty());
}

#[test]
fn a_user_without_read_access_to_the_note_still_locks() {
    let mut queue = guarded(-1, 10_000);
    let granted = [Value::Okay, Value::Int(10_000), refused_by_acl(), time()];
    for replies in [&granted[..], &granted[..2]] {
        queue.push(&request(Verb::Acquire), Some(TICKET), NOW);
        send(&mut queue, NOW);
        assert_eq!(settle(&mut queue, replies).unwrap().answer, Answer::Done);
    }
    assert!(!queue.guard.caveat().is_empty());
}
