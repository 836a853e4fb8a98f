//! Data on a connection that none of our servers should send.

use std::fs::File;
use std::io::Read;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use redlock::ffi::status::RedLockStatus::{REDLOCK_OK, REDLOCK_TAKEN, REDLOCK_UNREACHABLE};

use crate::rig::Rig;
use crate::strangers::are_strange;
use crate::support::fake::GREETING;
use crate::support::product::product;
use crate::support::usage::{PATIENT_MS, TTL, everything_works, make_brief};
use crate::support::{
    Fake, Lease, Manager, Program, Proxy, Server, Way, wait_until, wait_until_ok,
};

const NONSENSE: &[&str] = &["protocol error: unexpected reply"];
const TOO_LARGE: &str = "reply too large";
/// For nonsense, or the beginning of something that never ends.
const HALF_SAID: &[&str] = &[NONSENSE[0], "no reply", "timed out"];

#[test]
fn p01_a_web_server() {
    are_strange(Fake::web, NONSENSE);
}

#[test]
fn p01_a_greeting_of_ssh() {
    are_strange(|| speaking_first("SSH-2.0-OpenSSH_9.2\r\n"), NONSENSE);
}

#[test]
fn p01_a_greeting_of_smtp() {
    are_strange(|| speaking_first("220 mail.example ESMTP Postfix\r\n"), NONSENSE);
}

#[test]
fn p01_random_bytes() {
    let mut bytes = vec![0; 5_000];
    File::open("/dev/urandom").and_then(|mut it| it.read_exact(&mut bytes)).expect("random bytes");
    // By chance, the random bytes could begin a reply. This byte prevents that.
    bytes[0] = 0;
    are_strange(|| Fake::answering(bytes.clone()), NONSENSE);
}

#[test]
fn p01_an_echo_of_what_we_send() {
    let echo = || {
        Fake::start(|guest| {
            while let Some(bytes) = guest.read()? {
                guest.write(&bytes)?;
            }
            Ok(())
        })
    };
    are_strange(echo, HALF_SAID);
}

/// It speaks without being asked.
fn speaking_first(words: &'static str) -> Fake {
    Fake::start(move |guest| {
        guest.write(words.as_bytes())?;
        while guest.read()?.is_some() {}
        Ok(())
    })
}

/// The bytes that a server sends after it has behaved well, each with a description.
fn hostile() -> Vec<(&'static str, Vec<u8>)> {
    let long = |begin: &[u8], byte: u8, count: usize| [begin, &vec![byte; count]].concat();
    vec![
        ("a huge string", b"$9999999999\r\n".to_vec()),
        ("a string of the greatest length", format!("${}\r\n", i64::MAX).into()),
        ("a string of a length beyond 64 bits", b"$99999999999999999999\r\n".to_vec()),
        ("a string of a negative length", b"$-2\r\n".to_vec()),
        ("an array of a negative length", b"*-2\r\n".to_vec()),
        ("a huge array", b"*1000000000\r\n".to_vec()),
        (
            "a huge array of what is there",
            [b"*1000000000\r\n".to_vec(), b":1\r\n".repeat(50_000)].concat(),
        ),
        ("an array of the greatest length", format!("*{}\r\n", i64::MAX).into()),
        ("a deep nest", b"*1\r\n".repeat(100_000)),
        ("a wide nest", b"*1000000000\r\n".repeat(4)),
        ("an integer beyond 64 bits", b":9223372036854775808\r\n:1\r\n".to_vec()),
        ("an integer of many digits", long(b":", b'1', 100_000)),
        ("an integer without digits", b":\r\n:\r\n".to_vec()),
        ("a line without end", long(b"+", b'O', 1_000_000)),
        ("a line feed alone", b"+OK\n:1\n".to_vec()),
        ("a string without its end", b"$2\r\nOKxx:1\r\n".to_vec()),
        ("NUL", long(b"", 0, 1_000)),
        ("NUL in a line", b"+O\0K\r\n:1\r\n".to_vec()),
        ("a megabyte of an error", [long(b"-ERR ", b'x', 1 << 20), b"\r\n".to_vec()].concat()),
        ("an error without words", b"-\r\n-\r\n".to_vec()),
        ("an error that is no text", b"-\xff\xfe\x80\r\n:1\r\n".to_vec()),
        ("a push of RESP3", b">2\r\n+invalidate\r\n+r\r\n".to_vec()),
        ("an attribute of RESP3", b"|1\r\n+ttl\r\n:1\r\n+OK\r\n:1\r\n".to_vec()),
        ("a null, a boolean, a number of RESP3", b"_\r\n#t\r\n,1.5\r\n".to_vec()),
        ("a map and a set of RESP3", b"%1\r\n+a\r\n:1\r\n~1\r\n:1\r\n".to_vec()),
        ("a streamed string of RESP3", b"$?\r\n;4\r\nOKOK\r\n;0\r\n".to_vec()),
        ("another type", b":42\r\n:42\r\n".to_vec()),
        ("one too many", b"+OK\r\n:600000\r\n".repeat(2)),
        ("far too many", b"+OK\r\n:600000\r\n".repeat(50_000)),
    ]
}

/// Answers the handshake as a server does, and then everything with these bytes.
fn turning_hostile(bytes: Vec<u8>) -> Fake {
    Fake::start(move |guest| {
        let mut greeted = false;
        while guest.read()?.is_some() {
            guest.write(if greeted { &bytes } else { GREETING })?;
            greeted = true;
        }
        Ok(())
    })
}

/// Answers the handshake as a server does, and then sends data as long as the client reads.
fn never_ending(begin: &'static [u8]) -> Fake {
    Fake::start(move |guest| {
        guest.read()?;
        guest.write(GREETING)?;
        guest.read()?;
        guest.write(begin)?;
        loop {
            guest.write(&b":1".repeat(32 * 1024))?;
        }
    })
}

#[test]
fn p02_hostile_replies_are_no_votes_and_do_no_harm() {
    for (what, bytes) in hostile() {
        let server = Server::start();
        let (first, second) = (turning_hostile(bytes.clone()), turning_hostile(bytes));
        let manager = Manager::at(&[first.address(), second.address(), server.address()]);
        make_brief(&manager);
        for _ in 0..3 {
            let lease = Lease::new();
            let status = manager.try_lock("r", TTL, 0, &lease);
            assert_eq!(status, REDLOCK_UNREACHABLE, "{what}: {}", lease.message());
            assert!(!lease.is_held());
            assert_eq!(manager.is_locked("r"), Err(REDLOCK_UNREACHABLE), "{what}");
        }
        wait_until("nothing is left", || !server.exists("r"));
    }
}

#[test]
fn p02_a_hostile_minority_is_harmless() {
    let servers = [Server::start(), Server::start()];
    for (what, bytes) in hostile() {
        let fake = turning_hostile(bytes);
        let all = [fake.address(), servers[0].address(), servers[1].address()];
        let manager = Manager::at(&all);
        manager.set_timeouts(PATIENT_MS, PATIENT_MS);
        println!("{what}");
        everything_works(&manager, "r");
        drop(manager);
        wait_until("nothing is left", || servers.iter().all(|it| !it.exists("r")));
    }
}

#[test]
fn p02_hostile_greetings_are_reported_and_do_no_harm() {
    for (what, bytes) in hostile() {
        // Two of these are errors, and a server may answer a question with an error.
        if bytes.starts_with(b"-") {
            continue;
        }
        let fake = Fake::answering(bytes);
        let manager = Manager::at(&[fake.address()]);
        make_brief(&manager);
        let lease = Lease::new();
        wait_until_ok("the message tells what is wrong", || {
            let status = manager.try_lock("r", TTL, 0, &lease);
            assert_eq!(status, REDLOCK_UNREACHABLE, "{what}: {}", lease.message());
            let told = |words| lease.message().contains(words);
            let is_told = told(TOO_LARGE) || HALF_SAID.iter().any(|it| told(it));
            if is_told { Ok(()) } else { Err(format!("{what}: {}", lease.message())) }
        });
    }
}

/// The program may use a few megabytes more than before the first call, and no address space beyond that.
#[test]
fn p02_hostile_replies_take_no_memory() {
    let replies: Vec<_> = hostile().into_iter().map(|it| it.1).collect();
    let after = replies.iter().cloned().map(turning_hostile);
    let at_once = replies.iter().cloned().map(Fake::answering);
    let endless = [&b"+"[..], b"-ERR ", b"$1000000000\r\n", b"*1000000000\r\n"].map(never_ending);
    let fakes: Vec<_> = after.chain(at_once).chain(endless).collect();
    let urls: Vec<_> = fakes.iter().map(|it| format!("redis://{}", it.address())).collect();
    assert!(urls.len() <= 64, "more than a manager takes");
    Program::compile("hostile_replies").run(&urls);
}

#[test]
fn p03_a_surplus_reply_grants_nothing() {
    let server = Server::start();
    server.must(&["SET", "r", "somebody"]);
    let proxy = Proxy::to(&server);
    proxy.alter(Way::Replies, |replies| [&replies[..], b"+OK\r\n:9999\r\n"].concat());
    let manager = Manager::at(&[proxy.address()]);
    make_brief(&manager);
    for _ in 0..10 {
        let lease = Lease::new();
        let status = manager.lock("r", TTL, &lease);
        assert!([REDLOCK_TAKEN, REDLOCK_UNREACHABLE].contains(&status), "{status:?}");
        assert!(!lease.is_held());
    }
    assert_eq!(server.get("r").as_deref(), Some("somebody"));
}

/// The same, but the surplus reply comes first. Then no client can tell which reply is the answer.
#[test]
fn p03_a_forged_grant_before_the_answer_grants_nothing() {
    let server = Server::start();
    server.must(&["SET", "r", "somebody"]);
    let proxy = Proxy::to(&server);
    let manager = Manager::at(&[proxy.address()]);
    make_brief(&manager);
    for _ in 0..10 {
        manager.connect_to_all();
        proxy.alter(Way::Replies, |replies| [b"+OK\r\n:600000\r\n", &replies[..]].concat());
        let lease = Lease::new();
        let status = manager.lock("r", TTL, &lease);
        assert_eq!(status, REDLOCK_UNREACHABLE, "{}", lease.message());
        assert!(!lease.is_held());
        proxy.heal();
    }
    assert_eq!(server.get("r").as_deref(), Some("somebody"));
}

/// A quiet connection is checked before a request is sent over it.
#[test]
fn p03_an_unrequested_grant_ends_the_connection() {
    let rig = Rig::start(1);
    let manager = rig.connected();
    everything_works(&manager, "r");
    rig.servers[0].must(&["SET", "r", "somebody"]);
    for _ in 0..10 {
        rig.proxies[0].inject(Way::Replies, b"+OK\r\n:600000\r\n");
        // As long as it takes for the connection to count as quiet.
        thread::sleep(Duration::from_millis(80));
        let lease = Lease::new();
        assert_ne!(manager.try_lock("r", TTL, 0, &lease), REDLOCK_OK);
        assert!(!lease.is_held());
        assert!(rig.proxies[0].connections().len() > 1, "the connection is still trusted");
    }
    rig.servers[0].must(&["DEL", "r"]);
    rig.recovers(&manager, "r");
}

/// Whatever one server says during the conversation, it is one vote.
#[test]
fn p03_forged_grants_of_a_minority_are_no_quorum() {
    let rig = Rig::start(3);
    let manager = rig.connected();
    for server in rig.servers.iter() {
        server.must(&["SET", "r", "somebody"]);
    }
    for made_up in [&b"+OK\r\n:600000\r\n"[..], b"+OK\r\n:600000\r\n+OK\r\n:600000\r\n"] {
        rig.proxies[0].alter(Way::Replies, |_| made_up.to_vec());
        for _ in 0..5 {
            let lease = Lease::new();
            let status = manager.try_lock("r", TTL, 0, &lease);
            assert_eq!(status, REDLOCK_TAKEN, "{}", lease.message());
            assert!(!lease.is_held());
        }
        rig.heal();
        manager.connect_to_all();
    }
    for server in rig.servers.iter() {
        assert_eq!(server.get("r").as_deref(), Some("somebody"));
        server.must(&["DEL", "r"]);
    }
    rig.proxies.iter().for_each(Proxy::reset);
    rig.recovers(&manager, "r");
}

/// Replacements for the replies to a granted request. Each time the lock is not taken, or not kept, and the key
/// is released over the next connection.
#[test]
fn p03_doubled_or_swapped_replies_grant_nothing() {
    let rig = Rig::start(1);
    let manager = rig.connected();
    make_brief(&manager);
    let instead: [&[u8]; 11] = [
        b":600000\r\n+OK\r\n",
        b"+OK\r\n+OK\r\n:600000\r\n:600000\r\n",
        b":1\r\n:600000\r\n",
        b"$2\r\nOK\r\n:600000\r\n",
        b"+QUEUED\r\n:600000\r\n",
        b"+PONG\r\n:600000\r\n",
        b"*1\r\n+OK\r\n:600000\r\n",
        b"*0\r\n:600000\r\n",
        b"$9999999999\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"-ERR no\r\n-ERR no\r\n",
    ];
    for reply in instead {
        wait_until("the connection is up", || manager.is_locked("r") == Ok(false));
        once(&rig.proxies[0], reply.to_vec());
        let lease = Lease::new();
        let status = manager.lock("r", TTL, &lease);
        let what = String::from_utf8_lossy(reply);
        assert_eq!(status, REDLOCK_UNREACHABLE, "{what:?}: {}", lease.message());
        assert!(!lease.is_held());
        wait_until("what was granted is released", || {
            manager.is_locked("r") == Ok(false) && !rig.servers[0].exists("r")
        });
    }
    rig.recovers(&manager, "r");
}

/// Replaces the reply to the next request with this, whatever the server said.
fn once(proxy: &Proxy, reply: Vec<u8>) {
    let mut reply = Some(reply);
    proxy.alter(Way::Replies, move |replies| reply.take().unwrap_or(replies));
}

/// Replies of a real server to three requests at once, in another order. Each reply has a type that is
/// impossible for the request that it is matched with.
#[test]
fn p03_replies_in_the_wrong_order_end_the_connection() {
    let rig = Rig::start(1);
    let manager = rig.connected();
    make_brief(&manager);
    let held = Arc::new(Mutex::new(Vec::new()));
    for _ in 0..5 {
        let lease = manager.take("r", TTL);
        rig.proxies[0].alter(Way::Replies, {
            let held = Arc::clone(&held);
            move |replies| {
                let mut held = held.lock().expect("not poisoned");
                held.extend(split(&replies));
                held.reverse();
                held.drain(..).flatten().collect()
            }
        });
        assert_eq!(manager.confirm(&lease, 0), REDLOCK_UNREACHABLE, "{}", lease.message());
        assert_eq!(manager.extend(&lease, TTL), REDLOCK_UNREACHABLE, "{}", lease.message());
        rig.heal();
        wait_until("the lock is released", || manager.unlock(&lease) != REDLOCK_UNREACHABLE);
        rig.recovers(&manager, "r");
        manager.set_timeouts(700, 700);
    }
}

/// The replies, each a line or a string with its line.
fn split(replies: &[u8]) -> Vec<Vec<u8>> {
    let lines = replies.split_inclusive(|it| *it == b'\n');
    let mut found: Vec<Vec<u8>> = Vec::new();
    for line in lines {
        match found.last_mut() {
            Some(last)
                if last.starts_with(b"$")
                    && last.iter().filter(|it| **it == b'\n').count() == 1 =>
            {
                last.extend(line);
            }
            _ => found.push(line.to_vec()),
        }
    }
    found
}

#[test]
fn p04_an_error_for_a_grant_is_no_vote_and_frees_the_key() {
    let errors = [
        "-MISCONF Errors writing to the AOF file",
        "-NOPERM User default has no permissions to run the 'pttl' command",
        "-NOREPLICAS Not enough good replicas to write",
        "-OOM command not allowed when used memory > 'maxmemory'",
        "-ERR something else",
        "-UNKNOWNCODE of a later version",
    ];
    let rig = Rig::start(3);
    let manager = rig.connected();
    make_brief(&manager);
    for error in errors {
        manager.connect_to_all();
        for proxy in &rig.proxies[..2] {
            proxy.alter(Way::Replies, move |replies| {
                let replies = String::from_utf8_lossy(&replies).into_owned();
                replies.replace("+OK\r\n", &format!("{error}\r\n")).into_bytes()
            });
        }
        let before: Vec<_> = rig.servers.iter().map(|it| it.calls("set")).collect();
        let lease = Lease::new();
        assert_eq!(manager.lock("r", TTL, &lease), REDLOCK_UNREACHABLE, "{}", lease.message());
        assert!(!lease.is_held());
        for (server, before) in rig.servers[..2].iter().zip(before) {
            assert!(server.calls("set") > before, "there was nothing to release");
        }
        rig.servers.wait_until_gone("r");
        rig.heal();
    }
    rig.recovers(&manager, "r");
}

/// The key is set, and the next command is refused.
#[test]
fn p04_a_user_without_pttl_locks_and_leaves_nothing() {
    let rig = Rig::start(3);
    for server in rig.servers.iter() {
        server.must(&["ACL", "SETUSER", "default", "-pttl"]);
    }
    let manager = rig.connected();
    let lease = manager.take("r", TTL);
    let rival = rig.manager();
    assert_eq!(rival.try_lock("r", TTL, 0, &Lease::new()), REDLOCK_TAKEN);
    assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    rig.servers.wait_until_gone("r");
}

/// On two servers the user may set the key, and do nothing else. The key there stays no longer than it has to.
#[test]
fn p04_a_grant_without_the_right_to_release_ends_with_the_ttl() {
    const TTL_MS: i64 = 1_500;
    let rig = Rig::start(3);
    for server in &rig.servers[..2] {
        server.must(&[&["ACL", "SETUSER", "default"], product().without_releases()].concat());
    }
    let manager = rig.connected();
    make_brief(&manager);
    let lease = manager.take("r", TTL_MS);
    assert_eq!(manager.extend(&lease, TTL_MS), REDLOCK_UNREACHABLE, "{}", lease.message());
    assert_eq!(manager.unlock(&lease), REDLOCK_UNREACHABLE, "{}", lease.message());
    assert!(lease.message().contains("NOPERM"), "{}", lease.message());
    rig.servers.wait_until_gone("r");
    for server in &rig.servers[..2] {
        server.must(&["ACL", "SETUSER", "default", "+@all"]);
    }
    rig.recovers(&manager, "r");
}
