//! Commands that only newer servers have, played by a fake: Valkey 9.0 has one that deletes a key if
//! it has a value, and no script is needed.

use redlock::ffi::status::RedLockStatus::{REDLOCK_OK, REDLOCK_UNREACHABLE};

use crate::support::{Fake, Manager};
use crate::{PATIENT_MS, TTL};

/// A server with `DELIFEQ` that answers that, and a script, like this.
fn valkey(delifeq: &'static str, script: &'static str) -> Fake {
    Fake::start(move |guest| {
        let mut unread = String::new();
        while let Some(bytes) = guest.read()? {
            unread += &String::from_utf8_lossy(&bytes);
            while let Some((words, rest)) = command(&unread) {
                let reply = match (&*words[0], words.len()) {
                    ("DELIFEQ", 1) => "-ERR wrong number of arguments for 'delifeq' command",
                    ("DELIFEQ", _) => delifeq,
                    ("EVAL", _) => script,
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

/// The first command, if it is there as a whole, and what follows. No word holds a line end.
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
fn a_server_that_can_delete_by_itself_is_sent_no_script() {
    let fake = valkey(":1", ":0");
    let manager = manager_at(&fake);
    let lease = manager.take("r", TTL);
    let token = lease.token();
    assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    let release = format!("*3\r\n$7\r\nDELIFEQ\r\n$1\r\nr\r\n$40\r\n{token}\r\n");
    assert_eq!((received(&fake, &release), received(&fake, "EVAL")), (1, 0));
}

#[test]
fn who_may_not_use_what_the_server_can_sends_the_script() {
    let fake = valkey("-NOPERM this user may not", ":1");
    let manager = manager_at(&fake);
    let lease = manager.take("r", TTL);
    assert_eq!(manager.unlock(&lease), REDLOCK_UNREACHABLE);
    assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    assert_eq!(received(&fake, "*3\r\n$7\r\nDELIFEQ"), 1);
    for round in 0..3 {
        let lease = manager.take(&format!("r{round}"), TTL);
        assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    }
    assert_eq!(received(&fake, "*3\r\n$7\r\nDELIFEQ"), 1);
}
