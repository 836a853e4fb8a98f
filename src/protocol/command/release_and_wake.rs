//! Deletes the key if it has the token, and wakes the first waiter. If that is not allowed, the key is
//! deleted in the form of a plain release. That happens if this user may not touch the wait queue, or if the
//! two keys are in two cluster slots.

use redis::Value;

use super::answer::Answer;
use super::capabilities::Capabilities;
use super::definition::{Definition, Replies, Subject};
use super::encoder::{Command, Encoder};
use super::release;
use super::waking::{RELEASE_AND_WAKE, RELEASE_SLOT, line, line_of_permits, put_lined};
use super::wire_form::FirstReply;

/// The form that wakes. The forms below it are those of a plain release.
const WAKES: usize = 3;

pub(super) static DEFINITION: Definition =
    Definition { form, usual: Some(FirstReply::One), ..Definition::script(3, encode, decode) };

fn form(capabilities: Capabilities) -> usize {
    if capabilities.releases_by_script() { WAKES } else { capabilities.delete as usize }
}

/// Whether the server must be asked behind the release whether anybody waits.
pub(super) fn looks_for_waiters(capabilities: Capabilities) -> bool {
    capabilities.wakes && !capabilities.releases_by_script()
}

/// Asks whether anybody waits for the resource, or for any permit of the semaphore to which it belongs as a
/// slot.
pub(super) fn look_for_waiters(resource: &[u8], prefix: &[u8]) -> Vec<u8> {
    let (mut command, mut bytes) = (Command::with_prefix(prefix), Vec::new());
    command.arg("EXISTS").key(line(resource)).key(line_of_permits(resource));
    command.take(&mut bytes);
    bytes
}

fn encode(subject: &Subject, capabilities: Capabilities, encoder: &mut Encoder) {
    if !capabilities.releases_by_script() {
        return (release::DEFINITION.encode)(subject, capabilities, encoder);
    }
    let scripts = [&RELEASE_AND_WAKE, &RELEASE_SLOT];
    put_lined(&subject.resource, scripts, &subject.token, encoder);
}

pub(super) fn decode(subject: &Subject, replies: &mut Replies<'_>) -> Option<Answer> {
    match replies.as_slice() {
        [Value::Int(2), ..] => Some(Answer::Woke),
        _ => (release::DEFINITION.decode)(subject, replies),
    }
}

#[cfg(test)]
mod tests {
    use redis::Value::{Int, Okay};

    use super::*;

    /// The words that are sent, without the script.
    fn sent(capabilities: Capabilities) -> Vec<String> {
        let mut encoder = Encoder::default();
        encode(&Subject::sample(), capabilities, &mut encoder);
        let text = String::from_utf8_lossy(&encoder.take().whole()).into_owned();
        let words = text.split("\r\n").filter(|it| !it.is_empty() && !it.starts_with(['$', '*']));
        words.filter(|it| it.len() < 40).map(str::to_owned).collect()
    }

    #[test]
    fn only_a_possible_waiter_costs_a_script() {
        assert_eq!(sent(Capabilities::WAKING), ["EVAL", "2", "r", "r:w"]);
        assert_eq!(sent(Capabilities::PLAIN), ["EVAL", "1", "r"]);
        let native = Capabilities::WAKING_DELIFEQ;
        assert_eq!(sent(native), ["DELIFEQ", "r"]);
        assert!(looks_for_waiters(native) && !looks_for_waiters(Capabilities::DELIFEQ));
        assert_eq!(look_for_waiters(b"r", b""), b"*2\r\n$6\r\nEXISTS\r\n$3\r\nr:w\r\n");
        let expecting = native.expecting(true);
        assert_eq!(sent(expecting), ["EVAL", "2", "r", "r:w"]);
        assert!(!looks_for_waiters(expecting));
        // Only what was refused is given up.
        let after = |it: Capabilities, expects| it.after_refusal(expects, form);
        assert_eq!(sent(after(native, true)), ["DELIFEQ", "r"]);
        assert_eq!(sent(after(native, false)), ["EVAL", "2", "r", "r:w"]);
        assert_eq!(sent(after(Capabilities::WAKING, false)), ["EVAL", "1", "r"]);
    }

    #[test]
    fn the_release_of_a_slot_wakes_permit_waiters() {
        let slot = Subject { resource: b"r#2"[..].into(), ..Subject::sample() };
        let mut encoder = Encoder::default();
        encode(&slot, Capabilities::WAKING, &mut encoder);
        let text = String::from_utf8_lossy(&encoder.take().whole()).into_owned();
        assert!(text.contains("\r\n3\r\n$3\r\nr#2\r\n$5\r\nr#2:w\r\n$3\r\nr:w\r\n"), "{text}");
        assert!(look_for_waiters(b"r#2", b"").ends_with(b"$5\r\nr#2:w\r\n$3\r\nr:w\r\n"));
    }

    #[test]
    fn replies_become_answers() {
        let answer = |reply| decode(&Subject::sample(), &mut vec![reply].drain(..));
        assert_eq!(answer(Int(2)), Some(Answer::Woke));
        assert_eq!(answer(Int(1)), Some(Answer::Done));
        assert_eq!(answer(Int(0)), Some(Answer::Absent));
        assert_eq!((answer(Int(3)), answer(Okay)), (None, None));
    }
}
