//! Servers that refuse the log-in, or a command that a call needs.

use redlock::ffi::status::RedLockStatus::{REDLOCK_OK, REDLOCK_UNREACHABLE};

use crate::rivals::RESOURCE;
use crate::support::events::Wanted;
use crate::support::product::product;
use crate::support::usage::{
    PATIENT_MS, TOO_LONG, TTL, addresses, blames, connected, everything_works, in_time,
    nothing_is_left,
};
use crate::support::{Cluster, Lease, Manager, Server, wait_until, wait_until_ok};

const PASSWORD: &str = "s3same-0pen";
const EVERYTHING: &[&str] = &["resetkeys", "~*", "+@all"];

/// The rights that a user lacks, and which calls fail if a majority denies them: lock, extend, confirm, unlock.
const DENIALS: [(&[&str], [bool; 4]); 13] = [
    // The commands themselves.
    (&["-set"], [true, false, false, false]),
    (&["-@write"], [true, true, false, true]),
    (&["-eval"], [false, true, false, true]),
    (&["-@scripting"], [false, true, false, true]),
    (&["-evalsha"], [false; 4]),
    (&["-getrange"], [false, false, true, false]),
    // All keys but some, and all keys for reading only.
    (&["resetkeys", "~other*"], [true, true, true, true]),
    (&["resetkeys", "%R~*"], [true, true, false, true]),
    // Commands that a script calls, and commands that only accompany a request.
    (&["-get"], [false, true, false, true]),
    (&["-del"], [false, false, false, true]),
    (&["-pexpire"], [false, true, false, false]),
    (&["-pttl"], [false, true, true, false]),
    // Everything except the log-in.
    (&["-@all"], [true, true, true, true]),
];

/// A release does not use these rights if the server has a command that deletes a key with a given value.
const FOR_THE_SCRIPT: [&str; 4] = ["-eval", "-@scripting", "-get", "-del"];

/// The denials that the server knows: before Redis 7.0 a user who could read a key could also write it.
fn denials() -> impl Iterator<Item = (&'static [&'static str], [bool; 4])> {
    let is_known = |rules: &[&str]| !(product().is_before_7() && rules.contains(&"%R~*"));
    let has_command = product().deletes_by() != "eval";
    DENIALS.into_iter().filter(move |it| is_known(it.0)).map(move |(rules, mut fails)| {
        fails[3] &= !(has_command && FOR_THE_SCRIPT.contains(&rules[0]));
        (rules, fails)
    })
}

#[test]
fn a01_missing_rights_on_a_minority_are_harmless() {
    let cluster = guarded();
    for (rules, _) in denials() {
        permit(&cluster[0], rules);
        let manager = insider(&cluster);
        // The others have to grant the lock, or no quorum can extend it.
        wait_until("the others are connected", || {
            let (status, words) = (manager.connect(0), manager.message());
            let lacks = |address: &String| words.contains(address);
            status == REDLOCK_OK && !addresses(&cluster[1..]).iter().any(lacks)
        });
        in_time(TOO_LONG, || everything_works(&manager, RESOURCE));
        permit(&cluster[0], EVERYTHING);
        nothing_is_left(&manager, &cluster, RESOURCE);
    }
}

#[test]
fn a01_missing_rights_on_a_majority_are_named() {
    let cluster = guarded();
    for (rules, fails) in denials() {
        let manager = insider(&cluster);
        manager.connect_to_all();
        let (log, lease) = (manager.log(), Lease::new());
        let held = manager.take("held", TTL);
        cluster.wait_until_everywhere("held");
        cluster[..2].iter().for_each(|it| permit(it, rules));

        let judge = |what, call: usize, status, lease: &Lease| {
            let expected = if fails[call] { REDLOCK_UNREACHABLE } else { REDLOCK_OK };
            let words = lease.message();
            assert_eq!(status, expected, "{what} with {rules:?}: {words}");
            if fails[call] {
                let named = blames(&words, &addresses(&cluster[..2]), &["NOPERM", "user lacks"]);
                assert_eq!(named, Ok(()), "{what} with {rules:?}");
            }
            tells_no_password(&[words]);
        };
        judge("lock", 0, manager.try_lock(RESOURCE, TTL, 0, &lease), &lease);
        judge("extend", 1, manager.extend(&held, 2 * TTL), &held);
        assert_eq!(held.remaining_ms() > TTL, !fails[1], "{rules:?}");
        judge("confirm", 2, manager.confirm(&held, 1000), &held);
        assert!(held.is_held(), "{rules:?}");
        judge("unlock", 3, manager.unlock(&held), &held);
        if lease.is_held() && rules == ["-eval"] {
            // It goes by the hash of the script, which the servers know from others.
            assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
        } else if lease.is_held() {
            judge("unlock", 3, manager.unlock(&lease), &lease);
        }
        tells_no_password(&[log.text()]);

        cluster[..2].iter().for_each(|it| permit(it, EVERYTHING));
        nothing_is_left(&manager, &cluster, RESOURCE);
        nothing_is_left(&manager, &cluster, "held");
    }
}

#[test]
fn a01_a_password_change_affects_only_new_connections() {
    let cluster = guarded();
    let manager = insider(&cluster);
    manager.connect_to_all();
    let (log, lease) = (manager.log(), manager.take(RESOURCE, TTL));
    cluster.wait_until_everywhere(RESOURCE);
    let change = |server: &Server, password: &str| {
        server.must(&["ACL", "SETUSER", "locker", "resetpass", &format!(">{password}")]);
    };
    cluster[..2].iter().for_each(|it| change(it, "0ther-w0rd"));
    assert_eq!(manager.extend(&lease, TTL), REDLOCK_OK, "{}", lease.message());

    for server in &cluster[..2] {
        server.must(&["CLIENT", "KILL", "TYPE", "normal"]);
    }
    manager.set_timeouts(PATIENT_MS, 700);
    is_refused_but_still_held(&manager, &lease, &cluster);
    cluster[..2].iter().for_each(|it| change(it, PASSWORD));
    wait_until("it is let in again", || manager.extend(&lease, 2 * TTL) == REDLOCK_OK);
    assert!(lease.remaining_ms() > TTL);
    tells_no_password(&[log.text(), manager.message()]);
}

#[test]
fn a01_a_deleted_user_is_named_and_works_again_later() {
    let cluster = guarded();
    let manager = insider(&cluster);
    manager.connect_to_all();
    let (log, lease) = (manager.log(), manager.take(RESOURCE, TTL));
    cluster.wait_until_everywhere(RESOURCE);
    // One server is not enough to have an effect.
    cluster[0].must(&["ACL", "DELUSER", "locker"]);
    assert_eq!(manager.extend(&lease, TTL), REDLOCK_OK, "{}", lease.message());
    cluster[1].must(&["ACL", "DELUSER", "locker"]);
    is_refused_but_still_held(&manager, &lease, &cluster);
    assert_eq!(manager.unlock(&lease), REDLOCK_UNREACHABLE, "{}", lease.message());
    assert!(!lease.is_held());
    cluster[..2].iter().for_each(admit);
    nothing_is_left(&manager, &cluster, RESOURCE);
    tells_no_password(&[log.text(), lease.message()]);
}

#[test]
fn a01_a_refused_login_is_explained() {
    let cluster = guarded();
    for server in cluster.iter() {
        server.must(&["ACL", "SETUSER", "idle", "off", &format!(">{PASSWORD}"), "~*", "+@all"]);
        // From now on this is the password of all other users. The test has logged in already.
        server.must(&["CONFIG", "SET", "requirepass", PASSWORD]);
    }
    let not_in = [
        ("", "NOAUTH"),
        ("locker:wr0ng-pass@", "WRONGPASS"),
        (":wr0ng-pass@", "WRONGPASS"),
        ("nobody:wr0ng-pass@", "WRONGPASS"),
        ("idle:s3same-0pen@", "WRONGPASS"),
    ];
    for (who, code) in not_in {
        let manager = manager_of(cluster.iter(), who);
        let (log, lease) = (manager.log(), Lease::new());
        manager.set_retry(1, 0);
        wait_until_ok("the message tells what is wrong", || {
            assert_eq!(manager.lock(RESOURCE, TTL, &lease), REDLOCK_UNREACHABLE, "{who}");
            blames(&lease.message(), &addresses(&cluster[..2]), &[code])
        });
        tells_no_password(&[log.text(), lease.message(), manager.message()]);
    }
    // With the right password for a quorum, the others do not matter.
    let manager = manager_of(cluster[..2].iter(), "locker:s3same-0pen@");
    assert_eq!(manager.add(&url(&cluster[2], "locker:wr0ng-pass@"), 0), REDLOCK_OK);
    everything_works(&manager, RESOURCE);
}

/// The commands of the paragraph of docs/shared.md about users: the commands that readers and writers need, and
/// the commands that it takes to be woken and to wake.
fn named_rights() -> (Vec<String>, Vec<String>) {
    let page = include_str!("../../../docs/shared.md");
    let paragraph = page.split("A user of few rights needs").nth(1).expect("it is there");
    let paragraph = paragraph.split("\n\n").next().unwrap_or_default();
    let commands = |text: &str| -> Vec<String> {
        let words = text.split(|it: char| it.is_whitespace() || it == '`');
        words.filter(|it| it.starts_with('+')).map(str::to_owned).collect()
    };
    let (to_lock, to_wake) = paragraph.split_once(';').expect("two lists");
    (commands(to_lock), commands(to_wake))
}

#[test]
fn r09_the_documented_rights_are_enough_for_shared_locks() {
    let (to_lock, to_wake) = named_rights();
    let cluster = guarded();
    for lacks in ["", "+getrange", "+zadd", "+zcard", "+pexpireat"] {
        for wakes in [false, true] {
            let mut rules = vec!["resetkeys", "resetchannels", "-@all", "~r*", "+ping"];
            rules.extend(to_lock.iter().map(String::as_str).filter(|it| *it != lacks));
            if wakes {
                rules.push("&redlock:w:*");
                rules.extend(to_wake.iter().map(String::as_str));
            }
            cluster.iter().for_each(|it| permit(it, &rules));
            let (manager, lease) = (insider(&cluster), Lease::new());
            let judge = |what, status, lease: &Lease, is_permitted: bool| {
                let expected = if is_permitted { REDLOCK_OK } else { REDLOCK_UNREACHABLE };
                let words = lease.message();
                assert_eq!(status, expected, "{what} without {lacks}: {words}");
                assert!(is_permitted || words.contains("user lacks"), "{what}: {words}");
            };
            let can_read = ["", "+getrange"].contains(&lacks);
            let (everybody, reader) = (connected(&cluster), Lease::new());
            let status = everybody.acquire(&Wanted::shared(RESOURCE, TTL), &reader);
            judge("a reader of all rights", status, &reader, true);
            for is_alone in [false, true] {
                let status = manager.acquire(&Wanted::shared(RESOURCE, TTL), &lease);
                judge("a reader", status, &lease, can_read);
                if can_read {
                    judge("extend", manager.extend(&lease, 2 * TTL), &lease, true);
                    judge("confirm", manager.confirm(&lease, 1000), &lease, lacks.is_empty());
                    assert_eq!(manager.inspect(RESOURCE).is_ok(), lacks.is_empty());
                    judge("unlock", manager.unlock(&lease), &lease, true);
                }
                if !is_alone {
                    judge("confirm", everybody.confirm(&reader, 1000), &reader, true);
                    judge("unlock", everybody.unlock(&reader), &reader, true);
                }
            }
            // A release is complete when a quorum has heard it. Elsewhere the writer would be refused.
            cluster.wait_until_gone(RESOURCE);
            judge("a writer", manager.try_lock(RESOURCE, TTL, 0, &lease), &lease, true);
            cluster.wait_until_everywhere(RESOURCE);
            judge("downgrade", manager.downgrade(&lease), &lease, can_read);
            for server in cluster.iter() {
                let left_ms = server.must(&["PTTL", RESOURCE]).integer();
                assert!((1..=TTL).contains(&left_ms), "{left_ms} without {lacks}");
            }
            judge("unlock", manager.unlock(&lease), &lease, true);
            cluster.iter().for_each(|it| permit(it, EVERYTHING));
            nothing_is_left(&manager, &cluster, RESOURCE);
        }
    }
}

fn guarded() -> Cluster {
    let cluster = Cluster::start(3);
    cluster.iter().for_each(admit);
    cluster
}

fn admit(server: &Server) {
    server.must(&["ACL", "SETUSER", "locker", "on", &format!(">{PASSWORD}"), "~*", "+@all"]);
}

fn permit(server: &Server, rules: &[&str]) {
    server.must(&[&["ACL", "SETUSER", "locker"], rules].concat());
}

/// A manager of that user.
fn insider(cluster: &Cluster) -> Manager {
    let manager = manager_of(cluster.iter(), &format!("locker:{PASSWORD}@"));
    assert_eq!(manager.set_timeouts(PATIENT_MS, PATIENT_MS), REDLOCK_OK);
    manager
}

fn manager_of<'a>(servers: impl Iterator<Item = &'a Server>, who: &str) -> Manager {
    let manager = Manager::new();
    for server in servers {
        assert_eq!(manager.add(&url(server, who), 0), REDLOCK_OK, "{}", manager.message());
    }
    manager
}

fn url(server: &Server, who: &str) -> String {
    format!("redis://{who}{}", server.address())
}

#[track_caller]
fn is_refused_but_still_held(manager: &Manager, lease: &Lease, cluster: &Cluster) {
    let remaining = lease.remaining_ms();
    wait_until_ok("the message tells what is wrong", || {
        assert_eq!(manager.extend(lease, 2 * TTL), REDLOCK_UNREACHABLE, "{}", lease.message());
        blames(&lease.message(), &addresses(&cluster[..2]), &["WRONGPASS"])
    });
    assert!(lease.is_held() && lease.remaining_ms() <= remaining);
    tells_no_password(&[lease.message()]);
}

#[track_caller]
fn tells_no_password(words: &[String]) {
    for secret in [PASSWORD, "0ther-w0rd", "wr0ng-pass"] {
        assert!(words.iter().all(|it| !it.contains(secret)), "{words:?}");
    }
}
