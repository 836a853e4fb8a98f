//! Credentials that are in no URL: users with limited rights, over TLS and without.

use redlock::ffi::status::RedLockStatus::{
    REDLOCK_INVALID_ARGUMENT, REDLOCK_OK, REDLOCK_UNREACHABLE,
};

use crate::support::usage::{
    PATIENT_MS, TTL, addresses, blames, everything_works, nothing_is_left,
};
use crate::support::{Cluster, Lease, Manager, Program, Server, wait_until, wait_until_ok};

const PASSWORD: &str = "s3same-0pen";

/// The rights that a user needs, and no others.
const RIGHTS: &[&str] = &[
    "resetkeys",
    "~lock:*",
    "-@all",
    "+set",
    "+pttl",
    "+eval",
    "+get",
    "+del",
    "+pexpire",
    "+getrange",
];

/// Passwords that would have another meaning in a URL.
const ODD: [&str; 9] = [
    "a:b@c/d?e#f",
    "100%25",
    "%41",
    "with spaces, and \"quotes\" 'too'",
    "new\nline\r\n*1\r\n$4\r\nPING\r\n",
    "caf\u{e9}-\u{1f512}",
    "@",
    "redis://user:password@host",
    "$(rm -rf /)`\\",
];

/// Both with TLS and without.
fn clusters() -> Vec<Cluster> {
    let mut clusters = vec![Cluster::start(3)];
    if cfg!(feature = "tls") {
        clusters.push(Cluster::start_tls(3));
    }
    clusters
}

fn admit(server: &Server, user: &str, password: &str, rights: &[&str]) {
    let password = format!(">{password}");
    let rule = [&["ACL", "SETUSER", user, "reset", "on", &password], rights].concat();
    server.must(&rule);
}

#[test]
fn the_page_names_the_necessary_rights() {
    let page = include_str!("../../../docs/tls.md");
    assert!(page.contains(&format!("`{}`", RIGHTS.join(" "))));
}

#[test]
fn the_documented_rights_are_enough() {
    for cluster in clusters() {
        cluster.iter().for_each(|it| admit(it, "locker", PASSWORD, RIGHTS));
        let manager = cluster.manager();
        assert_eq!(manager.set_timeouts(PATIENT_MS, PATIENT_MS), REDLOCK_OK);
        assert_eq!(manager.set_credentials(Some("locker"), Some(PASSWORD)), REDLOCK_OK);
        manager.connect_to_all();
        everything_works(&manager, "lock:r");
        assert!(cluster.iter().all(|it| logged_in(it, "locker")));
        // For other keys it has no rights.
        assert_eq!(manager.set_retry(1, 0), REDLOCK_OK);
        let lease = Lease::new();
        wait_until_ok("the message tells what is wrong", || {
            assert_eq!(manager.lock("other:r", TTL, &lease), REDLOCK_UNREACHABLE);
            blames(&lease.message(), &addresses(&cluster[..2]), &["NOPERM"])
        });
        tells_no_password(&[lease.message()]);
    }
}

fn logged_in(server: &Server, user: &str) -> bool {
    let list = server.must(&["CLIENT", "LIST", "TYPE", "normal"]).text().expect("a list");
    list.lines().any(|line| line.split(' ').any(|it| it == format!("user={user}")))
}

#[test]
fn passwords_need_no_escaping() {
    let cluster = Cluster::start(3);
    for (index, password) in ODD.into_iter().enumerate() {
        let user = format!("odd-{index}:@/%?#");
        cluster.iter().for_each(|it| admit(it, &user, password, &["~*", "+@all"]));
        let manager = cluster.manager();
        let status = manager.set_credentials(Some(&user), Some(password));
        assert_eq!(status, REDLOCK_OK, "{password:?}: {}", manager.message());
        manager.connect_to_all();
        everything_works(&manager, "r");
    }
}

#[test]
fn the_default_user_has_a_password_too() {
    for cluster in clusters() {
        let manager = cluster.manager();
        assert_eq!(manager.set_credentials(None, Some(PASSWORD)), REDLOCK_OK);
        cluster.iter().for_each(|it| _ = it.must(&["CONFIG", "SET", "requirepass", PASSWORD]));
        manager.connect_to_all();
        everything_works(&manager, "r");
    }
}

#[test]
fn a_refused_login_is_explained() {
    for cluster in clusters() {
        for server in cluster.iter() {
            admit(server, "locker", PASSWORD, &["~*", "+@all"]);
            admit(server, "idle", PASSWORD, &["off", "~*", "+@all"]);
            admit(server, "powerless", PASSWORD, &[]);
            server.must(&["CONFIG", "SET", "requirepass", "somebody-elses"]);
        }
        for (user, password, code) in [
            (None, None, "NOAUTH"),
            (None, Some("wr0ng-pass"), "WRONGPASS"),
            (Some("locker"), Some("wr0ng-pass"), "WRONGPASS"),
            (Some("locker"), None, "WRONGPASS"),
            (Some("nobody"), Some(PASSWORD), "WRONGPASS"),
            (Some("idle"), Some(PASSWORD), "WRONGPASS"),
            (Some("powerless"), Some(PASSWORD), "NOPERM"),
        ] {
            let manager = cluster.manager();
            assert_eq!(manager.set_credentials(user, password), REDLOCK_OK, "{user:?}");
            assert_eq!(manager.set_retry(1, 0), REDLOCK_OK);
            let (log, lease) = (manager.log(), Lease::new());
            wait_until_ok("the message tells what is wrong", || {
                assert_eq!(manager.lock("r", TTL, &lease), REDLOCK_UNREACHABLE, "{user:?}");
                blames(&lease.message(), &addresses(&cluster[..2]), &[code])
            });
            tells_no_password(&[log.text(), lease.message(), manager.message()]);
        }
        assert_eq!(cluster.having("r"), 0);
    }
}

#[test]
fn a_url_overrides_the_settings() {
    let cluster = Cluster::start(3);
    for server in cluster.iter() {
        admit(server, "of-the-url", "u", &["~*", "+@all"]);
        admit(server, "of-the-settings", "s", &["~*", "+@all"]);
    }
    // The URL has all of it, only the user (then the password comes from the settings), or nothing.
    cluster.iter().for_each(|it| admit(it, "half", "s", &["~*", "+@all"]));
    for (who, expected) in
        [("of-the-url:u@", "of-the-url"), ("half@", "half"), ("", "of-the-settings")]
    {
        for settings_first in [true, false] {
            let manager = Manager::new();
            let set = || {
                let status = manager.set_credentials(Some("of-the-settings"), Some("s"));
                assert_eq!(status, REDLOCK_OK);
            };
            if settings_first {
                set();
            }
            for server in cluster.iter() {
                let url = format!("redis://{who}{}", server.address());
                assert_eq!(manager.add(&url, 0), REDLOCK_OK, "{}", manager.message());
            }
            if !settings_first {
                set();
            }
            manager.connect_to_all();
            everything_works(&manager, "r");
            assert!(cluster.iter().all(|it| logged_in(it, expected)), "{who} {expected}");
            drop(manager);
            wait_until("it has gone", || cluster.iter().all(|it| it.clients().is_empty()));
        }
    }
}

/// A password without a user in a URL belongs to the default user, whatever user the settings name.
#[test]
fn a_url_password_is_not_mixed_with_the_settings() {
    let server = Server::start();
    admit(&server, "locker", PASSWORD, &["~*", "+@all"]);
    server.must(&["CONFIG", "SET", "requirepass", "of-the-default"]);
    let manager = Manager::new();
    assert_eq!(
        manager.add(&format!("redis://:of-the-default@{}", server.address()), 0),
        REDLOCK_OK
    );
    assert_eq!(manager.set_credentials(Some("locker"), Some(PASSWORD)), REDLOCK_OK);
    everything_works(&manager, "r");
    assert!(logged_in(&server, "default"));
}

#[test]
fn changed_credentials_are_used_for_new_connections() {
    let cluster = Cluster::start(3);
    let manager = cluster.manager();
    assert_eq!(manager.set_credentials(Some("locker"), Some("the-old")), REDLOCK_OK);
    cluster.iter().for_each(|it| admit(it, "locker", "the-old", &["~*", "+@all"]));
    manager.connect_to_all();
    let lease = manager.take("r", TTL);
    cluster.iter().for_each(|it| admit(it, "locker", "the-new", &["~*", "+@all"]));
    assert_eq!(manager.set_credentials(Some("locker"), Some("the-new")), REDLOCK_OK);
    assert_eq!(manager.extend(&lease, TTL), REDLOCK_OK, "{}", lease.message());
    cluster.iter().for_each(Server::hang_up);
    wait_until("it is let in again", || manager.extend(&lease, 2 * TTL) == REDLOCK_OK);
    assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    nothing_is_left(&manager, &cluster, "r");
}

#[test]
fn removed_credentials_are_not_used_any_more() {
    let server = Server::start();
    admit(&server, "locker", PASSWORD, &["~*", "+@all"]);
    let manager = Manager::of_urls(&[server.url()]);
    assert_eq!(manager.set_credentials(Some("locker"), Some(PASSWORD)), REDLOCK_OK);
    everything_works(&manager, "r");
    assert_eq!(manager.set_credentials(None, None), REDLOCK_OK);
    server.hang_up();
    let lease = Lease::new();
    wait_until("it is connected to anew", || manager.try_lock("r", TTL, 0, &lease) == REDLOCK_OK);
    assert!(logged_in(&server, "default") && !logged_in(&server, "locker"));
}

#[test]
fn impossible_credentials_are_refused_and_change_nothing() {
    let server = Server::start();
    admit(&server, "locker", PASSWORD, &["~*", "+@all"]);
    let manager = Manager::of_urls(&[server.url()]);
    assert_eq!(manager.set_credentials(Some("locker"), Some(PASSWORD)), REDLOCK_OK);
    for (user, password) in [(Some(""), Some("p")), (Some("u"), Some("")), (None, Some(""))] {
        let status = manager.set_credentials(user, password);
        assert_eq!(status, REDLOCK_INVALID_ARGUMENT, "{user:?} {password:?}");
        assert!(manager.message().contains("empty"), "{}", manager.message());
    }
    everything_works(&manager, "r");
    assert!(logged_in(&server, "locker"));
}

#[test]
fn environment_variables_are_read_at_the_call() {
    let server = Server::start();
    admit(&server, "locker", ODD[0], &["~*", "+@all"]);
    let variables = [("A_USER", "locker"), ("A_PASSWORD", ODD[0])];
    assert_eq!(from_environment(&server, "A_USER", "A_PASSWORD", &variables), "REDLOCK_OK:");
}

#[test]
fn a_variable_can_hold_the_default_password() {
    let server = Server::start();
    server.must(&["CONFIG", "SET", "requirepass", PASSWORD]);
    let said = from_environment(&server, "", "A_PASSWORD", &[("A_PASSWORD", PASSWORD)]);
    assert_eq!(said, "REDLOCK_OK:");
}

#[test]
fn unset_or_empty_variables_are_refused() {
    let server = Server::start();
    let variables = [("A_USER", "locker"), ("A_PASSWORD", PASSWORD), ("NOTHING", "")];
    for (user, password, words) in [
        ("", "MISSING", "password_variable names an environment variable that is not set"),
        ("", "NOTHING", "password_variable names an environment variable that is empty"),
        ("MISSING", "A_PASSWORD", "user_variable names an environment variable that is not set"),
        ("NOTHING", "A_PASSWORD", "user_variable names an environment variable that is empty"),
        (
            "A_USER",
            "A_USER=locker",
            "password_variable names an environment variable that is not set",
        ),
        ("", "=", "password_variable names an environment variable that is not set"),
        // A caller that mistakes the password for a variable name must not find it in a log.
        ("", PASSWORD, "password_variable names an environment variable that is not set"),
    ] {
        let said = from_environment(&server, user, password, &variables);
        assert!(said.starts_with("REDLOCK_INVALID_ARGUMENT: "), "{user:?} {password:?}: {said}");
        assert!(said.contains(words), "{user:?} {password:?}: {said}");
        tells_no_password(&[said]);
    }
}

#[test]
fn variables_without_a_name_are_refused() {
    let manager = Manager::new();
    for (user, password) in
        [(None, None), (Some("A_USER"), None), (None, Some("")), (Some(""), Some("PATH"))]
    {
        let status = manager.set_credentials_from_env(user, password);
        assert_eq!(status, REDLOCK_INVALID_ARGUMENT, "{user:?} {password:?}");
        assert_ne!(manager.message(), "");
    }
}

/// The output of a program that takes its credentials from these variables, and locks.
fn from_environment(
    server: &Server,
    user: &str,
    password: &str,
    variables: &[(&'static str, &str)],
) -> String {
    let variables: Vec<_> = variables.iter().map(|&(name, it)| (name, it.to_owned())).collect();
    let arguments = [user.to_owned(), password.to_owned(), server.url()];
    let mut program = Program::compile("credentials").start_in(&variables, &arguments);
    let said = program.hears_a_word();
    program.ends_well();
    said
}

#[track_caller]
fn tells_no_password(words: &[String]) {
    for secret in [PASSWORD, "wr0ng-pass", "s3same-0ther", "somebody-elses"] {
        assert!(words.iter().all(|it| !it.contains(secret)), "{words:?}");
    }
}
