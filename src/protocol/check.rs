//! Checks of the arguments that every locking call takes.

use std::collections::HashMap;
use std::sync::Arc;

use crate::protocol::argument::{Argument, Fault};
use crate::protocol::error::Error;
use crate::protocol::lock_kind::LockKind;
use crate::protocol::quorum::validity::{Drift, TTL_MAX_MS};
use crate::protocol::slot_set::SLOTS_MAX;

/// The maximum size of a resource name, in bytes: far more than any name needs, and small enough to send to
/// every server.
const RESOURCE_MAX: usize = 64 * 1024;

/// The maximum size in bytes of the names of all permits of a semaphore: they go to every server with every
/// attempt.
const PERMIT_NAMES_MAX: usize = 256 * 1024;

pub(crate) fn resource(resource: &[u8]) -> Result<(), Error> {
    if let Some(words) = reserved(resource) {
        return Err(Error::invalid(format!("resource is {words}")));
    }
    match resource.len() {
        0 => Err(Error::invalid("resource is empty")),
        1..=RESOURCE_MAX => Ok(()),
        length => {
            let words = format!("resource is {length} bytes long: the maximum is {RESOURCE_MAX}");
            Err(Error::invalid(words))
        }
    }
}

/// What a key is for that no lock may have.
fn reserved(name: &[u8]) -> Option<&'static str> {
    match name {
        b"redlock:guard" => Some("redlock:guard, a key that the restart guard uses"),
        b"redlock:fence" => Some("redlock:fence, a key that fencing tokens use"),
        _ => None,
    }
}

/// Checks that this version supports such a lock.
pub(crate) fn kind(kind: &LockKind, resource: &[u8], has_fencing: bool) -> Result<(), Error> {
    match kind {
        LockKind::Exclusive | LockKind::Shared => Ok(()),
        LockKind::Permit { of } => permits(*of, resource, has_fencing),
        LockKind::Several(names) => several(names),
    }
}

/// The maximum number of resources of one lock.
pub(crate) const RESOURCES_MAX: usize = 128;

/// Checks several resources. The errors quote no name.
fn several(names: &[Arc<[u8]>]) -> Result<(), Error> {
    let of = names.len();
    if !(2..=RESOURCES_MAX).contains(&of) {
        let words =
            format!("{of} resources: a lock of several resources takes 2 to {RESOURCES_MAX}");
        return Err(Error::invalid(words));
    }
    for (nth, name) in (1..).zip(names) {
        if name.is_empty() {
            return Err(Error::invalid(format!("resource {nth} of {of} is empty")));
        }
        if let Some(words) = reserved(name) {
            return Err(Error::invalid(format!("resource {nth} of {of} is {words}")));
        }
    }
    let bytes: usize = names.iter().map(|name| name.len()).sum();
    if bytes > RESOURCE_MAX {
        let words = format!(
            "the names of the resources have {bytes} bytes in total: the maximum is {RESOURCE_MAX}"
        );
        return Err(Error::invalid(words));
    }
    match first_pair(names) {
        Some((one, other)) => {
            let words = format!("resource {other} of {of} is the same as resource {one}");
            Err(Error::invalid(words))
        }
        None => Ok(()),
    }
}

/// The first name that came before, and where it came first, counted from 1.
fn first_pair(names: &[Arc<[u8]>]) -> Option<(usize, usize)> {
    let mut places: HashMap<&[u8], usize> = HashMap::new();
    (1..).zip(names).find_map(|(nth, name)| Some((places.insert(name, nth)?, nth)))
}

/// Each permit is a key of its own, named after the resource, and a request names all of them.
fn permits(of: u16, resource: &[u8], has_fencing: bool) -> Result<(), Error> {
    if !(1..=SLOTS_MAX).contains(&of) {
        let words = format!("permits is {of}: it must be 1 to {SLOTS_MAX}");
        return Err(Error::invalid(words));
    }
    let bytes = usize::from(of) * resource.len();
    if of > 1 && bytes > PERMIT_NAMES_MAX {
        return Err(Error::invalid(format!(
            "resource is {} bytes long, too long for {of} permits: length times permits may be at most {PERMIT_NAMES_MAX}",
            resource.len()
        )));
    }
    if of > 1 && has_fencing {
        return Err(Error::invalid(
            "semaphore permits have no fencing token: use a manager without fencing",
        ));
    }
    Ok(())
}

/// A TTL must leave some validity.
pub(crate) fn ttl(ttl_ms: i64, drift: Drift) -> Result<(), Error> {
    Error::check_time(Argument::Ttl, ttl_ms, 1..=TTL_MAX_MS)?;
    if drift.validity_ms(ttl_ms) < 1 {
        let allowance_ms = drift.allowance_ms(ttl_ms);
        return Err(Error::of_argument(Argument::Ttl, Fault::Drift { ttl_ms, allowance_ms }));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(names: &[&[u8]]) -> String {
        let names: Vec<Arc<[u8]>> = names.iter().map(|&name| Arc::from(name)).collect();
        let kind = LockKind::Several(Arc::from(names));
        let checked = super::kind(&kind, b"r", false);
        checked.err().map_or_else(String::new, |error| error.to_string())
    }

    #[test]
    fn bad_resources_are_named_by_place_and_not_quoted() {
        let long = [b'x'; 32_768];
        assert_eq!(refusal(&[b"a", b"b"]), "");
        assert_eq!(refusal(&[&long[1..], &long]), "");
        let many: Vec<Vec<u8>> = (0..129_u32).map(|it| it.to_be_bytes().to_vec()).collect();
        let many: Vec<&[u8]> = many.iter().map(Vec::as_slice).collect();
        assert_eq!(refusal(&many[..128]), "");
        assert_eq!(refusal(&many), "129 resources: a lock of several resources takes 2 to 128");
        assert_eq!(refusal(&[b"a"]), "1 resources: a lock of several resources takes 2 to 128");
        assert_eq!(refusal(&[b"secret", b"", b"c"]), "resource 2 of 3 is empty");
        let same = refusal(&[b"a", b"secret", b"c", b"secret"]);
        assert_eq!(same, "resource 4 of 4 is the same as resource 2");
        assert!(refusal(&[b"a", b"redlock:guard"]).starts_with("resource 2 of 2 is redlock:guard"));
        assert!(
            refusal(&[&long, &long[1..], b"ab"])
                .starts_with("the names of the resources have 65537 bytes")
        );
        assert!(refusal(&[b"redlock:fence", b"a"]).starts_with("resource 1 of 2 is redlock:fence"));
        assert!(resource(b"redlock:fence").is_err() && resource(b"redlock:guard").is_err());
    }
}
