//! Submitted calls, among all others. Each has one event, from its own manager. The event reports what the
//! servers have said. No server keeps a lock that no program has been told of.

mod verdicts;

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::c_void;
use std::ptr;

use self::verdicts::{are, is_in_use};
use crate::calls::{Call, NO_SLOT, Run};
use crate::ffi::acquire::{RedLock_Acquire, RedLockAcquireOptions};
use crate::ffi::event::{
    REDLOCK_EVENT_DONE, REDLOCK_EVENT_LOST, RedLock_Cancel, RedLock_Descriptor, RedLock_NextEvent,
    RedLock_SetBackgroundThread, RedLock_SetEventCallback, RedLockEvent,
};
use crate::ffi::lease::RedLockLease;
use crate::ffi::resources::RedLockLease_ResourceCount;
use crate::ffi::status::RedLockStatus::{REDLOCK_INTERNAL, REDLOCK_NO_EVENT, REDLOCK_OK};
use crate::ffi::submit::{
    RedLock_KeepAlive, RedLock_SubmitAcquire, RedLock_SubmitConfirm, RedLock_SubmitExtend,
    RedLock_SubmitUnlock,
};
use crate::handles::{look, message, pointer};
use crate::protocol::command::Verb;
use crate::seen;
use crate::world::{self, World};

/// A late answer has arrived within this time.
const SOON_MS: i64 = 500;

/// The longest time that a lock may last, and a little more.
const TEN_YEARS_MS: i64 = 315_360_001_000;

const IN_USE: &str = "the lease is in use by a submitted call";

/// What is still to come, and what the program has been told.
#[derive(Default)]
pub(crate) struct Expected {
    last: usize,
    /// The submitted calls, by their user data.
    calls: BTreeMap<usize, Submitted>,
    kept: Vec<Kept>,
    /// The tokens of all locks that the program has been told that it holds.
    owned: BTreeSet<String>,
}

struct Submitted {
    call: Call,
    /// The address of its lease.
    lease: usize,
    verb: Verb,
    keeps: bool,
    /// Whether it was cancelled, and so may end with that status.
    is_cancelled: bool,
}

/// A lock that is kept.
struct Kept {
    user_data: usize,
    manager: usize,
    /// The address of its lease.
    lease: usize,
    token: String,
    /// Whether its end must be reported. Otherwise it may be reported.
    is_sure: bool,
}

/// What has been reported.
#[derive(Debug)]
enum Told {
    EventDone,
    EventLost,
    NoEvent,
}

impl Expected {
    fn next(&mut self) -> usize {
        self.last += 1;
        self.last
    }

    pub(crate) fn note_owned(&mut self, token: &str) {
        self.owned.insert(token.to_owned());
    }

    fn is_in_call(&self, lease: *mut RedLockLease) -> bool {
        self.calls.values().any(|it| it.lease == lease.addr())
    }
}

thread_local! {
    /// How many event callbacks were set and not destroyed.
    static CALLBACKS: Cell<usize> = const { Cell::new(0) };
}

pub(crate) fn begin() {
    CALLBACKS.set(0);
}

/// At the end of a run, all user data must have been destroyed.
pub(crate) fn judge_destroyed() {
    assert_eq!(CALLBACKS.get(), 0, "what goes with an event callback was not destroyed once");
}

// Calls -----------------------------------------------------------------------------------------

impl Run<'_> {
    pub(crate) fn event_call(&mut self) {
        match self.choices.below(12) {
            0..3 => self.acquire(true),
            3 => self.acquire(false),
            4 | 5 => self.submit(),
            6 => self.keep_alive(),
            7 => self.cancel(),
            8 => self.set_background(),
            _ => {
                let (slot, wait_ms) = (self.manager_slot(), self.choices.pick(&[0, 0, 1, 30, 500]));
                self.next_event(slot, wait_ms);
            }
        }
    }

    fn acquire(&mut self, submits: bool) {
        let (call, resource, ttl_ms) =
            (self.call(), self.choices.resource(), self.choices.ttl_ms());
        let length = resource.as_ref().map_or(1, |it| it.as_bytes().len());
        // If the size is too large, the call is refused before anything behind the struct is read.
        let size = size_of::<RedLockAcquireOptions>() + self.choices.pick(&[0, 0, 0, 1 << 20]);
        // With the NUL at the end, which is then a part of the name.
        let resource_size = self.choices.pick(&[0, 0, length, length + 1]);
        let several = self.choices.resources(resource.as_ref());
        let is_of_one = several.names.is_empty() || several.has_one_too;
        let names = several.pointers();
        let options = RedLockAcquireOptions {
            size,
            resource: pointer(resource.as_ref().filter(|_| is_of_one)),
            resource_size: if is_of_one { resource_size } else { 0 },
            resources: if names.is_empty() { ptr::null() } else { names.as_ptr() },
            resource_count: several.count,
            ttl_ms,
            wait_ms: self.choices.pick(&[0, 20, 100, if submits { -1 } else { 0 }]),
            tries: self.choices.pick(&[0, 1, 3, -1]),
            mode: self.choices.pick(&[0, 0, 0, 1, 7]),
            permits: self.choices.pick(&[0, 0, 0, 2]),
            keep_alive: self.choices.pick(&[0, 0, 1]),
        };
        let keeps = options.keep_alive != 0;
        let user_data = if submits { self.expected.next() } else { 0 };
        let (was_held, began) = (look(self.lease(call.lease)).is_held, world::now());
        let status = self.in_call(call.manager, call.lease, |rl, lease| {
            let options = &raw const options;
            // SAFETY: each handle is NULL or alive, and everything that the options point to is alive.
            unsafe {
                match submits {
                    true => RedLock_SubmitAcquire(rl, options, lease, number(user_data)),
                    false => RedLock_Acquire(rl, options, lease),
                }
            }
        });
        self.judge_lease(&call, status);
        self.note_reuse(&call, status);
        if status == REDLOCK_OK {
            let has_mode = options.mode == 0 || (options.mode == 1 && options.permits == 0);
            let is_plain = options.mode == 0 && options.permits == 0;
            let has_names = match several.count {
                0 => several.names.is_empty() && resource.is_some(),
                count => several.are_different(count) && (count == 1 || is_plain),
            };
            let is_known = options.size == size_of::<RedLockAcquireOptions>();
            assert!(has_mode && is_known && options.tries >= 0, "it was not refused");
            assert!(has_names && !was_held, "it was not refused");
            // SAFETY: the lease is alive.
            let count = unsafe { RedLockLease_ResourceCount(self.lease(call.lease)) };
            assert!(submits || count == several.count.max(1), "{count} of {}", several.count);
        }
        if submits {
            assert_eq!(world::now(), began, "to submit takes time");
            if status == REDLOCK_OK {
                self.expect(user_data, call, Verb::Acquire, keeps);
            }
        } else if status == REDLOCK_OK {
            let sight = look(self.lease(call.lease));
            assert!(sight.is_held, "{sight:?}");
            self.judge_votes(&call, &[Verb::Acquire], &sight.token);
            if keeps {
                self.note_kept(&call, user_data, sight);
            }
        }
    }

    fn submit(&mut self) {
        let (call, user_data) = (self.call(), self.expected.next());
        let verb = self.choices.pick(&[Verb::Extend, Verb::Release, Verb::Inspect]);
        let (least_ms, ttl_ms) = (self.choices.long(), self.choices.ttl_ms());
        let (token, began) = (look(self.lease(call.lease)).token, world::now());
        let status = self.in_call(call.manager, call.lease, |rl, lease| {
            // SAFETY: each handle is NULL or alive.
            unsafe {
                match verb {
                    Verb::Extend => RedLock_SubmitExtend(rl, lease, ttl_ms, number(user_data)),
                    Verb::Release => RedLock_SubmitUnlock(rl, lease, number(user_data)),
                    _ => RedLock_SubmitConfirm(rl, lease, least_ms, number(user_data)),
                }
            }
        });
        self.judge_lease(&call, status);
        assert_eq!(world::now(), began, "to submit takes time");
        if status != REDLOCK_OK {
            return;
        }
        assert!(!token.is_empty(), "there was no lock");
        if verb == Verb::Release {
            self.note_release(&token, status);
        }
        self.expect(user_data, call, verb, false);
    }

    fn expect(&mut self, user_data: usize, call: Call, verb: Verb, keeps: bool) {
        let raw = self.lease(call.lease);
        assert!(is_in_use(raw), "a lease in a submitted call is refused to nobody");
        let lease = raw.addr();
        let submitted = Submitted { call, lease, verb, keeps, is_cancelled: false };
        self.expected.calls.insert(user_data, submitted);
    }

    fn keep_alive(&mut self) {
        let (call, user_data) = (self.call(), self.expected.next());
        let began = world::now();
        let status = self.in_call(call.manager, call.lease, |rl, lease| {
            // SAFETY: each handle is NULL or alive.
            unsafe { RedLock_KeepAlive(rl, lease, number(user_data)) }
        });
        self.judge_lease(&call, status);
        assert_eq!(world::now(), began, "to keep a lock takes time");
        if status == REDLOCK_OK {
            let sight = look(self.lease(call.lease));
            assert!(sight.is_held, "what was not held is kept: {sight:?}");
            self.note_kept(&call, user_data, sight);
        }
    }

    fn cancel(&mut self) {
        let (slot, lease) = (self.manager_slot(), self.choices.pick(&[0, 1, 2, NO_SLOT]));
        self.cancel_call(slot, lease);
        let rl = self.manager(slot);
        let before = message(rl);
        // SAFETY: the manager is NULL or alive.
        let descriptor = unsafe { RedLock_Descriptor(rl) };
        // This world has no descriptor.
        assert_eq!(descriptor, -1);
        assert!(rl.is_null() || !message(rl).is_empty(), "no descriptor, and no words: {before}");
    }

    fn cancel_call(&mut self, slot: usize, lease: usize) {
        let (rl, lease, began) = (self.manager(slot), self.lease(lease), world::now());
        let (words, words_of_lease) = (message(rl), look(lease).message);
        // SAFETY: each handle is NULL or alive.
        let status = unsafe { RedLock_Cancel(rl, lease) };
        self.judge_manager(slot, status);
        assert_eq!(status == REDLOCK_OK, !rl.is_null() && !lease.is_null(), "{status:?}");
        if status == REDLOCK_OK {
            assert_eq!(message(rl), words, "the words of another call");
        }
        assert_eq!(look(lease).message, words_of_lease, "the words of the call");
        assert_eq!(world::now(), began, "to cancel takes time");
        let calls = self.expected.calls.values_mut().filter(|it| it.call.manager == slot);
        calls.filter(|it| it.lease == lease.addr()).for_each(|it| it.is_cancelled = true);
    }

    /// The system gives no thread in this world. So events are reported only by [`RedLock_NextEvent`].
    fn set_background(&mut self) {
        let slot = self.manager_slot();
        let rl = self.manager(slot);
        let callback = self.choices.pick(&[None, Some(tell as unsafe extern "C" fn(_, _))]);
        CALLBACKS.set(CALLBACKS.get() + 1);
        // SAFETY: the manager is NULL or alive; no memory is accessed through that pointer.
        let status =
            unsafe { RedLock_SetEventCallback(rl, callback, number(CALLBACK), Some(destroy)) };
        self.judge_manager(slot, status);
        // SAFETY: the manager is NULL or alive.
        match unsafe { RedLock_SetBackgroundThread(rl, true) } {
            REDLOCK_INTERNAL => {
                assert!(message(rl).contains("cannot start a thread"), "{}", message(rl))
            }
            status => self.judge_manager(slot, status),
        }
        // SAFETY: as above.
        let status = unsafe { RedLock_SetBackgroundThread(rl, false) };
        assert_eq!(status == REDLOCK_OK, !rl.is_null());
        self.judge_manager(slot, status);
    }

    /// Returns whether there was an event.
    fn next_event(&mut self, slot: usize, wait_ms: i64) -> bool {
        let mut event = RedLockEvent {
            size: size_of::<RedLockEvent>(),
            kind: -1,
            status: REDLOCK_OK,
            lease: ptr::null_mut(),
            user_data: ptr::null_mut(),
            remaining_ms: -1,
        };
        let place = &raw mut event;
        let status = self.in_call(slot, NO_SLOT, |rl, _| {
            // SAFETY: the manager is NULL or alive; the event is alive.
            unsafe { RedLock_NextEvent(rl, wait_ms, place) }
        });
        match status {
            REDLOCK_OK if event.kind == REDLOCK_EVENT_DONE => self.judge_done(slot, &event),
            REDLOCK_OK if event.kind == REDLOCK_EVENT_LOST => self.judge_lost(slot, &event),
            REDLOCK_OK => panic!("an event of kind {}", event.kind),
            REDLOCK_NO_EVENT => seen::note(&Told::NoEvent),
            status => self.judge_manager(slot, status),
        }
        status == REDLOCK_OK
    }

    /// Pending releases are sent now, and nothing is reported of handles that were freed.
    pub(crate) fn free_manager(&mut self, slot: usize) {
        let are_well = are(|_, it| it.is_well());
        let calls = std::mem::take(&mut self.expected.calls);
        let (forgotten, calls): (BTreeMap<_, _>, _) =
            calls.into_iter().partition(|(_, it)| it.call.manager == slot);
        self.expected.calls = calls;
        self.expected.kept.retain(|it| it.manager != slot);
        self.hands.free_manager(slot);
        for call in forgotten.into_values() {
            let lease = self.lease(call.call.lease);
            assert!(lease.addr() != call.lease || !is_in_use(lease), "its call has no manager");
        }
        self.judge_locked(&are(|place, it| {
            let was_well = are_well.get(place) == Some(&true);
            it.is_closed && !it.ends && it.judge.end.is_none() && was_well
        }));
    }

    pub(crate) fn free_lease(&mut self, slot: usize) {
        let lease = self.lease(slot).addr();
        let calls = self.expected.calls.values_mut().filter(|it| it.lease == lease);
        calls.for_each(|it| it.is_cancelled = true);
        self.expected.kept.retain(|it| it.lease != lease);
        self.hands.free_lease(slot);
    }

    /// Every submitted call ends, and is reported. The same applies to every lock that cannot be kept.
    pub(crate) fn end_submitted(&mut self) {
        for slot in 0..self.hands.managers.len() {
            (0..self.hands.leases.len()).for_each(|lease| self.cancel_call(slot, lease));
            while self.expected.calls.values().any(|it| it.call.manager == slot) {
                let is_told = self.next_event_of_many(slot, SOON_MS);
                assert!(is_told, "a call has no event: {}", message(self.manager(slot)));
            }
        }
        for slot in [0, 1, 0, 1] {
            while self.next_event_of_many(slot, SOON_MS) {}
        }
        self.judge_locked(&are(|_, it| it.is_well()));
        world::with(|world| world.pass_ms(TEN_YEARS_MS));
        for slot in 0..self.hands.managers.len() {
            while self.next_event_of_many(slot, SOON_MS) {}
        }
        let untold = self.expected.kept.iter().find(|it| it.is_sure);
        assert!(
            untold.is_none(),
            "a lock that was kept is lost: {:?}",
            untold.map(|it| it.user_data)
        );
    }

    fn next_event_of_many(&mut self, slot: usize, wait_ms: i64) -> bool {
        world::with(World::begin_call);
        self.next_event(slot, wait_ms)
    }
}

/// A number in place of a C pointer.
fn number(user_data: usize) -> *mut c_void {
    ptr::without_provenance_mut(user_data)
}

/// The user data of an event callback.
const CALLBACK: usize = 0xCA11;

unsafe extern "C" fn tell(_event: *const RedLockEvent, _user_data: *mut c_void) {
    panic!("there is no thread to tell events");
}

unsafe extern "C" fn destroy(user_data: *mut c_void) {
    assert_eq!(user_data.addr(), CALLBACK);
    CALLBACKS.set(CALLBACKS.get() - 1);
}
