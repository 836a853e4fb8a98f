use super::*;

const PLAIN: Capabilities = Capabilities::PLAIN;

fn request(verb: Verb) -> Request {
    Request::new(verb, Arc::<[u8]>::from(&b"r"[..]), Token::from_random([0xAB; 20]), 30_000)
}

fn commands(verb: Verb, capabilities: Capabilities) -> String {
    let request = request(verb);
    let mut encoder = Encoder::default();
    let bytes = request.bytes(capabilities, &mut encoder);
    let text = String::from_utf8_lossy(bytes).replace(request.token().as_str(), "T");
    let words = text.split("\r\n").filter(|word| !word.is_empty() && !word.starts_with(['$', '*']));
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn the_wire_form_is_that_of_every_redlock_client() {
    assert_eq!(commands(Verb::Acquire, PLAIN), "SET r T PX 30000 NX PTTL r");
    assert_eq!(commands(Verb::Repair, PLAIN), commands(Verb::Acquire, PLAIN));
    let timed = commands(Verb::Acquire, Capabilities::EXPIRY_TIME);
    assert_eq!(timed, "SET r T PX 30000 NX PEXPIRETIME r");
    let fenced = commands(Verb::AcquireFenced, PLAIN);
    assert!(fenced.starts_with("EVAL local "), "{fenced}");
    assert!(fenced.ends_with(" 2 r r:f T 30000 0 1000000 3600000"), "{fenced}");
    let raise = commands(Verb::RaiseFence, PLAIN);
    assert!(raise.ends_with(" 2 r r:f T 0 3600000"), "{raise}");
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
fn a_request_is_as_long_as_it_is_counted_and_little_shorter() {
    let others = [Verb::Extend, Verb::Release, Verb::Inspect];
    for verb in [Verb::Acquire, Verb::AcquireFenced, Verb::RaiseFence].into_iter().chain(others) {
        for capabilities in [PLAIN, Capabilities::DELIFEQ, Capabilities::DELEX] {
            let resource: Arc<[u8]> = Arc::from(&[b'r'; 65_536][..]);
            let token = Token::from_random([0; 20]);
            let request = Request::new(verb, resource, token, i64::MAX).with_fence(i64::MAX);
            let mut encoder = Encoder::default();
            let length = request.bytes(capabilities, &mut encoder).len();
            let counted = request.size();
            assert!((length..length + BESIDE_KEYS_MAX).contains(&counted), "{verb:?} {length}");
        }
    }
}

#[test]
fn whoever_delivers_a_request_is_told_what_matters_for_that() {
    let effects = [
        (Verb::Acquire, KeyEffect::Leaves),
        (Verb::AcquireFenced, KeyEffect::Leaves),
        (Verb::RaiseFence, KeyEffect::Passes),
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
        let votes = [Verb::Acquire, Verb::AcquireFenced, Verb::RaiseFence];
        assert_eq!(request.asks_for_vote(), votes.contains(&verb));
        let prolongs = [Verb::Acquire, Verb::AcquireFenced, Verb::Extend];
        assert_eq!(request.may_prolong(), prolongs.contains(&verb));
        assert!(!request.relies_on(PLAIN));
        assert_eq!(request.relies_on(Capabilities::DELEX), verb == Verb::Release);
        assert!(!request.relies_on(Capabilities::EXPIRY_TIME));
        let tells_end = [Verb::Acquire, Verb::Repair].contains(&verb);
        assert_eq!(request.tells_end(Capabilities::EXPIRY_TIME), tells_end);
        assert!(!request.tells_end(PLAIN));
    }
    assert_eq!(request(Verb::Repair).kind(), request(Verb::Acquire).kind());
}

#[test]
fn what_a_server_refuses_is_given_up_and_all_else_stays() {
    let waking = Capabilities { expiry_time: true, sets_several: true, ..Capabilities::WAKING };
    let after = |verb, of: Capabilities| request(verb).after_refusal(of, false);
    let without_time = Capabilities { expiry_time: false, ..waking };
    assert_eq!(after(Verb::Acquire, waking), without_time);
    // The next in line was sent before that was known.
    assert_eq!(after(Verb::Acquire, without_time), without_time);
    assert_eq!(after(Verb::ReleaseAndWake, waking), Capabilities { wakes: false, ..waking });
    let kind = LockKind::Several(["r", "s"].map(|it| Arc::from(it.as_bytes())).into());
    let target = Target { kind, resource: Arc::from(&b"r"[..]) };
    let several = Request::new(Verb::Acquire, target, Token::from_random([0xAB; 20]), 30_000);
    let without_several = Capabilities { sets_several: false, ..waking };
    assert_eq!(several.after_refusal(waking, false), without_several);
}
