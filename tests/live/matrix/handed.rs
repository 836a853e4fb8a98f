//! Locks that change hands by a ticket. A client that gave a lock away no longer holds it, and sends nothing
//! about it. A client that adopts the lock holds it for as long as the servers have it.

use redlock::ffi::status::RedLockStatus::{
    self, REDLOCK_INVALID_ARGUMENT, REDLOCK_LOST, REDLOCK_OK, REDLOCK_TAKEN, REDLOCK_UNREACHABLE,
};

use crate::support::usage::{
    DEADLINE, TTL, addresses, blames, connected, connected_unguarded, in_time, make_brief, names,
    nothing_is_left, unguarded,
};
use crate::support::{Cluster, Lease, Manager, Program, Server, wait_until};

const RESOURCE: &str = "r";

/// A lock that was given away, with its ticket.
#[track_caller]
fn given(manager: &Manager, cluster: &Cluster) -> (Lease, String) {
    let lease = manager.take(RESOURCE, TTL);
    cluster.wait_until_everywhere(RESOURCE);
    let ticket = manager.detach(&lease).expect("it is held");
    (lease, ticket)
}

#[track_caller]
fn adopted(manager: &Manager, ticket: &str) -> Lease {
    let lease = Lease::new();
    assert_eq!(manager.adopt(ticket, &lease), REDLOCK_OK, "{}", lease.message());
    assert!(lease.is_held());
    lease
}

/// The words are those of a lock that was given away, and the lease holds nothing.
#[track_caller]
fn is_nobodys(manager: &Manager, lease: &Lease) {
    let statuses =
        [manager.extend(lease, 2 * TTL), manager.confirm(lease, 0), manager.unlock(lease)];
    assert_eq!(statuses, [REDLOCK_LOST; 3]);
    assert!(!lease.is_held() && lease.remaining_ms() == 0);
}

#[test]
fn h01_a_lock_moves_between_managers_with_its_time() {
    let cluster = Cluster::start(3);
    let (giver, taker) = (connected(&cluster), connected(&cluster));
    assert_eq!(giver.set_fencing(true), REDLOCK_OK);
    let lease = giver.take(RESOURCE, TTL);
    let (token, fence) = (lease.token(), lease.fencing_token());
    cluster.wait_until_everywhere(RESOURCE);
    let ticket = giver.detach(&lease).expect("it is held");
    assert_eq!(manager_words(giver.extend(&lease, TTL), &lease), (REDLOCK_LOST, true));
    is_nobodys(&giver, &lease);
    assert!(fence > 0 && ticket.contains(&token) && ticket.contains(&format!(".{fence}.")));

    // The remaining time on the servers counts. It may be more than the giver was sure of, because the giver
    // asked before they set the key.
    let left_ms = cluster.iter().map(|it| it.pttl(RESOURCE)).max().expect("three servers");
    let left_ms = left_ms - left_ms / 100;
    let taken = adopted(&taker, &ticket);
    assert_eq!((taken.token(), taken.fencing_token()), (token, fence));
    assert_eq!(taken.resource(), RESOURCE);
    assert!((1..=left_ms).contains(&taken.remaining_ms()), "{} of {left_ms}", taken.remaining_ms());
    is_nobodys(&giver, &lease);
    assert_eq!(giver.try_lock(RESOURCE, TTL, 0, &lease), REDLOCK_TAKEN);
    assert_eq!(taker.extend(&taken, 2 * TTL), REDLOCK_OK, "{}", taken.message());
    assert!(taken.remaining_ms() > TTL);
    assert_eq!(taker.confirm(&taken, TTL), REDLOCK_OK, "{}", taken.message());
    assert_eq!(taker.unlock(&taken), REDLOCK_OK, "{}", taken.message());
    nothing_is_left(&taker, &cluster, RESOURCE);
    assert_eq!(taker.adopt(&ticket, &taken), REDLOCK_LOST);
    assert!(taken.message().contains("no longer has the lock"), "{}", taken.message());
    assert_eq!(giver.try_lock(RESOURCE, TTL, 0, &lease), REDLOCK_OK, "{}", lease.message());
    assert_eq!(giver.unlock(&lease), REDLOCK_OK, "{}", lease.message());
}

fn manager_words(status: RedLockStatus, lease: &Lease) -> (RedLockStatus, bool) {
    (status, lease.message().contains("the lock was detached"))
}

/// The giver sends nothing after it gave the lock away, whatever it does. The taker only asks.
#[test]
fn h01_a_giver_sends_nothing_and_a_taker_only_asks() {
    let cluster = Cluster::start(3);
    let taker = connected(&cluster);
    let count = || -> Vec<u64> {
        let writes = ["set", "del", "eval", "evalsha", "pexpire", "delex", "delifeq"];
        cluster.iter().map(|it| writes.iter().map(|name| it.calls(name)).sum()).collect()
    };
    let giver = connected(&cluster);
    let (lease, handle) = (Lease::new(), Lease::new());
    assert_eq!(giver.continue_lock(RESOURCE, TTL, &lease), REDLOCK_OK, "{}", lease.message());
    assert_eq!(giver.keep_alive(&lease, 7), REDLOCK_OK);
    let extended = || -> Vec<u64> { cluster.iter().map(|it| it.scripts()).collect() };
    cluster.wait_until_everywhere(RESOURCE);
    let once: Vec<u64> = extended().iter().map(|it| it + 1).collect();
    assert_eq!(giver.continue_lock(RESOURCE, TTL, &handle), REDLOCK_OK, "{}", handle.message());
    wait_until("all have extended it", || extended() == once);
    let before = count();
    let ticket = giver.detach(&lease).expect("it is held");
    is_nobodys(&giver, &lease);
    is_nobodys(&giver, &handle);
    drop((lease, handle));
    assert_eq!(giver.next_event(0), None, "it was given away, and not lost");
    drop(giver);
    let taken = adopted(&taker, &ticket);
    assert_eq!(count(), before);
    assert_eq!(taker.unlock(&taken), REDLOCK_OK, "{}", taken.message());
    nothing_is_left(&taker, &cluster, RESOURCE);
}

/// The giver no longer keeps a kept lock. The taker keeps it if it requests that.
#[test]
fn h01_a_kept_lock_is_kept_by_its_new_holder() {
    const SHORT: i64 = 8_000;
    let cluster = Cluster::start(3);
    let (giver, taker) = (connected(&cluster), connected(&cluster));
    let lease = giver.take(RESOURCE, SHORT);
    assert_eq!(giver.keep_alive(&lease, 5), REDLOCK_OK);
    let taken = adopted(&taker, &giver.detach(&lease).expect("it is held"));
    assert_eq!(taker.keep_alive(&taken, 6), REDLOCK_OK);
    let (mut renewed, mut last) = (0, taken.remaining_ms());
    while renewed < 2 {
        assert_eq!((giver.next_event(10), taker.next_event(10)), (None, None), "it was lost");
        let now = taken.remaining_ms();
        assert!(now > 0, "it has expired");
        renewed += i32::from(now > last);
        last = now;
    }
    assert_eq!(taker.unlock(&taken), REDLOCK_OK, "{}", taken.message());
    nothing_is_left(&taker, &cluster, RESOURCE);
}

#[test]
fn h02_a_lost_lock_cannot_be_detached() {
    let cluster = Cluster::start(3);
    let manager = connected(&cluster);
    let refused = |lease: &Lease| manager.detach(lease).expect_err("it is not held");
    assert_eq!(refused(&Lease::new()), REDLOCK_LOST);
    let lease = manager.take(RESOURCE, TTL);
    let brief = connected(&cluster);
    make_brief(&brief);
    // A release that did not reach enough servers has begun all the same.
    cluster.iter().for_each(Server::freeze);
    assert_eq!(brief.unlock(&lease), REDLOCK_UNREACHABLE);
    assert_eq!(refused(&lease), REDLOCK_LOST);
    cluster.iter().for_each(Server::resume);
    nothing_is_left(&brief, &cluster, RESOURCE);
    let lease = manager.take(RESOURCE, 1_000);
    wait_until("it expires", || !lease.is_held());
    assert_eq!(refused(&lease), REDLOCK_LOST);
    // If there is too little room, the lock stays held.
    let lease = manager.take(RESOURCE, TTL);
    for room in 0..60 {
        assert_eq!(manager.detach_into(&lease, room), Err(REDLOCK_INVALID_ARGUMENT), "{room}");
        assert!(lease.is_held());
    }
    assert!(lease.message().contains("the ticket needs"), "{}", lease.message());
    // The same is true if the manager has other servers.
    let other = connected(&Cluster::start(3));
    assert_eq!(other.detach(&lease), Err(REDLOCK_INVALID_ARGUMENT));
    assert!(lease.is_held());
    assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
}

#[test]
fn h02_a_bad_ticket_is_refused_and_not_quoted() {
    let cluster = Cluster::start(3);
    let manager = connected(&cluster);
    let (_giver, ticket) = given(&manager, &cluster);
    let token = ticket.rsplit('.').next().expect("a token").to_owned();
    let lease = Lease::new();
    let mut bad: Vec<String> = (0..ticket.len()).map(|end| ticket[..end].to_owned()).collect();
    bad.push(format!("{ticket}0"));
    bad.push(format!(" {ticket}"));
    bad.push(ticket.replacen("redlock1", "redlock9", 1));
    bad.push(ticket.to_lowercase());
    bad.push("x".repeat(10_000_000));
    bad.push(format!("redlock1.{}", "x".repeat(10_000_000)));
    bad.push("\u{1F512}".to_owned());
    for bad in bad {
        assert_eq!(manager.adopt(&bad, &lease), REDLOCK_INVALID_ARGUMENT);
        let words = lease.message();
        assert!(words.contains("ticket"), "{words}");
        assert!(
            words.len() < 100 && !words.contains("xxx") && !words.contains(&token[..6]),
            "{words}"
        );
        assert!(!lease.is_held());
    }
    // A ticket with another resource belongs to no lock.
    let other = ticket.replacen(".cg.", ".cw.", 1);
    assert_ne!(other, ticket);
    assert_eq!(manager.adopt(&other, &lease), REDLOCK_LOST);
    assert!(!lease.message().contains(&token[..6]), "{}", lease.message());
    // A lease that holds a lock cannot take another one.
    let holds = manager.take("another", TTL);
    assert_eq!(manager.adopt(&ticket, &holds), REDLOCK_INVALID_ARGUMENT);
    assert!(holds.is_held() && holds.resource() == "another");
    assert_eq!(manager.unlock(&holds), REDLOCK_OK, "{}", holds.message());
    let taken = adopted(&manager, &ticket);
    assert_eq!(manager.unlock(&taken), REDLOCK_OK, "{}", taken.message());
}

#[test]
fn h03_a_dead_minority_is_harmless_and_a_majority_blocks() {
    let cluster = Cluster::start(3);
    let (giver, taker) = (connected_unguarded(&cluster), unguarded(cluster.manager()));
    make_brief(&taker);
    let (_lease, ticket) = given(&giver, &cluster);
    cluster[..2].iter().for_each(Server::freeze);
    let refused = Lease::new();
    in_time(DEADLINE, || assert_eq!(taker.adopt(&ticket, &refused), REDLOCK_UNREACHABLE));
    assert!(
        names(&refused.message(), &cluster[..2]) && !refused.is_held(),
        "{}",
        refused.message()
    );
    // The call can be repeated.
    cluster[0].resume();
    wait_until("it is adopted", || taker.adopt(&ticket, &refused) == REDLOCK_OK);
    let next = taker.detach(&refused).expect("it is held");
    cluster[1].resume();
    // Servers that have lost the lock do not have it any more.
    cluster[0].must(&["DEL", RESOURCE]);
    let lease = adopted(&giver, &next);
    let next = giver.detach(&lease).expect("it is held");
    cluster[1].must(&["SET", RESOURCE, "another's", "PX", "60000"]);
    assert_eq!(giver.adopt(&next, &lease), REDLOCK_LOST);
    let reasons = ["no longer has the lock", "held by another client"];
    assert_eq!(blames(&lease.message(), &addresses(&cluster[..2]), &reasons), Ok(()));
    assert_eq!(cluster[1].get(RESOURCE).as_deref(), Some("another's"));
}

/// The remaining time on the servers counts, and not the time when the ticket was issued.
#[test]
fn h03_a_late_taker_gets_the_remaining_time() {
    let cluster = Cluster::start(3);
    let (giver, taker) = (connected(&cluster), connected(&cluster));
    let (_lease, ticket) = given(&giver, &cluster);
    for (server, left) in cluster.iter().zip(["20000", "30000", "40000"]) {
        server.must(&["PEXPIRE", RESOURCE, left]);
    }
    let taken = adopted(&taker, &ticket);
    // Whichever two of them answer first.
    assert!((1..=29_698).contains(&taken.remaining_ms()), "{}", taken.remaining_ms());
    assert_eq!(taker.unlock(&taken), REDLOCK_OK, "{}", taken.message());
    let (_lease, ticket) = given(&giver, &cluster);
    cluster.iter().for_each(|it| _ = it.must(&["PEXPIRE", RESOURCE, "1"]));
    assert_eq!(taker.adopt(&ticket, &taken), REDLOCK_LOST);
    nothing_is_left(&taker, &cluster, RESOURCE);
}

/// Two managers that adopt one ticket share the lock: the first unlock releases it for both.
#[test]
fn h04_a_ticket_adopted_twice_is_one_lock() {
    let cluster = Cluster::start(3);
    let managers = [(); 3].map(|()| connected(&cluster));
    let (_lease, ticket) = given(&managers[0], &cluster);
    let (one, two) = (adopted(&managers[1], &ticket), adopted(&managers[2], &ticket));
    assert_eq!(managers[1].unlock(&one), REDLOCK_OK, "{}", one.message());
    nothing_is_left(&managers[1], &cluster, RESOURCE);
    assert_eq!(managers[2].confirm(&two, 0), REDLOCK_LOST);
    assert_eq!(managers[2].unlock(&two), REDLOCK_LOST);
}

#[test]
fn h05_a_lock_moves_to_a_child_and_to_another_program() {
    let cluster = Cluster::start(3);
    let mut program = Program::compile("handover").start(&cluster.urls());
    program.hears("the parent has the lock");
    cluster.wait_until_everywhere("handed");
    let tokens: Vec<_> = cluster.iter().map(|it| it.get("handed")).collect();
    program.says("go on");
    for who in ["the child has the lock", "the heir has the lock"] {
        program.hears(who);
        let now: Vec<_> = cluster.iter().map(|it| it.get("handed")).collect();
        assert_eq!(now, tokens, "{who}");
        assert!(cluster.iter().filter(|it| it.pttl("handed") > 600_000).count() >= 2, "{who}");
        program.says("go on");
    }
    assert!(program.ends().success());
    cluster.wait_until_gone("handed");
}
