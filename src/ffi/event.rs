//! The C functions for programs with an event loop of their own: events, and the descriptor that announces
//! them.

use std::ffi::{c_int, c_void};
use std::mem::offset_of;
use std::ptr;
use std::sync::Arc;

use super::arguments::{Versioned, versioned, write_versioned};
use super::call::{manager_call, side_call};
use super::callback::{RedLockDestroy, UserData};
use super::guard::catch;
use super::handle::{RedLock, shared};
use super::lease::{RedLockLease, held_lease, shared_lease};
use super::status::RedLockStatus;
use crate::manager::background::EventSink;
use crate::manager::event::{self, Event, SubmittedCall};
use crate::manager::lease::Lease;
use crate::manager::runtime::Runtime;
use crate::protocol::error::{Error, Status};
use crate::system::cancellation::Uncancelled;

/// An event that RedLock_NextEvent returns. Initialize it with REDLOCK_EVENT_INIT.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct RedLockEvent {
    /// sizeof(RedLockEvent).
    pub size: usize,
    /// REDLOCK_EVENT_DONE or REDLOCK_EVENT_LOST. Ignore an event of an unknown kind.
    pub kind: i32,
    /// The result of the submitted call. For REDLOCK_EVENT_LOST, the reason why the lock cannot be kept
    /// alive: REDLOCK_LOST or REDLOCK_UNREACHABLE.
    pub status: RedLockStatus,
    /// The lease of that call, or of that lock. The submitted call has ended, so the program may use its
    /// lease again. If the lease was freed meanwhile, this pointer only identifies it.
    pub lease: *mut RedLockLease,
    /// The user_data that was passed with the call.
    pub user_data: *mut c_void,
    /// For REDLOCK_EVENT_LOST: the remaining validity of the lock, in milliseconds. At least a tenth of the
    /// TTL, unless no thread drove this library in time, or another client has taken the lock away.
    pub remaining_ms: i64,
}

// SAFETY: the structure consists of numbers and pointers, and begins with its size. Of the values that a
// program has put there, only the size is read.
unsafe impl Versioned for RedLockEvent {
    const LEAST: usize = offset_of!(Self, remaining_ms) + size_of::<i64>();
    const INIT: &'static str = "REDLOCK_EVENT_INIT";
}

/// A submitted call has ended.
pub const REDLOCK_EVENT_DONE: i32 = 0;

/// A lock can no longer be kept alive. Stop the work that it protects within its remaining validity.
pub const REDLOCK_EVENT_LOST: i32 = 1;

/// Connects a submitted call, or a lock that is kept alive, with a C program.
pub(super) struct Tag {
    /// None for a lock that is kept alive, because its lease may have been freed.
    lease: Option<Arc<RedLockLease>>,
    /// Whether the call takes a lock.
    acquires: bool,
    /// The address of the lease, as the program knows it.
    name: usize,
    user_data: UserData,
}

impl Tag {
    /// Creates the tag of a lock that is kept alive.
    pub(super) fn new(lease: &Arc<RedLockLease>, user_data: *mut c_void) -> Self {
        let name = Arc::as_ptr(lease).addr();
        let user_data = UserData::new(user_data, None);
        Self { lease: None, acquires: false, name, user_data }
    }

    /// Creates the tag of a call. `acquires`: whether the call takes a lock.
    pub(super) fn of_call(
        lease: &Arc<RedLockLease>,
        user_data: *mut c_void,
        acquires: bool,
    ) -> Self {
        let mut tag = Self::new(lease, user_data);
        (tag.lease, tag.acquires) = (Some(Arc::clone(lease)), acquires);
        tag
    }

    pub(super) fn boxed(self) -> event::Tag {
        Box::new(self)
    }
}

impl Drop for Tag {
    /// When the manager is freed, no event follows, and the lease can be used again.
    fn drop(&mut self) {
        if let Some(lease) = self.lease.take() {
            lease.end_submitted(None);
        }
    }
}

/// Returns a descriptor for a program with an event loop of its own: poll, epoll, libuv, libevent, asyncio.
/// The descriptor is readable (level-triggered) whenever RedLock_NextEvent has work to do or an event to
/// return, also when a timer is due. Wait only for the descriptor to become readable, never read from it, and
/// do not close it. It belongs to the manager, and is closed with the manager.
///
/// @param rl the manager.
/// @return the descriptor, the same with each call; -1 if there is none: RedLock_ErrorMessage(rl) gives the
///         reason. A forked child has a descriptor of its own. Any thread may call this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_Descriptor(rl: *mut RedLock) -> c_int {
    let mut descriptor = -1;
    side_call(rl, |handle| {
        descriptor = handle.manager.descriptor()?;
        Ok(RedLockStatus::REDLOCK_OK)
    });
    descriptor
}

/// Does the work that is due, and returns one event. The work is that of submitted calls and of locks that
/// are kept alive. This function calls password callbacks and loggers.
///
/// If a submitted call cannot connect before names are looked up, this function does that, which may take as long as
/// the system's resolver takes. It does not if the program has asked RedLock_IsLookUpDue before and wait_ms is not
/// less than 0: then it returns, perhaps before the time is over, and the program has RedLock_LookUp called. An address
/// needs no look-up.
///
/// @param rl      the manager.
/// @param wait_ms how long to wait for an event, in milliseconds. 0: do not wait. Less than 0: wait without
///                limit. Meanwhile this thread does the work that is due for all calls, as does every thread
///                that waits in a call.
/// @param event   receives the event. Its size must be set.
/// @return REDLOCK_OK with an event. REDLOCK_NO_EVENT without an event: there was none in that time, or a look-up
///         has become due.
///         REDLOCK_INVALID_ARGUMENT, REDLOCK_NO_SERVERS, REDLOCK_FORKED (a callback forked, and this process
///         is the child), REDLOCK_INTERNAL. RedLock_ErrorMessage(rl) has the message. Any number of threads
///         may call this at once: each event is returned once, to one of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_NextEvent(
    rl: *mut RedLock,
    wait_ms: i64,
    event: *mut RedLockEvent,
) -> RedLockStatus {
    side_call(rl, |handle| {
        let size = versioned(event.cast_const(), NONE, "event")?.size;
        let Some(next) = handle.manager.next_event(wait_ms)? else {
            return Ok(RedLockStatus::REDLOCK_NO_EVENT);
        };
        let next = convert(next, |lease| handle.manager.discard(lease))?;
        let next = RedLockEvent { size, ..next };
        write_versioned(event, &next, size);
        Ok(RedLockStatus::REDLOCK_OK)
    })
}

/// Waits for the submitted call that uses a lease. This is for a program that waits in a thread and must stay
/// interruptible: it submits the call, waits in slices with this function, looks after its other duties between two
/// slices, and calls RedLock_Cancel to give up. The call goes on between two slices, so a caller keeps its place in
/// the queue of its resource. After RedLock_Cancel the program must call this function once more, with wait_ms less
/// than 0. That returns at once: REDLOCK_CANCELLED, or the result of a call that had ended before. So no lock is
/// taken between the last slice and the cancellation without the program being told.
///
/// Any number of threads may wait at once, each for a lease of its own. One of them does the work that is due for
/// all. If the call ends while no thread is in this function, its end is an event as usual. It is for whoever comes
/// first: this function, RedLock_NextEvent, or the function of RedLock_SetEventCallback. With
/// RedLockLease_SetDoneEvents(lease, false) it is for this function alone. Names are looked up as by RedLock_NextEvent.
///
/// @param rl      the manager that the call was submitted to.
/// @param lease   the lease of the call.
/// @param wait_ms how long to wait, in milliseconds. 0: do the work that is due, and do not wait. Less than 0: until
///                the call has ended.
/// @return the status of the call, as its event would have it, when the call has ended: there is then no event, and
///         the lease can be used again. REDLOCK_NO_EVENT: the call is still under way, after that time or because a
///         look-up has become due. REDLOCK_INVALID_ARGUMENT: an
///         argument is NULL, the lease has no submitted call on this manager (its event was taken), or
///         another thread waits for it. REDLOCK_NO_SERVERS, REDLOCK_FORKED (a callback forked, and this process is
///         the child), REDLOCK_INTERNAL. RedLockLease_ErrorMessage(lease) has the message. Any thread may call this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_Wait(
    rl: *mut RedLock,
    lease: *mut RedLockLease,
    wait_ms: i64,
) -> RedLockStatus {
    let _uncancelled = Uncancelled::new();
    let handle = shared(rl);
    let Some(lease) = held_lease(lease) else {
        if let Some(handle) = handle {
            handle.message.set("lease is NULL");
        }
        return RedLockStatus::REDLOCK_INVALID_ARGUMENT;
    };
    let outcome = catch(|| {
        let handle = handle.ok_or_else(|| Error::invalid("rl is NULL"))?;
        lease.check_has_submitted()?;
        let Some(event) = handle.manager.wait(lease.canceller(), wait_ms)? else {
            return Ok(RedLockStatus::REDLOCK_NO_EVENT);
        };
        Ok(convert(event, |lease| handle.manager.discard(lease))?.status)
    });
    outcome.unwrap_or_else(|error| {
        lease.note_error(&error);
        error.status().into()
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

/// Converts the event for a C program. The lease then holds the result of the call. `discard` releases a lock that
/// nobody wants.
fn convert(event: Event, discard: impl FnOnce(&Lease)) -> Result<RedLockEvent, Error> {
    match event {
        Event::Done { call, mut outcome } => {
            let SubmittedCall { lease: own, tag, .. } = *call;
            let mut tag = tag_of(tag)?;
            if let Some(lease) = tag.lease.take() {
                if lease.is_freed() && tag.acquires && outcome.is_ok() {
                    discard(&own);
                    outcome = Err(Error::new(Status::Cancelled, "the lease was freed"));
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

fn tag_of(tag: event::Tag) -> Result<Box<Tag>, Error> {
    tag.downcast().map_err(|_| Error::new(Status::Internal, "an event without a call"))
}

/// A function that receives an event. See RedLock_SetEventCallback.
///
/// @param event     the event, valid during the call.
/// @param user_data the value that was passed to RedLock_SetEventCallback.
pub type RedLockEventCallback =
    Option<unsafe extern "C" fn(event: *const RedLockEvent, user_data: *mut c_void)>;

/// Sets whether the manager has a thread of its own, named "redlock". This thread does the work that is due
/// for submitted calls and for locks that are kept alive, whenever no other thread does, and sleeps
/// otherwise. The program then does not need to call RedLock_NextEvent in time. All signals are blocked in
/// the thread. Password callbacks and loggers may be called on it. The thread starts with the first call that
/// asks servers. When it needs the name of a server to be looked up, a second thread, "redlock-names", waits for the
/// system's resolver, and ends with the look-up. A forked child has no such thread unless it asks for its own.
///
/// @param rl         the manager.
/// @param background true: the manager uses such a thread. false, the default: no thread is ever started, and
///                   an existing thread has ended when this function returns, unless this function is called
///                   on that thread. This function therefore waits for a callback that runs on the thread.
///                   RedLock_Free does not wait: there the thread ends soon after.
/// @return REDLOCK_OK, REDLOCK_INVALID_ARGUMENT, REDLOCK_FORKED, REDLOCK_INTERNAL: the system could not
///         create a thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedLock_SetBackgroundThread(
    rl: *mut RedLock,
    background: bool,
) -> RedLockStatus {
    manager_call(rl, |handle| handle.manager.set_background_thread(background))
}

/// Sets a function that receives events on the manager's own thread. That is the thread of
/// RedLock_SetBackgroundThread. The function is called with one event at a time, and with nothing held. It
/// may therefore call this library, also with the lease of the event. Each event is delivered once, to this
/// function or by RedLock_NextEvent. While the function runs, that thread does nothing else: locks are kept
/// alive only if another thread is in a call. The function must not unwind (longjmp, throw) through the
/// library.
///
/// @param rl        the manager.
/// @param callback  the function, or NULL for none.
/// @param user_data passed to the function unchanged; may be NULL. It must stay valid for as long as the
///                  user_data of RedLock_SetLogger.
/// @param destroy   as for RedLock_SetLogger. NULL: nobody needs to be told.
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

/// Wraps the C function and its argument as an event sink.
fn sink(callback: RedLockEventCallback, user_data: UserData) -> Option<EventSink> {
    let function = callback?;
    Some(Arc::new(move |event, runtime: &Runtime| {
        if let Ok(event) = convert(event, |lease| event::discard(runtime, lease)) {
            let event = RedLockEvent { size: size_of::<RedLockEvent>(), ..event };
            // SAFETY: the caller passed `function` as a RedLockEventCallback for this user_data, and the
            // event outlives the call.
            unsafe { function(&raw const event, user_data.pointer()) }
        }
    }))
}

/// Cancels the call, blocking or submitted, that uses a lease. The call ends with REDLOCK_CANCELLED, and
/// nothing of it stays locked. Anything that servers may have granted is released, at once or queued behind
/// the request. A lock that was held before the call stays held. If RedLock_Unlock is cancelled, its lock is
/// still being released, and RedLock_Unlock may be called again. A call that has just ended keeps its own
/// status, and its event comes as if nothing had been cancelled. Without such a call this function does
/// nothing. A password callback that is running is not cut short.
///
/// @param rl    the manager that the call is made on.
/// @param lease the lease of the call.
/// @return REDLOCK_OK, REDLOCK_INVALID_ARGUMENT. Any thread may call this, also while another thread is in
///         the call.
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
