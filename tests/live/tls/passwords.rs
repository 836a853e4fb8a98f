//! Passwords that a callback supplies.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use redlock::ffi::status::RedLockStatus::{REDLOCK_OK, REDLOCK_UNREACHABLE};

use crate::support::secure::answer_with;
use crate::support::usage::{
    DEADLINE, PATIENT_MS, TTL, addresses, blames, everything_works, in_time, nothing_is_left,
};
use crate::support::{Cluster, Lease, Manager, Program, Server, wait_until, wait_until_ok};

const PASSWORD: &str = "s3same-0pen";

/// Three servers that a user with this password may use.
fn guarded(password: &str) -> Cluster {
    let cluster = if cfg!(feature = "tls") { Cluster::start_tls(3) } else { Cluster::start(3) };
    change(&cluster, password);
    cluster
}

fn change(cluster: &Cluster, password: &str) {
    for server in cluster.iter() {
        let password = format!(">{password}");
        server.must(&["ACL", "SETUSER", "locker", "reset", "on", &password, "~*", "+@all"]);
    }
}

fn patient(cluster: &Cluster) -> Manager {
    let manager = cluster.manager();
    assert_eq!(manager.set_timeouts(PATIENT_MS, PATIENT_MS), REDLOCK_OK);
    manager
}

#[test]
fn the_caller_asks_for_each_password_once() {
    let cluster = guarded(PASSWORD);
    let manager = patient(&cluster);
    let (asked, caller) = (Mutex::new(Vec::new()), thread::current().id());
    let _asked = manager.asks(Some("locker"), |server, room| {
        assert_eq!(thread::current().id(), caller, "another thread asks");
        assert!(room.len() > 512 && room.iter().all(|&it| it == 0));
        asked.lock().expect("not poisoned").push(server.to_owned());
        answer_with(PASSWORD, room)
    });
    manager.connect_to_all();
    (0..5).for_each(|_| everything_works(&manager, "r"));
    cluster.iter().for_each(Server::hang_up);
    manager.connect_to_all();
    everything_works(&manager, "r");
    let mut asked = asked.lock().expect("not poisoned").clone();
    let mut all = addresses(&cluster);
    asked.sort();
    all.sort();
    assert_eq!(asked, all);
}

#[test]
fn a_refused_password_is_asked_for_again() {
    let cluster = guarded("the-old");
    let manager = patient(&cluster);
    let (current, asked) = (Mutex::new("the-old"), AtomicU32::new(0));
    let _asked = manager.asks(Some("locker"), |_, room| {
        asked.fetch_add(1, Ordering::SeqCst);
        answer_with(*current.lock().expect("not poisoned"), room)
    });
    manager.connect_to_all();
    let lease = manager.take("r", TTL);
    assert_eq!(asked.load(Ordering::SeqCst), 3);
    for password in ["the-new", "the-newest"] {
        let before = asked.load(Ordering::SeqCst);
        change(&cluster, password);
        *current.lock().expect("not poisoned") = password;
        // Existing connections stay.
        assert_eq!(manager.extend(&lease, TTL), REDLOCK_OK, "{}", lease.message());
        assert_eq!(asked.load(Ordering::SeqCst), before);
        cluster.iter().for_each(Server::hang_up);
        wait_until("it is let in again", || manager.extend(&lease, 2 * TTL) == REDLOCK_OK);
        manager.connect_to_all();
        assert_eq!(asked.load(Ordering::SeqCst), before + 3);
    }
    assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    nothing_is_left(&manager, &cluster, "r");
}

#[test]
fn a_missing_password_is_asked_for_again_after_a_while() {
    let cluster = guarded(PASSWORD);
    let manager = patient(&cluster);
    assert_eq!(manager.set_timeouts(300, PATIENT_MS), REDLOCK_OK);
    assert_eq!(manager.set_retry(1, 0), REDLOCK_OK);
    cluster.iter().for_each(|it| _ = it.must(&["CONFIG", "SET", "requirepass", "somebody-elses"]));
    let (knows, asked, lease) = (AtomicBool::new(false), AtomicU32::new(0), Lease::new());
    let _asked = manager.asks(Some("locker"), |_, room| {
        asked.fetch_add(1, Ordering::SeqCst);
        knows.load(Ordering::SeqCst) && answer_with(PASSWORD, room)
    });
    in_time(DEADLINE, || assert_eq!(manager.lock("r", TTL, &lease), REDLOCK_UNREACHABLE));
    let words = ["password"];
    assert_eq!(blames(&lease.message(), &addresses(&cluster[..2]), &words), Ok(()));
    // The callback is asked about a server again after a second at least, and there are three servers.
    let begun = Instant::now();
    for _ in 0..30 {
        assert_eq!(manager.try_lock("r", TTL, 0, &lease), REDLOCK_UNREACHABLE);
    }
    let (so_far, seconds) = (asked.load(Ordering::SeqCst), begun.elapsed().as_secs());
    assert!((2..=9 + 3 * seconds).contains(&u64::from(so_far)), "{so_far} in {seconds} s");
    knows.store(true, Ordering::SeqCst);
    wait_until("it is asked again", || manager.try_lock("r", TTL, 0, &lease) == REDLOCK_OK);
    assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
}

#[test]
fn a_minority_without_a_password_is_harmless() {
    let cluster = guarded(PASSWORD);
    let manager = patient(&cluster);
    let lacking = cluster[0].address();
    let _asked = manager
        .asks(Some("locker"), |server, room| server != lacking && answer_with(PASSWORD, room));
    in_time(DEADLINE, || (0..5).for_each(|_| everything_works(&manager, "r")));
    assert_eq!(manager.connect(0), REDLOCK_OK);
    assert!(manager.message().contains(&lacking), "{}", manager.message());
}

/// The callback uses the whole buffer, or writes no NUL, or writes nothing.
#[test]
fn invalid_password_strings_are_refused() {
    let answers: [fn(&mut [u8]); 3] = [|room| room.fill(b'x'), |room| room.fill(0xff), |_| ()];
    for answer in answers {
        let cluster = guarded(PASSWORD);
        cluster.iter().for_each(|it| _ = it.must(&["CONFIG", "SET", "requirepass", "of-others"]));
        let manager = cluster.manager();
        assert_eq!(manager.set_timeouts(300, 300), REDLOCK_OK);
        assert_eq!(manager.set_retry(1, 0), REDLOCK_OK);
        let (log, lease) = (manager.log(), Lease::new());
        let _asked = manager.asks(Some("locker"), |_, room| {
            answer(room);
            true
        });
        for _ in 0..3 {
            assert_eq!(manager.lock("r", TTL, &lease), REDLOCK_UNREACHABLE);
            assert!(!lease.message().contains("xxx"), "{}", lease.message());
        }
        assert!(!log.text().contains("xxx"));
    }
}

#[test]
fn the_longest_password_works() {
    let longest = Mutex::new(0);
    let probe = Server::start();
    let manager = Manager::of_urls(&[probe.url()]);
    {
        let _asked = manager.asks(None, |_, room| {
            *longest.lock().expect("not poisoned") = room.len() - 1;
            false
        });
        assert_eq!(manager.connect(100), REDLOCK_UNREACHABLE);
    }
    let password = "p".repeat(*longest.lock().expect("not poisoned"));
    assert!(password.len() >= 512, "{}", password.len());
    let cluster = guarded(&password);
    let manager = patient(&cluster);
    let _asked = manager.asks(Some("locker"), |_, room| answer_with(&password, room));
    everything_works(&manager, "r");
}

#[test]
fn odd_bytes_in_a_password_work() {
    let odd = "a:b@c/d?e#f%25 \"'\\\u{1f512}\r\n*1\r\n";
    let cluster = guarded(odd);
    let manager = patient(&cluster);
    let _asked = manager.asks(Some("locker"), |_, room| {
        room.fill(b'x');
        answer_with(odd, room)
    });
    everything_works(&manager, "r");
}

/// On another manager, and on the one that asks. The latter call must not wait for ever.
#[test]
fn the_password_callback_may_call_the_library() {
    let (cluster, other) = (guarded(PASSWORD), Cluster::start(3));
    let (manager, others) = (patient(&cluster), patient(&other));
    assert_eq!(manager.set_timeouts(1_000, PATIENT_MS), REDLOCK_OK);
    let is_within = AtomicBool::new(false);
    let asked = manager.asks(Some("locker"), |_, room| {
        everything_works(&others, "another");
        if !is_within.swap(true, Ordering::SeqCst) {
            let lease = Lease::new();
            let _ = manager.try_lock("within", TTL, 0, &lease);
            let _ = manager.is_locked("within");
            manager.message();
            if lease.is_held() {
                manager.unlock(&lease);
            }
            assert_eq!(manager.set_retry(3, 200), REDLOCK_OK);
            is_within.store(false, Ordering::SeqCst);
        }
        answer_with(PASSWORD, room)
    });
    let lease = Lease::new();
    wait_until_ok("the lock is had", || match manager.try_lock("r", TTL, 0, &lease) {
        REDLOCK_OK => Ok(()),
        _ => Err(lease.message()),
    });
    assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    drop(asked);
    nothing_is_left(&manager, &cluster, "r");
    nothing_is_left(&manager, &cluster, "within");
}

/// It may even replace itself for later questions.
#[test]
fn the_password_callback_may_replace_itself() {
    let cluster = guarded(PASSWORD);
    let manager = patient(&cluster);
    let asked = manager.asks(Some("locker"), |_, room| {
        assert_eq!(manager.set_credentials(Some("locker"), Some(PASSWORD)), REDLOCK_OK);
        answer_with("wr0ng", room)
    });
    let lease = Lease::new();
    wait_until_ok("the lock is had", || match manager.try_lock("r", TTL, 0, &lease) {
        REDLOCK_OK => Ok(()),
        _ => Err(lease.message()),
    });
    assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    drop(asked);
}

#[test]
fn each_password_is_asked_for_by_one_thread_at_a_time() {
    const THREADS: usize = 16;
    let cluster = guarded(PASSWORD);
    let manager = patient(&cluster);
    let (start, asked) = (Barrier::new(THREADS), Mutex::new(Vec::new()));
    let under_way = cluster.iter().map(|it| (it.address(), AtomicBool::new(false)));
    let under_way: Vec<_> = under_way.collect();
    let _asked = manager.asks(Some("locker"), |server, room| {
        let (_, flag) = under_way.iter().find(|(it, _)| it == server).expect("one of ours");
        assert!(!flag.swap(true, Ordering::SeqCst), "two ask for one server at once");
        asked.lock().expect("not poisoned").push(server.to_owned());
        for _ in 0..1000 {
            thread::yield_now();
        }
        flag.store(false, Ordering::SeqCst);
        answer_with(PASSWORD, room)
    });
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (manager, start) = (&manager, &start);
            scope.spawn(move || {
                start.wait();
                everything_works(manager, &format!("of-{thread}"));
            });
        }
    });
    let asked = asked.lock().expect("not poisoned");
    assert!(asked.len() <= 3, "{asked:?}");
}

/// The other servers do not wait for an answer that they do not need.
#[test]
fn a_slow_password_callback_delays_no_other_server() {
    let cluster = guarded(PASSWORD);
    let manager = patient(&cluster);
    let slow = cluster[0].address();
    let [is_asked, may_answer] = [false; 2].map(AtomicBool::new);
    let _asked = manager.asks(Some("locker"), |server, room| {
        if server == slow {
            is_asked.store(true, Ordering::SeqCst);
            let start = Instant::now();
            while !may_answer.load(Ordering::SeqCst) && start.elapsed() < DEADLINE {
                thread::sleep(Duration::from_millis(1));
            }
        }
        answer_with(PASSWORD, room)
    });
    thread::scope(|scope| {
        let waiting = scope.spawn(|| manager.connect_to_all());
        wait_until("it is asked", || is_asked.load(Ordering::SeqCst));
        let lease = Lease::new();
        let status = manager.lock("r", TTL, &lease);
        assert!(!may_answer.load(Ordering::SeqCst) && !waiting.is_finished());
        may_answer.store(true, Ordering::SeqCst);
        assert_eq!(status, REDLOCK_OK, "{}", lease.message());
        assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    });
    nothing_is_left(&manager, &cluster, "r");
}

#[test]
fn a_url_with_a_password_needs_no_callback() {
    let server = Server::start();
    server.must(&["CONFIG", "SET", "requirepass", PASSWORD]);
    let manager = Manager::of_urls(&[format!("redis://:{PASSWORD}@{}", server.address())]);
    let _asked = manager.asks(Some("locker"), |_, _| panic!("nobody asks"));
    everything_works(&manager, "r");
}

#[test]
fn a_url_with_only_a_user_asks_for_the_password() {
    let cluster = Cluster::start(3);
    change(&cluster, PASSWORD);
    let urls: Vec<_> =
        cluster.iter().map(|it| format!("redis://locker@{}", it.address())).collect();
    let manager = Manager::of_urls(&urls);
    let _asked = manager.asks(Some("somebody-else"), |_, room| answer_with(PASSWORD, room));
    everything_works(&manager, "r");
}

#[test]
fn no_requested_password_is_shown() {
    let cluster = guarded("something-else");
    cluster.iter().for_each(|it| _ = it.must(&["CONFIG", "SET", "requirepass", "of-others"]));
    let manager = cluster.manager();
    assert_eq!(manager.set_retry(1, 0), REDLOCK_OK);
    let (log, lease) = (manager.log(), Lease::new());
    let _asked = manager.asks(Some("locker"), |_, room| answer_with(PASSWORD, room));
    wait_until_ok("the message tells what is wrong", || {
        assert_eq!(manager.lock("r", TTL, &lease), REDLOCK_UNREACHABLE);
        blames(&lease.message(), &addresses(&cluster[..2]), &["WRONGPASS"])
    });
    for text in [log.text(), lease.message(), manager.message()] {
        assert!(!text.contains(PASSWORD), "{text}");
    }
}

#[test]
fn a_child_asks_for_its_own_password() {
    let cluster = guarded(PASSWORD);
    let variables: Vec<_> =
        cluster.authority_file().map(|it| ("REDLOCK_TEST_TLS_CA", it)).into_iter().collect();
    let arguments = [vec![PASSWORD.to_owned()], cluster.urls()].concat();
    let program = Program::compile("password_fork");
    program.start_in(&variables, &arguments).ends_well();
}

/// The callback takes so long that the credentials are set in another way, and a connection is made with them.
/// The callback's late answer must not affect that connection.
#[test]
fn a_late_password_harms_no_connection() {
    let cluster = guarded(PASSWORD);
    let manager = patient(&cluster);
    let (asked, says) = (Barrier::new(2), Barrier::new(2));
    let (is_first, lease) = (AtomicBool::new(true), Lease::new());
    let _asked = manager.asks(Some("locker"), |_, _| {
        if is_first.swap(false, Ordering::SeqCst) {
            asked.wait();
            says.wait();
        }
        false
    });
    thread::scope(|scope| {
        let slow = scope.spawn(|| manager.connect(0));
        asked.wait();
        assert_eq!(manager.set_credentials(Some("locker"), Some(PASSWORD)), REDLOCK_OK);
        wait_until("it is had", || manager.try_lock("r", TTL, 0, &lease) == REDLOCK_OK);
        manager.connect_to_all();
        cluster[..2].iter().for_each(Server::freeze);
        let extends = scope.spawn(|| (manager.extend(&lease, 2 * TTL), lease.message()));
        wait_until("it is under way", || cluster[2].scripts() > 0);
        says.wait();
        assert_eq!(slow.join().expect("no panic"), REDLOCK_OK);
        cluster[..2].iter().for_each(Server::resume);
        let (status, words) = extends.join().expect("no panic");
        assert_eq!((status, words), (REDLOCK_OK, String::new()));
        assert_eq!(manager.unlock(&lease), REDLOCK_OK);
    });
}

/// A held lock is not lost because a callback takes long to supply the password of a server that is not needed.
#[test]
fn calls_on_a_held_lock_ask_for_no_password() {
    let cluster = guarded(PASSWORD);
    let manager = patient(&cluster);
    let (lacking, asked) = (cluster[0].address(), AtomicU32::new(0));
    let _asked = manager.asks(Some("locker"), |server, room| {
        if server == lacking {
            asked.fetch_add(1, Ordering::SeqCst);
            return false;
        }
        answer_with(PASSWORD, room)
    });
    let lease = manager.take("r", TTL);
    let so_far = asked.load(Ordering::SeqCst);
    // Until the callback would be asked about it again.
    thread::sleep(Duration::from_millis(1200));
    assert_eq!(manager.extend(&lease, 2 * TTL), REDLOCK_OK, "{}", lease.message());
    assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    assert_eq!(asked.load(Ordering::SeqCst), so_far);
    let lease = manager.take("r", TTL);
    assert!(asked.load(Ordering::SeqCst) > so_far, "a new lock asks");
    assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
}

#[test]
fn a_password_of_one_callback_is_not_used_for_another() {
    let cluster = guarded(PASSWORD);
    let manager = patient(&cluster);
    cluster
        .iter()
        .for_each(|it| _ = it.must(&["ACL", "SETUSER", "other", "on", ">theirs", "~*", "+@all"]));
    let _first = manager.asks(Some("locker"), |_, room| answer_with(PASSWORD, room));
    assert_eq!(manager.unlock(&manager.take("r", TTL)), REDLOCK_OK);
    let asked = AtomicU32::new(0);
    let _second = manager.asks(Some("other"), |_, room| {
        asked.fetch_add(1, Ordering::SeqCst);
        answer_with("theirs", room)
    });
    cluster
        .iter()
        .for_each(|it| _ = it.must(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]));
    wait_until("all are connected as another", || {
        let lease = Lease::new();
        let had = manager.try_lock("r", TTL, 0, &lease) == REDLOCK_OK;
        had && manager.unlock(&lease) == REDLOCK_OK && asked.load(Ordering::SeqCst) >= 3
    });
    for server in cluster.iter() {
        let log = format!("{:?}", server.must(&["ACL", "LOG"]));
        assert_eq!(log, "Array([])", "the password of one was sent for the other");
    }
}
