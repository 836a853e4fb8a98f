//! What a connection knows of the numbers that its server draws as fencing tokens. The numbers belong to a memory of
//! the server, as locks do. A server that has lost its numbers has no vote for a lock with a fencing token, although it
//! has one for any other lock.

use super::Queue;
use crate::command::fence::name_memory;
use crate::command::{Answer, Fences, FencesState, Request};
use crate::failure::Failure;
use crate::moment::Moment;
use crate::transport::entries::Entry;
use crate::transport::numbers::Numbers;

impl Queue {
    /// Tells the server which memory its numbers must belong to. The request is at the end of the outbox. A server whose
    /// note is not read draws numbers whatever they belong to.
    pub(super) fn name_memory(&self, request: &Request, outbox: &mut [u8]) {
        if request.names_memory()
            && let Some((_, life)) = self.guard.source()
        {
            name_memory(life, outbox);
        }
    }

    /// The new state of the server's numbers, if it has changed since the last call.
    pub(in crate::transport) fn news_of_numbers(&mut self) -> Option<Numbers> {
        let is_new = self.told_numbers != self.numbers;
        self.told_numbers = self.numbers;
        is_new.then_some(self.numbers)
    }

    /// Notes why a server has given no answer about its numbers.
    pub(super) fn note_refusal_of_numbers(&mut self, request: &Request, answer: &Answer) {
        match answer {
            Answer::Failed(Failure::NoFences) => self.numbers = Numbers::Damaged,
            Answer::Failed(Failure::Refused(refusal))
                if request.reads_fences() && refusal.is_of_the_form() =>
            {
                self.numbers = Numbers::Forbidden(*refusal);
            }
            _ => {}
        }
    }

    /// The answer about numbers, for counting votes.
    pub(super) fn vote_of_numbers(&mut self, entry: &Entry, answer: Answer, now: Moment) -> Answer {
        match answer {
            Answer::Granted { .. } => self.numbers = Numbers::Known,
            Answer::GrantedByClock { .. } => self.numbers = Numbers::ByClock,
            Answer::Unfenced { ago_ms } => {
                self.numbers = Numbers::Lost;
                let restored_at = self.to_restore_at(ago_ms, entry.request.ttl_ms(), now);
                let left_s = (now.ms_until(restored_at) + 999) / 1_000;
                return Answer::Failed(Failure::Unfenced { left_s });
            }
            Answer::Fences(fences) => return self.vote_of_fences(entry, fences, now),
            _ => {}
        }
        answer
    }

    fn vote_of_fences(&mut self, entry: &Entry, fences: Fences, now: Moment) -> Answer {
        self.numbers = match fences.state {
            _ if self.guard.noted().is_none() => Numbers::Known,
            FencesState::Whole => Numbers::Known,
            FencesState::ByClock => Numbers::ByClock,
            FencesState::Lost { .. } | FencesState::ToRestore => Numbers::Lost,
        };
        let state = match fences.state {
            // The other servers are read after this one was asked.
            FencesState::Lost { ago_ms } if entry.since >= self.to_restore_at(ago_ms, 0, now) => {
                FencesState::ToRestore
            }
            state => state,
        };
        match self.guard.noted() {
            Some(memory) => Answer::Fences(Fences { state, memory: Some(memory), ..fences }),
            // Without its note, nothing tells whether these numbers are all that it ever drew. It draws from them.
            None => Answer::Failed(Failure::Unfenced { left_s: 0 }),
        }
    }

    /// When the numbers may be restored that were lost so long ago: once no attempt can be under way any more for which
    /// this server drew a number before.
    fn to_restore_at(&self, ago_ms: i64, ttl_ms: i64, now: Moment) -> Moment {
        // One more, because the server's times were cut to whole milliseconds.
        now.plus_ms(1 - ago_ms).plus_ms(self.rules.wait_ms(ttl_ms))
    }
}

#[cfg(test)]
mod tests {
    use redis::Value::{self, Array, Int};

    use super::super::samples::{NOW, TICKET, request, send, settle};
    use super::*;
    use crate::command::guard::Borne;
    use crate::command::{Capabilities, Verb};
    use crate::log::Level;
    use crate::transport::close_reason::CloseReason;
    use crate::transport::guard::{Forgotten, Guard};

    const LIFE: &str = "00000000000000ff";

    /// The note of this memory, which the server has had since it was new.
    fn note(life: &str) -> Value {
        let text = format!("1 a{} 3 -1 10000 {life}", "0".repeat(39));
        Value::BulkString(text.into_bytes())
    }

    /// The queue of a server that has this note.
    fn guarded() -> Queue {
        let mut queue = super::super::samples::fresh();
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
        for (mut queue, ends_with) in
            [(guarded(), LIFE), (super::super::samples::fresh(), "----------------")]
        {
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
        let told = ask(&mut guarded(), Verb::AcquireFenced, &[-5, 7], 0);
        assert_eq!(told, Answer::Granted { number: 7 });
    }

    #[test]
    fn a_renamed_memory_ends_the_connection() {
        let other = LIFE.replace("ff", "fe");
        for (verb, numbers) in
            [(Verb::AcquireFenced, &[-2, 7][..]), (Verb::ReadFences, &[1, 7, 0, 0])]
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
            assert!(
                queue.caveat().contains(words) && queue.caveat().is_empty() == words.is_empty()
            );
        }
    }

    #[test]
    fn a_refused_counter_is_reported() {
        let mut queue = guarded();
        let damaged = [3, 0, 0, 0];
        assert_eq!(
            ask(&mut queue, Verb::ReadFences, &damaged, 0),
            Answer::Failed(Failure::NoFences)
        );
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
        let Answer::Fences(Fences { greatest: 7, state: FencesState::Whole, memory, .. }) = told
        else {
            panic!("{told:?}");
        };
        assert_eq!(
            memory.map(|it| (it.life.as_str().to_owned(), it.generation)),
            Some((LIFE.to_owned(), 3))
        );
        let mut blind = super::super::samples::fresh();
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
        for (ago_ms, after_ms, is_due) in [
            (wait_ms + 1, 0, true),
            (wait_ms, 0, false),
            (wait_ms + 9, 9, false),
            (wait_ms + 10, 9, true),
        ] {
            let told = ask(&mut guarded(), Verb::ReadFences, &[0, 7, ago_ms, 5], after_ms);
            let Answer::Fences(fences) = told else { panic!("{told:?}") };
            let is_said = fences.state == FencesState::ToRestore;
            assert_eq!(is_said, is_due, "{ago_ms} {after_ms} {fences:?}");
        }
    }
}
