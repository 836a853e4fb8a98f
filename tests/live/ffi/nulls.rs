//! NULL in every place of every function.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr;

use redlock::ffi::access::*;
use redlock::ffi::acquire::{RedLock_Acquire, RedLockAcquireOptions};
use redlock::ffi::callback::RedLockDestroy;
use redlock::ffi::event::*;
use redlock::ffi::fencing::*;
use redlock::ffi::handover::*;
use redlock::ffi::inspect::*;
use redlock::ffi::kept_log::*;
use redlock::ffi::language::*;
use redlock::ffi::lease::*;
use redlock::ffi::reentrant::*;
use redlock::ffi::resources::*;
use redlock::ffi::servers::*;
use redlock::ffi::shared_lock::*;
use redlock::ffi::stats::*;
use redlock::ffi::status::RedLockStatus::{self, REDLOCK_INVALID_ARGUMENT, REDLOCK_OK};
use redlock::ffi::submit::*;
use redlock::ffi::waking::*;
use redlock::ffi::*;

use crate::declarations::functions;
use crate::support::client::{no_info, no_server_info, no_stats};
use crate::support::events::{Wanted, no_event};
use crate::support::{Lease, Manager};
use crate::{Holder, TTL};

/// A function, called with some of its pointers missing.
type Call = fn(&Arguments) -> Answer;

const ROOM: usize = 4;

/// The kind of value that the function returns.
enum Answer {
    Status(RedLockStatus),
    Nothing(()),
    Held(bool),
    Milliseconds(i64),
    Number(i64),
    Level(i32),
    /// The number of bytes of words or of a name, or the number of names.
    Bytes(usize),
    Descriptor(i32),
    /// The number of bytes of a text, whether the buffer is large enough or not.
    Text(usize),
    Words(*const c_char),
    /// Words about a handle. They say so if there is no handle.
    Complaint(*const c_char),
}
use Answer::{
    Bytes, Complaint, Descriptor, Held, Level, Milliseconds, Nothing, Number, Status, Text, Words,
};

/// The pointers of a call, each valid unless it is missing.
struct Arguments<'a> {
    manager: &'a Manager,
    lease: &'a Lease,
    resource: CString,
    locked: *mut bool,
    options: RedLockAcquireOptions,
    event: Cell<RedLockEvent>,
    infos: Cell<RedLockServerInfo>,
    info: Cell<RedLockInfo>,
    stats: Cell<RedLockStats>,
    count: Cell<usize>,
    room: [Cell<c_char>; ROOM],
    missing: &'a [&'a str],
}

impl Arguments<'_> {
    fn rl(&self) -> *mut RedLock {
        self.or_null("rl", self.manager.raw())
    }

    fn lease(&self) -> *mut RedLockLease {
        self.or_null("lease", self.lease.raw())
    }

    fn resource(&self) -> *const c_char {
        self.or_null("resource", self.resource.as_ptr().cast_mut())
    }

    fn host_or_url(&self) -> *const c_char {
        self.or_null("host_or_url", self.resource.as_ptr().cast_mut())
    }

    fn locked(&self) -> *mut bool {
        self.or_null("locked", self.locked)
    }

    /// For a line of the log, or for words.
    fn room(&self, name: &str) -> *mut c_char {
        self.or_null(name, self.room.as_ptr().cast_mut().cast())
    }

    fn options(&self) -> *const RedLockAcquireOptions {
        self.or_null("options", (&raw const self.options).cast_mut())
    }

    fn event(&self) -> *mut RedLockEvent {
        self.or_null("event", self.event.as_ptr())
    }

    fn infos(&self) -> *mut RedLockServerInfo {
        self.or_null("infos", self.infos.as_ptr())
    }

    fn info(&self) -> *mut RedLockInfo {
        self.or_null("info", self.info.as_ptr())
    }

    fn stats(&self) -> *mut RedLockStats {
        self.or_null("stats", self.stats.as_ptr())
    }

    fn count(&self) -> *mut usize {
        self.or_null("count", self.count.as_ptr())
    }

    fn event_callback(&self) -> RedLockEventCallback {
        unsafe extern "C" fn ignore(_: *const RedLockEvent, _: *mut c_void) {}
        (!self.is_missing("callback")).then_some(ignore)
    }

    /// A string for the parameter of this name.
    fn text(&self, name: &str, text: &'static CStr) -> *const c_char {
        self.or_null(name, text.as_ptr().cast_mut())
    }

    fn password_callback(&self) -> RedLockPasswordCallback {
        unsafe extern "C" fn refuse(
            _: *const c_char,
            _: *mut c_char,
            _: usize,
            _: *mut c_void,
        ) -> bool {
            false
        }
        (!self.is_missing("callback")).then_some(refuse)
    }

    fn callback(&self) -> RedLockLogger {
        unsafe extern "C" fn ignore(_: i32, _: *const c_char, _: *mut c_void) {}
        (!self.is_missing("callback")).then_some(ignore)
    }

    fn destroy(&self) -> RedLockDestroy {
        unsafe extern "C" fn ignore(_: *mut c_void) {}
        (!self.is_missing("destroy")).then_some(ignore)
    }

    fn user_data(&self) -> *mut c_void {
        self.or_null("user_data", self.locked.cast())
    }

    fn or_null<T>(&self, name: &str, pointer: *mut T) -> *mut T {
        if self.is_missing(name) { ptr::null_mut() } else { pointer }
    }

    fn is_missing(&self, name: &str) -> bool {
        self.missing.contains(&name)
    }
}

macro_rules! calls {
    ($($answer:ident $function:ident($($argument:expr),*) of $it:ident;)*) => {
        [$((stringify!($function), |$it: &Arguments| {
            // SAFETY: every pointer is NULL or valid for the duration of the call.
            $answer(unsafe { $function($($argument),*) })
        })),*]
    };
}

/// All functions that take a pointer, each with valid other arguments.
fn calls() -> BTreeMap<&'static str, Call> {
    let calls: [(&str, Call); 72] = calls! {
        Nothing RedLock_Free(it.rl()) of it;
        Status RedLock_AddServerUrl(it.rl(), it.host_or_url(), 1) of it;
        Status RedLock_Connect(it.rl(), 0) of it;
        Status RedLock_LookUp(it.rl()) of it;
        Held RedLock_IsLookUpDue(it.rl()) of it;
        Status RedLock_Servers(it.rl(), it.infos(), it.count()) of it;
        Status RedLock_GetStats(it.rl(), it.stats()) of it;
        Text RedLock_StatsText(it.rl(), it.room("text"), ROOM) of it;
        Status RedLock_SetTracing(it.rl(), 0) of it;
        Status RedLock_SetRetry(it.rl(), 3, 200) of it;
        Status RedLock_SetTimeouts(it.rl(), 1500, 0) of it;
        Status RedLock_SetClockDriftFactor(it.rl(), 0.01) of it;
        Status RedLock_SetRestartGuard(it.rl(), 1, 0, 0) of it;
        Status RedLock_SetFailoverGuard(it.rl(), true) of it;
        Status RedLock_SetFencing(it.rl(), true) of it;
        Status RedLock_SetWaking(it.rl(), true) of it;
        Status RedLock_SetLanguage(it.rl(), 1) of it;
        Status RedLock_SetLogger(it.rl(), it.callback(), it.user_data(), it.destroy()) of it;
        Status RedLock_KeepLog(it.rl(), 10) of it;
        Level RedLock_TakeLogLine(it.rl(), it.room("line"), ROOM) of it;
        Complaint RedLock_ErrorMessage(it.rl()) of it;
        Bytes RedLock_CopyErrorMessage(it.rl(), it.room("message"), ROOM) of it;
        Status RedLock_Acquire(it.rl(), it.options(), it.lease()) of it;
        Status RedLock_SubmitAcquire(it.rl(), it.options(), it.lease(), it.user_data()) of it;
        Status RedLock_SubmitExtend(it.rl(), it.lease(), TTL, it.user_data()) of it;
        Status RedLock_SubmitUnlock(it.rl(), it.lease(), it.user_data()) of it;
        Status RedLock_SubmitConfirm(it.rl(), it.lease(), 0, it.user_data()) of it;
        Status RedLock_KeepAlive(it.rl(), it.lease(), it.user_data()) of it;
        Status RedLock_Cancel(it.rl(), it.lease()) of it;
        Status RedLock_Wait(it.rl(), it.lease(), 0) of it;
        Descriptor RedLock_Descriptor(it.rl()) of it;
        Status RedLock_NextEvent(it.rl(), 0, it.event()) of it;
        Status RedLock_SetBackgroundThread(it.rl(), false) of it;
        Status RedLock_SetEventCallback(
            it.rl(), it.event_callback(), it.user_data(), it.destroy()
        ) of it;
        Status RedLock_Lock(it.rl(), it.resource(), TTL, it.lease()) of it;
        Status RedLock_TryLock(it.rl(), it.resource(), TTL, 0, it.lease()) of it;
        Status RedLock_ContinueLock(it.rl(), it.resource(), TTL, it.lease()) of it;
        Status RedLock_Extend(it.rl(), it.lease(), TTL) of it;
        Status RedLock_Unlock(it.rl(), it.lease()) of it;
        Status RedLock_Downgrade(it.rl(), it.lease()) of it;
        Status RedLock_SubmitDowngrade(it.rl(), it.lease(), it.user_data()) of it;
        Status RedLock_Retain(it.lease()) of it;
        Level RedLockLease_Levels(it.lease()) of it;
        Status RedLock_Confirm(it.rl(), it.lease(), 0) of it;
        Status RedLock_UnlockAfter(it.rl(), it.lease(), 0) of it;
        Status RedLock_SubmitUnlockAfter(it.rl(), it.lease(), 0, it.user_data()) of it;
        Status RedLock_IsLocked(it.rl(), it.resource(), it.locked()) of it;
        Status RedLock_Inspect(it.rl(), it.resource(), 0, it.info()) of it;
        Status RedLock_Detach(it.rl(), it.lease(), it.room("ticket"), ROOM) of it;
        Status RedLock_Adopt(it.rl(), it.text("ticket", c"a ticket"), it.lease()) of it;
        Status RedLock_SubmitAdopt(
            it.rl(), it.text("ticket", c"a ticket"), it.lease(), it.user_data()
        ) of it;
        Status RedLock_SetCredentials(it.rl(), it.text("user", c"u"), it.text("password", c"p")) of it;
        Status RedLock_SetCredentialsFromEnv(
            it.rl(), it.text("user_variable", c"PATH"), it.text("password_variable", c"PATH")
        ) of it;
        Status RedLock_SetPasswordCallback(
            it.rl(), it.text("user", c"u"), it.password_callback(), it.user_data(), it.destroy()
        ) of it;
        Status RedLock_SetTlsCa(it.rl(), it.text("ca_file", c"/no/file")) of it;
        Status RedLock_SetTlsCertificate(
            it.rl(), it.text("certificate_file", c"/no/file"), it.text("key_file", c"/no/file")
        ) of it;
        Status RedLock_SetTlsServerName(it.rl(), it.text("name", c"name")) of it;
        Status RedLock_SetTlsInsecureSkipVerify(it.rl(), false) of it;
        Nothing RedLockLease_Free(it.lease()) of it;
        Status RedLockLease_SetDoneEvents(it.lease(), false) of it;
        Held RedLockLease_IsHeld(it.lease()) of it;
        Milliseconds RedLockLease_RemainingMs(it.lease()) of it;
        Milliseconds RedLockLease_ValidityMs(it.lease()) of it;
        Number RedLockLease_FencingToken(it.lease()) of it;
        Level RedLockLease_Mode(it.lease()) of it;
        Words RedLockLease_Resource(it.lease()) of it;
        Words RedLockLease_Token(it.lease()) of it;
        Bytes RedLockLease_ResourceSize(it.lease()) of it;
        Bytes RedLockLease_ResourceCount(it.lease()) of it;
        Words RedLockLease_ResourceAt(it.lease(), 0) of it;
        Complaint RedLockLease_ErrorMessage(it.lease()) of it;
        Bytes RedLockLease_CopyErrorMessage(it.lease(), it.room("message"), ROOM) of it;
    };
    calls.into_iter().collect()
}

/// The arguments for which NULL has a meaning.
const FINE: [&str; 10] = [
    "callback",
    "destroy",
    "user_data",
    "user",
    "password",
    "user_variable",
    "ca_file",
    "certificate_file",
    "key_file",
    "name",
];

fn is_fine(function: &str, missing: &[&str]) -> bool {
    // Either both of its files are given, or neither.
    let is_half = function == "RedLock_SetTlsCertificate" && missing.len() == 1;
    missing.iter().all(|it| FINE.contains(it)) && !is_half
}

#[test]
fn every_function_with_a_pointer_is_tried() {
    let declared = functions().into_iter().filter(|it| !it.pointers.is_empty());
    let declared: Vec<_> = declared.map(|it| it.name).collect();
    assert_eq!(declared.len(), calls().len());
    for name in declared {
        assert!(calls().contains_key(&*name), "{name} is not tried with NULL");
    }
}

#[test]
fn null_is_refused_by_name_and_does_no_harm() {
    let holder = Holder::new();
    let handles = (&holder.manager, &holder.lease);
    each_choice(|function, missing, call| {
        let mut locked = true;
        let arguments = arguments(handles, &mut locked, missing);
        let answer = holder.nothing_happens(|| call(&arguments));
        judge(function, missing, &answer, handles);
    });
}

#[test]
fn null_is_refused_without_servers_and_lock_too() {
    each_choice(|function, missing, call| {
        let (manager, lease, mut locked) = (Manager::new(), Lease::new(), true);
        let answer = call(&arguments((&manager, &lease), &mut locked, missing));
        judge(function, missing, &answer, (&manager, &lease));
        assert!(!lease.is_held() && lease.resource().is_empty() && lease.token().is_empty());
    });
}

#[test]
fn an_answer_is_false_after_a_failure() {
    each_choice(|function, missing, call| {
        let (manager, lease, mut locked) = (Manager::new(), Lease::new(), true);
        let arguments = arguments((&manager, &lease), &mut locked, missing);
        call(&arguments);
        if function == "RedLock_Inspect" && !missing.contains(&"info") {
            assert_eq!(arguments.info.get().locked, 0, "without {missing:?}");
        }
        if function == "RedLock_IsLocked" && !missing.contains(&"locked") {
            assert!(!locked, "without {missing:?} it answered that it is locked");
        }
    });
}

/// Each function, without each of its pointers, and without each combination of several pointers.
#[track_caller]
fn each_choice(mut body: impl FnMut(&str, &[&str], Call)) {
    let calls = calls();
    for function in functions() {
        let pointers: Vec<&str> = function.pointers.iter().map(String::as_str).collect();
        for choice in 1_usize..1 << pointers.len() {
            let chosen = (0..pointers.len()).filter(|it| choice >> it & 1 == 1);
            let missing: Vec<&str> = chosen.map(|it| pointers[it]).collect();
            if missing == ["user_data"] && takes_lease(&function.name) {
                // This is valid: the call would be made.
                continue;
            }
            body(&function.name, &missing, calls[&*function.name]);
        }
    }
}

fn arguments<'a>(
    (manager, lease): (&'a Manager, &'a Lease),
    locked: &mut bool,
    missing: &'a [&'a str],
) -> Arguments<'a> {
    let resource = c"other".to_owned();
    let room = Default::default();
    let mut options = Wanted::new("", TTL).options();
    (options.resource, options.resource_size) = (c"other".as_ptr(), 0);
    let event = Cell::new(no_event());
    let (infos, count) = (Cell::new(no_server_info()), Cell::new(1));
    let info = Cell::new(RedLockInfo { locked: 1, ..no_info() });
    Arguments {
        manager,
        lease,
        resource,
        locked,
        options,
        event,
        infos,
        info,
        stats: Cell::new(no_stats()),
        count,
        room,
        missing,
    }
}

#[track_caller]
fn judge(function: &str, missing: &[&str], answer: &Answer, (manager, lease): (&Manager, &Lease)) {
    let is_missing = |name| missing.contains(&name);
    match answer {
        Status(status) if is_fine(function, missing) => {
            assert_eq!(*status, REDLOCK_OK, "{function} without {missing:?}");
        }
        Status(status) => {
            assert_eq!(*status, REDLOCK_INVALID_ARGUMENT, "{function} without {missing:?}");
            // Another call may be using the lease that is cancelled.
            let has_words = takes_lease(function) && function != "RedLock_Cancel";
            let words = match has_words && !is_missing("lease") {
                true => lease.message(),
                false if takes_manager(function) && !is_missing("rl") => manager.message(),
                false => return,
            };
            // Any text after this explains why NULL is not allowed.
            let words = words.split(", but ").next().unwrap_or_default();
            let is_named = missing.iter().any(|it| *words == format!("{it} is NULL"));
            assert!(is_named, "{function} without {missing:?} says {words:?}");
        }
        Nothing(()) => {}
        Held(held) => assert!(!held, "{function}"),
        Milliseconds(ms) | Number(ms) => assert_eq!(*ms, 0, "{function}"),
        Level(level) => assert_eq!(*level, 0, "{function}"),
        Bytes(bytes) => {
            let words = match missing[0] {
                handle @ ("rl" | "lease") => format!("{handle} is NULL"),
                _ if takes_lease(function) => lease.message(),
                _ => manager.message(),
            };
            let is_of_names = function.ends_with("Size") || function.ends_with("Count");
            let expected = if is_of_names { 0 } else { words.len() };
            assert_eq!(*bytes, expected, "{function} without {missing:?}");
        }
        Text(bytes) => assert_eq!(*bytes == 0, missing.contains(&"rl"), "{function}"),
        Descriptor(descriptor) => assert_eq!(*descriptor, -1, "{function}"),
        Words(words) => assert_eq!(text(*words), "", "{function}"),
        Complaint(words) => assert_eq!(text(*words), format!("{} is NULL", missing[0])),
    }
}

fn takes_manager(function: &str) -> bool {
    functions().iter().any(|it| it.name == function && it.pointers.iter().any(|it| it == "rl"))
}

fn takes_lease(function: &str) -> bool {
    functions().iter().any(|it| it.name == function && it.pointers.iter().any(|it| it == "lease"))
}

fn text(words: *const c_char) -> String {
    assert!(!words.is_null(), "a string of the library is never NULL");
    // SAFETY: not NULL; strings for NULL live for ever.
    unsafe { CStr::from_ptr(words) }.to_str().expect("UTF-8").to_owned()
}
