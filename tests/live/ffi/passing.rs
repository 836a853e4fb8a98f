//! What a program passes reaches the manager, and what the manager says reaches the program.

use std::ffi::{CStr, c_char, c_void};
use std::mem::offset_of;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;
use std::{process, ptr, thread};

use redlock::ffi::access::RedLock_SetCredentialsFromEnv;
use redlock::ffi::acquire::{REDLOCK_SHARED, RedLock_Acquire};
use redlock::ffi::event::{RedLock_NextEvent, RedLock_SetEventCallback, RedLockEvent};
use redlock::ffi::inspect::{RedLock_Inspect, RedLockInfo};
use redlock::ffi::lease::{
    RedLockLease_CopyErrorMessage, RedLockLease_ErrorMessage, RedLockLease_Resource,
};
use redlock::ffi::resources::{RedLockLease_ResourceAt, RedLockLease_ResourceCount};
use redlock::ffi::servers::{REDLOCK_GUARD_OFF, REDLOCK_GUARD_ON, REDLOCK_GUARD_STRICT};
use redlock::ffi::status::RedLockStatus::{
    self, REDLOCK_CANCELLED, REDLOCK_INVALID_ARGUMENT, REDLOCK_LOST, REDLOCK_OK, REDLOCK_TOO_SLOW,
    REDLOCK_UNREACHABLE,
};
use redlock::ffi::{RedLock_CopyErrorMessage, RedLock_SetLogger};

use crate::support::client::no_info;
use crate::support::events::{Wanted, no_event};
use crate::support::secure::answer_with;
use crate::support::{Cluster, Lease, Manager, Server, wait_until};
use crate::{TTL, refused, refused_with};

/// A server, and a manager that is connected to it.
fn connected() -> (Server, Manager) {
    let server = Server::start();
    let manager = Manager::at(&[server.address()]);
    manager.connect_to_all();
    (server, manager)
}

/// A user with this name and password may do everything.
fn let_in(server: &Server, user: &str, password: &str) {
    server.must(&["ACL", "SETUSER", user, "on", &format!(">{password}"), "~*", "&*", "+@all"]);
}

#[track_caller]
fn is_logged_in(server: &Server, manager: &Manager, user: &str) {
    manager.connect_to_all();
    let clients = server.must(&["CLIENT", "LIST"]).text().expect("words");
    assert!(clients.contains(&format!("user={user} ")), "{clients}");
}

#[test]
fn a_user_logs_in_with_a_password_from_any_source() {
    let server = Server::start();
    let manager = || Manager::at(&[server.address()]);
    let_in(&server, "ann", "s3same");
    let given = manager();
    assert_eq!(given.set_credentials(Some("ann"), Some("s3same")), REDLOCK_OK);
    is_logged_in(&server, &given, "ann");
    drop(given);
    let asking = manager();
    let asked = asking.asks(Some("ann"), |_, room| answer_with("s3same", room));
    is_logged_in(&server, &asking, "ann");
    drop(asked);
    drop(asking);
    // Every process has this variable.
    let path = std::env::var("PATH").expect("a variable");
    let_in(&server, &path, &path);
    let reading = manager();
    let name = c"PATH".as_ptr();
    // SAFETY: the manager and the string are alive.
    let status = unsafe { RedLock_SetCredentialsFromEnv(reading.raw(), name, name) };
    assert_eq!(status, REDLOCK_OK);
    is_logged_in(&server, &reading, &path);
}

/// It says that it has none, or writes none, or one without an end.
#[test]
fn a_callback_without_a_password_is_reported() {
    type Answer = fn(&mut [u8]) -> bool;
    let answers: [Answer; 3] = [
        |room| !answer_with("s3same", room),
        |room| answer_with("", room),
        |room| {
            room.fill(b'a');
            true
        },
    ];
    let server = Server::start();
    for answer in answers {
        let manager = Manager::at(&[server.address()]);
        let _asked = manager.asks(None, |_, room| answer(room));
        assert_eq!(manager.connect(0), REDLOCK_UNREACHABLE);
        let words = manager.message();
        assert!(words.contains("the password callback gave no password"), "{words}");
    }
}

#[test]
fn contradictory_options_are_refused() {
    let (_server, manager) = connected();
    let lease = Lease::new();
    let refuses = |wanted: &Wanted, words: &[&str]| {
        refused_with(&lease, manager.acquire(wanted, &lease), words);
    };
    refuses(&Wanted { permits: 3, ..Wanted::shared("r", TTL) }, &["permit", "mode"]);
    refuses(&Wanted { permits: 257, ..Wanted::new("r", TTL) }, &["257"]);
    let two = Wanted { mode: REDLOCK_SHARED, ..Wanted::several(&["a", "b"], TTL) };
    refuses(&two, &["several resources"]);
    let wanted = Wanted::several(&["a"], TTL);
    let mut both = wanted.options();
    (both.resource, both.resource_size) = (c"b".as_ptr(), 1);
    // SAFETY: the manager, the lease and the names are alive.
    let status = unsafe { RedLock_Acquire(manager.raw(), &raw const both, lease.raw()) };
    refused_with(&lease, status, &["resource and resources"]);
    assert!(!lease.is_held());
}

#[test]
fn a_single_name_of_several_can_be_shared() {
    let (_server, manager) = connected();
    let (lease, other) = (Lease::new(), Lease::new());
    let wanted = Wanted { mode: REDLOCK_SHARED, ..Wanted::several(&["a"], TTL) };
    assert_eq!(manager.acquire(&wanted, &lease), REDLOCK_OK);
    assert_eq!(manager.acquire(&wanted, &other), REDLOCK_OK);
    let sight = manager.inspect("a").expect("it answers");
    assert_eq!((sight.mode, sight.readers), (REDLOCK_SHARED, 2));
}

#[test]
fn any_number_but_0_keeps_a_lock_alive() {
    let (_server, manager) = connected();
    assert_eq!(manager.set_background_thread(true), REDLOCK_OK);
    for (keep_alive, kept) in [(0, 0), (1, 1), (2, 2)] {
        let (lease, name) = (Box::leak(Box::new(Lease::new())), format!("r{keep_alive}"));
        let wanted = Wanted::new(name, TTL);
        let mut options = wanted.options();
        options.keep_alive = keep_alive;
        // SAFETY: the manager, the lease and the name are alive.
        let status = unsafe { RedLock_Acquire(manager.raw(), &raw const options, lease.raw()) };
        assert_eq!(status, REDLOCK_OK, "{}", lease.message());
        assert_eq!(manager.stats().kept, kept, "{keep_alive}");
    }
}

/// A buffer, of which a function may use a part.
fn part<const ROOM: usize>(
    size: usize,
    fill: impl FnOnce(*mut c_char) -> usize,
) -> (usize, String) {
    let mut room = [b'?'; ROOM];
    let length = fill(room.as_mut_ptr().cast());
    assert!(room[size..].iter().all(|&it| it == b'?'), "{size}: more than the buffer is used");
    let text = CStr::from_bytes_until_nul(&room[..size]).expect("it ends with a NUL");
    (length, text.to_str().expect("whole characters").to_owned())
}

#[test]
fn a_message_is_cut_to_its_room() {
    let manager = Manager::new();
    assert_eq!(manager.add("unix:///nowhere/\u{e9}\u{e9}\u{e9}.sock", 0), REDLOCK_OK);
    let lease = Lease::new();
    assert_eq!(manager.lock("r", TTL, &lease), REDLOCK_UNREACHABLE);
    assert_eq!(manager.connect(0), REDLOCK_UNREACHABLE);
    for (whole, is_of_lease) in [(manager.message(), false), (lease.message(), true)] {
        assert!(whole.contains('\u{e9}') && whole.len() < 500, "{whole}");
        for size in 1..whole.len() + 2 {
            let (length, text) = part::<600>(size, |room| match is_of_lease {
                // SAFETY: the handle is alive, and the buffer is larger than this.
                true => unsafe { RedLockLease_CopyErrorMessage(lease.raw(), room, size) },
                // SAFETY: as above.
                false => unsafe { RedLock_CopyErrorMessage(manager.raw(), room, size) },
            });
            assert_eq!(length, whole.len());
            assert!(whole.starts_with(&text) && text.len() + 2 >= size.min(whole.len() + 1));
        }
    }
}

#[test]
fn a_struct_of_an_earlier_version_is_not_overrun() {
    let (_server, manager) = connected();
    let mut info = no_info();
    info.size = offset_of!(RedLockInfo, permits);
    (info.permits, info.permits_taken) = (77, 77);
    // SAFETY: the manager and the string are alive, and the struct may be written to.
    let status = unsafe { RedLock_Inspect(manager.raw(), c"r".as_ptr(), 0, &raw mut info) };
    assert_eq!((status, info.permits, info.permits_taken), (REDLOCK_OK, 77, 77));
}

#[test]
fn an_event_states_its_size() {
    static SIZE: AtomicUsize = AtomicUsize::new(0);
    unsafe extern "C" fn tell(event: *const RedLockEvent, _: *mut c_void) {
        // SAFETY: the event is valid during the call.
        SIZE.store(unsafe { (*event).size }, Ordering::Relaxed);
    }
    let (_server, manager) = connected();
    let lease = Lease::new();
    assert_eq!(manager.submit_acquire(&Wanted::new("r", TTL), &lease, 0), REDLOCK_OK);
    let mut event = no_event();
    // SAFETY: the manager is alive, and the struct may be written to.
    let status = unsafe { RedLock_NextEvent(manager.raw(), -1, &raw mut event) };
    assert_eq!((status, event.size), (REDLOCK_OK, size_of::<RedLockEvent>()));
    let none = ptr::null_mut();
    // SAFETY: the manager is alive, and the function needs no data.
    let status = unsafe { RedLock_SetEventCallback(manager.raw(), Some(tell), none, None) };
    assert_eq!(status, REDLOCK_OK);
    assert_eq!(manager.set_background_thread(true), REDLOCK_OK);
    assert_eq!(manager.submit_unlock(&lease, 0), REDLOCK_OK);
    wait_until("it is told", || SIZE.load(Ordering::Relaxed) == size_of::<RedLockEvent>());
}

#[test]
fn fencing_can_be_turned_off() {
    let (_server, manager) = connected();
    assert_eq!(manager.set_fencing(true), REDLOCK_OK);
    assert!(manager.take("r", TTL).fencing_token() > 0);
    assert_eq!(manager.set_fencing(false), REDLOCK_OK);
    assert_eq!(manager.take("s", TTL).fencing_token(), 0);
}

#[test]
fn a_lock_stays_held_if_its_ticket_does_not_fit() {
    let (_server, manager) = connected();
    let length = manager.detach(&manager.take("a", TTL)).expect("a ticket").len();
    let lease = manager.take("b", TTL);
    for room in [length - 1, length] {
        assert_eq!(manager.detach_into(&lease, room), Err(REDLOCK_INVALID_ARGUMENT));
        assert!(lease.is_held());
    }
    assert_eq!(manager.detach_into(&lease, length + 1).map(|it| it.len()), Ok(length));
}

#[test]
fn an_inspection_reports_the_state() {
    let (server, manager) = connected();
    let (lease, permit) = (Lease::new(), Lease::new());
    assert_eq!(manager.acquire(&Wanted::shared("r", TTL), &lease), REDLOCK_OK);
    let sight = manager.inspect("r").expect("it answers");
    assert_eq!((sight.locked, sight.mode, sight.readers), (true, REDLOCK_SHARED, 1));
    assert_eq!(
        manager.acquire(&Wanted { permits: 2, ..Wanted::new("s", TTL) }, &permit),
        REDLOCK_OK
    );
    let sight = manager.inspect_permits("s", 2).expect("it answers");
    assert_eq!((sight.locked, sight.permits_taken), (false, 1));
    server.kill();
    wait_until("it is not there", || {
        manager.inspect("r").is_err_and(|(_, words)| words.contains(&server.address()))
    });
}

/// The lock was lost, and the lease is used for the next one. Nobody is told of the one before any more.
#[test]
fn a_reused_lease_ends_the_earlier_keep_alive() {
    let (server, manager) = connected();
    let _ = manager.descriptor();
    let lease = manager.take("r", TTL);
    assert_eq!(manager.keep_alive(&lease, 1), REDLOCK_OK);
    server.must(&["DEL", "r"]);
    assert_eq!(manager.confirm(&lease, 0), REDLOCK_LOST);
    assert_eq!(manager.submit_acquire(&Wanted::new("r", TTL), &lease, 2), REDLOCK_OK);
    let event = manager.event();
    assert_eq!((event.is_lost, event.status, event.user_data), (false, REDLOCK_OK, 2));
}

#[test]
fn a_call_of_a_freed_manager_is_explained() {
    let (server, manager) = connected();
    let lease = Lease::new();
    server.freeze();
    assert_eq!(manager.submit_acquire(&Wanted::new("r", TTL), &lease, 0), REDLOCK_OK);
    drop(manager);
    wait_until("it is told", || lease.message().contains("the manager of the call was freed"));
    server.resume();
}

#[test]
fn a_freed_lease_cancels_its_call() {
    let (_server, manager) = connected();
    let _held = manager.take("r", TTL);
    let lease = Lease::new();
    let wanted = Wanted { wait_ms: -1, ..Wanted::new("r", TTL) };
    assert_eq!(manager.submit_acquire(&wanted, &lease, 0), REDLOCK_OK);
    drop(lease);
    let event = manager.next_event(60_000).expect("it has ended");
    assert_eq!(event.status, REDLOCK_CANCELLED);
}

/// The call has ended when the lease is freed, and its event is taken after that.
#[test]
fn an_earlier_lock_outlives_a_lease_freed_after_a_call() {
    type Submit = fn(&Manager, &Lease) -> RedLockStatus;
    let calls: [Submit; 3] = [
        |manager, lease| manager.submit_extend(lease, TTL, 0),
        |manager, lease| manager.submit_confirm(lease, 0, 0),
        |manager, lease| manager.submit_downgrade(lease, 0),
    ];
    let (server, manager) = connected();
    for (submit, name) in calls.into_iter().zip(["a", "b", "c"]) {
        let lease = manager.take(name, TTL);
        assert_eq!(submit(&manager, &lease), REDLOCK_OK);
        // This reads the answers to what was asked before.
        manager.is_locked("another").expect("it answers");
        drop(lease);
        assert_eq!(manager.event().status, REDLOCK_OK);
        manager.is_locked("another").expect("it answers");
        assert!(server.exists(name), "{name}");
    }
}

#[test]
fn a_nested_call_on_the_same_lease_is_refused() {
    let server = Server::start();
    let manager = Manager::at(&[server.address()]);
    let (lease, said) = (Lease::new(), Mutex::new(None));
    let within = |_: &str, room: &mut [u8]| {
        *said.lock().expect("no panic") = Some((manager.unlock(&lease), lease.message()));
        answer_with("", room)
    };
    let _asked = manager.asks(None, within);
    finishes_here(|| _ = manager.lock("r", TTL, &lease));
    let (status, words) = said.lock().expect("no panic").take().expect("it was asked");
    assert_eq!(status, REDLOCK_INVALID_ARGUMENT);
    assert!(words.contains("in use by the call whose callback made this call"), "{words}");
}

/// Ends the process if it takes too long.
fn finishes_here(body: impl FnOnce()) {
    let (done, waits) = mpsc::channel::<()>();
    let watch = thread::spawn(move || {
        if waits.recv_timeout(Duration::from_secs(60)) == Err(RecvTimeoutError::Timeout) {
            eprintln!("a call hangs");
            process::abort();
        }
    });
    body();
    drop(done);
    watch.join().expect("no panic");
}

#[test]
fn a_busy_lease_accepts_no_submitted_call() {
    let (_server, manager) = connected();
    let held = manager.take("r", TTL);
    let lease = Lease::new();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| manager.try_lock("r", TTL, -1, &lease));
        finishes_here(|| {
            // Before the other call has begun, there is no lock to extend.
            let refused = || manager.submit_extend(&lease, TTL, 0) == REDLOCK_INVALID_ARGUMENT;
            wait_until("it is refused", refused);
        });
        // The call may have the lease already, and not be under way yet.
        wait_until("it is cancelled", || {
            assert_eq!(manager.cancel(&lease), REDLOCK_OK);
            waiting.is_finished()
        });
    });
    assert!(held.is_held());
}

/// What a program was given stays where it is, as long as the lock is the same.
#[test]
fn returned_strings_keep_their_address() {
    let (_server, manager) = connected();
    let (one, several) = (manager.take("r", TTL), Lease::new());
    assert_eq!(manager.acquire(&Wanted::several(&["a", "b"], TTL), &several), REDLOCK_OK);
    let places = || {
        // SAFETY: the leases are alive.
        unsafe {
            [
                RedLockLease_Resource(one.raw()),
                RedLockLease_ResourceAt(several.raw(), 0),
                RedLockLease_ResourceAt(several.raw(), 1),
                RedLockLease_ErrorMessage(one.raw()),
            ]
        }
    };
    let before = places();
    assert_eq!(manager.confirm(&one, 0), REDLOCK_OK);
    assert_eq!(manager.confirm(&several, 0), REDLOCK_OK);
    assert_eq!(places(), before);
}

#[test]
fn a_lease_has_the_names_of_its_last_call() {
    let (_server, manager) = connected();
    let lease = Lease::new();
    for names in [["a", "b"], ["c", "d"]] {
        assert_eq!(manager.acquire(&Wanted::several(&names, TTL), &lease), REDLOCK_OK);
        assert_eq!(lease.resources(), names);
        assert_eq!(manager.unlock(&lease), REDLOCK_OK);
    }
    assert_eq!(manager.lock("r", TTL, &lease), REDLOCK_OK);
    // SAFETY: the lease is alive.
    let names = unsafe {
        assert_eq!(RedLockLease_ResourceCount(lease.raw()), 1);
        [0, 1].map(|it| CStr::from_ptr(RedLockLease_ResourceAt(lease.raw(), it)))
    };
    assert_eq!(names, [c"r", c""]);
}

#[test]
fn an_absent_server_is_reported_when_connecting() {
    let cluster = Cluster::start(3);
    let manager = cluster.manager();
    cluster[0].kill();
    assert_eq!(manager.connect(0), REDLOCK_OK);
    assert!(manager.message().contains(&cluster[0].address()), "{}", manager.message());
}

#[test]
fn the_data_of_a_logger_is_destroyed_once() {
    static DESTROYED: AtomicUsize = AtomicUsize::new(0);
    unsafe extern "C" fn log(_: i32, _: *const c_char, _: *mut c_void) {}
    unsafe extern "C" fn destroy(user_data: *mut c_void) {
        DESTROYED.fetch_add(user_data.addr(), Ordering::Relaxed);
    }
    let manager = Manager::new();
    let data = ptr::without_provenance_mut(7);
    // SAFETY: the manager is alive, and the functions need no data.
    let status = unsafe { RedLock_SetLogger(manager.raw(), Some(log), data, Some(destroy)) };
    assert_eq!((status, DESTROYED.load(Ordering::Relaxed)), (REDLOCK_OK, 0));
    drop(manager);
    assert_eq!(DESTROYED.load(Ordering::Relaxed), 7);
}

/// The logger does not return before the key has expired.
#[test]
fn a_lock_expired_in_the_logger_is_not_taken() {
    const BRIEF: i64 = 300;
    unsafe extern "C" fn wait(_: i32, _: *const c_char, server: *mut c_void) {
        // SAFETY: the test has set this pointer, and the server outlives the manager.
        let server = unsafe { &*server.cast::<Server>() };
        wait_until("the key has expired", || !server.exists("r"));
    }
    let server = Server::start();
    let manager = Manager::at(&[server.address()]);
    let data = ptr::from_ref(&server).cast_mut().cast();
    // SAFETY: the manager is alive, and the server lives longer.
    let status = unsafe { RedLock_SetLogger(manager.raw(), Some(wait), data, None) };
    assert_eq!(status, REDLOCK_OK);
    wait_until("the logger is called in a call that would have succeeded", || {
        server.hang_up();
        let lease = Lease::new();
        let status = manager.lock("r", BRIEF, &lease);
        assert!(status != REDLOCK_OK || lease.is_held() || !lease.message().is_empty());
        status == REDLOCK_TOO_SLOW && lease.message().contains("before the program read the result")
    });
}

#[test]
fn unknown_facts_of_a_server_are_reported_as_unknown() {
    let (_server, manager) = connected();
    let known = &manager.servers()[0];
    assert_eq!((&*known.keeps, &*known.eviction), ("no log", "noeviction"));
    let manager = Manager::at(&["127.0.0.1:1".to_owned()]);
    let unknown = &manager.servers()[0];
    assert_eq!((unknown.round_trip_us, unknown.clock_offset_us), (-1, i64::MIN));
}

#[test]
fn each_guard_has_the_effect_of_its_number() {
    let server = Server::start();
    let locks = |mode, cap_ms| {
        let manager = Manager::at(&[server.address()]);
        assert_eq!(manager.set_restart_guard_for(mode, 0, cap_ms), REDLOCK_OK);
        let _ = manager.connect(0);
        move || manager.lock("r", TTL, &Lease::new()) != REDLOCK_UNREACHABLE
    };
    server.be_new();
    let strict = locks(REDLOCK_GUARD_STRICT, 3_000);
    assert!(!strict());
    wait_until("it was without a vote for the longest time", strict);
    server.must(&["CONFIG", "SET", "maxmemory", "1gb"]);
    server.must(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    assert!(!locks(REDLOCK_GUARD_ON, 0)());
    assert!(locks(REDLOCK_GUARD_OFF, 0)());
    let manager = Manager::new();
    refused(&manager, manager.set_restart_guard(4), &["mode is 4"]);
}

#[test]
fn the_failover_guard_changes_nothing_where_no_sentinel_watches() {
    let server = Server::start();
    for enabled in [false, true] {
        let manager = Manager::at(&[server.address()]);
        assert_eq!(manager.set_failover_guard(enabled), REDLOCK_OK);
        manager.connect_to_all();
        let lease = Lease::new();
        assert_eq!(manager.lock("r", TTL, &lease), REDLOCK_OK);
        assert_eq!(manager.unlock(&lease), REDLOCK_OK);
    }
}

#[test]
fn a_lost_connection_is_not_a_failed_one() {
    let (server, manager) = connected();
    server.hang_up();
    wait_until("it is seen", || {
        let _ = manager.is_locked("r");
        manager.stats().connections_lost > 0
    });
    assert_eq!(manager.stats().connections_failed, 0);
}
