//! Shared parts of the commands about semaphores: the slots of a semaphore, each of which is a key.

use super::definition::Subject;
use super::encoder::Command;
use super::waking::line;
use crate::protocol::lock_kind::slot_key;

/// The size of a key beside the name: its length, its number, the line ends.
const BESIDE_NAME_MAX: usize = 16;

/// The number of slots.
pub(super) fn slots(subject: &Subject) -> u16 {
    subject.kind.permits().unwrap_or(1)
}

/// The maximum number of bytes of the keys of all slots. 0 for a lock.
pub(super) fn size(subject: &Subject) -> usize {
    let of = usize::from(subject.kind.permits().unwrap_or(0));
    of * (subject.resource.len() + BESIDE_NAME_MAX)
}

/// Begins a script about all slots. The caller then adds its other arguments.
pub(super) fn begin<'a>(subject: &Subject, command: &'a mut Command) -> &'a mut Command {
    let of = slots(subject);
    command.arg(of);
    for slot in 0..of {
        command.key(slot_key(&subject.resource, slot));
    }
    command
}

/// Begins a script about all slots and the wait queue of the semaphore.
pub(super) fn begin_lined<'a>(subject: &Subject, command: &'a mut Command) -> &'a mut Command {
    let of = slots(subject);
    command.arg(of + 1);
    for slot in 0..of {
        command.key(slot_key(&subject.resource, slot));
    }
    command.key(line(&subject.resource))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::{BESIDE_KEYS_MAX, Capabilities, Encoder, KeyEffect, Request, Verb};
    use crate::protocol::lock_kind::{LockKind, Target};
    use crate::protocol::server_set::ServerSet;
    use crate::protocol::token::Token;

    fn of_semaphore(verb: Verb, length: usize, of: u16) -> Request {
        let resource: Arc<[u8]> = Arc::from(vec![b'r'; length]);
        let target = Target { resource, kind: LockKind::Permit { of } };
        Request::new(verb, target, Token::from_random([0xAB; 20]), 30_000)
    }

    const OF_SEMAPHORES: [(Verb, KeyEffect); 5] = [
        (Verb::Acquire, KeyEffect::Leaves),
        (Verb::Move, KeyEffect::Leaves),
        (Verb::Release, KeyEffect::Undoes),
        (Verb::ReleaseRest, KeyEffect::UndoesRest),
        (Verb::Inspect, KeyEffect::Passes),
    ];

    #[test]
    fn a_semaphore_request_names_all_slots() {
        let words = |request: &Request| {
            let mut encoder = Encoder::default();
            let bytes = request.encoded(Capabilities::EXPIRY_TIME, &mut encoder).whole();
            let text = String::from_utf8_lossy(&bytes).replace(request.token().as_str(), "T");
            let words =
                text.split("\r\n").filter(|it| !it.is_empty() && !it.starts_with(['$', '*']));
            let words: Vec<String> = words.map(str::to_owned).collect();
            words[2..].join(" ")
        };
        let request = |verb| of_semaphore(verb, 1, 3);
        // The token determines which of the three slots is tried first.
        let first = request(Verb::Acquire).token().share_of(3) + 1;
        assert_eq!(words(&request(Verb::Acquire)), format!("3 r r#1 r#2 T 30000 {first} 3"));
        assert_eq!(words(&request(Verb::Move).with_slot(2)), "3 r r#1 r#2 T 30000 3 1");
        assert_eq!(words(&request(Verb::Release)), "3 r r#1 r#2 T 0");
        assert_eq!(words(&request(Verb::ReleaseRest).with_slot(0)), "3 r r#1 r#2 T 1");
        assert_eq!(words(&request(Verb::Inspect)), "3 r r#1 r#2 128");
        for (verb, effect) in OF_SEMAPHORES {
            let request = request(verb).to(ServerSet::default().with(1));
            assert_eq!(request.effect(), effect);
            let undoes = [Verb::Release, Verb::ReleaseRest].contains(&verb);
            assert_eq!((request.must_reach(1), request.must_reach(0)), (undoes, false));
            let sets = [Verb::Acquire, Verb::Move].contains(&verb);
            assert_eq!((request.asks_for_vote(), request.may_prolong()), (sets, sets));
            assert!(!request.tells_end(Capabilities::EXPIRY_TIME));
            assert!(!request.relies_on(Capabilities::DELEX));
            for (length, of) in [(1, 2), (1, 256), (1_024, 256), (65_536, 4)] {
                let request = of_semaphore(verb, length, of);
                let mut encoder = Encoder::default();
                let sent = request.encoded(Capabilities::PLAIN, &mut encoder).whole().len();
                let most = sent + BESIDE_KEYS_MAX + usize::from(of) * 16;
                assert!((sent..most).contains(&request.size()), "{verb:?} {length} {of}: {sent}");
            }
        }
    }
}
