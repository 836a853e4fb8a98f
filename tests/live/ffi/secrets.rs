//! A caller passes a secret in the wrong place, or in a wrong form. Whichever function takes the string, no
//! message and no log line contains any part of it.

use std::collections::BTreeSet;
use std::ffi::{CString, c_char};
use std::ptr;

use redlock::ffi::access::{
    RedLock_SetCredentials, RedLock_SetCredentialsFromEnv, RedLock_SetPasswordCallback,
    RedLock_SetTlsCa, RedLock_SetTlsCertificate, RedLock_SetTlsServerName,
};
use redlock::ffi::acquire::{RedLock_Acquire, RedLockAcquireOptions};
use redlock::ffi::event::RedLock_NextEvent;
use redlock::ffi::handover::RedLock_Adopt;
use redlock::ffi::inspect::RedLock_Inspect;
use redlock::ffi::status::RedLockStatus::{self, REDLOCK_OK};
use redlock::ffi::submit::{RedLock_SubmitAcquire, RedLock_SubmitAdopt};
use redlock::ffi::{
    RedLock, RedLock_AddServerUrl, RedLock_ContinueLock, RedLock_IsLocked, RedLock_Lock,
    RedLock_TryLock,
};

use crate::TTL;
use crate::declarations::functions;
use crate::support::client::no_info;
use crate::support::events::{Wanted, no_event};
use crate::support::usage::make_brief;
use crate::support::{Lease, Manager, ports};

/// A part of every secret below.
const MARK: &str = "Barley";

/// Forms of a secret, or of a text that contains one.
const SHAPES: [&str; 28] = [
    "Barley",
    "open-Barley_42",
    "an open Barley",
    "-----BEGIN PRIVATE KEY-----\nMIGHBarleyAgEAMBMGByqGSM49\n-----END PRIVATE KEY-----\n",
    // As it is written in an environment variable, in JSON, or in a shell's double quotes.
    "-----BEGIN PRIVATE KEY-----\\nMIGHBarleyAgEAMBMGByqGSM49\\n-----END PRIVATE KEY-----\\n",
    "MIGHBarleyAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgevZzL1gdAFr88hb2OF/2NxApJCzGCEDdfSp6VQ==",
    "data:application/x-pem-file;base64,MIGHBarleyAgEAMBMGByqGSM49",
    "Barley\ttab",
    "Barley\r\n",
    "Barley\u{e9}\u{1f512}",
    "/Barley",
    "./Barley/key.pem",
    "file:///run/Barley",
    "PASSWORD=Barley",
    "$Barley",
    "user:Barley",
    "user:Barley@host",
    "user:Barley@host:6379",
    "Barley://host",
    "Barley@host://",
    "redis://user:Barley@host:99999",
    "redis://user:Bar/ley:Barley@host",
    "redis://user:Barley@host/Barley",
    "redis://host/-1?pass=Barley",
    "redis://host#Barley",
    "unix://Barley",
    "unix:///socket?pass=Barley&db=many",
    "rediss://user:Barley@127.0.0.1:1",
];

type Pass = fn(*mut RedLock, &Lease, *const c_char) -> RedLockStatus;

/// Each string that a function takes, by its name.
fn places() -> Vec<(&'static str, &'static str, Pass)> {
    const NOTHING: *const c_char = ptr::null();
    // SAFETY (all): the manager, the lease and the string outlive the call, and NULL is allowed where it is
    // passed.
    vec![
        // SAFETY: see above.
        ("RedLock_AddServerUrl", "host_or_url", |rl, _, it| unsafe {
            RedLock_AddServerUrl(rl, it, 0)
        }),
        // SAFETY: see above.
        ("RedLock_SetCredentials", "user", |rl, _, it| unsafe {
            RedLock_SetCredentials(rl, it, c"another".as_ptr())
        }),
        // SAFETY: see above.
        ("RedLock_SetCredentials", "password", |rl, _, it| unsafe {
            RedLock_SetCredentials(rl, NOTHING, it)
        }),
        // SAFETY: see above.
        ("RedLock_SetCredentialsFromEnv", "user_variable", |rl, _, it| unsafe {
            RedLock_SetCredentialsFromEnv(rl, it, c"PATH".as_ptr())
        }),
        // SAFETY: see above.
        ("RedLock_SetCredentialsFromEnv", "password_variable", |rl, _, it| unsafe {
            RedLock_SetCredentialsFromEnv(rl, NOTHING, it)
        }),
        // SAFETY: see above.
        ("RedLock_SetPasswordCallback", "user", |rl, _, it| unsafe {
            RedLock_SetPasswordCallback(rl, it, None, ptr::null_mut(), None)
        }),
        // SAFETY: see above.
        ("RedLock_SetTlsCa", "ca_file", |rl, _, it| unsafe { RedLock_SetTlsCa(rl, it) }),
        // SAFETY: see above.
        ("RedLock_SetTlsCertificate", "certificate_file", |rl, _, it| unsafe {
            RedLock_SetTlsCertificate(rl, it, c"Cargo.toml".as_ptr())
        }),
        // SAFETY: see above.
        ("RedLock_SetTlsCertificate", "key_file", |rl, _, it| unsafe {
            RedLock_SetTlsCertificate(rl, it, it)
        }),
        // SAFETY: see above.
        ("RedLock_SetTlsServerName", "name", |rl, _, it| unsafe {
            RedLock_SetTlsServerName(rl, it)
        }),
        // SAFETY: see above.
        ("RedLock_Lock", "resource", |rl, lease, it| unsafe {
            RedLock_Lock(rl, it, TTL, lease.raw())
        }),
        // SAFETY: see above.
        ("RedLock_TryLock", "resource", |rl, lease, it| unsafe {
            RedLock_TryLock(rl, it, TTL, 0, lease.raw())
        }),
        // SAFETY: see above.
        ("RedLock_ContinueLock", "resource", |rl, lease, it| unsafe {
            RedLock_ContinueLock(rl, it, TTL, lease.raw())
        }),
        // SAFETY: see above.
        ("RedLock_IsLocked", "resource", |rl, _, it| unsafe {
            let mut locked = false;
            RedLock_IsLocked(rl, it, &raw mut locked)
        }),
        // SAFETY: see above.
        ("RedLock_Inspect", "resource", |rl, _, it| unsafe {
            let mut info = no_info();
            RedLock_Inspect(rl, it, 0, &raw mut info)
        }),
        // SAFETY: see above.
        ("RedLock_Adopt", "ticket", |rl, lease, it| unsafe { RedLock_Adopt(rl, it, lease.raw()) }),
        // SAFETY: see above.
        ("RedLock_SubmitAdopt", "ticket", |rl, lease, it| unsafe {
            RedLock_SubmitAdopt(rl, it, lease.raw(), ptr::null_mut())
        }),
    ]
}

fn options(resource: *const c_char) -> RedLockAcquireOptions {
    let options = Wanted::new("", TTL).options();
    RedLockAcquireOptions { resource, resource_size: 0, ..options }
}

fn of_several(names: &[*const c_char]) -> RedLockAcquireOptions {
    let (resources, resource_count) = (names.as_ptr(), names.len());
    RedLockAcquireOptions { resources, resource_count, ..options(ptr::null()) }
}

/// The strings within the structs that a function takes.
fn fields() -> [(&'static str, &'static str, Pass); 4] {
    [
        ("RedLock_Acquire", "options->resources", |rl, lease, it| {
            let names = [c"other".as_ptr(), it];
            let options = of_several(&names);
            // SAFETY: see above.
            unsafe { RedLock_Acquire(rl, &raw const options, lease.raw()) }
        }),
        ("RedLock_Acquire", "options->resources, twice", |rl, lease, it| {
            let names = [it, c"other".as_ptr(), it];
            let options = of_several(&names);
            // SAFETY: see above.
            unsafe { RedLock_Acquire(rl, &raw const options, lease.raw()) }
        }),
        ("RedLock_Acquire", "options->resource", |rl, lease, it| {
            let options = options(it);
            // SAFETY: see above.
            unsafe { RedLock_Acquire(rl, &raw const options, lease.raw()) }
        }),
        ("RedLock_SubmitAcquire", "options->resource", |rl, lease, it| {
            let (options, mut event) = (options(it), no_event());
            // SAFETY: see above.
            unsafe {
                let submitted =
                    RedLock_SubmitAcquire(rl, &raw const options, lease.raw(), ptr::null_mut());
                if submitted != REDLOCK_OK {
                    return submitted;
                }
                assert_eq!(RedLock_NextEvent(rl, -1, &raw mut event), REDLOCK_OK);
            }
            event.status
        }),
    ]
}

#[test]
fn every_string_parameter_is_tried() {
    let declared = functions();
    let declared =
        declared.iter().flat_map(|it| it.strings.iter().map(|name| (&*it.name, &**name)));
    // Output buffers, for a log line and for words.
    let goes_out =
        |it: &(&str, &str)| matches!(*it, (_, "line" | "message" | "text") | ("RedLock_Detach", _));
    let declared = declared.filter(|it| !goes_out(it));
    let known = places();
    let known = known.iter().map(|&(function, parameter, _)| (function, parameter));
    // The words of a status are requested by its number. All other strings are output.
    assert_eq!(declared.collect::<BTreeSet<_>>(), known.collect::<BTreeSet<_>>());
}

#[test]
fn no_secret_is_shown_whatever_its_parameter() {
    for (function, parameter, pass) in places().into_iter().chain(fields()) {
        for shape in SHAPES {
            // A secret that is too long for a path, and one that is not valid text.
            let long = shape.repeat(200);
            for text in [shape.as_bytes(), long.as_bytes(), &[shape.as_bytes(), b"\xff"].concat()] {
                let (status, words) = all_that_is_told(pass, text);
                assert_has_no_secret(&words, (function, parameter, shape, status));
            }
        }
    }
}

/// The words name a server wherever they mention it. A server that was added too late, or beyond the maximum
/// number, is not a server of the manager.
#[test]
fn a_refused_server_is_not_named() {
    for host in
        ["Barley", "Barley.example", "redis://Barley", "unix:///Barley", "rediss://u@Barley"]
    {
        let port = if host.contains("://") { 0 } else { 6379 };
        let closed = Manager::at(&[format!("127.0.0.1:{}", ports::free())]);
        closed.connect(0);
        let full = Manager::new();
        for port in 1..=64 {
            assert_eq!(full.add("127.0.0.1", port), REDLOCK_OK);
        }
        let twice = Manager::new();
        assert!(twice.add(host, port) == REDLOCK_OK || cfg!(not(feature = "tls")), "{host}");
        for manager in [closed, full, twice] {
            let status = manager.add(host, port);
            assert_ne!(status, REDLOCK_OK, "{host}");
            assert_has_no_secret(&[manager.message()], ("RedLock_AddServerUrl", "", host, status));
        }
    }
}

/// The words of the call, and of later calls.
fn all_that_is_told(pass: Pass, text: &[u8]) -> (RedLockStatus, Vec<String>) {
    let text = CString::new(text).expect("no NUL in it");
    let manager = Manager::at(&[format!("127.0.0.1:{}", ports::free())]);
    make_brief(&manager);
    let (log, lease) = (manager.log(), Lease::new());
    let status = pass(manager.raw(), &lease, text.as_ptr());
    let mut words = vec![manager.message(), lease.message()];
    if status == REDLOCK_OK {
        // The string was accepted. No server is there to receive it, but there are words about that.
        assert_ne!(manager.try_lock("other", TTL, 0, &lease), REDLOCK_OK);
        words.push(lease.message());
        assert_ne!(manager.connect(50), REDLOCK_OK);
    }
    words.extend([manager.message(), log.text()]);
    (status, words)
}

#[track_caller]
fn assert_has_no_secret(words: &[String], case: (&str, &str, &str, RedLockStatus)) {
    for text in words {
        let is_told = text.to_lowercase().contains(&MARK.to_lowercase());
        assert!(!is_told, "{case:?}: {text}");
    }
    assert_ne!(words[0..words.len().min(2)].concat().is_empty(), case.3 != REDLOCK_OK, "{case:?}");
}
