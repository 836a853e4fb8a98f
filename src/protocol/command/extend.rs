//! Gives the key at least the TTL if it has the token. Never sets the key. This is always a script, because
//! `SET … IFEQ` might shorten the remaining time. That could happen if it is executed late, on a connection
//! that was given up, after a longer extension on the next connection.

use super::answer::Answer;
use super::definition::{Definition, Replies, Subject, numbers, put_script};
use super::script::script;

pub(super) static DEFINITION: Definition = Definition::script(
    1,
    |subject, _, encoder| put_script(subject, &SCRIPT, &[subject.ttl_ms], encoder),
    decode,
);

static SCRIPT: &str = script!("extend.lua");

pub(super) fn decode(_: &Subject, replies: &mut Replies<'_>) -> Option<Answer> {
    match numbers(replies)? {
        // Something of another type is not ours, and the script has not asked for its remaining time.
        Err(Answer::Failed(failure)) if failure.is_of_another_type() => {
            Some(Answer::Foreign { left_ms: None })
        }
        Err(refused) => Some(refused),
        Ok([0, _]) => Some(Answer::Absent),
        Ok([1, left_ms]) => Some(Answer::Extended { left_ms }),
        Ok([2, left_ms]) => Some(Answer::Foreign { left_ms: Some(left_ms) }),
        Ok(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use redis::Value::{self, Array, Int, Okay};

    use super::*;

    fn answer(reply: Value) -> Option<Answer> {
        decode(&Subject::sample(), &mut vec![reply].drain(..))
    }

    #[test]
    fn the_script_is_unchanged() {
        let sent = "local v=redis.call('GET',KEYS[1]) \
            if not v then return {0,-2} end \
            local t=redis.call('PTTL',KEYS[1]) \
            if v~=ARGV[1] then return {2,t} end \
            if t<tonumber(ARGV[2]) then redis.call('PEXPIRE',KEYS[1],ARGV[2]) end \
            return {1,t}";
        assert_eq!(SCRIPT, sent);
    }

    #[test]
    fn replies_become_answers() {
        let pair = |what, left_ms| Array(vec![Int(what), Int(left_ms)]);
        assert_eq!(answer(pair(1, 7)), Some(Answer::Extended { left_ms: 7 }));
        assert_eq!(answer(pair(2, 7)), Some(Answer::Foreign { left_ms: Some(7) }));
        assert_eq!(answer(pair(0, -2)), Some(Answer::Absent));
        let error = |reply: &[u8]| answer(redis::parse_redis_value(reply).expect("a reply"));
        assert_eq!(error(b"-WRONGTYPE no\r\n"), Some(Answer::Foreign { left_ms: None }));
        assert!(matches!(error(b"-READONLY no\r\n"), Some(Answer::Failed(_))));
    }

    #[test]
    fn impossible_replies_are_no_answer() {
        assert_eq!(answer(Okay), None);
        assert_eq!(answer(Array(vec![Int(1)])), None);
        assert_eq!(answer(Array(vec![Int(3), Int(1)])), None);
    }
}
