//! Tokens and passwords stay out of all words, whatever servers say. In these tests, reading a message also
//! searches it for a token. Here the servers try to bring one in.

use redlock::ffi::status::RedLockStatus::{
    REDLOCK_INVALID_ARGUMENT, REDLOCK_OK, REDLOCK_TAKEN, REDLOCK_UNREACHABLE,
};

use crate::support::{Fake, Lease, Manager, Server, wait_until_ok};
use crate::{TTL, blames, make_brief, unguarded};

#[test]
fn a_wrong_password_is_named_and_not_shown() {
    let server = Server::start();
    server.must(&["CONFIG", "SET", "requirepass", "sesame"]);
    for user in ["", "default", "nobody"] {
        let manager = manager_of(&format!("redis://{user}:open-barley@{}", server.address()));
        let (log, lease) = (manager.log(), Lease::new());
        wait_until_ok("the message tells what is wrong", || {
            assert_eq!(manager.lock("r", TTL, &lease), REDLOCK_UNREACHABLE);
            blames(&lease.message(), &[server.address()], &["WRONGPASS"])
        });
        assert_eq!(manager.connect(500), REDLOCK_UNREACHABLE);
        tells_no_secret(&[lease.message(), manager.message(), log.text()], "barley");
    }
}

#[test]
fn a_right_password_is_not_shown() {
    let server = Server::start();
    server.must(&["CONFIG", "SET", "requirepass", "sesame"]);
    server.must(&["SET", "r", "theirs"]);
    let manager = manager_of(&format!("redis://default:sesame@{}", server.address()));
    let (log, lease) = (manager.log(), Lease::new());
    wait_until_ok("the lock is taken", || match manager.lock("r", TTL, &lease) {
        REDLOCK_TAKEN => Ok(()),
        _ => Err(lease.message()),
    });
    assert_ne!(lease.message(), "");
    server.kill();
    assert_eq!(manager.lock("r", TTL, &lease), REDLOCK_UNREACHABLE);
    assert_ne!(log.text(), "");
    tells_no_secret(&[lease.message(), manager.message(), log.text()], "sesame");
}

#[test]
fn a_refused_address_is_shown_without_its_password() {
    for url in [
        "redis://user:sesame@127.0.0.1:99999",
        "redis://user:sesame@127.0.0.1:6379/many",
        "redis://user:sesame@",
        "redis://user:sesame@[::1:6379",
        "rediss://user:sesame@",
        "gopher://user:sesame@127.0.0.1:6379",
        "unix://?pass=sesame",
        "unix:///socket?pass=sesame&db=many",
        "user:sesame@127.0.0.1:6379",
    ] {
        let manager = Manager::new();
        assert_eq!(manager.add(url, 0), REDLOCK_INVALID_ARGUMENT, "{url}");
        assert_ne!(manager.message(), "");
        tells_no_secret(&[manager.message()], "sesame");
    }
    let manager = manager_of("redis://user:sesame@127.0.0.1:6379");
    assert_eq!(manager.add("redis://user:sesame@127.0.0.1:6379", 0), REDLOCK_INVALID_ARGUMENT);
    assert_ne!(manager.message(), "");
    tells_no_secret(&[manager.message()], "sesame");
}

#[test]
fn a_quoted_unknown_command_reveals_no_token() {
    let server = Server::start_with(&["--rename-command", "SET", ""]);
    let manager = manager_of(&server.url());
    let (log, lease) = (manager.log(), Lease::new());
    wait_until_ok("the message tells what is wrong", || {
        assert_eq!(manager.lock("r", TTL, &lease), REDLOCK_UNREACHABLE);
        blames(&lease.message(), &[server.address()], &["unknown command"])
    });
    log.text();
}

#[test]
fn a_quoted_unknown_login_reveals_no_password() {
    let renamed = ["--rename-command", "AUTH", "", "--rename-command", "HELLO", ""];
    let server = Server::start_with(&renamed);
    let manager = manager_of(&format!("redis://locker:sesame@{}", server.address()));
    let (log, lease) = (manager.log(), Lease::new());
    wait_until_ok("the message tells what is wrong", || {
        assert_eq!(manager.lock("r", TTL, &lease), REDLOCK_UNREACHABLE);
        blames(&lease.message(), &[server.address()], &["unknown command"])
    });
    tells_no_secret(&[lease.message(), manager.message(), log.text()], "sesame");
}

#[test]
fn a_server_that_echoes_reveals_no_secret() {
    let echo = Fake::start(|guest| {
        while let Some(requests) = guest.read()? {
            let requests = String::from_utf8_lossy(&requests).replace(['\r', '\n'], " ");
            for request in requests.split('*').skip(1) {
                // A server that does not even answer a ping is asked nothing else.
                let is_ping = request.contains("PING");
                let error = format!("-ERR {request}\r\n");
                guest.write(if is_ping { b"+PONG\r\n" } else { error.as_bytes() })?;
            }
        }
        Ok(())
    });
    for url in
        [format!("redis://{}", echo.address()), format!("redis://:sesame@{}", echo.address())]
    {
        let manager = manager_of(&url);
        let (log, lease) = (manager.log(), Lease::new());
        wait_until_ok("the message tells what is wrong", || {
            assert_eq!(manager.lock("r", TTL, &lease), REDLOCK_UNREACHABLE);
            blames(&lease.message(), &[echo.address()], &["replied with an error"])
        });
        tells_no_secret(&[lease.message(), manager.message(), log.text()], "sesame");
    }
    let received = echo.received();
    let was_sent = |word: &[u8]| received.windows(word.len()).any(|part| part == word);
    assert!(was_sent(b"sesame") && was_sent(b"NX"), "there was nothing to repeat");
}

fn manager_of(url: &str) -> Manager {
    // A guarded manager asks nothing of a server that answers its first questions with such errors.
    let manager = unguarded(Manager::new());
    assert_eq!(manager.add(url, 0), REDLOCK_OK, "{}", manager.message());
    make_brief(&manager);
    manager
}

#[track_caller]
fn tells_no_secret(words: &[String], secret: &str) {
    for text in words {
        assert!(!text.contains(secret), "{text}");
    }
}
