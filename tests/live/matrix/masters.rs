//! Masters that Sentinels watch: how they are found, and what the words say if they are not found.

use redlock::ffi::servers::REDLOCK_GUARD_ON;
use redlock::ffi::status::RedLockStatus::{REDLOCK_OK, REDLOCK_UNREACHABLE};

use crate::support::fake::Abyss;
use crate::support::sentinels::{Group, Puppet, Sentinel, report, url};
use crate::support::usage::{self, DEADLINE, TTL, everything_works, in_time, make_brief};
use crate::support::{Fake, Lease, Manager, Program, Server, wait_until};

const RESOURCE: &str = "r";
const PASSWORD: &str = "s3same-0pen";

/// The words of a call that cannot succeed, once they contain all of these.
#[track_caller]
fn await_words(manager: &Manager, wanted: &[&str]) {
    usage::await_words(manager, RESOURCE, wanted, Some(PASSWORD));
}

#[test]
fn m01_a_silent_sentinel_is_skipped() {
    let group = Group::start("mymaster", 1, 1_000);
    let good = [0, 1].map(|_| Sentinel::start(&[group.master_port()], 1));
    good.iter().for_each(|it| it.await_company("mymaster", 0, 1));
    let other = Sentinel::start(&[("another", group.servers[0].port())], 1);
    let (gone, frozen) = (Sentinel::start(&[], 1), Sentinel::start(&[], 1));
    gone.kill();
    frozen.freeze();
    let (silent, abyss) = (Fake::silent(), Abyss::new());
    let firsts = [
        gone.address(),
        frozen.address(),
        other.address(),
        silent.address(),
        abyss.address(),
        Fake::closing().address(),
        group.servers[0].address(),
    ];
    for first in firsts {
        let all = [first.clone(), good[0].address(), good[1].address()];
        let manager = Manager::of_urls(&[url(&all, "mymaster")]);
        assert_eq!(manager.connect(20_000), REDLOCK_OK, "{}", manager.message());
        let name = format!("mymaster ({})", group.servers[0].address());
        assert_eq!(manager.servers()[0].name, name);
        everything_works(&manager, RESOURCE);
        // Without the failover guard, one that answers is enough.
        let manager = Manager::of_urls(&[url(&[first, good[0].address()], "mymaster")]);
        assert_eq!(manager.set_failover_guard(false), REDLOCK_OK);
        everything_works(&manager, RESOURCE);
    }
}

#[test]
fn m01_sentinels_without_the_master_are_named() {
    let group = Group::start("mymaster", 1, 1_000);
    let sentinel = Sentinel::start(&[group.master_port()], 1);
    let locked = Sentinel::start_with(&[], 1, &[&format!("requirepass {PASSWORD}")]);
    let gone = Sentinel::start(&[], 1);
    gone.kill();
    let server = &group.servers[0];
    let all = [sentinel.address(), locked.address(), gone.address(), server.address()];
    let manager = Manager::of_urls(&[url(&all, "other")]);
    make_brief(&manager);
    let said = [
        "no Sentinel knows the address of master other".to_owned(),
        format!("{}: unknown master", all[0]),
        format!("{}: NOAUTH: password required", all[1]),
        format!("{}: connection refused", all[2]),
        format!("{}: not a Sentinel", all[3]),
    ];
    await_words(&manager, &said.each_ref().map(String::as_str));
    in_time(DEADLINE, || {
        assert_eq!(manager.try_lock(RESOURCE, TTL, 0, &Lease::new()), REDLOCK_UNREACHABLE);
    });
}

/// Names are looked up: those of Sentinels before the first call, that of a master when it is known.
#[test]
fn m01_sentinels_and_masters_may_have_names() {
    let group = Group::start("mymaster", 1, 1_000);
    let port = group.servers[0].port();
    let sentinels = [0, 1].map(|_| Sentinel::start(&[group.master_port()], 1));
    sentinels.iter().for_each(|it| it.await_company("mymaster", 0, 1));
    let [one, other] = sentinels.each_ref().map(|it| format!("localhost:{}", it.port()));
    let names = ["no-such-host.invalid:1".to_owned(), one, other];
    everything_works(&Manager::of_urls(&[url(&names, "mymaster")]), RESOURCE);
    let puppet = Puppet::of(&format!("localhost:{port}"));
    let manager = Manager::of_urls(&[url(&[puppet.address()], "m")]);
    // Another master has to wait no longer than for three seconds.
    assert_eq!(manager.set_restart_guard_for(REDLOCK_GUARD_ON, 0, 3_000), REDLOCK_OK);
    wait_until("it is looked up", || manager.connect(20_000) == REDLOCK_OK);
    everything_works(&manager, RESOURCE);
    let astray = Puppet::of("no-such-host.invalid:1");
    for sentinel in ["no-such-host.invalid:1".to_owned(), astray.address()] {
        let manager = Manager::of_urls(&[url(&[sentinel], "m")]);
        make_brief(&manager);
        await_words(&manager, &["not connected: ", "name"]);
    }
    // The master moves to another name.
    let other = Server::start();
    other.be_in_use(1_000);
    puppet.move_to(&format!("LOCALHOST:{}", other.port()));
    let mut tries = 0;
    wait_until("the other is found", || {
        tries += 1;
        let (resource, lease) = (format!("moved {tries}"), Lease::new());
        if manager.try_lock(&*resource, TTL, 0, &lease) != REDLOCK_OK {
            return false;
        }
        other.exists(&resource)
    });
}

#[test]
fn m01_a_forked_child_asks_the_sentinels_itself() {
    let group = Group::start("mymaster", 1, 1_000);
    let sentinel = Sentinel::start(&[group.master_port()], 1);
    let urls = [url(&[sentinel.address()], "mymaster")];
    for program in ["fork_descriptors", "fork_few"] {
        Program::compile(program).run(&urls);
    }
}

#[test]
fn m02_masters_and_sentinels_have_passwords_of_their_own() {
    let group = Group::start("mymaster", 1, 1_000);
    group.servers[0].must(&["CONFIG", "SET", "requirepass", "of-the-master"]);
    let lines = [&format!("requirepass {PASSWORD}"), "sentinel auth-pass mymaster of-the-master"];
    let sentinel = Sentinel::start_with(&[group.master_port()], 1, &lines);
    // On a busy machine the master may be silent for a while, and there is no other.
    let patience = ["SENTINEL", "SET", "mymaster", "down-after-milliseconds", "60000"];
    assert!(sentinel.command(&patience).is_ok());
    let url = |login: &str, query: &str| {
        format!("redis-sentinel://{login}{}/mymaster{query}", sentinel.address())
    };
    let right = format!("?sentinel_password={PASSWORD}");
    let manager = Manager::of_urls(&[url(":of-the-master@", &right)]);
    assert_eq!(manager.connect(20_000), REDLOCK_OK, "{}", manager.message());
    everything_works(&manager, RESOURCE);
    let with_user = format!("{right}&sentinel_username=default");
    let manager = Manager::of_urls(&[url("default:of-the-master@", &with_user)]);
    everything_works(&manager, RESOURCE);
    // A setting is for masters, and neither server receives anything that is meant for the other.
    let manager = Manager::of_urls(&[url("", &right)]);
    assert_eq!(manager.set_credentials(None, Some("of-the-master")), REDLOCK_OK);
    everything_works(&manager, RESOURCE);
    let address = sentinel.address();
    for (login, query, words) in [
        (":of-the-master@", "", format!("{address}: NOAUTH: password required")),
        (
            ":of-the-master@",
            "?sentinel_password=x",
            format!("{address}: WRONGPASS: authentication failed"),
        ),
        ("", &*right, format!("{}: NOAUTH: password required", group.servers[0].address())),
    ] {
        let manager = Manager::of_urls(&[url(login, query)]);
        make_brief(&manager);
        await_words(&manager, &[&words]);
    }
    let puppet = Puppet::of(&group.servers[0].address());
    let url = format!("redis-sentinel://:of-the-master@{}/m", puppet.address());
    everything_works(&Manager::of_urls(&[url]), RESOURCE);
    let heard = String::from_utf8_lossy(&puppet.fake().received()).into_owned();
    assert!(!heard.contains("of-the-master") && heard.contains("SENTINEL"), "{heard}");
}

/// A fault ends soon, and is named without being quoted.
#[test]
fn m03_an_invalid_answer_of_a_sentinel_is_refused() {
    let nonsense = "protocol error: unexpected reply";
    let first = "$0\r\n\r\n*0\r\n";
    let of = |master: &str| first.to_owned() + &report(master, 0);
    let odd = [
        ("garbage\r\n".to_owned(), nonsense),
        ("$999999999\r\n".to_owned(), "reply too large"),
        (format!("{first}+OK\r\n"), nonsense),
        (format!("{first}*2\r\n:1\r\n:2\r\n"), nonsense),
        (of("127.0.0.1:0"), nonsense),
        (of("127.0.0.1:s3same-0pen"), nonsense),
        (of("s3same-0pen!:6379"), nonsense),
        (of("s3same-0pen:6379"), "not connected: the host name has no address"),
        (first.to_owned(), "timed out after"),
        (of("127.0.0.1:1"), "127.0.0.1:1: connection refused"),
        (format!("{first}-ERR s3same-0pen\r\n"), "replied with an error"),
    ];
    for (bytes, words) in odd {
        let fake = Fake::answering(bytes.clone());
        let manager = Manager::of_urls(&[url(&[fake.address()], "m")]);
        make_brief(&manager);
        in_time(DEADLINE, || await_words(&manager, &[words]));
    }
    // An address that claims to be the master, but is a Sentinel.
    let sentinel = Sentinel::start(&[], 1);
    let itself = Sentinel::start(&[("m", sentinel.port())], 1);
    let manager = Manager::of_urls(&[url(&[itself.address()], "m")]);
    make_brief(&manager);
    let words = format!("{}: Sentinel, holds no locks", sentinel.address());
    await_words(&manager, &[&words]);
}

#[test]
fn m04_two_names_of_one_master_have_one_vote() {
    let group = Group::start("one", 1, 1_000);
    let port = group.servers[0].port();
    let sentinel = Sentinel::start(&[("one", port), ("two", port)], 1);
    let other = Server::start();
    other.be_in_use(1_000);
    let at = |name| url(&[sentinel.address()], name);
    let manager = Manager::of_urls(&[at("one"), at("two"), other.url()]);
    wait_until("it is found out", || {
        assert_eq!(manager.connect(0), REDLOCK_OK, "{}", manager.message());
        manager.message().contains("same server as ")
    });
    assert_eq!(manager.servers().iter().filter(|it| it.votes).count(), 2);
    everything_works(&manager, RESOURCE);
    // A visible duplicate is refused when it is added.
    let status = manager.add(&at("one"), 0);
    assert_ne!(status, REDLOCK_OK);
    let manager = Manager::of_urls(&[url(&[sentinel.address(), "127.0.0.1:1".to_owned()], "one")]);
    assert_ne!(manager.add(&at("one"), 0), REDLOCK_OK);
    assert!(manager.message().contains("already added"), "{}", manager.message());
}
