//! What goes along with acquires because servers may forget: the server's note is read behind each, and a longer
//! TTL is noted before it. A grant becomes a vote only if the server has known all locks that there may be.

use redis::Value;

use super::Queue;
use crate::command::guard::{Borne, READ, is_forbidden, raise};
use crate::command::{Answer, Capabilities};
use crate::failure::Failure;
use crate::moment::Moment;
use crate::transport::entries::Entry;
use crate::transport::guard::Guard;
use crate::transport::reply::Nonsense;
use crate::transport::useless::Useless;

impl Queue {
    /// That of the next connection to the server, of which nothing is known yet.
    pub(in crate::transport) fn next(&self) -> Self {
        Self::new(self.server, &self.rules)
    }

    /// This is known of the memory behind the connection, which begins.
    pub(in crate::transport) fn remember(&mut self, guard: Guard) {
        self.guard = guard;
    }

    /// Why what the server grants now would be no vote, whatever the TTL.
    pub(in crate::transport) fn doubt(&self, now: Moment) -> Option<Failure> {
        self.guard.doubt(now, &self.rules)
    }

    /// What is to be said of it although its grants are votes.
    pub(in crate::transport) fn caveat(&self) -> &'static str {
        self.guard.caveat()
    }

    /// Writes a request, and what goes along with it.
    pub(super) fn write(
        &mut self,
        entry: &mut Entry,
        outbox: &mut Vec<u8>,
        capabilities: Capabilities,
    ) {
        if entry.request.may_prolong()
            && let Some(ttl_ms) = self.guard.raises(entry.request.ttl_ms(), &self.rules)
        {
            outbox.extend_from_slice(&raise(ttl_ms));
            entry.raises = true;
        }
        outbox.extend_from_slice(entry.request.bytes(capabilities, &mut self.encoder));
        if entry.request.asks_for_vote() && self.guard.reads() {
            outbox.extend_from_slice(READ);
            entry.reads = true;
        }
    }

    /// What the replies mean. They are those of the request, and what was read of the server's memory.
    pub(super) fn answer(
        &mut self,
        entry: &Entry,
        replies: &mut Vec<Value>,
    ) -> Result<Answer, Useless> {
        if entry.raises && is_forbidden(&replies.remove(0)) {
            self.guard.leave_out_notes();
        }
        let note = if entry.reads { replies.pop() } else { None };
        let answer = entry.request.answer(replies).ok_or(Nonsense::Unwanted)?;
        match note {
            Some(note) if is_forbidden(&note) => self.guard.go_blind(),
            Some(note) if answer.is_grant() => {
                self.guard.check(Borne::of(&note), &self.rules)?;
            }
            _ => {}
        }
        Ok(answer)
    }

    /// What is told to whoever counts votes: a grant may be none.
    pub(super) fn vote(&self, entry: &Entry, answer: Answer, now: Moment) -> Answer {
        if !entry.request.asks_for_vote() || !answer.is_grant() {
            return answer;
        }
        let objection = self.guard.objection(entry.request.ttl_ms(), entry.since, now, &self.rules);
        objection.map_or(answer, Answer::Failed)
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{NOW, TICKET, fresh, request, send, settle};
    use super::*;
    use crate::command::Verb;
    use crate::command::identity::RunId;
    use crate::transport::guard::Forgotten;

    fn note(since_ms: i64, longest_ms: i64) -> Value {
        let id = RunId::parse(&format!("a{}", "0".repeat(39))).unwrap();
        Value::BulkString(format!("{} {since_ms} {longest_ms}", id.as_str()).into_bytes())
    }

    fn refused_by_acl() -> Value {
        redis::parse_redis_value(b"-NOPERM no\r\n").unwrap()
    }

    /// On a server that bears this note, and whose clock shows 60 s.
    fn guarded(since_ms: i64, longest_ms: i64) -> Queue {
        let mut queue = fresh();
        let Some(Borne::Note(note)) = Borne::of(&note(since_ms, longest_ms)) else { panic!() };
        queue.guard = Guard::of(&note, 60_000, NOW, &queue.rules);
        queue
    }

    #[test]
    fn a_grant_counts_if_its_server_has_known_all_locks_that_there_may_be() {
        // The TTL is 10 s, and 1 % of it is allowed for each of the two clocks.
        for (since_ms, sent_ms, counts) in
            [(-1, 0, true), (49_797, 0, true), (49_798, 0, false), (49_798, 1, true)]
        {
            let mut queue = guarded(since_ms, 10_000);
            queue.push(&request(Verb::Acquire), Some(TICKET), NOW);
            send(&mut queue, NOW.plus_ms(sent_ms));
            let replies = [Value::Okay, Value::Int(10_000), note(since_ms, 10_000)];
            let told = settle(&mut queue, &replies).unwrap();
            assert_eq!(told.answer == Answer::Done, counts, "{since_ms} {sent_ms} {told:?}");
            let refused = [Value::Nil, Value::Int(5), note(since_ms, 10_000)];
            queue.push(&request(Verb::Acquire), Some(TICKET), NOW);
            send(&mut queue, NOW);
            let told = settle(&mut queue, &refused).unwrap();
            assert_eq!(told.answer, Answer::Foreign { left_ms: Some(5) });
        }
    }

    #[test]
    fn nor_does_a_fencing_token_count_that_such_a_server_draws_or_raises() {
        let granted = Value::Array(vec![Value::Int(1), Value::Int(7)]);
        for (verb, reply, answer) in [
            (Verb::AcquireFenced, granted, Answer::Granted { number: 7 }),
            (Verb::RaiseFence, Value::Int(1), Answer::Done),
        ] {
            for (since_ms, counts) in [(-1, true), (59_999, false)] {
                let mut queue = guarded(since_ms, 10_000);
                queue.push(&request(verb), Some(TICKET), NOW);
                send(&mut queue, NOW);
                let told = settle(&mut queue, &[reply.clone(), note(since_ms, 10_000)]).unwrap();
                assert_eq!(told.answer == answer, counts, "{told:?}");
                queue.push(&request(verb), Some(TICKET), NOW);
                send(&mut queue, NOW);
                let told = settle(&mut queue, &[reply.clone(), note(-2, 10_000)]);
                assert_eq!(told, Err(Useless::Forgotten(Forgotten)));
            }
        }
    }

    #[test]
    fn the_longest_ttl_of_others_counts() {
        let mut queue = guarded(45_000, 20_000);
        for (longest_ms, left_s) in [(20_000, 6), (30_000, 16)] {
            queue.push(&request(Verb::Acquire), Some(TICKET), NOW);
            send(&mut queue, NOW);
            let replies = [Value::Okay, Value::Int(10_000), note(45_000, longest_ms)];
            let told = settle(&mut queue, &replies).unwrap();
            let doubt = Failure::Forgot { ago_s: 14, left_s };
            assert_eq!(told.answer, Answer::Failed(doubt));
        }
    }

    #[test]
    fn a_grant_of_another_memory_ends_the_connection() {
        let busy = redis::parse_redis_value(b"-BUSY no\r\n").unwrap();
        for borne in [note(-2, 10_000), Value::BulkString(Vec::new()), busy, Value::Okay] {
            let mut queue = guarded(-1, 10_000);
            queue.push(&request(Verb::Acquire), Some(TICKET), NOW);
            send(&mut queue, NOW);
            let told = settle(&mut queue, &[Value::Okay, Value::Int(10_000), borne]);
            assert_eq!(told, Err(Useless::Forgotten(Forgotten)));
            // Whoever waits is told along with the others.
            let mut failed = Vec::new();
            queue.fail(|ticket, was_sent| failed.push((ticket, was_sent)));
            assert_eq!(failed, [(TICKET, true)]);
        }
    }

    #[test]
    fn a_longer_ttl_is_noted_before_it_is_used() {
        let mut queue = guarded(-1, 1_000);
        let sent = |queue: &mut Queue, verb| {
            queue.push(&request(verb), Some(TICKET), NOW);
            let mut outbox = Vec::new();
            queue.send(&mut outbox, Capabilities::default(), NOW);
            String::from_utf8(outbox).unwrap()
        };
        let first = sent(&mut queue, Verb::Acquire);
        let places = ["10000", "NX", "GETRANGE"].map(|word| first.find(word).unwrap());
        assert!(places.is_sorted() && first.starts_with("*5\r\n$4\r\nEVAL"), "{first}");
        assert!(sent(&mut queue, Verb::Acquire).starts_with("*6\r\n$3\r\nSET"));
        let granted = [Value::Okay, Value::Int(10_000), note(-1, 10_000)];
        let told = settle(&mut queue, &[&[Value::Int(0)][..], &granted].concat()).unwrap();
        assert_eq!(told.answer, Answer::Done);
        // It was not noted after all: the next one has it noted again.
        let forgot = [Value::Okay, Value::Int(10_000), note(-1, 1_000)];
        let told = settle(&mut queue, &forgot).unwrap();
        assert_eq!(told.answer, Answer::Failed(Failure::Unnoted));
        assert!(sent(&mut queue, Verb::Extend).matches("EVAL").count() == 2);
        let extended = [Value::Int(0), Value::Array(vec![Value::Int(1), Value::Int(7)])];
        let told = settle(&mut queue, &extended).unwrap();
        assert_eq!(told.answer, Answer::Extended { left_ms: 7 });
    }

    #[test]
    fn who_may_not_have_it_noted_locks_all_the_same() {
        let mut queue = guarded(-1, 1_000);
        let noperm = refused_by_acl();
        for nth in 0..2 {
            queue.push(&request(Verb::Acquire), Some(TICKET), NOW);
            send(&mut queue, NOW);
            let granted = [noperm.clone(), Value::Okay, Value::Int(10_000), note(-1, 1_000)];
            let told = settle(&mut queue, &granted[nth..]).unwrap();
            assert_eq!(told.answer, Answer::Done, "{nth}");
        }
        assert!(!queue.guard.caveat().is_empty());
    }

    #[test]
    fn who_may_not_read_it_any_more_locks_all_the_same() {
        let mut queue = guarded(-1, 10_000);
        let granted = [Value::Okay, Value::Int(10_000), refused_by_acl()];
        for replies in [&granted[..], &granted[..2]] {
            queue.push(&request(Verb::Acquire), Some(TICKET), NOW);
            send(&mut queue, NOW);
            assert_eq!(settle(&mut queue, replies).unwrap().answer, Answer::Done);
        }
        assert!(!queue.guard.caveat().is_empty());
    }
}
