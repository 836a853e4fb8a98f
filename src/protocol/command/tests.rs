//! Tests for the bytes of each request, and for the information that the delivering module gets.

use super::*;

const PLAIN: Capabilities = Capabilities::PLAIN;

fn request(verb: Verb) -> Request {
    request_of(verb, LockKind::Exclusive)
}

fn request_of(verb: Verb, kind: LockKind) -> Request {
    let target = Target { resource: Arc::from(&b"r"[..]), kind };
    Request::new(verb, target, Token::from_random([0xAB; 20]), 30_000)
}

fn commands(verb: Verb, capabilities: Capabilities) -> String {
    commands_of(&request(verb), capabilities)
}

fn commands_of(request: &Request, capabilities: Capabilities) -> String {
    let mut encoder = Encoder::default();
    let bytes = request.encoded(capabilities, &mut encoder).whole();
    let text = String::from_utf8_lossy(&bytes).replace(request.token().as_str(), "T");
    let words = text.split("\r\n").filter(|word| !word.is_empty() && !word.starts_with(['$', '*']));
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn requests_use_the_common_redlock_format() {
    assert_eq!(commands(Verb::Acquire, PLAIN), "SET r T PX 30000 NX PTTL r");
    assert_eq!(commands(Verb::Repair, PLAIN), commands(Verb::Acquire, PLAIN));
    let timed = commands(Verb::Acquire, Capabilities::EXPIRY_TIME);
    assert_eq!(timed, "SET r T PX 30000 NX PEXPIRETIME r");
    let fenced = commands(Verb::AcquireFenced, PLAIN);
    assert!(fenced.starts_with("EVAL local "), "{fenced}");
    let field_and_memory = "3285 ----------------";
    let end = format!(" 2 r redlock:fence T 30000 0 1000000 {field_and_memory}");
    assert!(fenced.ends_with(&end), "{fenced}");
    let raise = commands(Verb::RaiseFence, PLAIN);
    let end = format!(" 2 r redlock:fence T 0 {field_and_memory}");
    assert!(raise.ends_with(&end), "{raise}");
    assert_eq!(commands(Verb::Inspect, PLAIN), "GETRANGE r 0 127 PTTL r");
    assert_eq!(commands(Verb::Release, Capabilities::DELIFEQ), "DELIFEQ r T");
    assert_eq!(commands(Verb::Release, Capabilities::DELEX), "DELEX r IFEQ T");
    let script = commands(Verb::Release, PLAIN);
    assert!(script.starts_with("EVAL if ") && script.ends_with(" 1 r T"), "{script}");
    for capabilities in [PLAIN, Capabilities::DELIFEQ, Capabilities::DELEX] {
        let script = commands(Verb::Extend, capabilities);
        assert!(script.starts_with("EVAL local ") && script.ends_with(" 1 r T 30000"));
        assert!(!script.contains("SET"));
    }
}

#[test]
fn readers_use_scripts_and_writers_plain_commands() {
    let again = commands(Verb::AcquireAgain, PLAIN);
    assert_eq!(again, "SET r T PX 30000 NX ZCARD r:r PTTL r");
    let timed = commands(Verb::AcquireAgain, Capabilities::EXPIRY_TIME);
    assert_eq!(timed, "SET r T PX 30000 NX ZCARD r:r PEXPIRETIME r");
    let ends = [
        (Verb::Acquire, " 3 r r:r r:i T 30000 500"),
        (Verb::Repair, " 3 r r:r r:i T 30000 500"),
        (Verb::Extend, " 2 r r:r T 30000 315360000000"),
        (Verb::Downgrade, " 2 r r:r T 0 315360000000"),
        (Verb::Release, " 2 r r:r T 315360000000"),
        (Verb::Inspect, " 2 r r:r T 128 315360000000"),
        (Verb::ReleaseAndWake, " 2 r r:r T 315360000000"),
        (Verb::JoinWaitlist, " 3 r r:w r:i redlock:w:ABABABABABABABABABABABABABABABAB 0 15000 500"),
        (Verb::AnnounceWriter, " 2 r r:i 500"),
        (Verb::WithdrawWriter, " 1 r:i redlock:writer"),
    ];
    for (verb, end) in ends {
        for capabilities in [PLAIN, Capabilities::DELIFEQ, Capabilities::EXPIRY_TIME] {
            let script = commands_of(&request_of(verb, LockKind::Shared), capabilities);
            assert!(script.starts_with("EVAL ") && script.ends_with(end), "{script}");
        }
    }
    // The effect on a server is the same for a shared and an exclusive lock.
    for verb in [Verb::Acquire, Verb::Extend, Verb::Repair, Verb::Release, Verb::Inspect] {
        let (shared, own) = (request_of(verb, LockKind::Shared), request(verb));
        assert_eq!((shared.effect(), shared.kind()), (own.effect(), own.kind()));
        assert!(!shared.tells_end(Capabilities::EXPIRY_TIME));
        assert!(!shared.relies_on(Capabilities::DELEX));
    }
}

#[test]
fn the_size_of_a_request_is_well_estimated() {
    let others = [Verb::Extend, Verb::Release, Verb::Inspect];
    let fenced = [Verb::AcquireFenced, Verb::RaiseFence];
    for verb in [&[Verb::Acquire][..], &fenced, &others].concat() {
        for capabilities in [PLAIN, Capabilities::DELIFEQ, Capabilities::DELEX] {
            is_as_long_as_counted(verb, LockKind::Exclusive, capabilities);
        }
    }
    let shared = [Verb::Acquire, Verb::Extend, Verb::Release, Verb::Inspect, Verb::Downgrade];
    for verb in [&shared[..], &[Verb::JoinWaitlist]].concat() {
        is_as_long_as_counted(verb, LockKind::Shared, PLAIN);
    }
    is_as_long_as_counted(Verb::ReleaseAndWake, LockKind::Shared, Capabilities::WAKING);
    for verb in [Verb::AcquireAgain, Verb::AnnounceWriter, Verb::WithdrawWriter] {
        is_as_long_as_counted(verb, LockKind::Exclusive, PLAIN);
    }
}

fn is_as_long_as_counted(verb: Verb, kind: LockKind, capabilities: Capabilities) {
    let resource: Arc<[u8]> = Arc::from(&[b'r'; 65_536][..]);
    let (target, token) = (Target { resource, kind }, Token::from_random([0; 20]));
    let request = Request::new(verb, target, token, i64::MAX).with_fence(i64::MAX);
    let mut encoder = Encoder::default();
    let (length, counted) =
        (request.encoded(capabilities, &mut encoder).whole().len(), request.size());
    let most = length + BESIDE_KEYS_LONG_MAX;
    assert!((length..most).contains(&counted), "{verb:?} {length} {counted}");
}

/// The words of each command in these bytes.
fn words(mut bytes: &[u8]) -> Vec<Vec<Vec<u8>>> {
    let number = |kind: u8, bytes: &mut &[u8]| -> usize {
        let end = bytes.iter().position(|it| *it == b'\r').expect("a line");
        assert_eq!(bytes[0], kind);
        let text = str::from_utf8(&bytes[1..end]).expect("a number");
        *bytes = &bytes[end + 2..];
        text.parse().expect("a number")
    };
    let mut commands = Vec::new();
    while !bytes.is_empty() {
        let count = number(b'*', &mut bytes);
        let mut word = |_| {
            let length = number(b'$', &mut bytes);
            let (word, rest) = bytes.split_at(length);
            bytes = &rest[2..];
            word.to_vec()
        };
        commands.push((0..count).map(&mut word).collect());
    }
    commands
}

/// All keys of a server in a cluster have the tag before their names, and nothing else has.
#[test]
fn each_key_has_the_prefix_of_the_server() {
    const VERBS: [Verb; 20] = [
        Verb::Acquire,
        Verb::AcquireAgain,
        Verb::Move,
        Verb::AcquireFenced,
        Verb::RaiseFence,
        Verb::ReadFences,
        Verb::RestoreFences,
        Verb::Extend,
        Verb::Downgrade,
        Verb::AnnounceWriter,
        Verb::WithdrawWriter,
        Verb::Repair,
        Verb::Release,
        Verb::ReleaseAndWake,
        Verb::ReleaseAfter,
        Verb::ReleaseRest,
        Verb::ReleaseRestAndWake,
        Verb::Inspect,
        Verb::JoinWaitlist,
        Verb::Leave,
    ];
    let several = LockKind::Several(["r", "s"].map(|it| Arc::from(it.as_bytes())).into());
    let kinds = [LockKind::Exclusive, LockKind::Shared, LockKind::Permit { of: 3 }, several];
    let all = VERBS.iter().flat_map(|verb| kinds.iter().map(move |kind| (*verb, kind.clone())));
    for (verb, kind) in all {
        for capabilities in [
            PLAIN,
            Capabilities::DELIFEQ,
            Capabilities::DELEX,
            Capabilities::EXPIRY_TIME,
            Capabilities::WAKING,
            Capabilities::WAKING_DELIFEQ,
            Capabilities::MSETEX,
        ] {
            let request = request_of(verb, kind.clone());
            let all = |encoder: &mut Encoder, prefix: &[u8]| {
                let own = request.encoded(capabilities, encoder).whole();
                let look = request.look_for_waiters(capabilities, prefix).unwrap_or_default();
                words(&[own, look].concat())
            };
            let plain = all(&mut Encoder::default(), b"");
            let mut prefixed = all(&mut Encoder::with_prefix(b"{a}"), b"{a}");
            for command in &mut prefixed {
                let keys = match &*command[0] {
                    b"EVAL" => {
                        let count = str::from_utf8(&command[2]).expect("a number");
                        3..3 + count.parse::<usize>().expect("a number")
                    }
                    _ => 1..2,
                };
                for key in &mut command[keys] {
                    let bare = key.strip_prefix(b"{a}");
                    *key = bare.unwrap_or_else(|| panic!("{verb:?} {kind:?}: {key:?}")).to_vec();
                }
            }
            assert_eq!(prefixed, plain, "{verb:?} {kind:?}");
        }
    }
}

#[test]
fn each_verb_states_its_effect_on_the_key() {
    let effects = [
        (Verb::Acquire, KeyEffect::Leaves),
        (Verb::AcquireAgain, KeyEffect::Leaves),
        (Verb::Downgrade, KeyEffect::Passes),
        (Verb::AnnounceWriter, KeyEffect::Passes),
        (Verb::AcquireFenced, KeyEffect::Leaves),
        (Verb::RaiseFence, KeyEffect::Passes),
        (Verb::ReadFences, KeyEffect::Passes),
        (Verb::RestoreFences, KeyEffect::Passes),
        (Verb::Repair, KeyEffect::Leaves),
        (Verb::Extend, KeyEffect::Passes),
        (Verb::Inspect, KeyEffect::Passes),
        (Verb::Release, KeyEffect::Undoes),
    ];
    for (verb, effect) in effects {
        let request = request(verb).to(ServerSet::default().with(1));
        assert_eq!(request.effect(), effect);
        assert!(request.is_for(1) && !request.is_for(0));
        assert_eq!(request.must_reach(1), verb == Verb::Release);
        assert!(!request.must_reach(0));
        let asks = [Verb::Acquire, Verb::AcquireAgain, Verb::AcquireFenced];
        let votes = [&asks[..], &[Verb::RaiseFence, Verb::ReadFences]].concat();
        assert_eq!(request.asks_for_vote(), votes.contains(&verb));
        let of_memory = [Verb::AcquireFenced, Verb::RaiseFence, Verb::ReadFences];
        assert_eq!(request.names_memory(), of_memory.contains(&verb));
        let prolongs = [&asks[..], &[Verb::Extend]].concat();
        assert_eq!(request.may_prolong(), prolongs.contains(&verb));
        assert!(!request.relies_on(PLAIN));
        assert_eq!(request.relies_on(Capabilities::DELEX), verb == Verb::Release);
        assert!(!request.relies_on(Capabilities::EXPIRY_TIME));
        let tells_end = [Verb::Acquire, Verb::AcquireAgain, Verb::Repair].contains(&verb);
        assert_eq!(request.tells_end(Capabilities::EXPIRY_TIME), tells_end);
        assert!(!request.tells_end(PLAIN));
    }
    assert_eq!(request(Verb::Repair).kind(), request(Verb::Acquire).kind());
}

/// A permit draws no number, whatever its verb. Another request must not be changed at its end.
#[test]
fn only_a_fenced_lock_names_a_memory() {
    for kind in [LockKind::Shared, LockKind::Permit { of: 3 }] {
        assert!(!request_of(Verb::AcquireFenced, kind).names_memory());
    }
    let several = LockKind::Several(["r", "s"].map(|it| Arc::from(it.as_bytes())).into());
    assert!(request_of(Verb::AcquireFenced, several).names_memory());
}

#[test]
fn counters_are_restored_for_one_memory_only() {
    assert!(commands(Verb::ReadFences, PLAIN).ends_with(" 1 redlock:fence ----------------"));
    let memory = NotedMemory { life: guard::MemoryId::from_random(0xFF), generation: 3 };
    for (clock_us, is_by_clock, end) in [(0, false, "0 1000000 0 5"), (9, true, "9 1000000 1 5")] {
        let restored = Restored { memory, seen_ms: 5, base: 7, clock_us, is_by_clock };
        let request = request(Verb::RestoreFences).with_restored(restored);
        let end = format!(" 2 redlock:fence redlock:guard 3 00000000000000ff 7 {end}");
        let sent = commands_of(&request, PLAIN);
        assert!(sent.starts_with("EVAL ") && sent.ends_with(&end), "{sent}");
        assert!(sent.len() < request.size());
    }
}

#[test]
fn only_the_refused_capability_is_dropped() {
    let waking = Capabilities { expiry_time: true, sets_several: true, ..Capabilities::WAKING };
    let after = |verb, of: Capabilities| {
        let request = request(verb);
        request.after_refusal(of, &request.form_for(of))
    };
    let without_time = Capabilities { expiry_time: false, ..waking };
    assert_eq!(after(Verb::Acquire, waking), without_time);
    // The next request was sent before that was known.
    assert_eq!(after(Verb::Acquire, without_time), without_time);
    assert_eq!(after(Verb::ReleaseAndWake, waking), Capabilities { wakes: false, ..waking });
    let kind = LockKind::Several(["r", "s"].map(|it| Arc::from(it.as_bytes())).into());
    let target = Target { kind, resource: Arc::from(&b"r"[..]) };
    let several = Request::new(Verb::Acquire, target, Token::from_random([0xAB; 20]), 30_000);
    let without_several = Capabilities { sets_several: false, ..waking };
    assert_eq!(several.after_refusal(waking, &several.form_for(waking)), without_several);
}

#[test]
fn a_refused_key_is_named_by_the_keys_of_the_request() {
    let words = |verb, kind| {
        let target = Target { resource: Arc::from(&b"r"[..]), kind };
        let request = Request::new(verb, target, Token::from_random([0xAB; 20]), 10_000);
        let refusal = b"-NOPERM No permissions to access a key\r\n";
        let reply = redis::parse_redis_value(refusal).expect("a reply");
        let mut replies = vec![reply; request.form_for(PLAIN).replies.into()];
        match request.answer(true, &mut replies) {
            Some(Answer::Failed(failure)) => failure.to_string(),
            other => panic!("{other:?}"),
        }
    };
    let exclusive = |verb| words(verb, LockKind::Exclusive);
    assert_eq!(exclusive(Verb::Extend), "NOPERM: user lacks ~NAME (NAME: the resource)");
    assert!(exclusive(Verb::JoinWaitlist).contains("user lacks ~NAME or ~NAME:w ("));
    assert!(exclusive(Verb::AcquireFenced).contains("user lacks ~NAME or ~redlock:fence ("));
    assert!(words(Verb::Acquire, LockKind::Shared).contains("~NAME:r, ~NAME:i"));
    assert!(words(Verb::Acquire, LockKind::Permit { of: 3 }).contains("~NAME#*"));
}
