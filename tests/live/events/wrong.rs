//! Calls that make no sense are refused in words, and nothing else happens.

use std::ptr;

use redlock::ffi::RedLock_CopyErrorMessage;
use redlock::ffi::acquire::{RedLock_Acquire, RedLockAcquireOptions};
use redlock::ffi::event::{
    RedLock_Cancel, RedLock_Descriptor, RedLock_NextEvent, RedLock_Wait, RedLockEvent,
};
use redlock::ffi::lease::{RedLockLease_CopyErrorMessage, RedLockLease_SetDoneEvents};
use redlock::ffi::status::RedLockStatus::{
    REDLOCK_INVALID_ARGUMENT, REDLOCK_LOST, REDLOCK_NO_SERVERS, REDLOCK_OK,
};
use redlock::ffi::submit::{RedLock_KeepAlive, RedLock_SubmitAcquire, RedLock_SubmitUnlock};

use crate::TTL;
use crate::support::events::Wanted;
use crate::support::{Cluster, Lease, Manager};

#[test]
fn a_lease_in_a_submitted_call_refuses_other_calls() {
    let cluster = Cluster::start(1);
    let (manager, lease) = (cluster.manager(), Lease::new());
    let wanted = Wanted::new("r", TTL);
    assert_eq!(manager.submit_acquire(&wanted, &lease, 1), REDLOCK_OK);
    let statuses = [
        manager.lock("s", TTL, &lease),
        manager.try_lock("s", TTL, 0, &lease),
        manager.extend(&lease, TTL),
        manager.unlock(&lease),
        manager.confirm(&lease, 0),
        manager.acquire(&wanted, &lease),
        manager.submit_acquire(&wanted, &lease, 2),
        manager.submit_unlock(&lease, 2),
        manager.submit_extend(&lease, TTL, 2),
        manager.submit_confirm(&lease, 0, 2),
        manager.keep_alive(&lease, 2),
    ];
    assert_eq!(statuses, [REDLOCK_INVALID_ARGUMENT; 11]);
    assert!(lease.message().contains("in use by a submitted call"), "{}", lease.message());
    assert!(!lease.is_held());
    let event = manager.event();
    assert_eq!((event.status, event.user_data), (REDLOCK_OK, 1));
    assert!(lease.is_held() && lease.message().is_empty());
    assert_eq!(manager.next_event(0), None);
}

#[test]
fn taking_events_keeps_the_messages_of_other_calls() {
    let cluster = Cluster::start(1);
    let (manager, lease) = (cluster.manager(), Lease::new());
    assert_eq!(manager.submit_acquire(&Wanted::new("r", TTL), &lease, 1), REDLOCK_OK);
    assert_eq!(manager.set_retry(0, 0), REDLOCK_INVALID_ARGUMENT);
    let words = manager.message();
    assert!(words.contains("count is 0"), "{words}");
    assert_eq!(manager.event().status, REDLOCK_OK);
    assert_eq!(manager.next_event(0), None);
    assert_eq!(manager.next_event(1), None);
    assert_eq!(manager.message(), words);
    assert!(manager.descriptor() >= 0);
    assert_eq!(manager.cancel(&lease), REDLOCK_OK);
    assert_eq!(manager.message(), words);
    // If they fail, they say why.
    // SAFETY: the manager lives; NULL is refused.
    let statuses = unsafe {
        let status = RedLock_NextEvent(manager.raw(), 0, ptr::null_mut());
        assert_eq!(manager.message(), "event is NULL");
        [status, RedLock_Cancel(manager.raw(), ptr::null_mut())]
    };
    assert_eq!(statuses, [REDLOCK_INVALID_ARGUMENT; 2]);
    assert_eq!(manager.message(), "lease is NULL");
}

#[test]
fn options_are_checked_one_by_one() {
    let cluster = Cluster::start(1);
    let (manager, lease) = (cluster.manager(), Lease::new());
    let wanted = Wanted::new("r", TTL);
    let good = wanted.options();
    let names = [c"a".as_ptr(), c"b".as_ptr(), ptr::null()];
    let resources = names.as_ptr();
    let two = RedLockAcquireOptions { resources, resource_count: 2, resource: ptr::null(), ..good };
    let two = RedLockAcquireOptions { resource_size: 0, ..two };
    let bad: [(RedLockAcquireOptions, &str); 16] = [
        (RedLockAcquireOptions { size: 0, ..good }, "options->size is 0"),
        (RedLockAcquireOptions { size: good.size - 1, ..good }, "options->size is"),
        (RedLockAcquireOptions { resource: ptr::null(), ..good }, "resource is NULL"),
        (RedLockAcquireOptions { resource_size: 70_000, ..good }, "the maximum is 65536"),
        (RedLockAcquireOptions { resources, ..good }, "resource_count is 0"),
        (RedLockAcquireOptions { resource_count: 1, ..good }, "resources is NULL"),
        (RedLockAcquireOptions { resource: c"r".as_ptr(), ..two }, "are both set"),
        (RedLockAcquireOptions { resource_size: 1, ..two }, "are both set"),
        (RedLockAcquireOptions { resource_count: 3, ..two }, "resources[2] is NULL"),
        (RedLockAcquireOptions { resource_count: 1_000_000_000, ..two }, "the maximum is 128"),
        (RedLockAcquireOptions { mode: 1, ..two }, "must be exclusive"),
        (RedLockAcquireOptions { ttl_ms: 0, ..good }, "ttl_ms is 0"),
        (RedLockAcquireOptions { tries: -1, ..good }, "tries is -1"),
        (RedLockAcquireOptions { mode: 1, permits: 2, ..good }, "mode must be 0"),
        (RedLockAcquireOptions { mode: 7, ..good }, "mode is 7"),
        (RedLockAcquireOptions { permits: 257, ..good }, "permits is 257"),
    ];
    for (options, words) in bad {
        if options.resource_size == 70_000 {
            continue;
        }
        // SAFETY: manager, lease and options live, and so does the memory that they point to.
        let statuses = unsafe {
            [
                RedLock_Acquire(manager.raw(), &raw const options, lease.raw()),
                RedLock_SubmitAcquire(
                    manager.raw(),
                    &raw const options,
                    lease.raw(),
                    ptr::null_mut(),
                ),
            ]
        };
        assert_eq!(statuses, [REDLOCK_INVALID_ARGUMENT; 2], "{words}");
        assert!(lease.message().contains(words), "{words}: {}", lease.message());
    }
    let long = Wanted::new(vec![b'x'; 65_537], TTL);
    assert_eq!(manager.submit_acquire(&long, &lease, 1), REDLOCK_INVALID_ARGUMENT);
    assert!(lease.message().contains("the maximum is 65536"), "{}", lease.message());
    assert_eq!(manager.next_event(0), None, "a call that was refused has no event");
    assert_eq!(manager.submit_acquire(&wanted, &lease, 1), REDLOCK_OK);
    assert_eq!(manager.event().status, REDLOCK_OK);
}

/// A program of a later version, whose struct has more fields.
#[test]
fn unknown_fields_must_be_zero() {
    #[repr(C)]
    struct Later {
        known: RedLockAcquireOptions,
        added: u64,
    }
    let cluster = Cluster::start(1);
    let (manager, lease) = (cluster.manager(), Lease::new());
    let wanted = Wanted::new("r", TTL);
    for added in [1, 0] {
        let known = RedLockAcquireOptions { size: size_of::<Later>(), ..wanted.options() };
        let later = Later { known, added };
        let options = (&raw const later).cast();
        // SAFETY: manager, lease and options live, and so does the memory that they point to.
        let status = unsafe { RedLock_Acquire(manager.raw(), options, lease.raw()) };
        let expected = if later.added == 0 { REDLOCK_OK } else { REDLOCK_INVALID_ARGUMENT };
        assert_eq!(status, expected, "{}", lease.message());
    }
}

#[test]
fn null_is_refused_everywhere() {
    let cluster = Cluster::start(1);
    let (manager, lease) = (cluster.manager(), Lease::new());
    let wanted = Wanted::new("r", TTL);
    let options = wanted.options();
    let (no_manager, no_lease, no_data) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
    // SAFETY: every pointer that is not NULL is valid.
    unsafe {
        for status in [
            RedLock_Acquire(no_manager, &raw const options, lease.raw()),
            RedLock_Acquire(manager.raw(), ptr::null(), lease.raw()),
            RedLock_Acquire(manager.raw(), &raw const options, no_lease),
            RedLock_SubmitAcquire(no_manager, &raw const options, lease.raw(), no_data),
            RedLock_SubmitAcquire(manager.raw(), ptr::null(), lease.raw(), no_data),
            RedLock_SubmitAcquire(manager.raw(), &raw const options, no_lease, no_data),
            RedLock_SubmitUnlock(manager.raw(), no_lease, no_data),
            RedLock_KeepAlive(manager.raw(), no_lease, no_data),
            RedLock_KeepAlive(no_manager, lease.raw(), no_data),
            RedLock_Cancel(no_manager, lease.raw()),
            RedLock_Cancel(manager.raw(), no_lease),
            RedLock_Wait(no_manager, lease.raw(), 0),
            RedLock_Wait(manager.raw(), no_lease, 0),
            RedLockLease_SetDoneEvents(no_lease, false),
            RedLock_NextEvent(manager.raw(), 0, ptr::null_mut()),
            RedLock_NextEvent(no_manager, 0, ptr::null_mut()),
        ] {
            assert_eq!(status, REDLOCK_INVALID_ARGUMENT);
        }
        assert_eq!(RedLock_Descriptor(no_manager), -1);
        let mut event = std::mem::zeroed::<RedLockEvent>();
        let status = RedLock_NextEvent(manager.raw(), 0, &raw mut event);
        assert_eq!(status, REDLOCK_INVALID_ARGUMENT, "its size is 0");
        assert!(manager.message().contains("REDLOCK_EVENT_INIT"), "{}", manager.message());
    }
}

#[test]
fn without_servers_no_call_can_be_submitted() {
    let (manager, lease) = (Manager::new(), Lease::new());
    assert_eq!(manager.submit_acquire(&Wanted::new("r", TTL), &lease, 1), REDLOCK_NO_SERVERS);
    assert!(lease.message().contains("no server"), "{}", lease.message());
    assert_eq!(manager.descriptor(), -1);
    assert!(manager.message().contains("no server"), "{}", manager.message());
}

#[test]
fn an_empty_lease_has_nothing_to_submit() {
    let cluster = Cluster::start(1);
    let (manager, lease) = (cluster.manager(), Lease::new());
    for status in [
        manager.submit_unlock(&lease, 1),
        manager.submit_extend(&lease, TTL, 1),
        manager.submit_confirm(&lease, 0, 1),
    ] {
        assert_eq!(status, REDLOCK_LOST);
        assert!(lease.message().contains("holds no lock"), "{}", lease.message());
    }
    assert_eq!(manager.next_event(0), None);
}

#[test]
fn a_message_is_copied_up_to_the_given_size() {
    let (manager, lease) = (Manager::new(), Lease::new());
    assert_eq!(manager.lock("r", TTL, &lease), REDLOCK_NO_SERVERS);
    let words = lease.message();
    for size in [0, 1, 5, words.len(), words.len() + 1, 200] {
        let mut room = [b'x'; 200];
        // SAFETY: the lease lives, and the buffer has this size.
        let length =
            unsafe { RedLockLease_CopyErrorMessage(lease.raw(), room.as_mut_ptr().cast(), size) };
        assert_eq!(length, words.len());
        let copied = words.len().min(size.saturating_sub(1));
        assert_eq!(&room[..copied], &words.as_bytes()[..copied], "{size}");
        assert!(size == 0 || room[copied] == 0, "{size}");
        assert!(room[size.max(copied + usize::from(size > 0))..].iter().all(|&it| it == b'x'));
    }
    assert_eq!(manager.add("nonsense://", 0), REDLOCK_INVALID_ARGUMENT);
    let words = manager.message();
    let mut room = vec![0_u8; 4096];
    // SAFETY: the manager lives, and the buffer has this size.
    let length =
        unsafe { RedLock_CopyErrorMessage(manager.raw(), room.as_mut_ptr().cast(), room.len()) };
    assert_eq!(&room[..length], words.as_bytes());
    // SAFETY: nothing is pointed to.
    unsafe {
        assert!(RedLock_CopyErrorMessage(ptr::null(), ptr::null_mut(), 0) > 0);
        assert!(RedLockLease_CopyErrorMessage(ptr::null(), ptr::null_mut(), 9) > 0);
    }
}
