//! The C functions for calls that no thread waits for.

use std::ffi::{CString, c_char, c_void};
use std::os::fd::RawFd;
use std::ptr;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use redlock::ffi::RedLock_UnlockAfter;
use redlock::ffi::acquire::{REDLOCK_SHARED, RedLock_Acquire, RedLockAcquireOptions};
use redlock::ffi::event::{
    REDLOCK_EVENT_DONE, RedLock_Cancel, RedLock_Descriptor, RedLock_NextEvent,
    RedLock_SetBackgroundThread, RedLock_SetEventCallback, RedLock_Wait, RedLockEvent,
};
use redlock::ffi::shared_lock::RedLock_SubmitDowngrade;
use redlock::ffi::status::RedLockStatus::{self, REDLOCK_NO_EVENT, REDLOCK_OK};
use redlock::ffi::submit::{
    RedLock_KeepAlive, RedLock_SubmitAcquire, RedLock_SubmitConfirm, RedLock_SubmitExtend,
    RedLock_SubmitUnlock, RedLock_SubmitUnlockAfter,
};

use super::client::{Lease, Manager};

/// The request for a lock. The name may contain NULs.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) resource: Vec<u8>,
    pub(crate) ttl_ms: i64,
    pub(crate) wait_ms: i64,
    pub(crate) tries: i32,
    pub(crate) permits: i32,
    pub(crate) keep_alive: bool,
    pub(crate) mode: i32,
    pub(crate) several: Option<Names>,
}

/// Names in the form in which C passes them.
#[derive(Debug)]
pub(crate) struct Names {
    strings: Vec<CString>,
    pointers: Vec<*const c_char>,
}

// SAFETY: the pointers refer to its own strings, which nobody changes.
unsafe impl Send for Names {}
// SAFETY: as above.
unsafe impl Sync for Names {}

impl Names {
    fn of(strings: Vec<CString>) -> Self {
        let pointers = strings.iter().map(|it| it.as_ptr()).collect();
        Self { strings, pointers }
    }
}

impl Clone for Names {
    fn clone(&self) -> Self {
        Self::of(self.strings.clone())
    }
}

impl Wanted {
    /// With one attempt.
    pub(crate) fn new(resource: impl Into<Vec<u8>>, ttl_ms: i64) -> Self {
        let resource = resource.into();
        let (wait_ms, tries, permits, keep_alive, mode, several) = Default::default();
        Self { resource, ttl_ms, wait_ms, tries, permits, keep_alive, mode, several }
    }

    /// The same, shared.
    pub(crate) fn shared(resource: impl Into<Vec<u8>>, ttl_ms: i64) -> Self {
        Self { mode: REDLOCK_SHARED, ..Self::new(resource, ttl_ms) }
    }

    /// Several resources at once.
    pub(crate) fn several(names: &[impl AsRef<[u8]>], ttl_ms: i64) -> Self {
        let string = |name: &_| CString::new(AsRef::<[u8]>::as_ref(name)).expect("no NUL");
        let several = Some(Names::of(names.iter().map(string).collect()));
        Self { several, ..Self::new("", ttl_ms) }
    }

    /// Valid as long as this value is alive.
    pub(crate) fn options(&self) -> RedLockAcquireOptions {
        let (resource, resource_size) = match &self.several {
            Some(_) => (ptr::null(), 0),
            None => (self.resource.as_ptr().cast(), self.resource.len()),
        };
        let several = self.several.as_ref().map(|it| (it.pointers.as_ptr(), it.pointers.len()));
        let (resources, resource_count) = several.unwrap_or((ptr::null(), 0));
        RedLockAcquireOptions {
            size: size_of::<RedLockAcquireOptions>(),
            resource,
            resource_size,
            resources,
            resource_count,
            ttl_ms: self.ttl_ms,
            wait_ms: self.wait_ms,
            tries: self.tries,
            mode: self.mode,
            permits: self.permits,
            keep_alive: self.keep_alive.into(),
        }
    }
}

/// An event as a program sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) is_lost: bool,
    pub(crate) status: RedLockStatus,
    /// The address of the lease.
    pub(crate) lease: usize,
    pub(crate) user_data: usize,
    pub(crate) remaining_ms: i64,
}

impl Event {
    fn of(event: &RedLockEvent) -> Self {
        Self {
            is_lost: event.kind != REDLOCK_EVENT_DONE,
            status: event.status,
            lease: event.lease.addr(),
            user_data: event.user_data.addr(),
            remaining_ms: event.remaining_ms,
        }
    }
}

/// Room for an event.
pub(crate) fn no_event() -> RedLockEvent {
    RedLockEvent {
        size: size_of::<RedLockEvent>(),
        kind: -1,
        status: REDLOCK_OK,
        lease: ptr::null_mut(),
        user_data: ptr::null_mut(),
        remaining_ms: -1,
    }
}

unsafe extern "C" fn tell(event: *const RedLockEvent, user_data: *mut c_void) {
    // SAFETY: `told_events` has set this pointer, and the event is valid during the call.
    let (sender, event) = unsafe { (&*user_data.cast::<Sender<Event>>(), &*event) };
    let _ = sender.send(Event::of(event));
}

unsafe extern "C" fn destroy(user_data: *mut c_void) {
    // SAFETY: as above, and nobody uses it any more.
    drop(unsafe { Box::from_raw(user_data.cast::<Sender<Event>>()) });
}

fn pointer(user_data: usize) -> *mut c_void {
    ptr::without_provenance_mut(user_data)
}

impl Manager {
    /// Takes the descriptor first if the lock is to be kept, as a program with an event loop does.
    pub(crate) fn acquire(&self, wanted: &Wanted, lease: &Lease) -> RedLockStatus {
        if wanted.keep_alive {
            self.descriptor();
        }
        self.acquire_without_driver(wanted, lease)
    }

    pub(crate) fn acquire_without_driver(&self, wanted: &Wanted, lease: &Lease) -> RedLockStatus {
        let options = wanted.options();
        // SAFETY: the manager, the lease, the options and the name in them are alive.
        unsafe { RedLock_Acquire(self.raw(), &raw const options, lease.raw()) }
    }

    pub(crate) fn submit_acquire(
        &self,
        wanted: &Wanted,
        lease: &Lease,
        user_data: usize,
    ) -> RedLockStatus {
        let options = wanted.options();
        // SAFETY: the manager, the lease, the options and the name in them are alive.
        unsafe {
            RedLock_SubmitAcquire(self.raw(), &raw const options, lease.raw(), pointer(user_data))
        }
    }

    pub(crate) fn submit_extend(
        &self,
        lease: &Lease,
        ttl_ms: i64,
        user_data: usize,
    ) -> RedLockStatus {
        // SAFETY: the manager and the lease are alive.
        unsafe { RedLock_SubmitExtend(self.raw(), lease.raw(), ttl_ms, pointer(user_data)) }
    }

    pub(crate) fn submit_unlock(&self, lease: &Lease, user_data: usize) -> RedLockStatus {
        // SAFETY: the manager and the lease are alive.
        unsafe { RedLock_SubmitUnlock(self.raw(), lease.raw(), pointer(user_data)) }
    }

    pub(crate) fn unlock_after(&self, lease: &Lease, least_ms: i64) -> RedLockStatus {
        // SAFETY: the manager and the lease are alive.
        unsafe { RedLock_UnlockAfter(self.raw(), lease.raw(), least_ms) }
    }

    pub(crate) fn submit_unlock_after(
        &self,
        lease: &Lease,
        least_ms: i64,
        user_data: usize,
    ) -> RedLockStatus {
        // SAFETY: the manager and the lease are alive.
        unsafe { RedLock_SubmitUnlockAfter(self.raw(), lease.raw(), least_ms, pointer(user_data)) }
    }

    pub(crate) fn submit_downgrade(&self, lease: &Lease, user_data: usize) -> RedLockStatus {
        // SAFETY: the manager and the lease are alive.
        unsafe { RedLock_SubmitDowngrade(self.raw(), lease.raw(), pointer(user_data)) }
    }

    pub(crate) fn submit_confirm(
        &self,
        lease: &Lease,
        least_ms: i64,
        user_data: usize,
    ) -> RedLockStatus {
        // SAFETY: the manager and the lease are alive.
        unsafe { RedLock_SubmitConfirm(self.raw(), lease.raw(), least_ms, pointer(user_data)) }
    }

    /// Takes the descriptor first, as a program with an event loop does.
    pub(crate) fn keep_alive(&self, lease: &Lease, user_data: usize) -> RedLockStatus {
        self.descriptor();
        self.keep_alive_without_driver(lease, user_data)
    }

    pub(crate) fn keep_alive_without_driver(
        &self,
        lease: &Lease,
        user_data: usize,
    ) -> RedLockStatus {
        // SAFETY: the manager and the lease are alive.
        unsafe { RedLock_KeepAlive(self.raw(), lease.raw(), pointer(user_data)) }
    }

    pub(crate) fn cancel(&self, lease: &Lease) -> RedLockStatus {
        // SAFETY: the manager and the lease are alive.
        unsafe { RedLock_Cancel(self.raw(), lease.raw()) }
    }

    /// Waits for the submitted call of this lease.
    pub(crate) fn wait(&self, lease: &Lease, wait_ms: i64) -> RedLockStatus {
        // SAFETY: the manager and the lease are alive.
        unsafe { RedLock_Wait(self.raw(), lease.raw(), wait_ms) }
    }

    pub(crate) fn descriptor(&self) -> RawFd {
        // SAFETY: the manager is alive.
        unsafe { RedLock_Descriptor(self.raw()) }
    }

    pub(crate) fn set_background_thread(&self, is_wanted: bool) -> RedLockStatus {
        // SAFETY: the manager is alive.
        unsafe { RedLock_SetBackgroundThread(self.raw(), is_wanted) }
    }

    /// Sends events to the receiver that is returned.
    pub(crate) fn told_events(&self) -> Receiver<Event> {
        let (sender, receiver) = mpsc::channel();
        let user_data = Box::into_raw(Box::new(sender)).cast();
        // SAFETY: the manager is alive, and the sender lives until it is destroyed.
        let status =
            unsafe { RedLock_SetEventCallback(self.raw(), Some(tell), user_data, Some(destroy)) };
        assert_eq!(status, REDLOCK_OK);
        receiver
    }

    /// The next event within this time, if there is one.
    #[track_caller]
    pub(crate) fn next_event(&self, wait_ms: i64) -> Option<Event> {
        let mut event = no_event();
        // SAFETY: the manager and the event are alive.
        match unsafe { RedLock_NextEvent(self.raw(), wait_ms, &raw mut event) } {
            REDLOCK_NO_EVENT => None,
            REDLOCK_OK => Some(Event::of(&event)),
            status => panic!("{status:?}: {}", self.message()),
        }
    }

    /// The next event, which must come.
    #[track_caller]
    pub(crate) fn event(&self) -> Event {
        self.next_event(60_000).expect("an event within a minute")
    }

    /// Waits as an event loop does: only for the descriptor. Returns the next event, which must come.
    #[track_caller]
    pub(crate) fn event_by_descriptor(&self) -> Event {
        loop {
            assert!(is_readable(self.descriptor(), Duration::from_secs(60)), "for a minute");
            if let Some(event) = self.next_event(0) {
                return event;
            }
        }
    }
}

/// Whether a descriptor becomes readable within this time.
pub(crate) fn is_readable(fd: RawFd, wait: Duration) -> bool {
    let mut watched = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    let wait_ms = i32::try_from(wait.as_millis()).expect("it is short");
    // SAFETY: the pointer is to one pollfd.
    unsafe { libc::poll(&raw mut watched, 1, wait_ms) > 0 }
}
