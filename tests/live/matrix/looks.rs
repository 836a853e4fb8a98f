//! What RedLock_Inspect reports about a resource: the state on a quorum of the servers, whichever client set
//! it.

use redlock::ffi::acquire::{REDLOCK_EXCLUSIVE, REDLOCK_SHARED};
use redlock::ffi::status::RedLockStatus::{
    REDLOCK_INVALID_ARGUMENT, REDLOCK_NO_SERVERS, REDLOCK_OK, REDLOCK_TAKEN, REDLOCK_UNREACHABLE,
};

use crate::support::events::Wanted;
use crate::support::usage::{
    DEADLINE, TOO_LONG, TTL, addresses, blames, connected, in_time, make_brief, names, patient,
    unguarded,
};
use crate::support::{Cluster, Lease, Manager, Server, wait_until};

const RESOURCE: &str = "r";

/// Sets the key as any client does.
fn set(server: &Server, value: &str, ttl_ms: i64) {
    server.must(&["SET", RESOURCE, value, "PX", &ttl_ms.to_string()]);
}

/// The remaining time, if the resource is held.
#[track_caller]
fn left_ms(manager: &Manager) -> Option<i64> {
    let sight = manager.inspect(RESOURCE).expect("an answer");
    assert_eq!((sight.mode, sight.readers), (REDLOCK_EXCLUSIVE, 0));
    assert!(sight.locked || sight.remaining_ms == 0, "{sight:?}");
    sight.locked.then_some(sight.remaining_ms)
}

#[test]
fn q01_a_lock_of_any_client_is_found_with_its_time() {
    let cluster = Cluster::start(3);
    let (holder, manager) = (connected(&cluster), connected(&cluster));
    assert_eq!(left_ms(&manager), None);
    let lease = holder.take(RESOURCE, TTL);
    cluster.wait_until_everywhere(RESOURCE);
    for manager in [&holder, &manager] {
        let left_ms = left_ms(manager).expect("it is locked");
        assert!((1..=TTL).contains(&left_ms), "{left_ms}");
        // The validity is less than the remaining time on the servers.
        assert!(left_ms >= lease.remaining_ms(), "{left_ms}");
    }
    assert_eq!(holder.extend(&lease, 10 * TTL), REDLOCK_OK, "{}", lease.message());
    assert!(left_ms(&manager).is_some_and(|it| it > TTL));
    assert_eq!(holder.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    cluster.wait_until_gone(RESOURCE);
    assert_eq!(left_ms(&manager), None);

    cluster.iter().for_each(|it| set(it, "a plain client's", 50_000));
    assert!(left_ms(&manager).is_some_and(|it| (1..=50_000).contains(&it)));
    // The time until no quorum has the key any more, whichever two of the three servers answer first.
    for short in 0..3 {
        for (server, it) in cluster.iter().enumerate() {
            set(it, "a plain client's", if server == short { 90_000 } else { 500_000 });
        }
        for _ in 0..20 {
            assert!(left_ms(&manager).is_some_and(|it| it > 90_000 && it <= 500_000));
        }
    }
    cluster.iter().for_each(|it| _ = it.must(&["PERSIST", RESOURCE]));
    assert_eq!(left_ms(&manager), Some(-1), "for ever");
    // A server that cannot change it is not waited for.
    cluster[0].freeze();
    in_time(TOO_LONG, || assert_eq!(left_ms(&manager), Some(-1)));
    cluster[0].resume();
    // A key on a minority, or keys with different values, keep other clients out only for a short time. They
    // are no lock.
    set(&cluster[0], "another's", 50_000);
    set(&cluster[1], "one more's", 50_000);
    assert_eq!(left_ms(&manager), None);
}

#[test]
fn q01_an_inspection_is_one_read_per_server() {
    let cluster = Cluster::start(5);
    let manager = connected(&cluster);
    cluster.iter().for_each(|it| set(it, "theirs", TTL));
    let writes = ["set", "del", "eval", "evalsha", "pexpire", "delex", "delifeq", "persist"];
    let count = |commands: &[&str]| -> Vec<u64> {
        cluster.iter().map(|it| commands.iter().map(|name| it.calls(name)).sum()).collect()
    };
    let (asked, written) = (count(&["getrange"]), count(&writes));
    assert!(left_ms(&manager).is_some());
    let once: Vec<u64> = asked.iter().map(|it| it + 1).collect();
    wait_until("each was asked once", || count(&["getrange"]) == once);
    assert_eq!(count(&writes), written);
    assert!(cluster.iter().all(|it| it.get(RESOURCE).as_deref() == Some("theirs")));
}

#[test]
fn q02_a_dead_minority_is_harmless_and_a_majority_is_named() {
    let cluster = Cluster::start(3);
    let manager = unguarded(cluster.manager());
    make_brief(&manager);
    cluster.iter().for_each(|it| set(it, "theirs", TTL));
    wait_until("all are connected", || {
        manager.connect(0) == REDLOCK_OK && manager.message().is_empty()
    });
    for (go, come) in [
        (Server::freeze as fn(&Server), Server::resume as fn(&Server)),
        (Server::kill, Server::restart),
    ] {
        go(&cluster[0]);
        wait_until("the others answer", || manager.inspect(RESOURCE).is_ok_and(|it| it.locked));
        go(&cluster[1]);
        wait_until("nobody can say, and it is told why", || {
            let mut said = None;
            in_time(DEADLINE, || said = manager.inspect(RESOURCE).err());
            let (status, words) = said.expect("there is no quorum");
            assert_eq!(status, REDLOCK_UNREACHABLE, "{words}");
            assert_eq!(manager.message(), words);
            // If the servers are already known to be gone, they are not asked.
            let counted = ["answered", "are connected"]
                .map(|what| format!("1 of 3 servers {what}, 2 needed: "));
            counted.iter().any(|it| words.starts_with(it)) && names(&words, &cluster[..2])
        });
        cluster[..2].iter().for_each(come);
        cluster[..2].iter().for_each(|it| set(it, "theirs", TTL));
        wait_until("all is as before", || manager.inspect(RESOURCE).is_ok_and(|it| it.locked));
    }
}

#[test]
fn q02_a_user_without_rights_is_told() {
    let cluster = Cluster::start(3);
    let manager = patient(&cluster);
    cluster.iter().for_each(|it| set(it, "theirs", TTL));
    // Then the remaining time is not known. It is known that the resource is held.
    cluster.iter().for_each(|it| _ = it.must(&["ACL", "SETUSER", "default", "-pttl"]));
    assert_eq!(left_ms(&manager), Some(0));
    cluster.iter().for_each(|it| _ = it.must(&["ACL", "SETUSER", "default", "-getrange"]));
    let (status, words) = manager.inspect(RESOURCE).expect_err("nobody may say");
    assert_eq!(status, REDLOCK_UNREACHABLE);
    // Two that refuse are enough: the third may not have answered yet.
    let blamed = addresses(&cluster)
        .into_iter()
        .filter(|it| blames(&words, std::slice::from_ref(it), &["NOPERM", "user lacks"]).is_ok());
    assert!(blamed.count() >= 2, "{words}");
}

/// Whoever wants the lock finds something in its way.
#[test]
fn q01_a_value_of_another_type_blocks_a_lock() {
    let cluster = Cluster::start(3);
    let (manager, lease) = (connected(&cluster), Lease::new());
    cluster[0].must(&["RPUSH", RESOURCE, "a list"]);
    assert_eq!((left_ms(&manager), manager.is_locked(RESOURCE)), (None, Ok(false)));
    cluster[1].must(&["HSET", RESOURCE, "a", "hash"]);
    assert_eq!((left_ms(&manager), manager.is_locked(RESOURCE)), (Some(-1), Ok(true)));
    assert_eq!(manager.try_lock(RESOURCE, TTL, 0, &lease), REDLOCK_TAKEN);
    for server in &cluster[..2] {
        server.must(&["PEXPIRE", RESOURCE, &TTL.to_string()]);
    }
    assert!(left_ms(&manager).is_some_and(|it| (1..=TTL).contains(&it)));
    // It is in the way of readers, too, and so is something else than readers in the key of the readers.
    assert_eq!(manager.acquire(&Wanted::shared(RESOURCE, TTL), &lease), REDLOCK_TAKEN);
    // The same if the readers are others than those who hold it, or gone.
    let others: [&[&str]; 3] =
        [&["SET", "r:r", "no readers"], &["ZADD", "r:r", "1", "somebody"], &["DEL", "r:r"]];
    for other in others {
        for server in cluster.iter() {
            server.must(&["SET", RESOURCE, "redlock:shared", "PX", &TTL.to_string()]);
            server.must(&["DEL", "r:r"]);
            server.must(other);
        }
        assert_eq!(manager.is_locked(RESOURCE), Ok(true));
        let sight = manager.inspect(RESOURCE).expect("an answer");
        assert_eq!((sight.locked, sight.mode, sight.readers), (true, REDLOCK_SHARED, 1));
        assert_eq!(manager.try_lock(RESOURCE, TTL, 0, &lease), REDLOCK_TAKEN);
    }
}

/// The same slots are taken for whoever looks and for whoever wants one.
#[test]
fn q01_a_value_of_another_type_blocks_a_permit() {
    let cluster = Cluster::start(3);
    let (manager, lease) = (connected(&cluster), Lease::new());
    let taken = || {
        let sight = manager.inspect_permits(RESOURCE, 3).expect("an answer");
        (sight.permits_taken, sight.locked)
    };
    for (number, slot) in ["r", "r#1", "r#2"].iter().enumerate() {
        assert_eq!(taken(), (i32::try_from(number).expect("small"), false));
        cluster[1].must(&["RPUSH", slot, "a list"]);
        assert_eq!(taken(), (i32::try_from(number).expect("small"), false), "on a minority");
        cluster[0].must(&["RPUSH", slot, "a list"]);
        cluster[2].must(&["RPUSH", slot, "a list"]);
    }
    assert_eq!(taken(), (3, true));
    let wanted = Wanted { permits: 3, ..Wanted::new(RESOURCE, TTL) };
    assert_eq!(manager.acquire(&wanted, &lease), REDLOCK_TAKEN, "{}", lease.message());
    // The only free slot is the one that is got, whichever slot the search begins with.
    cluster.iter().for_each(|it| _ = it.must(&["DEL", "r#1"]));
    for _ in 0..8 {
        assert_eq!(manager.acquire(&wanted, &lease), REDLOCK_OK, "{}", lease.message());
        assert_eq!((taken(), cluster.having("r#1") >= 2), ((3, true), true));
        assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
        cluster.wait_until_gone("r#1");
    }
}

#[test]
fn q02_an_impossible_inspection_is_refused() {
    let (nobody, somebody) = (Manager::new(), Manager::at(&["127.0.0.1:1".to_owned()]));
    let refused =
        |manager: &Manager, resource: &[u8]| manager.inspect(resource).expect_err("no answer");
    assert_eq!(refused(&nobody, b"r").0, REDLOCK_NO_SERVERS);
    assert_eq!(refused(&somebody, b""), (REDLOCK_INVALID_ARGUMENT, "resource is empty".to_owned()));
    let (status, words) = refused(&somebody, &[b'r'; 65_537]);
    assert_eq!(status, REDLOCK_INVALID_ARGUMENT);
    assert!(words.contains("65537 bytes"), "{words}");
    assert_eq!(refused(&somebody, b"r").0, REDLOCK_UNREACHABLE);
}
