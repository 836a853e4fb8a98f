//! The C functions for who waits in a loop of his own: events, and the descriptor that tells of them.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::Arc;

use super::arguments::{Versioned, versioned, write_versioned};
use super::call::{manager_call, side_call, told};
use super::callback::{RedLockDestroy, UserData};
use super::handle::RedLock;
use super::lease::{RedLockLease, shared_lease};
use super::status::RedLockStatus;
use crate::background::EventSink;
use crate::error::{Error, Status};
use crate::lease::Lease;
use crate::runtime::Runtime;
use crate::submitted::{self, Event};
use crate::system::cancellation::Uncancelled;

/// What RedLock_NextEvent tells. Begin with REDLOCK_EVENT_INIT.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct RedLockEvent {
    /// sizeof(RedLockEvent).
    pub size: usize,
    /// REDLOCK_EVENT_DONE or REDLOCK_EVENT_LOST. Treat one that you do not know as none.
    pub kind: i32,
    /// What the submitted call has come to. For REDLOCK_EVENT_LOST why the lock cannot be kept: REDLOCK_LOST,
    /// or REDLOCK_UNREACHABLE.
    pub status: RedLockStatus,
    /// The lease of that call, or of that lock. The call is over: it is the program's again. If it was freed
    /// meanwhile, this only names it.
    pub lease: *mut RedLockLease,
    /// What was submitted along with the call.
    pub user_data: *mut c_void,
    /// For REDLOCK_EVENT_LOST: how long the lock is valid still, in milliseconds. At least a tenth of the TTL,
    /// unless nothing drove this library in time, or somebody has taken the lock away.
    pub remaining_ms: i64,
}

// SAFETY: it is made of numbers and pointers, and begins with its size. What a program has put there is never
// looked at, but for the size.
unsafe impl Versioned for RedLockEvent {
    const LEAST: usize = size_of::<Self>();
    const INIT: &'static str = "REDLOCK_EVENT_INIT";
}

/// A submitted call has ended.
pub const REDLOCK_EVENT_DONE: i32 = 0;

/// A lock that is kept cannot be kept: stop what it guards within what is left of it.
pub const REDLOCK_EVENT_LOST: i32 = 1;

/// What a submitted call, or a lock that is kept, has to do with a C program.
pub(super) struct Tag {
    /// None if it is a lock that is kept, whose lease may be gone.
    lease: Option<Arc<RedLockLease>>,
    /// Whether the call takes a lock.
    acquires: bool,
    /// The lease as the program knows it.
    name: usize,
    user_data: UserData,
}

impl Tag {
    /// Of a lock that is kept.
    pub(super) fn new(lease: &Arc<RedLockLease>, user_data: *mut c_void) -> Self {
        let name = Arc::as_ptr(lease).addr();
        let user_data = UserData::new(user_data, None);
        Self { lease: None, acquires: false, name, user_data }
    }

    /// Of a call, which perhaps takes a lock.
    pub(super) fn of_call(
        lease: &Arc<RedLockLease>,
        user_data: *mut c_void,
        acquires: bool,
    ) -> Self {
        let mut tag = Self::new(lease, user_data);
        (tag.lease, tag.acquires) = (Some(Arc::clone(lease)), acquires);
        tag
    }

    pub(super) fn boxed(self) -> submitted::Tag {
        Box::new(self)
    }
}

impl Drop for Tag {
    /// Where the manager is freed, nobody is told any more; the lease can be used again.
    fn drop(&mut self) {
        if let Some(lease) = self.lease.take() {
            lease.end_submitted(None);
        }
    }
}

/// A descriptor for a program that waits in a loop of its own: poll, epoll, libuv, libevent, asyncio. It is
/// readable (level-triggered) whenever RedLock_NextEvent has something to do or to tell, also when a timer is
/// due. Wait for nothing else than to read it, never read from it, and do not close it: it belongs to the
/// manager, and is closed with it.
///
/// @param rl the manager.
/// @return the descriptor, the same with each call; -1 if there is none: RedLock_ErrorMessage(rl) says why. A
///         forked child has one of its own. Any thread may call this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_Descriptor(rl: *mut RedLock) -> c_int {
    let mut descriptor = -1;
    side_call(rl, |handle| {
        descriptor = handle.manager.descriptor()?;
        Ok(RedLockStatus::REDLOCK_OK)
    });
    descriptor
}

/// Does what is due for submitted calls and for locks that are kept, and tells one event. Password callbacks
/// and loggers are called here, and names are looked up, which may take as long as the system's resolver takes;
/// an address never does.
///
/// @param rl      the manager.
/// @param wait_ms how long to wait for an event: 0: not at all; less: for ever. Meanwhile the thread does what
///                is due for all calls, as every thread does that waits in a call.
/// @param event   receives the event. Its size must be set.
/// @return REDLOCK_OK with an event. REDLOCK_NO_EVENT without one: there was none in that time.
///         REDLOCK_INVALID_ARGUMENT, REDLOCK_NO_SERVERS, REDLOCK_FORKED (a callback forked, and this is the
///         child), REDLOCK_INTERNAL; RedLock_ErrorMessage(rl) has the words. Any number of threads may call
///         this at once: each event is told once, to one of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_NextEvent(
    rl: *mut RedLock,
    wait_ms: i64,
    event: *mut RedLockEvent,
) -> RedLockStatus {
    side_call(rl, |handle| {
        let size = versioned(event.cast_const(), NONE, "event")?.size;
        let (next, _) = told(&handle.manager, || handle.manager.next_event(wait_ms));
        let Some(next) = next? else {
            return Ok(RedLockStatus::REDLOCK_NO_EVENT);
        };
        let next = convert(next, |lease| handle.manager.discard(lease))?;
        let next = RedLockEvent { size, ..next };
        write_versioned(event, &next, size);
        Ok(RedLockStatus::REDLOCK_OK)
    })
}

const NONE: RedLockEvent = RedLockEvent {
    size: 0,
    kind: REDLOCK_EVENT_DONE,
    status: RedLockStatus::REDLOCK_OK,
    lease: ptr::null_mut(),
    user_data: ptr::null_mut(),
    remaining_ms: 0,
};

/// The event for a C program. The lease says what has come of the call.
fn convert(event: Event, discard: impl FnOnce(&Lease)) -> Result<RedLockEvent, Error> {
    match event {
        Event::Done { lease: mut own, tag, mut outcome } => {
            let mut tag = tag_of(tag)?;
            if let Some(lease) = tag.lease.take() {
                if lease.is_freed() && tag.acquires && outcome.is_ok() {
                    discard(&own);
                    outcome = Err(Error::new(Status::Cancelled, "the lease was freed"));
                } else if tag.acquires && outcome.is_ok() && !own.is_held() {
                    // As in a call that waits: it has not succeeded.
                    discard(&own);
                    own.clear();
                    let words = "the lock expired while log lines were told";
                    outcome = Err(Error::new(Status::TooSlow, words));
                }
                lease.end_submitted(Some((own, outcome.as_ref().err())));
            }
            let status = match &outcome {
                Ok(()) => RedLockStatus::REDLOCK_OK,
                Err(error) => error.status().into(),
            };
            Ok(RedLockEvent { kind: REDLOCK_EVENT_DONE, status, ..of(&tag) })
        }
        Event::Lost { tag, error, remaining_ms } => {
            let status = error.status().into();
            let tag = tag_of(tag)?;
            Ok(RedLockEvent { kind: REDLOCK_EVENT_LOST, status, remaining_ms, ..of(&tag) })
        }
    }
}

fn of(tag: &Tag) -> RedLockEvent {
    let lease = ptr::with_exposed_provenance_mut(tag.name);
    RedLockEvent { lease, user_data: tag.user_data.pointer(), ..NONE }
}

fn tag_of(tag: submitted::Tag) -> Result<Box<Tag>, Error> {
    tag.downcast().map_err(|_| Error::new(Status::Internal, "an event of nobody"))
}

/// Is told an event. See RedLock_SetEventCallback.
///
/// @param event     the event, valid during the call.
/// @param user_data what was given to RedLock_SetEventCallback.
pub type RedLockEventCallback =
    Option<unsafe extern "C" fn(event: *const RedLockEvent, user_data: *mut c_void)>;

/// Sets whether the manager has a thread of its own, named "redlock": it does what is due for submitted calls
/// and for locks that are kept, whenever no other thread does, and sleeps otherwise. So nobody has to call
/// RedLock_NextEvent in time. All signals are blocked in it. Password callbacks and loggers may be called on it.
/// It begins with the first call that asks servers. A forked child has none unless it asks for its own.
///
/// @param rl         the manager.
/// @param background true: there is to be one. false, the default: no thread is ever started; one that there is
///                   has ended when this returns, unless this is called on it. So a callback that runs on it is
///                   waited for. RedLock_Free does not wait: there the thread ends soon after.
/// @return REDLOCK_OK, REDLOCK_INVALID_ARGUMENT, REDLOCK_FORKED, REDLOCK_INTERNAL: the system gave no thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_SetBackgroundThread(
    rl: *mut RedLock,
    background: bool,
) -> RedLockStatus {
    manager_call(rl, |handle| handle.manager.set_background_thread(background))
}

/// Sets a function that is told events, on the thread of RedLock_SetBackgroundThread, one at a time and with
/// nothing held: it may call this library, also with the lease of the event. An event is told once, to it or
/// by RedLock_NextEvent. While it runs that thread does nothing else: locks are kept only if another thread is in
/// a call. It must not unwind (longjmp, throw) through the library.
///
/// @param rl        the manager.
/// @param callback  the function, or NULL for none.
/// @param user_data handed to the function as it is; may be NULL. It belongs to the manager from now on, also if
///                  this function fails.
/// @param destroy   as for RedLock_SetLoggerWithDestroy; it may also be called on that thread. NULL, if nobody
///                  needs to be told.
/// @return REDLOCK_OK, REDLOCK_INVALID_ARGUMENT, REDLOCK_FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_SetEventCallback(
    rl: *mut RedLock,
    callback: RedLockEventCallback,
    user_data: *mut c_void,
    destroy: RedLockDestroy,
) -> RedLockStatus {
    let _uncancelled = Uncancelled::new();
    let user_data = UserData::new(user_data, destroy);
    manager_call(rl, |handle| handle.manager.set_event_sink(sink(callback, user_data)))
}

/// The C function and its argument as one that is told events.
fn sink(callback: RedLockEventCallback, user_data: UserData) -> Option<EventSink> {
    let function = callback?;
    Some(Arc::new(move |event, runtime: &Runtime| {
        if let Ok(event) = convert(event, |lease| runtime.discard(lease)) {
            let event = RedLockEvent { size: size_of::<RedLockEvent>(), ..event };
            // SAFETY: `function` is what the caller gave as a RedLockEventCallback, for this user_data, and the
            // event outlives the call.
            unsafe { function(&raw const event, user_data.pointer()) }
        }
    }))
}

/// Ends the call, blocking or submitted, that uses a lease: it answers REDLOCK_CANCELLED, and nothing of it
/// stays locked: what servers may have granted is released, at once or queued behind the request. A lock that
/// was held before stays held; one whose RedLock_Unlock is cancelled is being released, and RedLock_Unlock may
/// be called again. A call that has ended just now has its own status, and its event comes as if nothing had
/// been cancelled. Without a call this does nothing. A password callback that is being asked is not cut short.
///
/// @param rl    the manager that the call is made on.
/// @param lease the lease of the call.
/// @return REDLOCK_OK, REDLOCK_INVALID_ARGUMENT. Any thread may call this, also while another is in the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_Cancel(
    rl: *mut RedLock,
    lease: *mut RedLockLease,
) -> RedLockStatus {
    side_call(rl, |handle| {
        let lease = shared_lease(lease);
        let lease = lease.ok_or_else(|| Error::invalid("lease is NULL"))?;
        handle.manager.cancel(lease.canceller());
        Ok(RedLockStatus::REDLOCK_OK)
    })
}
