//! A ticket that passes a lock from one process to another: printable text.
//!
//! It consists of `redlock1.` and four parts with dots between them. These are the resource in URL-safe
//! base64, the TTL that the lock was last given, its fencing token (0 for none), and its token. The ticket of
//! a lock that is not exclusive begins with `redlock2.` and its kind: `redlock2.shared.` or
//! `redlock2.several.`. Versions that know only exclusive locks reject it as a ticket of another version. The
//! ticket of several resources has all names in place of the one name, with tildes between them. The token
//! comes last and has a fixed length, so a ticket that was cut off is not valid. No message about an invalid
//! ticket quotes it, because its token is a secret.

use std::str;
use std::sync::Arc;

use crate::protocol::check;
use crate::protocol::error::Error;
use crate::protocol::lock::Lock;
use crate::protocol::lock_kind::{LockKind, Target};
use crate::protocol::quorum::validity::TTL_MAX_MS;
use crate::protocol::token::Token;

/// The beginning of all tickets, and the beginnings of the tickets of this version.
const FAMILY: &[u8] = b"redlock";
const BEGIN: &str = "redlock1.";
const BEGIN_SHARED: &str = "redlock2.shared.";
const BEGIN_SEVERAL: &str = "redlock2.several.";

/// The maximum size of a ticket: one with a resource of 64 KiB.
const SIZE_MAX: usize = 96 * 1024;

/// One more than the largest fencing token.
const FENCE_END: i64 = 1 << 53;

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The data that the adopter of a lock needs.
#[derive(Debug)]
pub(crate) struct LockTicket {
    pub(crate) target: Target,
    pub(crate) ttl_ms: i64,
    /// 0 if there is none.
    pub(crate) fencing_token: i64,
    pub(crate) token: Token,
}

impl LockTicket {
    pub(crate) fn of(lock: &Lock) -> Self {
        Self {
            target: lock.key(),
            ttl_ms: lock.ttl_ms(),
            fencing_token: lock.fencing_token(),
            token: *lock.token(),
        }
    }

    pub(crate) fn to_text(&self) -> String {
        let Self { ttl_ms, fencing_token, token, .. } = self;
        let names: Vec<String> = self.target.names().iter().map(|name| encode(name)).collect();
        let begin = match self.target.kind {
            LockKind::Several(_) => BEGIN_SEVERAL,
            LockKind::Shared => BEGIN_SHARED,
            _ => BEGIN,
        };
        format!("{begin}{}.{ttl_ms}.{fencing_token}.{}", names.join("~"), token.as_str())
    }

    pub(crate) fn read(text: &[u8]) -> Result<Self, Error> {
        let several = text.strip_prefix(BEGIN_SEVERAL.as_bytes());
        let shared = text.strip_prefix(BEGIN_SHARED.as_bytes());
        let Some(parts) = several.or(shared).or_else(|| text.strip_prefix(BEGIN.as_bytes())) else {
            let is_other = text.starts_with(FAMILY)
                && text[FAMILY.len()..].first().is_some_and(u8::is_ascii_digit);
            return Err(Error::invalid(match (text.is_empty(), is_other) {
                (true, _) => "the ticket is empty",
                (_, true) => "the ticket is from another version of redlock",
                _ => "not a redlock ticket (it must start with `redlock1.`)",
            }));
        };
        if text.len() > SIZE_MAX {
            let words = format!("the ticket is too long: {} bytes", text.len());
            return Err(Error::invalid(words));
        }
        let damaged = || Error::invalid("the ticket is damaged or incomplete");
        let mut parts = parts.split(|&it| it == b'.');
        let mut part = || parts.next().ok_or_else(damaged);
        let names = part()?;
        let target = match several {
            Some(_) => target_of_several(names),
            None => decode(names).map(|name| Target::from(Arc::from(name))),
        };
        let as_shared = |target| Target { kind: LockKind::Shared, ..target };
        let target = if shared.is_some() { target.map(as_shared) } else { target };
        let target = target.ok_or_else(damaged)?;
        let ttl_ms = number(part()?, 1..=TTL_MAX_MS).ok_or_else(damaged)?;
        let fencing_token = number(part()?, 0..=FENCE_END - 1).ok_or_else(damaged)?;
        let token = Token::from_digits(part()?).ok_or_else(damaged)?;
        if parts.next().is_some() {
            return Err(damaged());
        }
        check::kind(&target.kind, &target.resource, false)?;
        check::resource(&target.resource)?;
        Ok(Self { target, ttl_ms, fencing_token, token })
    }
}

fn target_of_several(names: &[u8]) -> Option<Target> {
    let names = names.split(|&it| it == b'~').map(|name| decode(name).map(Arc::from));
    let names: Option<Vec<Arc<[u8]>>> = names.collect();
    let names: Arc<[Arc<[u8]>]> = Arc::from(names?);
    Some(Target { resource: Arc::clone(names.first()?), kind: LockKind::Several(names) })
}

/// Reads a number, but only in the form in which this library writes it.
fn number(text: &[u8], range: std::ops::RangeInclusive<i64>) -> Option<i64> {
    let text = str::from_utf8(text).ok()?;
    let number = text.parse().ok().filter(|it| range.contains(it))?;
    (number.to_string() == text).then_some(number)
}

/// Three bytes become four digits. A rest of one or two bytes becomes two or three digits.
fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let mut three = [0; 3];
        three[..chunk.len()].copy_from_slice(chunk);
        let bits = three.iter().fold(0, |bits, &byte| bits << 8 | usize::from(byte));
        let digits = [18, 12, 6, 0].map(|shift| char::from(DIGITS[bits >> shift & 63]));
        text.extend(&digits[..=chunk.len()]);
    }
    text
}

fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3 + 2);
    for chunk in text.chunks(4) {
        let mut bits = 0;
        for place in 0..4 {
            let digit = match chunk.get(place) {
                Some(digit) => DIGITS.iter().position(|it| it == digit)?,
                None => 0,
            };
            bits = bits << 6 | digit;
        }
        let three = [16, 8, 0].map(|shift| u8::try_from(bits >> shift & 255).unwrap_or_default());
        bytes.extend(&three[..chunk.len().checked_sub(1)?.min(3)]);
    }
    // There is only one valid encoding of the same bytes.
    (encode(&bytes).as_bytes() == text).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use std::mem;

    use super::*;
    use crate::protocol::error::Status;

    fn ticket(resource: &[u8], fencing_token: i64) -> LockTicket {
        let token = Token::from_random([0xAB; 20]);
        let target = Target::from(Arc::from(resource));
        LockTicket { target, ttl_ms: 30_000, fencing_token, token }
    }

    fn refusal(text: impl AsRef<[u8]>) -> String {
        let error = LockTicket::read(text.as_ref()).expect_err("it is none");
        assert_eq!(error.status(), Status::InvalidArgument);
        error.to_string()
    }

    #[test]
    fn a_ticket_survives_a_round_trip() {
        let long = [b'r'; 65_536];
        let all: Vec<u8> = (0..=255).collect();
        for resource in [&b"r"[..], b"re", b"res", b"reso", b"a\0b", &all, &long] {
            for fencing_token in [0, 1, FENCE_END - 1] {
                let text = ticket(resource, fencing_token).to_text();
                assert!(text.bytes().all(|it| it.is_ascii_graphic()));
                assert!(text.len() < 128 + resource.len().div_ceil(3) * 4);
                let read = LockTicket::read(text.as_bytes()).expect("it is one");
                assert_eq!((&*read.target.resource, read.ttl_ms), (resource, 30_000));
                assert_eq!(read.fencing_token, fencing_token);
                assert_eq!(read.token, Token::from_random([0xAB; 20]));
            }
        }
        let expected = format!("redlock1.aW52b2ljZTo0Mg.30000.7.{}", "AB".repeat(20));
        assert_eq!(ticket(b"invoice:42", 7).to_text(), expected);
    }

    #[test]
    fn a_ticket_marks_a_shared_lock() {
        let mut shared = ticket(b"invoice:42", 0);
        shared.target.kind = LockKind::Shared;
        let text = shared.to_text();
        assert!(text.starts_with("redlock2.shared.aW52b2ljZTo0Mg.30000.0."), "{text}");
        let read = LockTicket::read(text.as_bytes()).expect("it is one");
        assert_eq!(read.target, shared.target);
        for other in ["redlock2.", "redlock2.shared", "redlock2.permit.", "redlock2.sharedx."] {
            let text = text.replacen("redlock2.shared.", other, 1);
            assert!(refusal(&text).contains("another version"), "{text}");
        }
        for end in 0..text.len() {
            assert!(!refusal(&text[..end]).contains("AB"));
        }
    }

    #[test]
    fn a_ticket_of_several_resources_keeps_their_order() {
        let names: [&[u8]; 3] = [b"b", b"invoice:42", b"a"];
        let names: Vec<Arc<[u8]>> = names.iter().map(|&name| Arc::from(name)).collect();
        let kind = LockKind::Several(Arc::from(names.clone()));
        let target = Target { resource: Arc::clone(&names[0]), kind };
        let text = LockTicket { target: target.clone(), ..ticket(b"b", 7) }.to_text();
        let expected = format!("Yg~aW52b2ljZTo0Mg~YQ.30000.7.{}", "AB".repeat(20));
        assert_eq!(text, format!("redlock2.several.{expected}"));
        assert_eq!(LockTicket::read(text.as_bytes()).expect("it is one").target, target);
        // The room that the macro of the header gives, with two more bytes for each name.
        let bytes: usize = names.iter().map(|name| name.len() + 2).sum();
        assert!(text.len() < 128 + bytes.div_ceil(3) * 4);
        for (from, to) in
            [("Yg~", "~"), ("Yg~", "Yg~~"), ("~YQ", "~Yg"), ("Yg~aW52b2ljZTo0Mg~", "")]
        {
            let words = refusal(text.replacen(from, to, 1));
            assert!(!words.contains("invoice") && !words.contains("aW52"), "{words}");
        }
        assert!(refusal(text.replacen("several", "other", 1)).contains("another version"));
        let guard = text.replacen("Yg", &encode(b"redlock:guard"), 1);
        assert!(refusal(guard).contains("redlock:guard"));
    }

    #[test]
    fn a_damaged_ticket_is_refused_and_not_quoted() {
        let text = ticket(b"invoice:42", 7).to_text();
        for end in 0..text.len() {
            let words = refusal(&text[..end]);
            assert!(!words.contains("AB") && !words.contains("aW52"), "{words}");
        }
        for place in 0..text.len() {
            for other in [b'.', b'*', b' ', 0, 0xFF, b'-'] {
                let mut text = text.clone().into_bytes();
                if mem::replace(&mut text[place], other) == other {
                    continue;
                }
                if let Ok(read) = LockTicket::read(&text) {
                    // The ticket is for another resource. Nobody holds that resource with this token.
                    assert_ne!(&*read.target.resource, b"invoice:42", "at {place}");
                }
            }
        }
        let another = |from: &str, to: &str| refusal(text.replacen(from, to, 1));
        assert!(another("redlock1.", "redlock3.").contains("another version"));
        assert!(another("redlock1.", "ticket1.").contains("it must start with `redlock1.`"));
        assert!(another("30000", "0").contains("damaged"));
        assert!(another("30000", "+30000").contains("damaged"));
        assert!(another("30000", "99999999999999").contains("damaged"));
        assert!(another(".7.", ".9007199254740992.").contains("damaged"));
        assert!(another(".7.", ".-1.").contains("damaged"));
        assert!(another("ABAB", "abab").contains("damaged"));
        assert!(another("aW52b2ljZTo0Mg", "").contains("empty"));
        assert!(refusal(format!("{text}.")).contains("damaged"));
        assert!(refusal(format!("{text}\n")).contains("damaged"));
        assert!(refusal("").contains("empty"));
        assert!(refusal([BEGIN.as_bytes(), &[b'a'; 200_000]].concat()).contains("200009 bytes"));
        let guard = ticket(b"redlock:guard", 0).to_text();
        assert!(refusal(guard).contains("redlock:guard"));
    }
}
