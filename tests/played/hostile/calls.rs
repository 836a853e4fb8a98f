//! Sequences of C calls, with any arguments. Each handle is alive, or NULL, or was freed and is NULL since
//! then. The servers behave correctly until the script makes them misbehave. Each call ends, and never with
//! a panic. Its result is what the servers have said. A failed call leaves nothing behind.
//!
//! The bytes up to the first 0xFF are the calls; the bytes after it are the script ([`Crowd`]).

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CString;
use std::ptr;

use crate::access;
use crate::choices::Choices;
use crate::crowd::{self, Crowd};
use crate::events::{self, Expected};
use crate::ffi::fencing::RedLock_SetFencing;
use crate::ffi::lease::{RedLockLease, RedLockLease_New};
use crate::ffi::servers::RedLock_SetFailoverGuard;
use crate::ffi::status::RedLockStatus::{self, REDLOCK_INVALID_ARGUMENT, REDLOCK_LOST, REDLOCK_OK};
use crate::ffi::status::{RedLockStatus_IsRetriable, RedLockStatus_Name};
use crate::ffi::waking::RedLock_SetWaking;
use crate::ffi::{
    RedLock, RedLock_AddServerUrl, RedLock_Confirm, RedLock_Connect, RedLock_ContinueLock,
    RedLock_Extend, RedLock_Free, RedLock_IsLocked, RedLock_Lock, RedLock_New,
    RedLock_SetClockDriftFactor, RedLock_SetLogger, RedLock_SetRetry, RedLock_SetTimeouts,
    RedLock_TryLock, RedLock_Unlock,
};
use crate::handles::{self, Hands, look, message, pointer};
use crate::logger::{self, CALLS_BACK, listen};
use crate::protocol::command::{Answer, Slots, Verb};
use crate::protocol::servers::endpoint::Endpoint;
use crate::urls::SECRET;
use crate::world;

/// More calls than a run needs.
const CALLS_MAX: usize = 60;

/// How long a locking call may take with the settings of these runs: three tries.
const CALL_MAX_MS: i64 = 30_000;

/// Plays one run.
pub fn calls(data: &[u8]) {
    let end = data.iter().position(|&it| it == 0xFF).unwrap_or(data.len());
    let (calls, script) = data.split_at(end);
    world::begin(Crowd::new(script.get(1..).unwrap_or_default()));
    events::begin();
    let (hands, choices) = (Hands::new(), Choices::new(calls));
    let mut run = Run { hands, choices, expected: Expected::default() };
    for _ in 0..CALLS_MAX {
        if run.choices.is_empty() {
            break;
        }
        run.step();
    }
    run.end_submitted();
    drop(run);
    events::judge_destroyed();
    world::end();
}

pub(crate) struct Run<'a> {
    pub(crate) hands: Hands,
    pub(crate) choices: Choices<'a>,
    /// The events that are still to come, and what else the program knows.
    pub(crate) expected: Expected,
}

/// A locking call that was made: its handles, and the state before it.
pub(crate) struct Call {
    pub(crate) manager: usize,
    pub(crate) lease: usize,
    /// How many verdicts there were on each connection.
    marks: Vec<usize>,
    began_ms: i64,
}

pub(crate) const NO_SLOT: usize = usize::MAX;

impl Run<'_> {
    fn step(&mut self) {
        world::with(world::World::begin_call);
        let byte = self.choices.byte();
        match byte {
            250.. => return self.set_access(),
            220.. => return self.event_call(),
            _ => {}
        }
        match byte % 20 {
            0 => self.new_manager(),
            1 => self.new_lease(),
            2 | 3 => self.add_server(),
            4 => self.add_text(),
            5 => self.set_retry(),
            6 => self.set_timeouts(),
            7 => self.set_drift(),
            8 => self.set_logger(),
            9 => self.connect(),
            10 | 11 => self.lock(),
            12 => self.continue_lock(),
            13 => self.extend(),
            14 | 15 => self.unlock(),
            16 => self.confirm(),
            17 => self.is_locked(),
            18 => self.free(),
            _ => self.pass(),
        }
    }

    fn new_manager(&mut self) {
        let slot = self.choices.below(self.hands.managers.len());
        self.free_manager(slot);
        self.hands.managers[slot].raw = RedLock_New();
    }

    fn new_lease(&mut self) {
        let slot = self.choices.below(self.hands.leases.len());
        self.free_lease(slot);
        self.hands.leases[slot] = RedLockLease_New();
    }

    fn free(&mut self) {
        match self.choices.byte() {
            byte @ 0..128 => self.free_manager(usize::from(byte) % 2),
            byte => self.free_lease(usize::from(byte) % 3),
        }
    }

    /// Adds one of the servers that exist, possibly one that was added before.
    fn add_server(&mut self) {
        let slot = self.manager_slot();
        let server = self.choices.below(crowd::SERVERS);
        let place = crowd::place(server);
        let with_password = self.choices.byte() & 1 != 0;
        let url = match (place.starts_with('/'), with_password) {
            (true, false) => format!("unix://{place}"),
            (true, true) => format!("redis+unix://{place}?db=3&pass={SECRET}"),
            (false, false) => format!("redis://{place}"),
            (false, true) => format!("redis://u:{SECRET}@{place}/2"),
        };
        let url = CString::new(url).expect("no NUL");
        let rl = self.manager(slot);
        // SAFETY: the manager is NULL or alive; the string is alive.
        let status = unsafe { RedLock_AddServerUrl(rl, url.as_ptr(), 0) };
        self.judge_manager(slot, status);
        if status == REDLOCK_OK {
            self.hands.managers[slot].servers += 1;
        }
    }

    /// Any text for a server, and any port.
    fn add_text(&mut self) {
        let text = CString::new(self.choices.text_bytes()).expect("no NUL");
        let port = match self.choices.byte() {
            0 => 0,
            1 => 6379,
            _ => self.choices.int(),
        };
        let slot = self.manager_slot();
        let parsed = text.to_str().ok().map(|it| Endpoint::parse(it, port));
        if matches!(parsed, Some(Ok(_))) {
            // The server may have to be looked up, so it is not added to a manager in use.
            let rl = RedLock_New();
            // SAFETY: the manager was just made and is freed once; the string is alive.
            unsafe {
                assert_eq!(RedLock_AddServerUrl(rl, text.as_ptr(), port), REDLOCK_OK);
                RedLock_Free(rl);
            }
            return;
        }
        let text = (self.choices.byte() & 7 != 7).then_some(&text);
        // SAFETY: the manager and the string are each NULL or alive.
        let status = unsafe { RedLock_AddServerUrl(self.manager(slot), pointer(text), port) };
        assert_eq!(status, REDLOCK_INVALID_ARGUMENT);
        self.judge_manager(slot, status);
    }

    fn set_retry(&mut self) {
        let slot = self.manager_slot();
        let (count, delay_ms) = (self.choices.int(), self.choices.int());
        // SAFETY: the manager is NULL or alive.
        let status = unsafe { RedLock_SetRetry(self.manager(slot), count, delay_ms) };
        self.judge_manager(slot, status);
        assert!(status != REDLOCK_OK || (count >= 1 && delay_ms >= 0));
        if status == REDLOCK_OK {
            // A run must end.
            // SAFETY: as above.
            unsafe { RedLock_SetRetry(self.manager(slot), 1 + count % 3, delay_ms % 1000) };
            // SAFETY: as above.
            unsafe { RedLock_SetFencing(self.manager(slot), count % 2 == 0) };
            // SAFETY: as above.
            unsafe { RedLock_SetWaking(self.manager(slot), count % 3 != 0) };
            // SAFETY: as above.
            unsafe { RedLock_SetFailoverGuard(self.manager(slot), count % 5 != 0) };
        }
    }

    fn set_timeouts(&mut self) {
        let slot = self.manager_slot();
        let (connect_ms, reply_ms) = (self.choices.long(), self.choices.long());
        // SAFETY: the manager is NULL or alive.
        let status = unsafe { RedLock_SetTimeouts(self.manager(slot), connect_ms, reply_ms) };
        self.judge_manager(slot, status);
        assert!(status != REDLOCK_OK || (connect_ms >= 1 && reply_ms >= 0));
        if status == REDLOCK_OK {
            let (connect_ms, reply_ms) = (1 + connect_ms % 1500, reply_ms % 500);
            // SAFETY: as above.
            unsafe { RedLock_SetTimeouts(self.manager(slot), connect_ms, reply_ms) };
        }
    }

    fn set_drift(&mut self) {
        let slot = self.manager_slot();
        let factor = match self.choices.byte() {
            0 => 0.01,
            1 => 0.999_999,
            2 => f64::NAN,
            _ => f64::from_bits(self.choices.long().cast_unsigned()),
        };
        // SAFETY: the manager is NULL or alive.
        let status = unsafe { RedLock_SetClockDriftFactor(self.manager(slot), factor) };
        self.judge_manager(slot, status);
        assert!(status != REDLOCK_OK || (0.0..1.0).contains(&factor), "{factor}");
    }

    fn set_logger(&mut self) {
        let slot = self.manager_slot();
        let (callback, user_data) = match self.choices.below(3) {
            0 => (None, ptr::null_mut()),
            1 => (Some(listen as unsafe extern "C" fn(_, _, _)), ptr::null_mut()),
            _ => {
                (Some(listen as unsafe extern "C" fn(_, _, _)), (&raw const CALLS_BACK).cast_mut())
            }
        };
        // SAFETY: the manager is NULL or alive; the callback accesses no memory through that pointer.
        let status =
            unsafe { RedLock_SetLogger(self.manager(slot), callback, user_data.cast(), None) };
        self.judge_manager(slot, status);
    }

    fn set_access(&mut self) {
        let slot = self.manager_slot();
        let status = access::set(self.manager(slot), &mut self.choices);
        self.judge_manager(slot, status);
    }

    fn connect(&mut self) {
        let slot = self.manager_slot();
        let timeout_ms = self.choices.long();
        let status = self.in_call(slot, NO_SLOT, |rl, _| {
            // SAFETY: the manager is NULL or alive.
            unsafe { RedLock_Connect(rl, timeout_ms) }
        });
        self.judge_manager(slot, status);
    }

    fn lock(&mut self) {
        let (call, resource, ttl_ms) =
            (self.call(), self.choices.resource(), self.choices.ttl_ms());
        let wait_ms = self.choices.pick(&[-1, 0, 0, 1, 20, 100]);
        let was_held = look(self.lease(call.lease)).is_held;
        let status = self.in_call(call.manager, call.lease, |rl, lease| {
            let resource = pointer(resource.as_ref());
            // SAFETY: each handle is NULL or alive.
            unsafe {
                match wait_ms {
                    -1 => RedLock_Lock(rl, resource, ttl_ms, lease),
                    _ => RedLock_TryLock(rl, resource, ttl_ms, wait_ms, lease),
                }
            }
        });
        self.judge_lease(&call, status);
        self.note_reuse(&call, status);
        let sight = look(self.lease(call.lease));
        if status == REDLOCK_OK {
            assert!(!was_held && sight.is_held, "{sight:?}");
            assert_eq!(Some(&*sight.resource), resource.as_ref().map(|it| it.as_bytes()));
            assert!(sight.remaining_ms <= sight.validity_ms, "{sight:?}");
            assert!(sight.validity_ms < ttl_ms, "{sight:?} of {ttl_ms}");
            self.judge_votes(&call, &[Verb::Acquire], &sight.token);
        } else if !was_held {
            assert!(!sight.is_held, "{status:?}, and held: {sight:?}");
        }
    }

    fn continue_lock(&mut self) {
        let (call, resource, ttl_ms) =
            (self.call(), self.choices.resource(), self.choices.ttl_ms());
        let was_held = look(self.lease(call.lease)).is_held;
        let status = self.in_call(call.manager, call.lease, |rl, lease| {
            // SAFETY: each handle is NULL or alive.
            unsafe { RedLock_ContinueLock(rl, pointer(resource.as_ref()), ttl_ms, lease) }
        });
        self.judge_lease(&call, status);
        if !was_held {
            self.note_reuse(&call, status);
        }
        if status == REDLOCK_OK {
            let sight = look(self.lease(call.lease));
            assert!(sight.is_held, "{sight:?}");
            self.judge_votes(&call, &[Verb::Acquire, Verb::Extend], &sight.token);
        }
    }

    fn extend(&mut self) {
        let (call, ttl_ms) = (self.call(), self.choices.ttl_ms());
        let before = look(self.lease(call.lease));
        let status = self.in_call(call.manager, call.lease, |rl, lease| {
            // SAFETY: each handle is NULL or alive.
            unsafe { RedLock_Extend(rl, lease, ttl_ms) }
        });
        self.judge_lease(&call, status);
        let sight = look(self.lease(call.lease));
        if status == REDLOCK_OK {
            assert!(before.is_held, "what was not held was extended: {before:?}");
            assert_eq!(sight.token, before.token);
            self.judge_votes(&call, &[Verb::Extend], &sight.token);
        }
    }

    fn unlock(&mut self) {
        let call = self.call();
        let token = look(self.lease(call.lease)).token;
        let status = self.in_call(call.manager, call.lease, |rl, lease| {
            // SAFETY: each handle is NULL or alive.
            unsafe { RedLock_Unlock(rl, lease) }
        });
        self.judge_lease(&call, status);
        self.note_release(&token, status);
        let sight = look(self.lease(call.lease));
        if [REDLOCK_OK, REDLOCK_LOST].contains(&status) {
            assert!(!sight.is_held && sight.token.is_empty(), "{sight:?}");
        }
    }

    fn confirm(&mut self) {
        let (call, least_ms) = (self.call(), self.choices.long());
        let status = self.in_call(call.manager, call.lease, |rl, lease| {
            // SAFETY: each handle is NULL or alive.
            unsafe { RedLock_Confirm(rl, lease, least_ms) }
        });
        self.judge_lease(&call, status);
        if status == REDLOCK_OK {
            let sight = look(self.lease(call.lease));
            // Servers may have the lock for longer than the lease is valid, because of a late extension or
            // a slow clock.
            assert!(least_ms >= 0 && sight.is_held, "{sight:?} for {least_ms}");
            self.judge_votes(&call, &[Verb::Inspect], &sight.token);
        }
    }

    fn is_locked(&mut self) {
        let (slot, resource) = (self.manager_slot(), self.choices.resource());
        let mut locked = true;
        let place = if self.choices.byte() == 1 { ptr::null_mut() } else { &raw mut locked };
        let status = self.in_call(slot, NO_SLOT, |rl, _| {
            // SAFETY: each pointer is NULL, or alive, or may be written to.
            unsafe { RedLock_IsLocked(rl, pointer(resource.as_ref()), place) }
        });
        self.judge_manager(slot, status);
        assert!(status == REDLOCK_OK || place.is_null() || !locked, "{status:?}, but locked");
    }

    /// Lets time pass, and asks for the names of numbers.
    fn pass(&mut self) {
        let ms = self.choices.pick(&[1, 60, 1000, 20_000]);
        world::with(|world| world.pass_ms(ms));
        let status = self.choices.int();
        // SAFETY: a string that lives for ever.
        let name = unsafe { handles::words(RedLockStatus_Name(status)) };
        assert!(name.starts_with("REDLOCK_"));
        assert_eq!(RedLockStatus_IsRetriable(status), (1..=3).contains(&status));
    }
}

// What is judged ---------------------------------------------------------------------------------

impl Run<'_> {
    /// Makes a call, during which loggers may call back.
    pub(crate) fn in_call(
        &self,
        manager: usize,
        lease: usize,
        call: impl FnOnce(*mut RedLock, *mut RedLockLease) -> RedLockStatus,
    ) -> RedLockStatus {
        let (rl, lease) = (self.manager(manager), self.lease(lease));
        logger::in_call(rl, lease, || call(rl, lease))
    }

    pub(crate) fn judge_manager(&self, slot: usize, status: RedLockStatus) {
        let rl = self.manager(slot);
        assert!(!rl.is_null() || status == REDLOCK_INVALID_ARGUMENT);
        handles::judge_status(status, &message(rl));
    }

    pub(crate) fn judge_lease(&mut self, call: &Call, status: RedLockStatus) {
        let (rl, lease) = (self.manager(call.manager), self.lease(call.lease));
        assert!(!(rl.is_null() || lease.is_null()) || status == REDLOCK_INVALID_ARGUMENT);
        let words = look(lease).message;
        handles::judge_status(status, &words);
        self.judge_use(call, status, &words);
        let took_ms = now_ms() - call.began_ms;
        assert!(took_ms <= CALL_MAX_MS, "a call took {took_ms} ms");
    }

    /// A success must be what a quorum of the servers has said in this call. The program holds the lock
    /// from now on.
    pub(crate) fn judge_votes(&mut self, call: &Call, verbs: &[Verb], token: &str) {
        // By the slot of a semaphore that the servers gave. A lock is the first slot.
        let mut voters: BTreeMap<u16, BTreeSet<usize>> = BTreeMap::new();
        world::with(|world| {
            for (index, connection) in world.connections.iter().enumerate() {
                let mark = call.marks.get(index).copied().unwrap_or(0);
                for it in &connection.judge.verdicts[mark..] {
                    let slot = match &it.answer {
                        Answer::Done
                        | Answer::Granted { .. }
                        | Answer::GrantedByClock { .. }
                        | Answer::Extended { .. }
                            if it.asked.token == token.as_bytes() =>
                        {
                            0
                        }
                        Answer::Slots(Slots { got: Some(slot), .. })
                            if it.asked.token == token.as_bytes() =>
                        {
                            *slot
                        }
                        Answer::Found { value, .. } if value == token.as_bytes() => 0,
                        _ => continue,
                    };
                    let verb = match it.asked.verb {
                        Verb::AcquireFenced | Verb::AcquireAgain | Verb::Move => Verb::Acquire,
                        verb => verb,
                    };
                    if verbs.contains(&verb) {
                        voters.entry(slot).or_default().insert(connection.server);
                    }
                }
            }
        });
        let voters = voters.into_values().max_by_key(BTreeSet::len).unwrap_or_default();
        let servers = self.hands.managers[call.manager].servers;
        assert!(2 * voters.len() > servers, "{verbs:?} by {voters:?} of {servers} servers");
        self.expected.note_owned(token);
    }
}

fn now_ms() -> i64 {
    world::now().as_nanos() / 1_000_000
}

// What is chosen ---------------------------------------------------------------------------------

impl Run<'_> {
    pub(crate) fn manager_slot(&mut self) -> usize {
        self.choices.pick(&[0, 1, NO_SLOT, 0])
    }

    pub(crate) fn manager(&self, slot: usize) -> *mut RedLock {
        self.hands.managers.get(slot).map_or(ptr::null_mut(), |it| it.raw)
    }

    pub(crate) fn lease(&self, slot: usize) -> *mut RedLockLease {
        self.hands.leases.get(slot).copied().unwrap_or(ptr::null_mut())
    }

    pub(crate) fn call(&mut self) -> Call {
        let manager = self.manager_slot();
        let lease = self.choices.pick(&[0, 1, 2, NO_SLOT, 0]);
        let count = |it: &world::Connection| it.judge.verdicts.len();
        let marks = world::with(|world| world.connections.iter().map(count).collect());
        Call { manager, lease, marks, began_ms: now_ms() }
    }
}
