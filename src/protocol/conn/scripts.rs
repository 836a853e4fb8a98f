//! Decides which scripts are sent by their hash. The server hashes the text of a script each time it receives
//! it, and the text is often most of the data that is sent at all.
//!
//! A server may have dropped a script that it received (`SCRIPT FLUSH`; Redis 7.4 keeps at most 500), and
//! then answers `NOSCRIPT`. The request is then sent once more, with the text. So a request goes by the hash if a
//! caller waits for its answer, unless another request relies on being executed after it. Nobody may be there to
//! send it once more if no caller waits. So such a request goes by the hash only if it undoes something, behind the
//! text in the same write, because the server has no time to drop it there.
//!
//! A release returns when a majority has released. If its process ends then, and another server has just dropped
//! the script, the key stays on that one until its TTL ends.

use std::ptr;

use super::entries::Entry;
use crate::protocol::command::script::Script;
use crate::protocol::command::{Answer, Encoded, Hash};

/// The scripts that were sent over the connection.
#[derive(Default)]
pub(crate) struct Scripts {
    sent: Vec<Sent>,
    /// How often the server had dropped its scripts.
    lost: u32,
    /// Whether no script is sent by its hash, because this user may not do that, or the server often does not find
    /// one.
    are_useless: bool,
}

/// A server that has dropped its scripts so often is a proxy with several servers behind it.
const LOST_MAX: u32 = 3;

struct Sent {
    script: Script,
    /// Computed when it is needed.
    hash: Option<Hash>,
    /// Whether its text is in the current write.
    is_in_write: bool,
}

impl Scripts {
    /// A new write begins. It is sent later than the writes before.
    pub(crate) fn begin_write(&mut self) {
        self.sent.iter_mut().for_each(|sent| sent.is_in_write = false);
    }

    /// Writes a request. Returns whether it was sent by the hash of its script.
    pub(crate) fn put(&mut self, encoded: &Encoded, entry: &Entry, outbox: &mut Vec<u8>) -> bool {
        let hash = encoded.script().and_then(|script| self.hash_for(script, entry));
        encoded.put(hash.as_ref(), outbox);
        hash.is_some()
    }

    /// The hash by which to send a request of this script. Returns nothing if it must be sent with the text.
    fn hash_for(&mut self, script: Script, entry: &Entry) -> Option<Hash> {
        if self.are_useless {
            return None;
        }
        let known = self.sent.iter_mut().find(|sent| ptr::eq(sent.script, script));
        let Some(sent) = known else {
            self.sent.push(Sent { script, hash: None, is_in_write: true });
            return None;
        };
        let may_go = match entry.ticket {
            Some(_) => !entry.request.is_followed(),
            None => entry.request.undoes() && sent.is_in_write,
        };
        if !may_go || entry.is_again {
            sent.is_in_write = true;
            return None;
        }
        if sent.hash.is_none() {
            sent.hash = Hash::of(script);
        }
        sent.hash
    }

    /// Whether this is the answer to a hash, and the request must be sent with the text.
    pub(crate) fn wants_text(&mut self, entry: &Entry, answer: &Answer) -> bool {
        let Answer::Failed(failure) = answer else { return false };
        if !entry.goes_by_hash {
            return false;
        }
        let is_lost = failure.is_of_no_script();
        // Many requests that are under way may find that the server has dropped its scripts once.
        if is_lost && !self.sent.is_empty() {
            self.sent.clear();
            self.lost += 1;
        }
        self.are_useless |= failure.is_of_the_command() || self.lost == LOST_MAX;
        is_lost || failure.is_of_the_command()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use redis::Value;

    use super::*;
    use crate::protocol::command::{Capabilities, Request, Verb};
    use crate::protocol::conn::queue::Queue;
    use crate::protocol::conn::queue::samples::{
        NOW, OTHER, TICKET, fresh, long, of_reader, request, settle, settle_or_again,
    };
    use crate::protocol::op_id::OpId;

    fn error(text: &str) -> Value {
        redis::parse_redis_value(format!("-{text}\r\n").as_bytes()).expect("a reply")
    }

    /// Sends the waiting requests. Returns the first words of the scripts.
    fn send_on(queue: &mut Queue) -> Vec<String> {
        let mut outbox = Vec::new();
        queue.send(&mut outbox, Capabilities::WAKING, NOW);
        queue.note_written(0, || NOW);
        let text = String::from_utf8_lossy(&outbox).into_owned();
        text.split("\r\n").filter(|it| it.starts_with("EVAL")).map(str::to_owned).collect()
    }

    fn send(queue: &mut Queue, requests: &[(&Arc<Request>, Option<OpId>)]) -> Vec<String> {
        requests.iter().for_each(|&(request, ticket)| queue.push(request, ticket, NOW));
        send_on(queue)
    }

    fn release(token: u8) -> Arc<Request> {
        long(Verb::Release, 1, token)
    }

    #[test]
    fn releases_use_the_hash_if_awaited_or_behind_the_text() {
        let mut queue = fresh();
        for (tickets, words) in [
            ([Some(TICKET), Some(OTHER), None], ["EVAL", "EVALSHA", "EVALSHA"]),
            ([Some(TICKET), Some(OTHER), None], ["EVALSHA", "EVALSHA", "EVAL"]),
            ([None, Some(TICKET), None], ["EVAL", "EVALSHA", "EVALSHA"]),
        ] {
            let releases = [1, 2, 3].map(release);
            let requests: Vec<_> = releases.iter().zip(tickets).collect();
            assert_eq!(send(&mut queue, &requests), words);
            for ticket in tickets {
                let told = settle(&mut queue, &[Value::Int(1)]).unwrap();
                assert_eq!((told.ticket, told.answer), (ticket, Answer::Done));
            }
        }
        let mut queue = fresh();
        // The text of another script does not help this one.
        let other = of_reader(Verb::Extend);
        let requests = [(&other, Some(TICKET)), (&release(1), Some(OTHER))];
        assert_eq!(send(&mut queue, &requests), ["EVAL", "EVAL"]);
    }

    #[test]
    fn an_awaited_script_uses_the_hash_after_the_text() {
        let (mut queue, acquire) = (fresh(), of_reader(Verb::Acquire));
        for words in [["EVAL"], ["EVALSHA"], ["EVALSHA"]] {
            assert_eq!(send(&mut queue, &[(&acquire, Some(TICKET))]), words);
            settle(&mut queue, &[Value::Int(1)]).unwrap();
        }
        // Nobody waits for a repair, so nobody would need it to be sent once more.
        assert_eq!(send(&mut queue, &[(&acquire, None)]), ["EVAL"]);
        settle(&mut queue, &[Value::Int(1)]).unwrap();
        // Nothing was sent over the next connection yet.
        queue.fail(|_, _| {});
        assert_eq!(send(&mut queue, &[(&acquire, Some(TICKET))]), ["EVAL"]);
    }

    /// Otherwise it would be executed after the request behind it.
    #[test]
    fn a_downgrade_is_always_sent_as_text() {
        let (mut queue, downgrade) = (fresh(), of_reader(Verb::Downgrade));
        for _ in 0..2 {
            assert_eq!(send(&mut queue, &[(&downgrade, Some(TICKET))]), ["EVAL"]);
            let extended = Value::Array(vec![Value::Int(1), Value::Int(7)]);
            settle(&mut queue, &[extended]).unwrap();
        }
    }

    #[test]
    fn a_lost_script_is_sent_again_as_text() {
        let (mut queue, acquire) = (fresh(), of_reader(Verb::Acquire));
        send(&mut queue, &[(&acquire, Some(TICKET))]);
        settle(&mut queue, &[Value::Int(1)]).unwrap();
        let lost = error("NOSCRIPT No matching script.");
        let requests = [(&acquire, Some(TICKET)), (&acquire, Some(OTHER))];
        assert_eq!(send(&mut queue, &requests), ["EVALSHA", "EVALSHA"]);
        queue.abandon(OTHER);
        assert_eq!(settle_or_again(&mut queue, &lost), Ok(None));
        assert_eq!(send_on(&mut queue), ["EVAL"]);
        // Nobody waits for this one any more.
        let told = settle(&mut queue, &[lost]).unwrap();
        assert!(told.ticket.is_none() && matches!(told.answer, Answer::Failed(_)));
        let told = settle(&mut queue, &[Value::Int(1)]).unwrap();
        assert_eq!((told.ticket, told.answer), (Some(TICKET), Answer::Done));
        // The other `NOSCRIPT` may be newer than the text, as far as is known.
        for words in [["EVAL"], ["EVALSHA"]] {
            assert_eq!(send(&mut queue, &[(&acquire, Some(TICKET))]), words);
            settle(&mut queue, &[Value::Int(1)]).unwrap();
        }
    }

    /// Behind a proxy with several servers, the text of one request does not help the next one.
    #[test]
    fn each_repeated_request_carries_its_own_text() {
        let (mut queue, acquire) = (fresh(), of_reader(Verb::Acquire));
        send(&mut queue, &[(&acquire, Some(TICKET))]);
        settle(&mut queue, &[Value::Int(1)]).unwrap();
        let requests = [(&acquire, Some(TICKET)), (&acquire, Some(OTHER))];
        assert_eq!(send(&mut queue, &requests), ["EVALSHA", "EVALSHA"]);
        for _ in 0..2 {
            assert_eq!(settle_or_again(&mut queue, &error("NOSCRIPT no")), Ok(None));
        }
        assert_eq!(send_on(&mut queue), ["EVAL", "EVAL"]);
    }

    #[test]
    fn without_usable_hashes_the_text_is_sent() {
        for (index, words) in [
            "NOPERM this user has no permissions to run the 'evalsha' command",
            "ERR unknown command 'EVALSHA'",
            // This is a proxy that has several servers behind it.
            "NOSCRIPT No matching script.",
        ]
        .into_iter()
        .enumerate()
        {
            let mut queue = fresh();
            let releases = [1, 2, 3, 4].map(release);
            let tickets = [Some(TICKET), None, None, None];
            let requests: Vec<_> = releases.iter().zip(tickets).collect();
            // Three writes in which the server drops its scripts, of several requests each.
            let writes = if words.starts_with("NOSCRIPT") { LOST_MAX } else { 1 };
            for _ in 0..writes {
                let sent = send(&mut queue, &requests);
                let hashes = sent.iter().filter(|it| *it == "EVALSHA").count();
                assert!(hashes > 1, "{sent:?}");
                for word in sent {
                    match &*word {
                        "EVAL" => _ = settle(&mut queue, &[Value::Int(1)]).unwrap(),
                        _ => {
                            let told = settle_or_again(&mut queue, &error(words));
                            assert_eq!(told, Ok(None), "{index}");
                        }
                    }
                }
                assert_eq!(send_on(&mut queue), vec!["EVAL"; hashes], "{words}");
                for _ in 0..hashes {
                    assert_eq!(settle(&mut queue, &[Value::Int(1)]).unwrap().answer, Answer::Done);
                }
            }
            assert_eq!(send(&mut queue, &requests), ["EVAL"; 4], "{words}");
        }
    }

    /// Also if its caller has returned meanwhile.
    #[test]
    fn a_release_whose_script_was_lost_is_sent_again_as_text() {
        let mut queue = fresh();
        for (lost, words) in [(false, ["EVAL"]), (true, ["EVALSHA"]), (true, ["EVALSHA"])] {
            assert_eq!(send(&mut queue, &[(&release(1), Some(TICKET))]), words);
            if lost {
                queue.abandon(TICKET);
                assert_eq!(settle_or_again(&mut queue, &error("NOSCRIPT no")), Ok(None));
                assert_eq!(send_on(&mut queue), ["EVAL"]);
            }
            assert_eq!(settle(&mut queue, &[Value::Int(1)]).unwrap().answer, Answer::Done);
        }
    }

    /// A request that is refused with its text is refused.
    #[test]
    fn a_refusal_unrelated_to_the_hash_is_an_answer() {
        let mut queue = fresh();
        let requests = [(&release(1), Some(TICKET)), (&release(2), Some(OTHER))];
        send(&mut queue, &requests);
        for ticket in [TICKET, OTHER] {
            let told = settle(&mut queue, &[error("READONLY no")]).unwrap();
            assert_eq!(told.ticket, Some(ticket));
            assert!(matches!(told.answer, Answer::Failed(_)));
        }
        let forbidden = error("NOPERM no");
        let mut queue = fresh();
        send(&mut queue, &requests);
        assert!(settle(&mut queue, std::slice::from_ref(&forbidden)).is_ok());
        assert_eq!(settle_or_again(&mut queue, &forbidden), Ok(None));
        assert_eq!(send_on(&mut queue), ["EVAL"]);
        assert_eq!(settle(&mut queue, &[forbidden]).unwrap().ticket, Some(OTHER));
    }

    #[test]
    fn a_request_without_a_script_is_unchanged() {
        let mut queue = fresh();
        let acquire = request(Verb::Acquire);
        assert!(send(&mut queue, &[(&acquire, Some(TICKET)), (&acquire, Some(OTHER))]).is_empty());
    }
}
