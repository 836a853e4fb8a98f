use super::*;
use crate::protocol::command::guard::MemoryId;

/// Without the optional requirements that settings ask for.
const PLAIN: Requirements = Requirements { is_guarded: false, is_waking: false };

const UNKNOWN: &str = "-ERR unknown command 'X'\r\n";
const LACKING: &str = "-ERR wrong number of arguments for 'x' command\r\n";

fn credentials() -> Credentials {
    Credentials { user: Some(b"u".to_vec()), password: b"p".to_vec() }
}

/// A server that tells us nothing about itself.
const CLOSED: [&str; 5] = ["-NOPERM no\r\n"; 5];

/// The questions at the end of each handshake.
const QUESTIONS: &str = "INFO server INFO replication INFO memory INFO persistence \
                         CONFIG GET appendfsync";

/// The result of these replies. Each reply before the last must lead to [`Progress::More`].
fn after(handshake: &mut Handshake, replies: &[&str]) -> Progress {
    let mut progress = Progress::More;
    for reply in replies {
        assert_eq!(progress, Progress::More, "before {reply}");
        let reply = redis::parse_redis_value(reply.as_bytes()).expect("a reply");
        progress = handshake.handle_reply(&reply);
    }
    progress
}

fn plain() -> Handshake {
    Handshake::new(None, 0, b"", PLAIN)
}

fn is_refused(progress: &Progress, words: &str) -> bool {
    matches!(progress, Progress::Refused { failure, .. } if failure.to_string().contains(words))
}

#[test]
fn only_necessary_handshake_steps_are_sent() {
    let sent = |credentials: Option<&Credentials>, database| {
        let mut outbox = Vec::new();
        Handshake::new(credentials, database, b"", PLAIN).write_to(&mut outbox);
        let text = String::from_utf8(outbox).expect("a text");
        let words = text.split("\r\n").filter(|word| !word.starts_with(['$', '*']));
        words.collect::<Vec<_>>().join(" ").trim_end().to_owned()
    };
    let all = |first: &str| format!("{first}DELEX DELIFEQ MSETEX PING {QUESTIONS}");
    assert_eq!(sent(None, 0), all(""));
    assert_eq!(sent(None, 3), all("SELECT 3 "));
    assert_eq!(sent(Some(&credentials()), 3), all("AUTH u p SELECT 3 "));
    let nameless = Credentials { user: None, ..credentials() };
    assert_eq!(sent(Some(&nameless), 0), all("AUTH p "));
}

#[test]
fn capabilities_are_learned_in_the_handshake() {
    for (delex, delifeq, delete) in [
        (UNKNOWN, UNKNOWN, Delete::Script),
        (LACKING, UNKNOWN, Delete::Delex),
        (UNKNOWN, LACKING, Delete::Delifeq),
    ] {
        let done = Progress::Done(Capabilities { delete, ..Capabilities::PLAIN });
        let replies = [&[delex, delifeq, UNKNOWN, "+PONG\r\n"][..], &CLOSED].concat();
        assert_eq!(after(&mut plain(), &replies), done);
        let replies = [&["+OK\r\n", "+OK\r\n"][..], &replies].concat();
        assert_eq!(after(&mut Handshake::new(Some(&credentials()), 3, b"", PLAIN), &replies), done);
    }
    for (msetex, able) in [(UNKNOWN, Capabilities::PLAIN), (LACKING, Capabilities::MSETEX)] {
        let replies = [&[UNKNOWN, UNKNOWN, msetex, "-NOPERM no\r\n"][..], &CLOSED].concat();
        assert_eq!(after(&mut plain(), &replies), Progress::Done(able));
    }
}

#[test]
fn the_identity_is_learned_in_the_handshake() {
    let bulk = |text: &str| format!("${}\r\n{text}\r\n", text.len());
    let program = bulk("redis_version:7.0.15\r\n");
    let (role, memory) = (bulk("role:master\r\n"), bulk("maxmemory_policy:noeviction\r\n"));
    let (log, syncing) = (bulk("aof_enabled:1\r\n"), "*2\r\n$1\r\na\r\n$2\r\nno\r\n");
    let probed = [UNKNOWN, UNKNOWN, UNKNOWN, "+PONG\r\n"];
    let replies = [&probed[..], &[&program, &role, &memory, &log, syncing]].concat();
    let mut handshake = plain();
    assert_eq!(after(&mut handshake, &replies), Progress::Done(Capabilities::PLAIN));
    let identity = handshake.identity();
    assert_eq!((identity.version(), identity.role()), ("7.0.15", "primary"));
    assert_eq!((identity.eviction(), identity.keeps()), ("noeviction", "log, never synced"));
    let replica = bulk("role:slave\r\n");
    let replies = [&probed[..], &[&program, &replica]].concat();
    let mut handshake = plain();
    assert!(is_refused(&after(&mut handshake, &replies), "replica"));
    assert_eq!(handshake.identity().role(), "replica");
}

#[test]
fn each_reply_is_judged_by_its_step() {
    let log_in = |reply| after(&mut Handshake::new(Some(&credentials()), 0, b"", PLAIN), &[reply]);
    let wrong = log_in("-WRONGPASS no\r\n");
    assert!(matches!(wrong, Progress::Refused { is_of_credentials: true, .. }), "{wrong:?}");
    let loading = log_in("-LOADING yes\r\n");
    assert!(matches!(loading, Progress::Refused { is_of_credentials: false, .. }));
    assert!(is_refused(&log_in("+QUEUED\r\n"), "protocol error"));
    // Without a login the failure is not about the password.
    let unknown = after(&mut plain(), &[UNKNOWN, UNKNOWN, UNKNOWN, "-NOAUTH no\r\n"]);
    assert!(matches!(unknown, Progress::Refused { is_of_credentials: false, .. }));
    assert!(is_refused(&unknown, "NOAUTH"));
    let database =
        after(&mut Handshake::new(None, 99, b"", PLAIN), &["-ERR DB index is out of range\r\n"]);
    assert!(is_refused(&database, "database"));
    assert!(is_refused(&after(&mut plain(), &["+OK\r\n"]), "protocol error"));
    assert!(is_refused(
        &after(&mut plain(), &[UNKNOWN, UNKNOWN, UNKNOWN, "+OK\r\n"]),
        "protocol error"
    ));
    // A probe may be refused for any other reason. The server then counts as lacking the command.
    assert_eq!(after(&mut plain(), &["-NOAUTH no\r\n"]), Progress::More);
}

#[test]
fn a_closed_server_refuses_the_first_step() {
    let full = "-ERR max number of clients reached\r\n";
    for reply in [full, "-DENIED Redis is running in protected mode\r\n"] {
        assert!(matches!(after(&mut plain(), &[reply]), Progress::Refused { .. }));
        let log_in = after(&mut Handshake::new(Some(&credentials()), 0, b"", PLAIN), &[reply]);
        assert!(matches!(log_in, Progress::Refused { is_of_credentials: false, .. }));
    }
}

const ID: &str = "0123456789abcdef0123456789abcdef01234567";

/// The replies of a server that gives its identity and nothing else about itself, and then its clock and its
/// note.
fn asked(clock: &str, note: &str) -> (Handshake, Progress) {
    asked_for(b"", clock, note)
}

/// The same of a server whose keys have this before their names.
fn asked_for(prefix: &[u8], clock: &str, note: &str) -> (Handshake, Progress) {
    let bulk = |text: &str| format!("${}\r\n{text}\r\n", text.len());
    let program = bulk(&format!("run_id:{ID}\r\n"));
    let probed = [UNKNOWN, UNKNOWN, UNKNOWN, "+PONG\r\n", &program];
    let replies = [&probed[..], &CLOSED[1..], &[UNKNOWN, clock, note]].concat();
    let requirements = Requirements { is_guarded: true, ..PLAIN };
    let mut handshake = Handshake::new(None, 0, prefix, requirements);
    let progress = after(&mut handshake, &replies);
    (handshake, progress)
}

/// For a server of its own, these are words of a user who may not read the note.
#[test]
fn a_node_without_the_slot_is_refused() {
    for words in ["-MOVED 1 10.0.0.1:6379\r\n", "-ASK 1 10.0.0.1:6379\r\n", "-TRYAGAIN no\r\n"] {
        let (_, progress) = asked_for(b"{a}", CLOCK, words);
        assert!(is_refused(&progress, "the slot of the tag is at another node"), "{progress:?}");
    }
    let (handshake, _) = asked(CLOCK, "-MOVED 1 10.0.0.1:6379\r\n");
    assert!(matches!(handshake.memory(), Memory::Untold(_)));
}

const LIFE: &str = "0000000000000007";

fn note(id: RunId) -> Note {
    Note::sample(id, MemoryId::from_random(7), 1)
}

const CLOCK: &str = "*2\r\n$1\r\n7\r\n$4\r\n1000\r\n";

#[test]
fn the_note_is_read_and_the_server_is_marked_if_needed() {
    let (mut handshake, progress) = asked(CLOCK, "$0\r\n\r\n");
    assert_eq!(progress, Progress::Done(Capabilities::PLAIN));
    let id = RunId::parse(ID).expect("an id");
    let reading =
        Reading { now_us: 7_001_000, grain_us: 0, borne: Borne::Nothing, text: Vec::new() };
    assert_eq!(*handshake.memory(), Memory::Read(id, Box::new(reading)));
    assert!(!handshake.is_asking());
    let mut outbox = Vec::new();
    let new = Note { since_ms: 0, ..note(id) };
    handshake.mark(&new, Since::Fresh { until_ms: 8_000 }, &mut outbox);
    let sent = String::from_utf8(outbox).expect("a text");
    let words = sent.split("\r\n").filter(|word| !word.starts_with(['$', '*']));
    let sent = words.collect::<Vec<_>>().join(" ");
    let end = format!("redlock:guard  1 {ID} 1 fresh 10000 {LIFE} 8000 ");
    assert!(sent.ends_with(&end), "{sent}");
    assert!(handshake.is_asking());
    let text = format!("1 {ID} 1 -7002 10000 {LIFE}");
    let marked = format!("*2\r\n${}\r\n{text}\r\n:7002\r\n", text.len());
    let progress = after(&mut handshake, &[&marked]);
    assert_eq!(progress, Progress::Done(Capabilities::PLAIN));
    let Memory::Read(_, reading) = handshake.memory() else { panic!() };
    assert_eq!((reading.now_us, reading.grain_us), (7_002_000, 1_000));
    let written = Note { since_ms: -7_002, ..note(id) };
    assert_eq!((&reading.borne, &*reading.text), (&Borne::Note(written), text.as_bytes()));
}

#[test]
fn a_forbidden_question_is_skipped_and_a_refused_one_repeated() {
    let noperm = "-NOPERM this user has no permissions to run the 'time' command\r\n";
    for (clock, note) in [(noperm, "$0\r\n\r\n"), (CLOCK, noperm), (UNKNOWN, UNKNOWN)] {
        let (handshake, progress) = asked(clock, note);
        assert_eq!(progress, Progress::Done(Capabilities::PLAIN));
        assert!(matches!(handshake.memory(), Memory::Untold(_)));
    }
    let (denied, _) = asked(noperm, UNKNOWN);
    let Memory::Untold(Some(refusal)) = denied.memory() else { panic!("it is refused") };
    assert_eq!(refusal.to_string(), "NOPERM: user lacks +time");
    let wrong_type = asked(CLOCK, "-WRONGTYPE no\r\n");
    let Memory::Read(id, reading) = wrong_type.0.memory() else { panic!("it is told") };
    assert!(matches!(reading.borne, Borne::Unusable(_)));
    let note = note(*id);
    assert!(is_refused(&asked(CLOCK, "-BUSY yes\r\n").1, "BUSY"));
    for (reply, words) in [("-OOM no\r\n", "OOM"), (":1\r\n", "protocol error")] {
        let (mut handshake, _) = asked(CLOCK, "$0\r\n\r\n");
        handshake.mark(&note, Since::Now, &mut Vec::new());
        assert!(is_refused(&after(&mut handshake, &[reply]), words));
    }
    let (mut handshake, _) = asked(CLOCK, "$0\r\n\r\n");
    handshake.mark(&note, Since::Now, &mut Vec::new());
    after(&mut handshake, &[noperm]);
    assert!(matches!(handshake.memory(), Memory::Untold(_)));
    let wrapped = "-ERR Error running script (call to f_1): @user_script:1: WRONGTYPE no\r\n";
    for wrong_type in ["-WRONGTYPE no\r\n", wrapped] {
        let (mut handshake, _) = asked(CLOCK, "$0\r\n\r\n");
        handshake.mark(&note, Since::Now, &mut Vec::new());
        after(&mut handshake, &[wrong_type]);
        let Memory::Read(_, reading) = handshake.memory() else { panic!("it is told") };
        assert!(matches!(reading.borne, Borne::Unusable(_)), "{wrong_type}");
    }
    assert_eq!(*plain().memory(), Memory::NotAsked);
}
