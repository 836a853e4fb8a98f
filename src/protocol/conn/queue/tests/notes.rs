use std::sync::Arc;

use super::super::samples::{NOW, TICKET, fresh, long, request};
use super::super::*;
use super::super::{Queue, Settled};
use crate::protocol::command::guard::{MemoryId, Note};
use crate::protocol::command::identity::RunId;
use crate::protocol::command::{Capabilities, Request, Verb};
use crate::protocol::conn::close_reason::CloseReason;
use crate::protocol::conn::guard::{Forgotten, Guard};
use crate::protocol::failure::Failure;
use crate::protocol::op_id::OpId;

const CLOCK_MS: i64 = 60_000;

/// The queue of a server that has this note and whose clock shows [`CLOCK_MS`].
fn guarded(since_ms: i64) -> Queue {
    let mut queue = fresh();
    let note = Note { since_ms, ..Note::sample(id(), MemoryId::from_random(7), 1) };
    queue.lasting.memories.judge(&note, NOW);
    queue.guard = Guard::of(&note, CLOCK_MS, None, NOW, &queue.rules);
    queue
}

fn id() -> RunId {
    RunId::sample('a')
}

fn string(text: &str) -> Vec<u8> {
    format!("${}\r\n{text}\r\n", text.len()).into_bytes()
}

fn note(since_ms: i64) -> Vec<u8> {
    string(&format!("1 {} 1 {since_ms} 10000 0000000000000007", id().as_str()))
}

fn time(ms: i64) -> Vec<u8> {
    let parts = [ms / 1_000, ms % 1_000 * 1_000].map(|number| string(&number.to_string()));
    [&b"*2\r\n"[..], &parts.concat()].concat()
}

fn nth(number: u8) -> OpId {
    OpId::new(number.into(), 1)
}

/// Sends the requests in one write. Returns how often the note, the clock and the end of a key are asked
/// for.
fn send(queue: &mut Queue, requests: &[Arc<Request>], capabilities: Capabilities) -> [usize; 3] {
    for (number, request) in (0..).zip(requests) {
        queue.push(request, Some(nth(number)), NOW);
    }
    let mut outbox = Vec::new();
    queue.send(&mut outbox, capabilities, NOW);
    queue.note_written(0, || NOW);
    let text = String::from_utf8_lossy(&outbox);
    ["GETRANGE", "\nTIME", "PEXPIRETIME"].map(|word| text.matches(word).count())
}

fn acquires(count: u8) -> Vec<Arc<Request>> {
    (0..count).map(|number| long(Verb::Acquire, 1, number)).collect()
}

/// The requests that are settled once all these bytes have arrived.
fn hear(queue: &mut Queue, inbox: &mut Inbox, bytes: &[u8]) -> Result<Vec<Settled>, CloseReason> {
    inbox.put(bytes);
    let mut capabilities = Capabilities::EXPIRY_TIME;
    let mut settled = Vec::new();
    while let Some(one) = queue.next_settled(inbox, &mut capabilities, NOW)? {
        settled.push(one);
    }
    Ok(settled)
}

fn answers(settled: &[Settled]) -> Vec<(Option<OpId>, &Answer)> {
    settled.iter().map(|it| (it.ticket, &it.answer)).collect()
}

#[test]
fn requests_of_one_write_share_a_reading() {
    for (count, readings) in [(1, 1), (2, 1), (8, 1), (9, 2), (16, 2), (17, 3)] {
        let sent = send(&mut guarded(-1), &acquires(count), Capabilities::EXPIRY_TIME);
        assert_eq!(sent, [readings, 0, usize::from(count)], "{count}");
        // If the answer to an acquire does not show the clock, the clock is read along with the note.
        let sent = send(&mut guarded(-1), &acquires(count), Capabilities::PLAIN);
        assert_eq!(sent, [readings, readings, 0], "{count}");
    }
    // At most 16 requests lie between a grant and its reading.
    let mut requests = acquires(1);
    requests.extend(std::iter::repeat_n(request(Verb::Release), 40));
    requests.extend(acquires(1));
    assert_eq!(send(&mut guarded(-1), &requests, Capabilities::PLAIN)[0], 2);
    let releases = vec![request(Verb::Release); 40];
    assert_eq!(send(&mut guarded(-1), &releases, Capabilities::PLAIN), [0; 3]);
    assert_eq!(send(&mut fresh(), &acquires(9), Capabilities::PLAIN), [0; 3]);
}

#[test]
fn a_grant_is_a_vote_after_the_note_was_read() {
    let (mut queue, mut inbox) = (guarded(-1), Inbox::default());
    let requests = [&acquires(2)[..], &[request(Verb::Release)]].concat();
    send(&mut queue, &requests, Capabilities::EXPIRY_TIME);
    let ends = format!(":{}\r\n", CLOCK_MS + 10_000);
    let first = format!("+OK\r\n{ends}$-1\r\n{ends}");
    assert_eq!(hear(&mut queue, &mut inbox, first.as_bytes()), Ok(vec![]));
    assert_eq!(hear(&mut queue, &mut inbox, b":1\r\n"), Ok(vec![]));
    let settled = hear(&mut queue, &mut inbox, &note(-1)).unwrap();
    // The clock may show a millisecond more.
    let foreign = Answer::Foreign { left_ms: Some(9_999) };
    let expected =
        [(Some(nth(0)), &Answer::Done), (Some(nth(1)), &foreign), (Some(nth(2)), &Answer::Done)];
    assert_eq!(answers(&settled), expected);
    assert!(queue.is_done() && queue.reading.is_none());
    // The next request has a reading of its own.
    send(&mut queue, &acquires(1), Capabilities::EXPIRY_TIME);
    let next = format!("+OK\r\n{ends}");
    let replies = [next.as_bytes(), &note(-1)].concat();
    assert_eq!(hear(&mut queue, &mut inbox, &replies).unwrap().len(), 1);
}

/// The server may lose its memory between two of the grants, so an earlier grant may be from the lost
/// memory.
#[test]
fn all_grants_before_a_new_note_are_void() {
    let other = note(-1).iter().map(|&it| if it == b'a' { b'b' } else { it }).collect();
    for borne in [other, string(""), b"-BUSY no\r\n".to_vec()] {
        let (mut queue, mut inbox) = (guarded(-1), Inbox::default());
        send(&mut queue, &acquires(3), Capabilities::PLAIN);
        let granted = b"+OK\r\n:10000\r\n".repeat(3);
        let replies = [granted, borne, time(CLOCK_MS)].concat();
        let told = hear(&mut queue, &mut inbox, &replies);
        assert_eq!(told, Err(CloseReason::Forgotten(Forgotten)));
        let mut failed = Vec::new();
        queue.fail(|ticket, _| failed.push(ticket));
        assert_eq!(failed, [nth(0), nth(1), nth(2)]);
        // The next connection has a reading of its own.
        inbox.clear();
        send(&mut queue, &acquires(1), Capabilities::PLAIN);
        let replies = [b"+OK\r\n:10000\r\n".to_vec(), note(-1), time(CLOCK_MS)].concat();
        let settled = hear(&mut queue, &mut inbox, &replies).unwrap();
        assert_eq!(answers(&settled), [(Some(nth(0)), &Answer::Done)]);
    }
}

#[test]
fn all_grants_before_a_clock_step_are_void() {
    let (mut queue, mut inbox) = (guarded(-1), Inbox::default());
    for (shown_ms, is_vote) in [(CLOCK_MS, true), (CLOCK_MS + 5_000, false)] {
        send(&mut queue, &acquires(3), Capabilities::PLAIN);
        let granted = b"+OK\r\n:10000\r\n".repeat(3);
        let replies = [granted, note(-1), time(shown_ms)].concat();
        let settled = hear(&mut queue, &mut inbox, &replies).unwrap();
        let stepped = |it: &Settled| matches!(it.answer, Answer::Failed(Failure::Stepped { .. }));
        assert_eq!(settled.len(), 3);
        assert!(settled.iter().all(|it| stepped(it) != is_vote), "{settled:?}");
    }
}

/// What becomes of two acquires and a release in one write. The replies come in one piece, or in two.
fn settle_all(replies: &[u8], pieces: usize) -> (Result<Vec<Settled>, CloseReason>, String) {
    let (mut queue, mut inbox) = (guarded(-1), Inbox::default());
    inbox.begin(true);
    send(&mut queue, &acquires(1), Capabilities::EXPIRY_TIME);
    let first = [b"+OK\r\n:70000\r\n", &note(-1)[..]].concat();
    assert_eq!(hear(&mut queue, &mut inbox, &first).unwrap().len(), 1);
    let requests = [&acquires(2)[..], &[request(Verb::Release)]].concat();
    send(&mut queue, &requests, Capabilities::EXPIRY_TIME);
    let mut settled = Ok(vec![]);
    for piece in replies.chunks(replies.len().div_ceil(pieces)) {
        match (hear(&mut queue, &mut inbox, piece), &mut settled) {
            (Ok(more), Ok(all)) => all.extend(more),
            (Err(why), all) => *all = Err(why),
            (Ok(_), Err(_)) => panic!("it goes on after an error"),
        }
    }
    let reading = queue.reading.is_some();
    let (granted, done) = (queue.granted, queue.is_done());
    let (pushes, is_empty) = (inbox.pushes_amid(0).count(), inbox.is_empty());
    let clock = queue.lasting.clock.shown_ms(NOW);
    let state = format!("{reading} {granted} {done} {pushes} {is_empty} {clock:?}");
    (settled, state)
}

/// Usual replies that come in one piece are told by their bytes. All others are read as values, and so are those that come
/// in two pieces.
#[test]
fn usual_replies_mean_what_their_values_mean() {
    let acquired = [
        "+OK\r\n:70000\r\n",
        "$-1\r\n:65000\r\n",
        "+OK\r\n:-2\r\n",
        "-OOM no\r\n:-2\r\n",
        "+OK\r\n:75000\r\n",
    ];
    let released = [":1\r\n", ":0\r\n", "-ERR no\r\n"];
    let other: Vec<u8> = note(-1).iter().map(|&it| if it == b'a' { b'b' } else { it }).collect();
    let notes = [note(-1), other, string(""), b"-NOPERM no\r\n".to_vec()];
    let push = ">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nr\r\n";
    for (first, second) in acquired.iter().flat_map(|it| acquired.map(|other| (it, other))) {
        for (third, note) in released.iter().flat_map(|it| notes.iter().map(move |note| (it, note)))
        {
            for (amid, behind) in [("", ""), (push, ""), ("", push), ("", ":1\r\n")] {
                let words =
                    [first.as_bytes(), amid.as_bytes(), second.as_bytes(), third.as_bytes()];
                let replies = [&words.concat()[..], note, behind.as_bytes()].concat();
                let whole = settle_all(&replies, 1);
                let said = String::from_utf8_lossy(&replies).into_owned();
                assert_eq!(settle_all(&replies, 2), whole, "{said}");
                let is_fine =
                    first.ends_with("70000\r\n") && second == acquired[0] && *note == notes[0];
                if is_fine && third == &released[0] && behind != ":1\r\n" {
                    assert_eq!(whole.0.map(|it| it.len()), Ok(3), "{said}");
                }
            }
        }
    }
}

/// Nobody waits in nearly all cases.
#[test]
fn a_waiter_behind_a_release_is_woken() {
    for (waiters, answer) in [(0, Answer::Done), (1, Answer::Woke)] {
        let (mut queue, mut inbox) = (guarded(-1), Inbox::default());
        send(&mut queue, &[request(Verb::ReleaseAndWake)], Capabilities::WAKING_DELIFEQ);
        let replies = format!(":1\r\n:{waiters}\r\n");
        let settled = hear(&mut queue, &mut inbox, replies.as_bytes()).unwrap();
        assert_eq!(answers(&settled), [(Some(nth(0)), &answer)]);
        assert_eq!(queue.has_unsent(), waiters > 0);
    }
}

/// A release by a script takes twice the time, so it is only sent while somebody seems to wait.
#[test]
fn a_release_that_finds_no_waiter_ends_the_releases_by_script() {
    let (mut queue, mut inbox) = (guarded(-1), Inbox::default());
    let capabilities = Capabilities::WAKING_DELIFEQ;
    let mut release = |queue: &mut Queue, replies: &[u8]| {
        let mut outbox = Vec::new();
        queue.push(&request(Verb::ReleaseAndWake), Some(nth(0)), NOW);
        queue.send(&mut outbox, capabilities, NOW);
        hear(queue, &mut inbox, replies).unwrap();
        String::from_utf8_lossy(&outbox).contains("EVAL")
    };
    queue.expects_waiters = true;
    assert!(release(&mut queue, b":1\r\n"), "somebody seems to wait");
    assert!(!release(&mut queue, b":1\r\n:0\r\n"), "nobody waited");
}

/// The clock may have been read at any time between the write and the answer.
#[test]
fn a_slow_answer_to_a_group_shows_no_step() {
    let (mut queue, mut inbox) = (guarded(-1), Inbox::default());
    let mut capabilities = Capabilities::PLAIN;
    for (sent_ms, heard_ms) in [(0, 100), (100, 101)] {
        let [sent, heard] = [sent_ms, heard_ms].map(|ms| NOW.plus_ms(ms));
        queue.guard.role_asked(sent);
        acquires(3).iter().for_each(|it| queue.push(it, Some(nth(0)), sent));
        queue.send(&mut Vec::new(), Capabilities::PLAIN, sent);
        let granted = b"+OK\r\n:10000\r\n".repeat(3);
        inbox.put(&[granted, note(-1), time(CLOCK_MS + sent_ms)].concat());
        for _ in 0..3 {
            let settled = queue.next_settled(&mut inbox, &mut capabilities, heard);
            assert_eq!(settled.unwrap().expect("an answer").answer, Answer::Done);
        }
    }
}

#[test]
fn a_forbidden_note_does_not_void_the_grants() {
    let (mut queue, mut inbox) = (guarded(-1), Inbox::default());
    send(&mut queue, &acquires(2), Capabilities::PLAIN);
    let granted = b"+OK\r\n:10000\r\n".repeat(2);
    let replies = [granted, b"-NOPERM no\r\n".to_vec(), time(CLOCK_MS)].concat();
    let settled = hear(&mut queue, &mut inbox, &replies).unwrap();
    assert!(settled.len() == 2 && settled.iter().all(|it| it.answer == Answer::Done));
    assert_eq!(send(&mut queue, &acquires(2), Capabilities::PLAIN), [0; 3]);
}

/// A request that is answered before the note is read must wait. If the connection ends in between, no
/// request gets an answer.
#[test]
fn a_connection_lost_before_the_reading_answers_nobody() {
    let (mut queue, mut inbox) = (guarded(-1), Inbox::default());
    send(&mut queue, &acquires(2), Capabilities::PLAIN);
    let granted = b"+OK\r\n:10000\r\n".repeat(2);
    assert_eq!(hear(&mut queue, &mut inbox, &granted), Ok(vec![]));
    let mut failed = Vec::new();
    queue.fail(|ticket, was_sent| failed.push((ticket, was_sent)));
    assert_eq!(failed, [(nth(0), true), (nth(1), true)]);
}

#[test]
fn an_enrolment_never_splits_a_grant_from_its_reading() {
    let mut queue = guarded(-1);
    let requests = [&acquires(1)[..], &[request(Verb::JoinWaitlist)], &acquires(1)].concat();
    assert_eq!(send(&mut queue, &requests, Capabilities::PLAIN)[0], 2);
}

#[test]
fn key_ends_are_asked_for_unless_grants_are_frequent() {
    let (mut queue, mut inbox) = (guarded(-1), Inbox::default());
    let granted = format!("+OK\r\n:{}\r\n", CLOCK_MS + 10_000);
    for _ in 0..2 {
        assert_eq!(send(&mut queue, &acquires(4), Capabilities::EXPIRY_TIME), [1, 0, 4]);
        let replies = [granted.repeat(4).as_bytes(), &note(-1)].concat();
        assert_eq!(hear(&mut queue, &mut inbox, &replies).unwrap().len(), 4);
    }
    // A single acquire still asks for its end.
    assert_eq!(send(&mut queue, &acquires(1), Capabilities::EXPIRY_TIME), [1, 0, 1]);
    let replies = [granted.as_bytes(), &note(-1)].concat();
    assert_eq!(hear(&mut queue, &mut inbox, &replies).unwrap().len(), 1);
    assert_eq!(send(&mut queue, &acquires(3), Capabilities::EXPIRY_TIME), [1, 1, 0]);
    let replies = [b"+OK\r\n$-1\r\n+OK\r\n".to_vec(), note(-1), time(CLOCK_MS)].concat();
    let settled = hear(&mut queue, &mut inbox, &replies).unwrap();
    let foreign = Answer::Foreign { left_ms: None };
    let expected =
        [(Some(nth(0)), &Answer::Done), (Some(nth(1)), &foreign), (Some(nth(2)), &Answer::Done)];
    assert_eq!(answers(&settled), expected);
    // One acquire was refused, so the next callers are told when the holder's lock ends.
    assert_eq!(send(&mut queue, &acquires(8), Capabilities::EXPIRY_TIME), [1, 0, 8]);
    queue.abandon(TICKET);
}
