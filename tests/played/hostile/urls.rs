//! Any text in place of a server. Nothing makes the library panic. An error message about wrong text
//! contains no password. The name of a right server identifies that server, and contains no password.
//!
//! The first line is the port, the rest is the host or URL. In the rest, the byte 1 stands for [`SECRET`].

use std::ffi::{CStr, CString};

use crate::ffi::status::RedLockStatus::{REDLOCK_INVALID_ARGUMENT, REDLOCK_OK};
use crate::ffi::{RedLock_AddServerUrl, RedLock_ErrorMessage, RedLock_Free, RedLock_New};
use crate::protocol::servers::endpoint::Endpoint;
use crate::seen;

/// A password.
pub(crate) const SECRET: &str = "s3cr3t";

/// Plays one run.
pub fn urls(data: &[u8]) {
    let (port, text) = input(data);
    let parsed = std::str::from_utf8(&text).ok().map(|it| Endpoint::parse(it, port));
    match (&parsed, std::str::from_utf8(&text)) {
        (Some(Ok(endpoint)), Ok(text)) => judge_endpoint(endpoint, text),
        (Some(Err(words)), _) => judge_words(words),
        _ => {}
    }
    judge_call(&text, port, parsed);
}

/// The port and the text.
fn input(data: &[u8]) -> (i32, Vec<u8>) {
    let mut lines = data.splitn(2, |&it| it == b'\n');
    let port = lines.next().and_then(|it| std::str::from_utf8(it).ok()?.parse().ok());
    let mut text = Vec::new();
    for &byte in lines.next().unwrap_or_default() {
        match byte {
            1 => text.extend_from_slice(SECRET.as_bytes()),
            _ => text.push(byte),
        }
    }
    (port.unwrap_or(0), text)
}

fn judge_words(words: &str) {
    assert!(!words.contains(SECRET), "a password is told: {words}");
    assert!(!words.is_empty() && words.len() < 200, "{words}");
    assert!(!words.contains(char::is_control), "more than one line: {words:?}");
}

fn judge_endpoint(endpoint: &Endpoint, text: &str) {
    let name = endpoint.to_string();
    assert_eq!(format!("{endpoint:?}"), format!("Endpoint({name})"));
    if !shown(text).contains(SECRET) {
        assert!(!name.contains(SECRET), "a password is told: {name}");
    }
    // Its name must identify it.
    let is_up_or_here = |it: &str| it == ".." || it == ".";
    let again = match name.strip_prefix('/') {
        Some(_) if name.contains('\u{FFFD}') => return,
        // A URL parser removes such a part. Escaped slashes make a path of it nevertheless.
        Some(path) if path.split('/').any(is_up_or_here) => return,
        Some(_) => Endpoint::parse(&format!("unix://{}", escaped(&name)), 0),
        None if name.ends_with(')') => Endpoint::parse(&watched(&name), 0),
        None => {
            let (host, port) = name.rsplit_once(':').expect("a port");
            Endpoint::parse(host, port.parse().expect("a port"))
        }
    };
    assert!(again.is_ok_and(|it| it.is_same_server(endpoint)), "{name} is another server");
}

/// The URL of a master with this name, as in "mymaster (Sentinel host:26379)".
fn watched(name: &str) -> String {
    let parts = name.strip_suffix(')').and_then(|it| it.split_once(" (Sentinel "));
    let (master, sentinel) = parts.expect("a master and its Sentinel");
    let (host, port) = sentinel.rsplit_once(':').expect("a port");
    // The address has a zone.
    let zoned = host.replace('%', "%25");
    let host = if host.contains('%') { format!("[{zoned}]") } else { host.to_owned() };
    format!("redis-sentinel://{host}:{port}/{master}")
}

/// The parts of a text that are neither user nor password, as the library may show them.
fn shown(text: &str) -> String {
    let Some((_, rest)) = text.split_once("://") else { return text.to_lowercase() };
    let authority_end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(authority_end);
    let host = authority.rsplit_once('@').map_or(authority, |it| it.1);
    let path = path.split(['?', '#']).next().unwrap_or_default();
    unescaped(&format!("{host}{path}")).to_lowercase()
}

fn unescaped(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut plain = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let digits = bytes.get(at + 1..at + 3).and_then(|it| std::str::from_utf8(it).ok());
        match digits.and_then(|it| u8::from_str_radix(it, 16).ok()) {
            Some(byte) if bytes[at] == b'%' => {
                plain.push(byte);
                at += 3;
            }
            _ => {
                plain.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}

fn escaped(path: &str) -> String {
    let escape = |it: u8| match it {
        b'/' | b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(it).to_string(),
        _ => format!("%{it:02X}"),
    };
    path.bytes().map(escape).collect()
}

/// The C function must return what the parser returns.
fn judge_call(text: &[u8], port: i32, parsed: Option<Result<Endpoint, String>>) {
    // For C, the text ends at the first NUL, and would be a different text.
    let Ok(text) = CString::new(text) else { return };
    let rl = RedLock_New();
    // SAFETY: the manager was just made, and the string is alive.
    let status = unsafe { RedLock_AddServerUrl(rl, text.as_ptr(), port) };
    // SAFETY: the manager is alive, and nobody else uses it.
    let words = unsafe { CStr::from_ptr(RedLock_ErrorMessage(rl)) }.to_str().expect("UTF-8");
    seen::note(&status);
    match parsed {
        Some(Ok(_)) => assert_eq!((status, words), (REDLOCK_OK, "")),
        Some(Err(right)) => {
            let right = format!("server 1: {right}");
            assert_eq!((status, words), (REDLOCK_INVALID_ARGUMENT, &*right));
        }
        None => assert_eq!((status, words), (REDLOCK_INVALID_ARGUMENT, "host_or_url is not UTF-8")),
    }
    // SAFETY: it was made above, and is freed once.
    unsafe { RedLock_Free(rl) };
}
