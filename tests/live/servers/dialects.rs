//! Commands of newer servers that delete a key if it has a given value, without a script: `DELIFEQ` of Valkey
//! 9.0, and `DELEX` of Redis 8.4. The server that the tests run on may have one of them or none. Fakes give the
//! answers of such a server. Also `MSETEX` of Redis 8.4 and Valkey 9.1: with it, a script sets several keys at
//! once.

use redlock::ffi::status::RedLockStatus::{REDLOCK_OK, REDLOCK_UNREACHABLE};

use crate::support::events::Wanted;
use crate::support::product::product;
use crate::support::resp::Reply;
use crate::support::{Cluster, Fake, Lease, Manager, Server};
use crate::{PATIENT_MS, TTL, connected_unguarded};

/// How a release is written as a command, without the token.
const FAKES: [(&str, &str); 2] = [
    ("DELIFEQ", "*3\r\n$7\r\nDELIFEQ\r\n$1\r\nr\r\n$40\r\n"),
    ("DELEX", "*4\r\n$5\r\nDELEX\r\n$1\r\nr\r\n$4\r\nIFEQ\r\n$40\r\n"),
];

/// A server that has this command, and answers the command and a script with these replies.
fn fake(native: &'static str, reply: &'static str, script: &'static str) -> Fake {
    Fake::start(move |guest| {
        let mut unread = String::new();
        while let Some(bytes) = guest.read()? {
            unread += &String::from_utf8_lossy(&bytes);
            while let Some((words, rest)) = command(&unread) {
                let reply = match (&*words[0], words.len()) {
                    (name, 1) if name == native => "-ERR wrong number of arguments for 'x' command",
                    (name, _) if name == native => reply,
                    ("EVAL" | "EVALSHA", _) => script,
                    ("SET", _) => "+OK",
                    ("PTTL", _) => ":600000",
                    ("PING", _) => "+PONG",
                    _ => "-ERR unknown command",
                };
                guest.write(format!("{reply}\r\n").as_bytes())?;
                unread = rest;
            }
        }
        Ok(())
    })
}

/// The first command, if it is complete, and the rest. No word contains a line end.
fn command(bytes: &str) -> Option<(Vec<String>, String)> {
    let mut lines = bytes.split("\r\n");
    let count: usize = lines.next()?.strip_prefix('*')?.parse().ok()?;
    let word = |_| lines.nth(1).map(str::to_owned);
    let words = (0..count).map(word).collect::<Option<_>>()?;
    let rest: Vec<_> = lines.collect();
    (!rest.is_empty()).then(|| (words, rest.join("\r\n")))
}

fn manager_at(fake: &Fake) -> Manager {
    let manager = Manager::at(&[fake.address()]);
    assert_eq!(manager.set_timeouts(PATIENT_MS, PATIENT_MS), REDLOCK_OK);
    manager
}

fn received(fake: &Fake, words: &str) -> usize {
    String::from_utf8_lossy(&fake.received()).matches(words).count()
}

#[test]
fn a_server_with_native_delete_gets_no_script() {
    for (native, written) in FAKES {
        let fake = fake(native, ":1", ":0");
        let manager = manager_at(&fake);
        let lease = manager.take("r", TTL);
        let token = lease.token();
        assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
        let release = format!("{written}{token}\r\n");
        assert_eq!((received(&fake, &release), received(&fake, "EVAL")), (1, 0), "{native}");
    }
}

#[test]
fn a_user_without_native_delete_sends_the_script() {
    for (native, written) in FAKES {
        let fake = fake(native, "-NOPERM this user may not", ":1");
        let manager = manager_at(&fake);
        for _ in 0..3 {
            let lease = manager.take("r", TTL);
            assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
        }
        assert_eq!((received(&fake, written), received(&fake, "EVAL")), (1, 3), "{native}");
    }
}

/// A real server. A guard would ask for its role, with a script, whenever it was silent for a moment.
#[test]
fn a_real_server_is_asked_by_its_best_command() {
    const ROUNDS: u64 = 5;
    let cluster = Cluster::start(3);
    let manager = connected_unguarded(&cluster);
    for _ in 0..ROUNDS {
        let lease = manager.take("r", TTL);
        cluster.wait_until_everywhere("r");
        assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
        cluster.wait_until_gone("r");
    }
    let released = product().deletes_by();
    for server in cluster.iter() {
        // The text of the script is sent once.
        let calls = ["delifeq", "delex", "eval", "evalsha"].map(|it| server.calls(it));
        let expected = match released {
            "delifeq" => [ROUNDS, 0, 0, 0],
            "delex" => [0, ROUNDS, 0, 0],
            _ => [0, 0, 1, ROUNDS - 1],
        };
        assert_eq!(calls, expected, "of {:?}", product());
    }
}

/// Valkey's command for this purpose sets the given TTL, even if it is shorter than the remaining one. An
/// extension that comes late would shorten what a later one has promised. So extensions use scripts.
#[test]
fn the_native_extension_of_a_real_server_shortens_the_ttl() {
    let server = Server::start();
    server.must(&["SET", "r", "token", "PX", "600000"]);
    let reply = server.command(&["SET", "r", "token", "IFEQ", "token", "PX", "1000"]);
    if matches!(reply, Reply::Error(_)) {
        println!("left out: {:?} has no SET … IFEQ", product());
        assert!((599_000..=600_000).contains(&server.pttl("r")));
        return;
    }
    assert!(server.pttl("r") <= 1000, "{reply:?}");
}

/// A real server, if it has such a command.
#[test]
fn a_user_without_a_real_native_command_sends_the_script() {
    let native = product().deletes_by();
    if native == "eval" {
        println!("left out: {:?} has no command to forbid", product());
        return;
    }
    let cluster = Cluster::start(3);
    let permit = |rule: &str| {
        let tell = |it: &Server| _ = it.must(&["ACL", "SETUSER", "default", rule]);
        cluster.iter().for_each(tell);
    };
    let manager = connected_unguarded(&cluster);
    permit(&format!("-{native}"));
    let lease = manager.take("r", TTL);
    cluster.wait_until_everywhere("r");
    assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    cluster.wait_until_gone("r");
    for server in cluster.iter() {
        assert_eq!((server.calls(native), server.calls("eval")), (0, 1));
    }
}

/// A script that takes all keys, if none is set, contains this. The script that releases them does not.
const TAKES_ALL: &str = "'EXISTS',unpack(KEYS))==0";

/// A server that has MSETEX, and answers a script with it, and one without it, with these replies.
fn fake_with_msetex(with: &'static str, without: &'static str) -> Fake {
    Fake::obeying(move |command, words| {
        let script = words.get(1).map_or("", |it| it);
        match (command, words.len()) {
            ("MSETEX", 1) => Some("-ERR wrong number of arguments for 'msetex' command".to_owned()),
            ("EVAL", _) if script.contains("MSETEX") => Some(with.to_owned()),
            ("EVAL", _) if script.contains(TAKES_ALL) => Some(without.to_owned()),
            ("EVAL", _) => Some(":2".to_owned()),
            _ => None,
        }
    })
}

#[test]
fn several_keys_use_the_native_command_if_there_is_one() {
    const GRANTED: &str = "*2\r\n:0\r\n:0";
    for (with, without, status, counts) in [
        (GRANTED, "-ERR", REDLOCK_OK, (2, 0)),
        // A user who may not use MSETEX sends the script without it, in the same call, and from then on.
        ("-NOPERM this user may not", GRANTED, REDLOCK_OK, (1, 2)),
        ("-NOPERM this user may not", "-NOPERM this user may not", REDLOCK_UNREACHABLE, (1, 2)),
    ] {
        let fake = fake_with_msetex(with, without);
        let manager = manager_at(&fake);
        for _ in 0..2 {
            let lease = Lease::new();
            let said = manager.acquire(&Wanted::several(&["a", "b"], TTL), &lease);
            assert_eq!(said, status, "{}", lease.message());
            manager.unlock(&lease);
        }
        let sent = (received(&fake, "'MSETEX'"), received(&fake, TAKES_ALL));
        assert_eq!(sent, counts, "{with} {without}");
    }
}
