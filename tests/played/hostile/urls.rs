//! What may stand where a server is named: nothing makes us panic, nothing that is wrong is told with
//! a password, and the name of what is right names that server, without one.
//!
//! The first line is the port, the rest the host or URL. In that, the byte 1 stands for [`SECRET`].

use std::ffi::{CStr, CString};

use crate::ffi::status::RedLockStatus::{REDLOCK_INVALID_ARGUMENT, REDLOCK_OK};
use crate::ffi::{RedLock_AddServerUrl, RedLock_ErrorMessage, RedLock_Free, RedLock_New};
use crate::seen;
use crate::transport::endpoint::Endpoint;

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
    // Its name names it.
    let is_up_or_here = |it: &str| it == ".." || it == ".";
    let again = match name.strip_prefix('/') {
        Some(_) if name.contains('\u{FFFD}') => return,
        // A URL with such a part is one without it; escaped slashes make a path of it nevertheless.
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

/// The URL of a master of this name, as in "mymaster (Sentinel host:26379)".
fn watched(name: &str) -> String {
    let parts = name.strip_suffix(')').and_then(|it| it.split_once(" (Sentinel "));
    let (master, sentinel) = parts.expect("a master and its Sentinel");
    let (host, port) = sentinel.rsplit_once(':').expect("a port");
    // The zone of an address.
    let host = if host.contains('%') { format!("[{host}]") } else { host.to_owned() };
    format!("redis-sentinel://{host}:{port}/{master}")
}

/// What of a text is no user and no password, as the library may show it.
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

/// The C function says what the parser says.
fn judge_call(text: &[u8], port: i32, parsed: Option<Result<Endpoint, String>>) {
    // To C, the text ends at the first NUL; then it is another one.
    let Ok(text) = CString::new(text) else { return };
    let rl = RedLock_New();
    // SAFETY: the manager was just made, and the string lives.
    let status = unsafe { RedLock_AddServerUrl(rl, text.as_ptr(), port) };
    // SAFETY: the manager lives, and nobody else uses it.
    let words = unsafe { CStr::from_ptr(RedLock_ErrorMessage(rl)) }.to_str().expect("UTF-8");
    seen::note(&status);
    match parsed {
        Some(Ok(_)) => assert_eq!((status, words), (REDLOCK_OK, "")),
        Some(Err(right)) => assert_eq!((status, words), (REDLOCK_INVALID_ARGUMENT, &*right)),
        None => assert_eq!((status, words), (REDLOCK_INVALID_ARGUMENT, "host_or_url is not UTF-8")),
    }
    // SAFETY: made above, freed once.
    unsafe { RedLock_Free(rl) };
}
