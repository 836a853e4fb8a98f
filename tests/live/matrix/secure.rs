//! Servers that are reached over TLS, and the path between them and us. `tests/live/tls` has the details.

use std::sync::Arc;
use std::time::Duration;

use redlock::ffi::status::RedLockStatus::{REDLOCK_OK, REDLOCK_UNREACHABLE};

use crate::rig::{Rig, stall};
use crate::support::proxy::BOTH;
use crate::support::usage::{
    DEADLINE, PATIENT_MS, TOO_LONG, TTL, addresses, blames, every_way_to_lock_is_unreachable,
    everything_works, in_time, make_brief,
};
use crate::support::{
    Authority, Cluster, Fake, Identity, Lease, Manager, Proxy, Server, Way, wait_until,
    wait_until_ok,
};

const PASSWORD: &str = "s3same-0pen";

/// The certificate that a server shows, and the words about it.
type Case = (fn(&Authority) -> Identity, &'static str);

const NOT_TO_BE_BELIEVED: [Case; 5] = [
    (Authority::expired, "certificate has expired"),
    (Authority::not_yet_valid, "certificate is not valid yet"),
    (of_another_name, "certificate is for another host name"),
    (Authority::self_signed, "unknown authority"),
    (Authority::chained_with_a_gap, "unknown authority"),
];

fn of_another_name(authority: &Authority) -> Identity {
    authority.server_named(&["redis.example"])
}

#[test]
fn n11_an_untrusted_minority_is_harmless() {
    for (identity, _) in NOT_TO_BE_BELIEVED {
        let authority = Arc::new(Authority::new());
        let cluster = with_impostors(&authority, 2, identity);
        let manager = trusting(&cluster);
        in_time(TOO_LONG, || (0..3).for_each(|_| everything_works(&manager, "r")));
        were_told_nothing(&cluster[..2]);
    }
}

#[test]
fn n11_an_untrusted_majority_is_named_and_gets_no_secret() {
    for (identity, words) in NOT_TO_BE_BELIEVED {
        let authority = Arc::new(Authority::new());
        let cluster = with_impostors(&authority, 3, identity);
        let manager = trusting(&cluster);
        make_brief(&manager);
        let (log, lease) = (manager.log(), Lease::new());
        every_way_to_lock_is_unreachable(&manager, "r");
        wait_until_ok("the message tells what is wrong with each server", || {
            assert_eq!(manager.try_lock("r", TTL, 0, &lease), REDLOCK_UNREACHABLE);
            blames(&lease.message(), &addresses(&cluster[..3]), &[words])
        });
        assert!(![lease.message(), log.text()].iter().any(|it| it.contains(PASSWORD)));
        were_told_nothing(&cluster[..3]);
        cluster.wait_until_gone("r");
    }
}

/// An attacker on the path may offer plain TCP in place of TLS. The client does not accept it.
#[test]
fn n11_a_connection_never_falls_back_to_plain_tcp() {
    let servers = Cluster::start(3);
    let proxies: Vec<_> = servers.iter().map(Proxy::to).collect();
    let urls: Vec<_> =
        proxies.iter().map(|it| format!("rediss://:{PASSWORD}@{}", it.address())).collect();
    let manager = Manager::of_urls(&urls);
    make_brief(&manager);
    every_way_to_lock_is_unreachable(&manager, "r");
    drop(manager);
    were_told_nothing(&servers);
}

#[test]
fn n06_stalled_handshakes_are_reported_and_block_nobody() {
    let servers = Cluster::start_tls(3);
    let silent = [(); 3].map(|()| Fake::silent());
    let strangers: Vec<_> = silent.iter().map(Fake::address).collect();
    let manager = |strangers: &[String], servers: &[Server]| {
        let strangers = strangers.iter().map(|it| format!("rediss://{it}"));
        let urls: Vec<_> = strangers.chain(servers.iter().map(Server::url)).collect();
        let manager = Manager::of_urls(&urls);
        assert_eq!(manager.set_tls_ca(servers[0].authority_file().as_deref()), REDLOCK_OK);
        manager
    };
    let patient = manager(&strangers[..2], &servers);
    assert_eq!(patient.set_timeouts(PATIENT_MS, PATIENT_MS), REDLOCK_OK);
    in_time(TOO_LONG, || (0..3).for_each(|_| everything_works(&patient, "r")));

    let brief = manager(&strangers, &servers[..2]);
    make_brief(&brief);
    every_way_to_lock_is_unreachable(&brief, "r");
    let lease = Lease::new();
    wait_until_ok("the message tells what is wrong with each server", || {
        assert_eq!(brief.try_lock("r", TTL, 0, &lease), REDLOCK_UNREACHABLE);
        blames(&lease.message(), &strangers, &["TLS handshake"])
    });
    servers.wait_until_gone("r");
}

#[test]
fn n12_handshakes_and_locks_in_single_bytes_work() {
    let rig = Rig::start_tls(3);
    for way in BOTH {
        rig.proxies.iter().for_each(|it| it.cut_up(way, 1, Duration::ZERO));
    }
    let manager = rig.connected();
    everything_works(&manager, "r");
    rig.recovers(&manager, "r");
}

#[test]
fn n12_an_endless_trickling_handshake_has_one_limit() {
    let rig = Rig::start_tls(3);
    for proxy in &rig.proxies[..2] {
        // It would take half a minute, and the connection would never be silent.
        proxy.cut_up(Way::Replies, 1, Duration::from_millis(20));
    }
    let manager = rig.manager();
    make_brief(&manager);
    in_time(DEADLINE, || assert_eq!(manager.connect(0), REDLOCK_UNREACHABLE));
    every_way_to_lock_is_unreachable(&manager, "r");
    rig.heal();
    rig.proxies.iter().for_each(Proxy::reset);
    assert_eq!(manager.set_timeouts(PATIENT_MS, PATIENT_MS), REDLOCK_OK);
    rig.recovers(&manager, "r");
}

/// In a hold, in each direction. A lock that was granted meanwhile is released when the path works again.
#[test]
fn n12_a_dead_direction_costs_no_more_than_over_tcp() {
    for way in BOTH {
        let rig = Rig::start_tls(3);
        let manager = rig.connected();
        let lease = manager.take("held", TTL);
        make_brief(&manager);
        stall(&rig.proxies[..2], way);
        in_time(DEADLINE, || assert_eq!(manager.extend(&lease, 2 * TTL), REDLOCK_UNREACHABLE));
        assert!(lease.is_held());
        every_way_to_lock_is_unreachable(&manager, "r");
        rig.heal();
        wait_until("the lock is extended", || manager.extend(&lease, 2 * TTL) == REDLOCK_OK);
        assert!(lease.remaining_ms() > TTL);
        assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
        rig.recovers(&manager, "r");
        rig.servers.wait_until_gone("held");
    }
}

#[test]
fn n12_connections_broken_in_a_hold_are_replaced() {
    let breaks: [fn(&Proxy); 4] = [
        Proxy::reset,
        Proxy::strand,
        |it| it.half_close(Way::Requests),
        |it| it.half_close(Way::Replies),
    ];
    for strike in breaks {
        let rig = Rig::start_tls(5);
        let manager = rig.connected();
        let lease = manager.take("r", TTL);
        rig.servers.wait_until_everywhere("r");
        rig.proxies[..2].iter().for_each(strike);
        in_time(TOO_LONG, || {
            assert_eq!(manager.extend(&lease, 2 * TTL), REDLOCK_OK, "{}", lease.message());
            assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
        });
        rig.proxies.iter().for_each(Proxy::reset);
        rig.recovers(&manager, "r");
    }
}

/// Data that is made up on the path is not believed. Over TCP it would be.
#[test]
fn n12_forged_replies_grant_nothing() {
    let rig = Rig::start_tls(3);
    let manager = rig.connected();
    assert_eq!(manager.set_retry(1, 0), REDLOCK_OK);
    rig.servers.iter().for_each(|it| _ = it.must(&["SET", "r", "theirs"]));
    stall(&rig.proxies, Way::Replies);
    rig.proxies.iter().for_each(|it| it.inject(Way::Replies, b"+OK\r\n:-2\r\n"));
    rig.heal();
    let lease = Lease::new();
    assert_ne!(manager.lock("r", TTL, &lease), REDLOCK_OK, "a grant was made up");
    assert!(!lease.is_held());
    for server in rig.servers.iter() {
        assert_eq!(server.get("r").as_deref(), Some("theirs"));
        server.must(&["DEL", "r"]);
    }
    rig.recovers(&manager, "r");
}

/// Five servers. The first `count` of them show the certificate that this function makes.
fn with_impostors(
    authority: &Arc<Authority>,
    count: usize,
    identity: fn(&Authority) -> Identity,
) -> Cluster {
    let identity = |number| if number < count { identity(authority) } else { authority.server() };
    (0..5).map(|number| Server::start_tls(authority, &identity(number), &[])).collect()
}

/// A patient manager of these servers. It has a password for those that it can trust.
fn trusting(cluster: &Cluster) -> Manager {
    for server in cluster.iter() {
        server.must(&["CONFIG", "SET", "requirepass", PASSWORD]);
    }
    let manager = cluster.manager();
    assert_eq!(manager.set_credentials(None, Some(PASSWORD)), REDLOCK_OK);
    assert_eq!(manager.set_timeouts(PATIENT_MS, PATIENT_MS), REDLOCK_OK);
    manager
}

#[track_caller]
fn were_told_nothing(servers: &[Server]) {
    for server in servers {
        for command in ["auth", "hello", "ping", "set"] {
            assert_eq!(server.calls(command), 0, "{} heard {command}", server.address());
        }
    }
}
