//! What changes a server's life, and what does not: an older note that is brought back, a promotion, a note that is
//! dated in the future, a log that was off for a while, a note that this library did not write.

use redlock::ffi::servers::REDLOCK_GUARD_ON;
use redlock::ffi::status::RedLockStatus::{REDLOCK_OK, REDLOCK_TAKEN, REDLOCK_UNREACHABLE};

use crate::clocks::Timed;
use crate::rig::Rig;
use crate::rivals::{RESOURCE, Rivals};
use crate::servers_remembering::{LOST, NOTE, connected_to, is_kept_out_who_wants};
use crate::support::events::Wanted;
use crate::support::resp::Reply;
use crate::support::sentinels::{Group, info};
use crate::support::usage::{TTL, connected, everything_works, make_brief, patient, unguarded};
use crate::support::{Cluster, Lease, Manager, Proxy, Server, Way, wait_until, wait_until_ok};

const LEAST_MS: i64 = 3_000;

/// What is said of a server that is connected and lost its memory.
const VOTELESS: &str = "no vote for another";
const HOUR_MS: i64 = 3_600_000;

/// Its connections are lost, too, because a manager remembers what it saw over earlier ones.
#[track_caller]
fn is_kept_out(manager: &Manager, servers: &[Server]) {
    let addresses: Vec<_> = servers.iter().map(Server::address).collect();
    is_kept_out_who_wants(&Wanted::new(RESOURCE, TTL), manager, &addresses);
    servers.iter().for_each(Server::hang_up);
    is_kept_out_who_wants(&Wanted::new(RESOURCE, TTL), manager, &addresses);
}

/// This manager votes on nothing for longer than three seconds after a loss.
fn brief_guard(cluster: &Cluster) -> Manager {
    let manager = patient(cluster);
    assert_eq!(manager.set_restart_guard_for(REDLOCK_GUARD_ON, 0, LEAST_MS), REDLOCK_OK);
    wait_until("all servers are connected", || {
        manager.connect(0) == REDLOCK_OK && manager.servers().iter().all(|it| it.connected)
    });
    manager
}

#[track_caller]
fn all_vote(manager: &Manager) {
    wait_until_ok("all vote", || {
        assert_eq!(manager.connect(0), REDLOCK_OK, "{}", manager.message());
        let known = manager.servers();
        if known.iter().all(|it| it.votes) { Ok(()) } else { Err(format!("{known:?}")) }
    });
}

/// The generation of a server's note.
fn generation(server: &Server) -> i64 {
    let note = server.get(NOTE).expect("it has a note");
    note.split(' ').nth(2).and_then(|it| it.parse().ok()).expect("it has a generation")
}

/// A majority gets an older note of the same process in this way, without the lock that is held. The rival has seen a
/// later note: its own lock had a longer TTL, which was noted.
fn an_older_note_comes_back(prepare: impl Fn(&Server), bring_back: impl Fn(&Server)) {
    let cluster = Cluster::start(3);
    cluster.iter().for_each(|it| it.be_in_use(1));
    let rival = connected(&cluster);
    cluster.iter().for_each(prepare);
    everything_works(&rival, "another");
    wait_until("it is noted", || cluster.iter().all(|it| generation(it) > 1));
    everything_works(&rival, "another");
    let rivals = Rivals::among(connected(&cluster), rival);
    cluster.wait_until_everywhere(RESOURCE);
    cluster[..2].iter().for_each(bring_back);
    make_brief(&rivals.rival);
    is_kept_out(&rivals.rival, &cluster[..2]);
    // The rival has told the servers. So a client that comes only now is kept out as well.
    is_kept_out(&connected_to(&cluster), &cluster[..2]);
    assert_eq!(rivals.holders(), 1);
    rivals.the_holder_is_told();
}

#[test]
fn s26_a_swapped_in_older_note_is_not_believed() {
    let copy = |server: &Server| {
        server.must(&["COPY", NOTE, NOTE, "DB", "1"]);
    };
    an_older_note_comes_back(copy, |server| _ = server.must(&["SWAPDB", "0", "1"]));
}

#[test]
fn s26_a_rewritten_older_note_is_not_believed() {
    let keep = |server: &Server| {
        server.must(&["COPY", NOTE, "old"]);
    };
    an_older_note_comes_back(keep, |server| {
        server.must(&["DEL", RESOURCE]);
        server.must(&["RENAME", "old", NOTE]);
    });
}

/// The note of the other database is of the same process, and has been rewritten more often.
#[test]
fn s26_a_later_note_of_another_database_is_not_believed() {
    let cluster = Cluster::start(3);
    let rivals = Rivals::of(&cluster);
    let other: Vec<_> = cluster.iter().map(|it| format!("redis://{}/1", it.address())).collect();
    let other = Manager::of_urls(&other);
    all_vote(&other);
    for ttl_ms in [1, 2, 4].map(|it| it * LEAST_MS) {
        assert_eq!(other.unlock(&other.take(RESOURCE, ttl_ms)), REDLOCK_OK);
    }
    cluster[..2].iter().for_each(|it| _ = it.must(&["SWAPDB", "0", "1"]));
    assert!(cluster[..2].iter().all(|it| generation(it) > 3));
    make_brief(&rivals.rival);
    is_kept_out(&rivals.rival, &cluster[..2]);
    assert_eq!(rivals.holders(), 1);
}

/// Whoever has never seen the later note cannot know that this one is older.
#[test]
fn s26_a_new_client_believes_the_older_note() {
    let cluster = Cluster::start(3);
    cluster.iter().for_each(|it| _ = it.must(&["COPY", NOTE, NOTE, "DB", "1"]));
    let holder = connected(&cluster);
    let held = holder.take(RESOURCE, TTL);
    cluster.wait_until_everywhere(RESOURCE);
    cluster[..2].iter().for_each(|it| _ = it.must(&["SWAPDB", "0", "1"]));
    let rivals = Rivals { holder, held, rival: connected(&cluster), wanted: Lease::new() };
    rivals.both_hold();
}

/// A copy that was promoted, of a primary that had not been used when it lost the copy. Nothing shows that it was a
/// replica, once its replication backlog is freed.
fn promoted_copy(primary: &Server) -> Server {
    let copy = Server::start_with(&["--repl-backlog-ttl", "1", "--repl-diskless-sync-delay", "0"]);
    copy.be_new();
    let group = Group { name: "g".to_owned(), servers: Vec::new() };
    group.have_follow(&copy, primary.port());
    copy.must(&["REPLICAOF", "NO", "ONE"]);
    copy
}

fn has_forgotten_its_promotion(server: &Server) -> bool {
    info(server).contains(&format!("master_replid2:{}", "0".repeat(40)))
}

#[test]
fn s27_a_promoted_copy_without_a_note_is_not_new() {
    for is_forgotten in [false, true] {
        let primary = Server::start_with(&["--repl-diskless-sync-delay", "0"]);
        primary.be_new();
        let copy = promoted_copy(&primary);
        let proxy = Proxy::to(&primary);
        let holder = Manager::at(&[proxy.address()]);
        let held = holder.take(RESOURCE, TTL);
        if is_forgotten {
            wait_until("it has forgotten", || has_forgotten_its_promotion(&copy));
        }
        proxy.lead_to(&copy);
        proxy.reset();
        let rival = Manager::at(&[proxy.address()]);
        make_brief(&rival);
        is_kept_out_who_wants(&Wanted::new(RESOURCE, TTL), &rival, &[proxy.address()]);
        assert!(held.is_held());
    }
}

#[test]
fn s27_a_new_primary_with_a_copy_votes_at_once() {
    let primary = Server::start_with(&["--repl-diskless-sync-delay", "0"]);
    primary.be_new();
    let group = Group { name: "g".to_owned(), servers: Vec::new() };
    let copy = Server::start();
    group.have_follow(&copy, primary.port());
    let manager = Manager::at(&[primary.address()]);
    everything_works(&manager, RESOURCE);
    assert!(primary.get(NOTE).is_some_and(|it| it.contains(" -")));
}

/// Its replication backlog is freed some time after the failover. Nothing is lost by that.
#[test]
fn s28_a_promoted_server_that_forgets_it_keeps_its_memory() {
    let primary = Server::start_with(&["--repl-diskless-sync-delay", "0"]);
    primary.be_in_use(1);
    let copy = promoted_copy(&primary);
    let manager = Manager::at(&[copy.address()]);
    assert_eq!(manager.set_restart_guard_for(REDLOCK_GUARD_ON, 0, LEAST_MS), REDLOCK_OK);
    let lease = Lease::new();
    assert_eq!(manager.try_lock(RESOURCE, LEAST_MS, 60_000, &lease), REDLOCK_OK);
    assert_eq!(manager.unlock(&lease), REDLOCK_OK);
    wait_until("it has forgotten", || has_forgotten_its_promotion(&copy));
    let note = copy.get(NOTE);
    for manager in [manager, Manager::at(&[copy.address()])] {
        copy.hang_up();
        all_vote(&manager);
        assert_eq!(manager.unlock(&manager.take(RESOURCE, LEAST_MS)), REDLOCK_OK);
    }
    assert_eq!(copy.get(NOTE), note);
}

/// The clocks were an hour ahead when the notes were made, and were set right.
#[test]
fn s29_a_note_from_the_future_is_corrected() {
    let timed = Timed::start(3);
    let cluster = &timed.cluster;
    timed.step(HOUR_MS);
    cluster.iter().for_each(|it| _ = it.must(&["SET", NOTE, "damaged"]));
    let early = brief_guard(cluster);
    wait_until("they have votes", || early.servers().iter().all(|it| it.votes));
    timed.step(-HOUR_MS);
    let notes: Vec<_> = cluster.iter().map(|it| it.get(NOTE)).collect();
    let late = brief_guard(cluster);
    let known = late.servers();
    assert!(known.iter().all(|it| !it.votes && it.words.contains(LOST)), "{known:?}");
    for (server, note) in cluster.iter().zip(notes) {
        assert_ne!(server.get(NOTE), note);
    }
    // Whoever was there before knows better, and is not disturbed.
    let lease = Lease::new();
    assert_eq!(early.try_lock(RESOURCE, LEAST_MS, 0, &lease), REDLOCK_OK, "{}", lease.message());
    assert_eq!(early.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    all_vote(&late);
    // For a later client the time counts from the correction.
    all_vote(&brief_guard(cluster));
    everything_works(&late, RESOURCE);
}

#[test]
fn s29_a_new_note_from_the_future_makes_no_others_new() {
    let timed = Timed::start(2);
    let [first, second] = &timed.cluster[..] else { unreachable!("two") };
    timed.step(HOUR_MS);
    first.be_new();
    assert_eq!(Manager::at(&[first.address()]).connect(20_000), REDLOCK_OK);
    timed.step(-HOUR_MS);
    second.be_new();
    let manager = connected_to(&timed.cluster);
    let known = manager.servers();
    assert!(known[0].votes && !known[1].votes, "{known:?}");
    assert!(first.get(NOTE).is_some_and(|it| it.contains(" -1 ")));
}

const LOGGED: [&str; 4] = ["--appendonly", "yes", "--appendfsync", "always"];

/// The log lacks the locks of the time when it was off. These servers are restarted with that old log.
fn is_restarted_with_its_old_log(server: &Server) {
    server.restart();
    wait_until("it has loaded", || !matches!(server.command(&["PING"]), Reply::Error(_)));
    assert!(!server.exists(RESOURCE));
}

#[test]
fn s30_a_log_that_was_off_is_not_durable_for_witnesses() {
    let cluster = Cluster::start_each(3, || Server::start_with(&LOGGED));
    let before = connected(&cluster);
    cluster.iter().for_each(|it| _ = it.must(&["CONFIG", "SET", "appendonly", "no"]));
    let rival = patient(&cluster);
    let log = rival.log();
    rival.connect_to_all();
    let is_warned = |it: &Server| {
        let words = format!("{}: appendfsync is no longer always", it.address());
        log.lines().iter().any(|line| line.1.contains(&words))
    };
    assert!(cluster.iter().all(is_warned), "{:?}", log.lines());
    assert!(rival.servers().iter().all(|it| it.words.contains("no longer always")));
    let held = before.take(RESOURCE, TTL);
    cluster.wait_until_everywhere(RESOURCE);
    cluster[..2].iter().for_each(is_restarted_with_its_old_log);
    make_brief(&rival);
    is_kept_out(&rival, &cluster[..2]);
    assert!(held.is_held());
}

/// The hole: nobody who is connected has seen the change, and a client that connects only after it cannot.
#[test]
fn s30_an_unseen_gap_in_the_log_admits_a_rival() {
    let cluster = Cluster::start_each(3, || Server::start_with(&LOGGED));
    let (holder, rival) = (connected(&cluster), patient(&cluster));
    cluster.iter().for_each(|it| _ = it.must(&["CONFIG", "SET", "appendonly", "no"]));
    let rivals = Rivals::among(holder, rival);
    cluster.wait_until_everywhere(RESOURCE);
    cluster[..2].iter().for_each(is_restarted_with_its_old_log);
    rivals.rival.connect_to_all();
    rivals.both_hold();
}

/// It counts as durable from its next memory on.
#[test]
fn s30_a_log_turned_on_later_is_not_complete() {
    let cluster = Cluster::start_each(3, || Server::start_with(&LOGGED));
    let server = &cluster[0];
    let note = server.get(NOTE).expect("a note");
    let note = note.strip_suffix(" a").expect("it says that all is in the log");
    server.must(&["SET", NOTE, note]);
    let manager = connected(&cluster);
    assert!(manager.servers()[0].words.contains("but was not when redlock:guard was written"));
    // A manager that has seen the loss remembers it. So the second time is another manager's.
    for (manager, is_lost) in [(manager, true), (patient(&cluster), false)] {
        server.restart();
        wait_until("it is connected", || {
            manager.connect(0) == REDLOCK_OK && manager.servers()[0].connected
        });
        let known = manager.servers();
        assert_eq!(known[0].words.contains(LOST), is_lost, "{known:?}");
        // From now on it is durable.
        assert!(server.get(NOTE).is_some_and(|it| it.ends_with(" a")));
        if is_lost {
            server.must(&["SET", NOTE, &old(&server.get(NOTE).expect("a note"))]);
        }
    }
}

/// The same note, as of a long time ago.
fn old(note: &str) -> String {
    let mut words: Vec<&str> = note.split(' ').collect();
    words[3] = "1";
    words.join(" ")
}

/// Somebody else uses the key, or a client of a later version.
#[test]
fn s31_a_foreign_note_is_no_vote_and_is_left_alone() {
    let ways: [(&[&str], &str, &str); 2] = [
        (
            &["RPUSH", NOTE, "theirs"],
            "has the wrong type: another program uses it, delete the key",
            "list",
        ),
        (&["SET", NOTE, "2 of a later version"], "by a newer version", "string"),
    ];
    for (way, words, kind) in ways {
        let cluster = Cluster::start(3);
        let manager = brief_guard(&cluster);
        cluster[0].must(&["DEL", NOTE]);
        cluster[0].must(way);
        wait_until("it is told", || {
            let lease = manager.take(RESOURCE, LEAST_MS);
            assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
            let known = &manager.servers()[0];
            assert!(!known.words.contains("the user needs"), "{known:?}");
            !known.votes && known.words.contains(words)
        });
        assert_eq!(cluster[0].must(&["TYPE", NOTE]).text().as_deref(), Some(kind));
        cluster[0].must(&["DEL", NOTE]);
        all_vote(&manager);
    }
}

#[test]
fn s31_a_note_with_an_impossible_number_is_replaced() {
    let great = "9".repeat(30);
    for place in [2, 3, 4] {
        let cluster = Cluster::start(3);
        let note = cluster[0].get(NOTE).expect("a note");
        let mut words: Vec<&str> = note.split(' ').collect();
        words[place] = &great;
        cluster[0].must(&["SET", NOTE, &words.join(" ")]);
        let manager = brief_guard(&cluster);
        let known = manager.servers();
        assert!(known[0].words.contains(LOST), "{place} {known:?}");
        all_vote(&manager);
        let lease = Lease::new();
        assert_eq!(manager.try_lock(RESOURCE, LEAST_MS, 0, &lease), REDLOCK_OK);
        assert_eq!(
            brief_guard(&cluster).try_lock(RESOURCE, LEAST_MS, 0, &Lease::new()),
            REDLOCK_TAKEN
        );
    }
}

/// A majority is restarted without its data, and another client gives it notes. Its clocks are then set, or were wrong
/// when it started. So the notes look old.
fn a_wrong_clock_makes_a_loss_look_old(before_ms: i64, after_ms: i64) {
    let timed = Timed::start(3);
    let cluster = &timed.cluster;
    cluster.iter().for_each(|it| it.be_in_use(1));
    let rivals = Rivals::among(connected(cluster), connected(cluster));
    cluster.wait_until_everywhere(RESOURCE);
    if before_ms != 0 {
        timed.step_some(0..2, before_ms);
    }
    cluster[..2].iter().for_each(Server::restart);
    timed.show();
    let another = brief_guard(cluster);
    assert!(another.servers()[..2].iter().all(|it| it.words.contains(LOST)));
    timed.step_some(0..2, after_ms);
    make_brief(&rivals.rival);
    is_kept_out(&rivals.rival, &cluster[..2]);
    assert_eq!(rivals.holders(), 1);
}

#[test]
fn s32_a_clock_set_forward_after_a_loss_does_not_age_it() {
    a_wrong_clock_makes_a_loss_look_old(0, HOUR_MS);
}

#[test]
fn s32_a_clock_behind_at_a_loss_does_not_age_it() {
    a_wrong_clock_makes_a_loss_look_old(-HOUR_MS, HOUR_MS);
}

/// All times of notes are times since 1970.
#[test]
fn s33_a_clock_before_1970_has_no_vote_and_is_named() {
    let timed = Timed::start(3);
    let cluster = &timed.cluster;
    cluster.iter().for_each(|it| it.be_in_use(1));
    timed.stop_before_1970(0);
    let note = cluster[0].get(NOTE);
    let manager = patient(cluster);
    wait_until("it is told", || {
        assert_eq!(manager.connect(0), REDLOCK_OK);
        let known = &manager.servers()[0];
        !known.votes && known.words.contains("before 1970: set the clock")
    });
    everything_works(&manager, RESOURCE);
    assert_eq!(cluster[0].get(NOTE), note);
    timed.go_on(0);
    all_vote(&manager);
}

/// The server has forgotten which TTLs were in use. Another one knows.
#[test]
fn s34_a_forgetful_server_learns_the_longest_ttl() {
    let cluster = Cluster::start(3);
    cluster.iter().for_each(|it| it.be_in_use(60_000));
    cluster[0].must(&["SET", NOTE, "damaged"]);
    let manager = brief_guard(&cluster);
    assert_eq!(manager.set_restart_guard_for(REDLOCK_GUARD_ON, 0, 0), REDLOCK_OK);
    wait_until("it is noted", || {
        assert_eq!(manager.unlock(&manager.take(RESOURCE, LEAST_MS)), REDLOCK_OK);
        let note = cluster[0].get(NOTE).expect("a note");
        note.split(' ').nth(4) == Some("60000")
    });
}

/// By an old log, by `SWAPDB`, or by hand. The manager saw that it was gone.
#[test]
fn s35_a_missing_note_is_a_loss_even_if_it_comes_back() {
    let server = Server::start();
    let (manager, lease) = (Manager::at(&[server.address()]), Lease::new());
    assert_eq!(manager.unlock(&manager.take(RESOURCE, TTL)), REDLOCK_OK);
    let note = server.get(NOTE).expect("a note");
    server.must(&["DEL", NOTE]);
    // No client can write a note of its own meanwhile.
    server.must(&["RPUSH", NOTE, "of another type"]);
    assert_eq!(manager.try_lock(RESOURCE, TTL, 0, &lease), REDLOCK_UNREACHABLE);
    server.must(&["DEL", NOTE]);
    server.must(&["SET", NOTE, &note]);
    wait_until("it is connected again", || {
        assert_eq!(manager.try_lock(RESOURCE, TTL, 0, &lease), REDLOCK_UNREACHABLE);
        lease.message().contains(VOTELESS)
    });
    assert!(!manager.servers()[0].votes);
    // The loss is noted, so others know it, too.
    let other = Manager::at(&[server.address()]);
    assert_eq!(other.connect(0), REDLOCK_OK);
    assert!(!other.servers()[0].votes, "{:?}", other.servers());
}

/// The server does not let the loss be noted. The manager knows it all the same.
#[test]
fn s35_a_loss_without_a_note_is_remembered() {
    let server = Server::start();
    let (manager, lease) = (Manager::at(&[server.address()]), Lease::new());
    assert_eq!(manager.unlock(&manager.take(RESOURCE, TTL)), REDLOCK_OK);
    server.must(&["ACL", "SETUSER", "default", "-eval", "-evalsha"]);
    server.must(&["DEL", NOTE]);
    // Each time another one, because nothing can be released either.
    let mut names = (0..).map(|it| format!("r{it}"));
    for _ in 0..2 {
        wait_until("it is connected again", || {
            let name = names.next().expect("there is no end");
            assert_eq!(manager.try_lock(name, TTL, 0, &lease), REDLOCK_UNREACHABLE);
            lease.message().contains(VOTELESS)
        });
        server.hang_up();
    }
}

/// Others do not know of the loss, and rewrite the older note until it is as late as the one that was lost.
#[test]
fn s35_a_found_loss_outlives_rewritten_notes() {
    let server = Server::start();
    server.be_in_use(1);
    let (manager, lease) = (Manager::at(&[server.address()]), Lease::new());
    assert_eq!(manager.unlock(&manager.take(RESOURCE, 10_000)), REDLOCK_OK);
    let older = server.get(NOTE).expect("a note");
    assert_eq!(manager.unlock(&manager.take(RESOURCE, 20_000)), REDLOCK_OK);
    server.must(&["SET", NOTE, &older]);
    server.must(&["ACL", "SETUSER", "default", "-eval", "-evalsha"]);
    server.hang_up();
    let mut names = (0..).map(|it| format!("r{it}"));
    wait_until("it has seen the older note", || {
        let name = names.next().expect("there is no end");
        assert_eq!(manager.try_lock(name, TTL, 0, &lease), REDLOCK_UNREACHABLE);
        lease.message().contains(VOTELESS)
    });
    server.must(&["ACL", "SETUSER", "default", "+eval", "+evalsha"]);
    // Their connection is new: one that saw that scripts are refused does without them.
    let other = Manager::at(&[server.address()]);
    for ttl in [21_000, 22_000, 23_000] {
        assert_eq!(other.unlock(&other.take("other", ttl)), REDLOCK_OK);
    }
    server.hang_up();
    wait_until("it is connected again", || {
        assert_eq!(manager.try_lock(RESOURCE, TTL, 0, &lease), REDLOCK_UNREACHABLE);
        lease.message().contains(VOTELESS)
    });
    assert!(!manager.servers()[0].votes, "{:?}", manager.servers());
}

/// A server whose connection breaks before it has answered the acquire. Then this happens to the server.
fn is_asked_in_vain(wanted: &Wanted, happens: impl FnOnce(&Server)) -> (Rig, Manager, Lease) {
    let (rig, lease) = (Rig::start(3), Lease::new());
    let manager = unguarded(rig.manager());
    assert_eq!(manager.set_fencing(wanted.permits == 0), REDLOCK_OK);
    manager.connect_to_all();
    rig.proxies[2].stall(Way::Requests);
    assert_eq!(manager.acquire(wanted, &lease), REDLOCK_OK, "{}", lease.message());
    wait_until("it is asked", || rig.proxies[2].is_holding(Way::Requests));
    happens(&rig.servers[2]);
    rig.proxies[2].reset();
    rig.heal();
    (rig, manager, lease)
}

/// The request has ended with the process that got it.
#[test]
fn s36_a_server_restarted_before_its_answer_is_repaired() {
    let permit = Wanted { permits: 2, ..Wanted::new(RESOURCE, TTL) };
    let of_each_kind = [
        Wanted::new(RESOURCE, TTL),
        Wanted::shared(RESOURCE, TTL),
        Wanted::several(&["a", "b"], TTL),
        permit,
    ];
    for wanted in of_each_kind {
        let (rig, manager, lease) = is_asked_in_vain(&wanted, Server::restart);
        wait_until("it is given the lock", || {
            assert_eq!(manager.extend(&lease, TTL), REDLOCK_OK, "{}", lease.message());
            rig.servers[2].locks() > 0
        });
        assert_eq!(manager.set_timeouts(700, 700), REDLOCK_OK);
        wait_until("it counts", || {
            rig.servers[0].freeze();
            let said = manager.extend(&lease, TTL);
            rig.servers[0].resume();
            wait_until("all is well", || manager.extend(&lease, TTL) == REDLOCK_OK);
            said == REDLOCK_OK
        });
        assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    }
}

/// The same process may still carry the request out.
#[test]
fn s36_a_silent_living_server_is_not_repaired() {
    let (rig, manager, lease) = is_asked_in_vain(&Wanted::new(RESOURCE, TTL), |_| {});
    let before = rig.servers[2].scripts();
    wait_until("it has answered some extensions", || {
        assert_eq!(manager.extend(&lease, TTL), REDLOCK_OK, "{}", lease.message());
        assert_eq!(rig.servers[2].locks(), 0);
        rig.servers[2].scripts() >= before + 5
    });
    assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
}
