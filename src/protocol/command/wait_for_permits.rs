//! The wait queue for permits of a semaphore: one for all slots. Any released slot wakes the first waiter.

use super::answer::{Answer, Slots};
use super::capabilities::Capabilities;
use super::definition::{Definition, Replies, Subject};
use super::encoder::Encoder;
use super::permits::{begin_lined, slots};
use super::waking::{ENROL_PERMITS, LEAVE_PERMITS, LINE_TTL_MS, channel};
use super::{enrol, leave};

/// Puts this manager into the wait queue, unless a permit is free.
pub(super) static ENROL: Definition = Definition::script(1, encode_enrol, decode);

/// Takes it out of the wait queue. If it was told meanwhile that a permit is free, the next waiter is told.
pub(super) static LEAVE: Definition = Definition::script(1, encode_leave, leave::decode);

fn encode_enrol(subject: &Subject, _: Capabilities, encoder: &mut Encoder) {
    encoder.put_script(&ENROL_PERMITS, |command| {
        begin_lined(subject, command);
        command.arg(channel(&subject.token)).arg(subject.number).arg(LINE_TTL_MS)
    });
}

fn encode_leave(subject: &Subject, _: Capabilities, encoder: &mut Encoder) {
    encoder.put_script(&LEAVE_PERMITS, |command| {
        begin_lined(subject, command).arg(channel(&subject.token))
    });
}

/// The reply to joining the wait queue has the same meaning as the reply to an attempt.
fn decode(subject: &Subject, replies: &mut Replies<'_>) -> Option<Answer> {
    match enrol::decode(subject, replies)? {
        Answer::Enrolled { left_ms, rank } => {
            let taken = (0..slots(subject)).collect();
            let slots = Slots { got: None, taken, left_ms };
            Some(Answer::EnrolledForPermit { slots, rank })
        }
        Answer::Shared { .. } => None,
        other => Some(other),
    }
}

#[cfg(test)]
mod tests {
    use redis::Value::{Array, Int};

    use super::*;

    fn words(definition: &Definition) -> String {
        let (subject, mut encoder) = (Subject::semaphore(3), Encoder::default());
        (definition.encode)(&subject, Capabilities::WAKING, &mut encoder);
        let text = String::from_utf8_lossy(&encoder.take().whole()).into_owned();
        let words = text.split("\r\n").filter(|it| !it.is_empty() && !it.starts_with(['$', '*']));
        words.skip(2).map(|it| it.replace("ABABABABABABABAB", "")).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn all_slots_share_one_line() {
        assert_eq!(words(&ENROL), "4 r r#1 r#2 r:w redlock:w: 0 15000");
        assert_eq!(words(&LEAVE), "4 r r#1 r#2 r:w redlock:w:");
    }

    #[test]
    fn replies_become_answers() {
        let answer = |numbers: &[i64]| {
            let said = Array(numbers.iter().copied().map(Int).collect());
            decode(&Subject::semaphore(3), &mut vec![said].drain(..))
        };
        let slots = Slots { got: None, taken: (0..3).collect(), left_ms: 7 };
        assert_eq!(answer(&[0, 7, 2]), Some(Answer::EnrolledForPermit { slots, rank: 2 }));
        assert_eq!(answer(&[1, 0, 0]), Some(Answer::Free));
        assert_eq!((answer(&[3, 0, 0]), answer(&[])), (None, None));
        let refused = redis::parse_redis_value(b"-NOPERM no\r\n").expect("a reply");
        let answer = decode(&Subject::semaphore(3), &mut vec![refused].drain(..));
        assert!(matches!(answer, Some(Answer::Failed(_))));
    }
}
