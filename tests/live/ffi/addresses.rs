//! The addresses of servers: which are refused, in which words, and which name the same server.

use redlock::ffi::status::RedLockStatus::{REDLOCK_INVALID_ARGUMENT, REDLOCK_OK};

use crate::support::{Lease, Manager, Server};
use crate::{TTL, accepted, all_differ, refused, says};

#[test]
fn a_port_is_1_to_65535() {
    let manager = Manager::new();
    let mut messages = Vec::new();
    for port in [0, -1, 65_536, i32::MAX, i32::MIN] {
        for host in ["127.0.0.1", "::1", "[::1]", "localhost", "redis-1.example.org"] {
            refused(&manager, manager.add(host, port), &[&format!("port is {port}"), "65535"]);
        }
        messages.push(manager.message());
    }
    all_differ(&messages);
    accepted(&manager, manager.add("127.0.0.1", 1));
    accepted(&manager, manager.add("127.0.0.1", 65_535));
}

/// With port 0, as all bindings pass it.
#[test]
fn a_host_may_name_its_port() {
    let server = Server::start();
    let manager = Manager::new();
    accepted(&manager, manager.add(&server.address(), 0));
    drop(manager.take("r", TTL));
    let manager = Manager::new();
    for host in ["127.0.0.1:6379", "redis-1.example:6379", "[::1]:6379", "[fe80::1%eth0]:6379"] {
        accepted(&manager, manager.add(host, 0));
    }
    // The same addresses, written in another form.
    for (host, port) in [("127.0.0.1", 6379), ("redis://redis-1.example", 0), ("::1", 6379)] {
        refused(&manager, manager.add(host, port), &["already added"]);
    }
    refused(&manager, manager.add("h:x", 0), &["server 5: port is 0"]);
}

#[test]
fn a_port_in_a_host_must_be_valid_and_the_only_one() {
    let manager = Manager::new();
    for host in ["h:", "h:0", "h:65536", "h:x", "h:-1", "h:+1", "h: 1", "[::1]:", "[::1]:x"] {
        refused(&manager, manager.add(host, 0), &["port is 0", "colon", "65535"]);
    }
    // The whole text is an address.
    for host in ["::1", "::1:6379", "2001:db8::1:6379"] {
        refused(&manager, manager.add(host, 0), &["port is 0", "[IPv6 address]:port"]);
    }
    for host in ["h:1:2", "fe80::1%eth0:6379", "1:2:3:4:5:6:7:8:6379"] {
        refused(&manager, manager.add(host, 0), &["several colons", "[::1]:6379"]);
    }
    for host in [":6379", "[::1:6379", "a b:6379", "h/0:6379", "[::1]x:6379"] {
        assert_eq!(manager.add(host, 0), REDLOCK_INVALID_ARGUMENT, "{host:?} was accepted");
    }
    for host in ["127.0.0.1:6379", "h:6379", "[::1]:6379"] {
        refused(&manager, manager.add(host, 6380), &["already has", "6379", "6380"]);
    }
}

#[test]
fn a_url_includes_its_port() {
    let manager = Manager::new();
    for url in ["redis://h", "redis://h:6379", "unix:///run/redis", "redis+unix:///run/redis"] {
        for port in [1, 6379, 65_535, -1, 65_536, i32::MAX, i32::MIN] {
            refused(&manager, manager.add(url, port), &[&format!("port is {port}"), "URL"]);
        }
    }
}

#[test]
fn a_host_is_a_name_or_an_address() {
    let manager = Manager::new();
    refused(&manager, manager.add("", 6379), &["host is empty"]);
    refused(&manager, manager.add("", 0), &["host is empty"]);
    let long = "a".repeat(254);
    for host in [
        " ",
        "a b",
        " h",
        "h ",
        "h\n",
        "h\t",
        "a/b",
        "h/0",
        "/run/redis",
        "u@h",
        "h,i",
        "h;i",
        "*",
        "[",
        "[]",
        "[::1",
        "::1]",
        "[::1]x",
        "[h",
        "h?",
        "h#x",
        "h\\x",
        "\"h\"",
        "h\u{1}",
        "\u{fc}",
        &long,
    ] {
        refused(&manager, manager.add(host, 6379), &["host is not a valid host name"]);
    }
    for host in ["h:1", "127.0.0.1:6379", "::1::2", "1:2:3", "g::1"] {
        refused(&manager, manager.add(host, 6379), &["host", "port"]);
    }
}

#[test]
fn an_impossible_name_is_no_host() {
    let manager = Manager::new();
    for host in ["%", "h%x", "%00", "a%20b", "fe80::1%", ".", "..", "a..b", ".a", &"a".repeat(64)] {
        let status = manager.add(host, 6379);
        assert_eq!(status, REDLOCK_INVALID_ARGUMENT, "{host:?} was taken for a host");
        let status = manager.add(&format!("redis://{host}"), 0);
        assert_eq!(status, REDLOCK_INVALID_ARGUMENT, "{host:?} was taken for a host in a URL");
    }
}

#[test]
fn invalid_utf8_is_no_address() {
    let manager = Manager::new();
    for host in [c"\xff", c"redis://\xff", c"redis://u:\xff@h", c"unix:///run/\xff"] {
        // SAFETY: the manager lives, and so does the string.
        let status = unsafe { redlock::ffi::RedLock_AddServerUrl(manager.raw(), host.as_ptr(), 0) };
        refused(&manager, status, &["host_or_url is not UTF-8"]);
    }
}

#[test]
fn only_known_schemes_are_accepted() {
    let manager = Manager::new();
    for scheme in ["http", "https", "tcp", "redi", "redisx", "memcached", "file", "unixx", "a"] {
        let status = manager.add(&format!("{scheme}://h"), 0);
        refused(&manager, status, &["scheme", "redis, rediss, unix"]);
    }
    for url in [" redis://h", "redis ://h", "1://h", "redis+tls://h", "u:p@h://x", "\u{fc}://h"] {
        refused(&manager, manager.add(url, 0), &["scheme", "redis, rediss, unix"]);
    }
    let status = manager.add("://h", 0);
    refused(&manager, status, &["scheme"]);
    assert!(!manager.message().starts_with(' '), "{:?}", manager.message());
}

#[test]
fn a_url_can_ask_for_tls() {
    let manager = Manager::new();
    for url in ["rediss://h", "rediss://h:7/1", "rediss://u:p@i", "valkeys://j", "REDISS://[::1]"] {
        assert_eq!(manager.add(url, 0), REDLOCK_OK, "{url}");
    }
    // It is the same server, with TLS or without.
    refused(&manager, manager.add("redis://h", 0), &["was already added, as number 1"]);
    refused(&manager, manager.add("rediss://", 0), &["rediss", "host is missing"]);
    // Some libraries take this as a request to verify nothing.
    refused(&manager, manager.add("rediss://k/#insecure", 0), &["fragment"]);
    refused(&manager, manager.add("rediss://k-", 0), &["not a valid name for a certificate"]);
}

/// One part of a URL that is wrong, and how it may look.
const MALFORMED: [(&[&str], &[&str]); 9] = [
    (
        &["port"],
        &[
            "redis://h:x",
            "redis://h:-1",
            "redis://h:65536",
            "redis://h:99999999999",
            "redis://h:6379x",
            "redis://h: 1",
            "redis://h:1,i:2",
            "redis://[::1]:x",
            "redis://h:0",
        ],
    ),
    (
        &["host"],
        &[
            "redis://",
            "redis:///",
            "redis:///0",
            "redis://:6379",
            "redis://@",
            "redis://@:1",
            "redis://u:p@",
            "redis://u:p@:6379",
            "redis://?db=1",
            "redis://#x",
        ],
    ),
    (
        &["host", "address"],
        &[
            "redis://a b",
            "redis://ho st:1",
            "redis://h,i",
            "redis://*",
            "redis://<h>",
            "redis://[::1",
            "redis://[]",
            "redis://[g::1]",
            "redis://::1",
            "redis://[::1]x:1",
            "redis://0.0.0.0",
            "redis://[::]",
        ],
    ),
    (
        &["database"],
        &[
            "redis://h/x",
            "redis://h/-1",
            "redis://h/1/2",
            "redis://h/1.5",
            "redis://h/0x1",
            "redis://h/99999999999999999999",
            "unix:///run/r?db=x",
            "unix:///run/r?db=-1",
            "unix:///run/r?db=99999999999999999999",
        ],
    ),
    (
        &["path"],
        &["unix://", "unix://run/r", "unix://h/run/r", "redis+unix://", "redis+unix://run/r"],
    ),
    (&["user", "password"], &["redis://%ff:p@h", "redis://u:%ff@h", "redis://:%c3@h"]),
    (
        &["database number has a sign"],
        &["redis://h/+1", "rediss://h/+0", "redis-sentinel://h/m/+1"],
    ),
    (
        &["invalid % escape in the"],
        &[
            "redis://u:p%ZZ@h",
            "redis://u%:p@h",
            "rediss://:p%4@h",
            "redis://h/%x1",
            "redis://[fe80::1%eth0]",
            "redis-sentinel://u:p%ZZ@h/m",
            "redis-sentinel://h/m?sentinel_password=%ZZ",
            "unix:///run/%r",
            "unix:///run/r?pass=%ZZ",
        ],
    ),
    (
        &["twice"],
        &[
            "unix:///run/r?db=1&db=2",
            "unix:///run/r?user=u&user=u",
            "unix:///run/r?pass=p&pass=q",
            "redis-sentinel://h/m?sentinel_password=p&sentinel_password=p",
        ],
    ),
];

#[test]
fn a_malformed_url_is_refused() {
    let manager = Manager::new();
    for url in MALFORMED.iter().flat_map(|it| it.1) {
        let status = manager.add(url, 0);
        assert_eq!(status, REDLOCK_INVALID_ARGUMENT, "{url}");
        assert!(!manager.message().is_empty());
    }
    // None of it was kept.
    let status = manager.connect(0);
    assert_eq!(status, redlock::ffi::status::RedLockStatus::REDLOCK_NO_SERVERS);
}

#[test]
fn a_malformed_url_is_named_by_its_wrong_part() {
    let manager = Manager::new();
    let mut vague = Vec::new();
    for (words, urls) in MALFORMED {
        for url in urls {
            manager.add(url, 0);
            let message = manager.message();
            if !words.iter().any(|it| message.contains(it)) {
                vague.push(format!("{url}: {message}, which names no {}", words.join(" or ")));
            }
        }
    }
    assert!(vague.is_empty(), "{}", vague.join("\n"));
}

#[test]
fn an_impossible_socket_path_is_refused() {
    let manager = Manager::new();
    for path in [format!("/{}", "a".repeat(120)), "/a%00b".to_owned()] {
        let status = manager.add(&format!("unix://{path}"), 0);
        assert_eq!(status, REDLOCK_INVALID_ARGUMENT, "unix://{path} was accepted");
        says(&manager.message(), &["path"]);
    }
}

#[test]
fn a_query_of_a_url_is_used_or_refused() {
    let server = Server::start();
    let manager = Manager::new();
    if manager.add(&format!("{}?db=3", server.url()), 0) == REDLOCK_OK {
        let _held = manager.take("r", TTL);
        assert!(!server.exists("r"), "?db=3 was accepted, and database 0 used");
    }
}

#[test]
fn no_secret_of_a_url_is_shown() {
    let manager = Manager::new();
    let mut heard = String::new();
    for url in MALFORMED.iter().flat_map(|it| it.1) {
        let (scheme, rest) = url.split_once("://").expect("a URL");
        manager.add(&format!("{scheme}://us3r:s3cret@{rest}"), 0);
        heard += &manager.message();
        manager.add(&format!("{scheme}://{rest}?pass=s3cret&user=us3r"), 0);
        heard += &manager.message();
    }
    for url in [
        "redis://us3r:s3cret/x@h",
        "us3r:s3cret@h",
        "us3r:s3cret@h:1",
        "s3cret://h",
        "rediss://:s3cret@h/x",
    ] {
        manager.add(url, 0);
        heard += &manager.message();
        manager.add(url, 1);
        heard += &manager.message();
    }
    assert!(!heard.contains("s3cret") && !heard.contains("us3r"), "{heard}");
}

#[test]
fn the_same_server_is_refused_in_any_spelling() {
    const SAME: [&[(&str, i32)]; 6] = [
        &[
            ("127.0.0.1", 6379),
            ("redis://127.0.0.1:6379", 0),
            ("redis://127.0.0.1", 0),
            ("redis://127.0.0.1/", 0),
            ("redis://127.0.0.1:6379/7", 0),
            ("redis://user:password@127.0.0.1:6379/0", 0),
            ("redis://:password@127.0.0.1", 0),
            ("valkey://127.0.0.1:6379", 0),
        ],
        &[
            ("Redis-1.Example", 7000),
            ("redis-1.example", 7000),
            ("REDIS-1.EXAMPLE", 7000),
            ("redis://redis-1.example:7000", 0),
            ("redis://Redis-1.EXAMPLE:7000/3", 0),
            ("redis://u:p@redis-1.example:7000", 0),
        ],
        &[
            ("::1", 6379),
            ("[::1]", 6379),
            ("0:0:0:0:0:0:0:1", 6379),
            ("0000::0001", 6379),
            ("redis://[::1]", 0),
            ("redis://[0:0::1]:6379/1", 0),
        ],
        &[("FE80::1%Eth0", 1), ("[fe80:0::1%Eth0]:1", 0), ("redis://[fe80::1%25Eth0]:1/2", 0)],
        &[("2001:DB8::A", 1), ("2001:db8::a", 1), ("redis://[2001:db8:0:0:0:0:0:a]:1", 0)],
        &[
            ("unix:///run/redis.sock", 0),
            ("redis+unix:///run/redis.sock", 0),
            ("unix:///run/redis.sock?db=2", 0),
            ("unix:///run/redis.sock?user=u&pass=p", 0),
            ("unix:///run/../run/redis.sock", 0),
        ],
    ];
    for spellings in SAME {
        for first in spellings {
            let manager = Manager::new();
            accepted(&manager, manager.add(first.0, first.1));
            for second in spellings {
                let status = manager.add(second.0, second.1);
                let what = format!("{second:?} after {first:?}");
                assert_eq!(status, REDLOCK_INVALID_ARGUMENT, "{what} was accepted");
                says(&manager.message(), &["already added"]);
                assert!(!manager.message().contains("password"), "{}", manager.message());
            }
        }
    }
}

#[test]
fn a_similar_server_is_accepted() {
    let manager = Manager::new();
    for (host_or_url, port) in [
        ("127.0.0.1", 6379),
        ("127.0.0.1", 6380),
        ("127.0.0.2", 6379),
        ("::1", 6379),
        ("redis-1", 6379),
        ("redis-11", 6379),
        ("redis-1.example", 6379),
        ("unix:///run/redis", 0),
        ("unix:///run/Redis", 0),
        ("unix:///run/redis/redis", 0),
        ("fe80::1%eth0", 6379),
        ("fe80::1%eth1", 6379),
        ("fe80::1%Eth1", 6379),
        ("redis://[fe80::1%251]", 0),
    ] {
        accepted(&manager, manager.add(host_or_url, port));
    }
}

#[test]
fn a_refused_server_does_not_count() {
    let server = Server::start();
    let manager = Manager::at(&[server.address()]);
    for url in MALFORMED.iter().flat_map(|it| it.1) {
        manager.add(url, 0);
    }
    refused(&manager, manager.add("127.0.0.1", server.port().into()), &["already added"]);
    // The manager has one server, so one is a quorum.
    let lease = Lease::new();
    assert_eq!(manager.lock("r", TTL, &lease), REDLOCK_OK, "{}", lease.message());
}
