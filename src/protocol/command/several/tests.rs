use std::sync::Arc;

use redis::Value::{self, Array, Int, Nil, Okay};

use super::*;
use crate::protocol::command::{BESIDE_KEYS_LONG_MAX, Capabilities, Encoder, Request, Verb};
use crate::protocol::failure::Failure;
use crate::protocol::lock_kind::{LockKind, Target};
use crate::protocol::token::Token;

const VERBS: [Verb; 7] = [
    Verb::Acquire,
    Verb::Repair,
    Verb::AcquireFenced,
    Verb::RaiseFence,
    Verb::Extend,
    Verb::Release,
    Verb::Inspect,
];

fn several(names: Vec<Vec<u8>>) -> Target {
    let names: Vec<Arc<[u8]>> = names.into_iter().map(Arc::from).collect();
    Target { resource: Arc::clone(&names[0]), kind: LockKind::Several(Arc::from(names)) }
}

fn subject() -> Subject {
    let Target { resource, kind } = several(vec![b"b".to_vec(), b"a".to_vec(), b"c".to_vec()]);
    Subject { resource, kind, ..Subject::sample() }
}

fn commands(verb: Verb, capabilities: Capabilities) -> String {
    let target = several(vec![b"b".to_vec(), b"a".to_vec()]);
    let request = Request::new(verb, target, Token::from_random([0xAB; 20]), 30_000).with_fence(7);
    let mut encoder = Encoder::default();
    let bytes = request.encoded(capabilities, &mut encoder).whole();
    let text = String::from_utf8_lossy(&bytes).replace(request.token().as_str(), "T");
    let words = text.split("\r\n").filter(|word| !word.is_empty() && !word.starts_with(['$', '*']));
    words.collect::<Vec<_>>().join(" ")
}

fn answer(verb: Verb, reply: Value) -> Option<Answer> {
    let subject = subject();
    (verb.definition(&subject.kind).decode)(&subject, &mut vec![reply].drain(..))
}

fn says(verb: Verb, numbers: &[i64]) -> Option<Answer> {
    answer(verb, Array(numbers.iter().map(|&it| Int(it)).collect()))
}

fn blocked(nth: u16, left_ms: Option<i64>) -> Option<Answer> {
    Some(Answer::Blocked { place: NthKey { nth, of: 3 }, left_ms })
}

#[test]
fn several_resources_are_one_script_in_the_given_order() {
    for (verb, end) in [
        (Verb::Acquire, " 2 b a T 30000"),
        (Verb::Repair, " 2 b a T 30000"),
        (Verb::Extend, " 2 b a T 30000"),
        (Verb::Release, " 2 b a T"),
        (Verb::Inspect, " 2 b a T"),
        (Verb::AcquireFenced, " 3 b a redlock:fence T 30000 7 1000000 421 3212 ----------------"),
        (Verb::RaiseFence, " 3 b a redlock:fence T 7 421 3212 ----------------"),
    ] {
        let sent = commands(verb, Capabilities::PLAIN);
        assert!(sent.starts_with("EVAL local ") && sent.ends_with(end), "{verb:?} {sent}");
        assert!(!sent.contains("MSETEX"));
        let with_msetex = commands(verb, Capabilities::MSETEX);
        assert_eq!(with_msetex.contains("MSETEX"), verb == Verb::Acquire, "{verb:?}");
        assert!(with_msetex.ends_with(end), "{verb:?} {with_msetex}");
    }
}

#[test]
fn the_size_of_a_request_is_well_estimated() {
    let spread = |count: usize, length: usize| -> Vec<Vec<u8>> {
        (0..count).map(|nth| [&vec![b'r'; length][..], &nth.to_be_bytes()].concat()).collect()
    };
    for names in [spread(2, 32_760), spread(128, 1), spread(128, 500)] {
        for capabilities in [Capabilities::PLAIN, Capabilities::MSETEX, Capabilities::WAKING] {
            for verb in VERBS.into_iter().chain([Verb::JoinWaitlist]) {
                let target = several(names.clone());
                let beside = BESIDE_KEYS_LONG_MAX + 2 * names.len() * BESIDE_KEY_MAX;
                let request = Request::new(verb, target, Token::from_random([0; 20]), i64::MAX);
                let request = request.with_fence(i64::MAX);
                let mut encoder = Encoder::default();
                let length = request.encoded(capabilities, &mut encoder).whole().len();
                let counted = request.size();
                assert!((length..length + beside).contains(&counted), "{verb:?} {length}");
            }
        }
    }
}

#[test]
fn replies_become_answers() {
    for verb in [Verb::Acquire, Verb::Repair] {
        assert_eq!(says(verb, &[0, 0]), Some(Answer::Done));
        assert_eq!(says(verb, &[0, -2]), Some(Answer::Foreign { left_ms: None }));
        assert_eq!(says(verb, &[3, 7]), blocked(3, Some(7)));
        assert_eq!(says(verb, &[1, -1]), blocked(1, Some(-1)));
        assert_eq!(says(verb, &[2, -2]), blocked(2, None));
    }
    assert_eq!(says(Verb::AcquireFenced, &[-5, 7]), Some(Answer::Granted { number: 7 }));
    assert_eq!(says(Verb::AcquireFenced, &[-2, 7]), Some(Answer::Unfenced { ago_ms: 7 }));
    assert_eq!(says(Verb::AcquireFenced, &[0, -2]), Some(Answer::Foreign { left_ms: None }));
    assert_eq!(says(Verb::AcquireFenced, &[2, 7]), blocked(2, Some(7)));
    let no_fences = Some(Answer::Failed(Failure::NoFences));
    assert_eq!(says(Verb::AcquireFenced, &[-1, 0]), no_fences);
    assert_eq!(answer(Verb::RaiseFence, Int(1)), Some(Answer::Done));
    assert_eq!(answer(Verb::RaiseFence, Int(0)), Some(Answer::Absent));
    for verb in [Verb::Extend, Verb::Inspect] {
        let place = NthKey { nth: 2, of: 3 };
        assert_eq!(says(verb, &[0, -2, 2]), Some(Answer::Lacking { place }));
        assert_eq!(says(verb, &[2, 9, 3]), blocked(3, Some(9)));
    }
    assert_eq!(says(Verb::Extend, &[1, 9, 0]), Some(Answer::Extended { left_ms: 9 }));
    let value = subject().token.as_bytes().to_vec();
    assert_eq!(says(Verb::Inspect, &[1, 9, 0]), Some(Answer::Found { value, left_ms: 9 }));
    for verb in VERBS {
        let refused = redis::parse_redis_value(b"-CROSSSLOT Keys in request don't hash\r\n");
        let Some(Answer::Failed(failure)) = answer(verb, refused.expect("a reply")) else {
            panic!("{verb:?}");
        };
        assert!(failure.to_string().contains("use one {tag}"), "{failure}");
        assert!(failure.is_of_the_kind());
    }
}

#[test]
fn a_partial_set_of_keys_is_no_lock_to_release() {
    assert_eq!(answer(Verb::Release, Int(3)), Some(Answer::Done));
    for deleted in 0..3 {
        assert_eq!(answer(Verb::Release, Int(deleted)), Some(Answer::Absent));
    }
    assert_eq!(answer(Verb::Release, Int(4)), None);
    assert_eq!(answer(Verb::Release, Int(-1)), None);
}

#[test]
fn impossible_replies_are_no_answer() {
    for verb in VERBS {
        assert_eq!(answer(verb, Okay), None);
        assert_eq!(answer(verb, Array(vec![Int(1), Nil])), None);
        // There is no such resource.
        for nth in [4, 65_537, -6] {
            assert_eq!(says(verb, &[nth, 1]), None, "{verb:?}");
            assert_eq!(says(verb, &[0, -2, nth]), None, "{verb:?}");
            assert_eq!(says(verb, &[2, 1, nth]), None, "{verb:?}");
        }
    }
    assert_eq!(says(Verb::Extend, &[1, 1, 1]), None);
    assert_eq!(says(Verb::Extend, &[2, 1, 0]), None);
    assert_eq!(says(Verb::AcquireFenced, &[0, 0]), None);
}
