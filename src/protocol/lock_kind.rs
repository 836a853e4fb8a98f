//! What a lock protects: its name on the servers, and how many callers may hold it at the same time.

use std::slice;
use std::sync::Arc;

use crate::protocol::slot_set::SLOTS_MAX;

/// How many callers may hold a lock at the same time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LockKind {
    /// One caller.
    #[default]
    Exclusive,
    /// All callers that want the lock in shared mode.
    Shared,
    /// One permit of a semaphore.
    Permit {
        /// The number of permits of the semaphore: 1 to 256.
        of: u16,
    },
    /// One caller, which locks several resources at once: all of them, or none.
    Several(Arc<[Arc<[u8]>]>),
}

/// What a lock protects. All requests about one lock have the same target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The name. It is the key on the servers, or the names of the keys are derived from it.
    pub resource: Arc<[u8]>,
    /// How many callers may hold the lock.
    pub kind: LockKind,
}

impl Target {
    /// The names of all resources: one name, or several names in the order in which they were given.
    pub fn names(&self) -> &[Arc<[u8]>] {
        match &self.kind {
            LockKind::Several(names) => names,
            _ => slice::from_ref(&self.resource),
        }
    }
}

impl From<Arc<[u8]>> for Target {
    /// An exclusive lock with this name.
    fn from(resource: Arc<[u8]>) -> Self {
        Self { resource, kind: LockKind::Exclusive }
    }
}

impl LockKind {
    /// The number of permits of the semaphore, if this is a permit.
    pub fn permits(&self) -> Option<u16> {
        match *self {
            Self::Permit { of } => Some(of),
            _ => None,
        }
    }
}

impl Target {
    /// A semaphore with one permit becomes an exclusive lock.
    pub fn new(resource: Arc<[u8]>, kind: LockKind) -> Self {
        let kind = if kind == (LockKind::Permit { of: 1 }) { LockKind::Exclusive } else { kind };
        Self { resource, kind }
    }

    /// The slot with this number, of a semaphore with this name. A slot is an ordinary lock.
    pub fn slot(&self, slot: u16) -> Self {
        Self { resource: Arc::from(slot_key(&self.resource, slot)), kind: LockKind::Exclusive }
    }
}

/// The name of the semaphore and the number of the slot, if this key may be a slot other than the first.
pub fn slot_of(key: &[u8]) -> Option<(&[u8], u16)> {
    let at = key.iter().rposition(|&byte| byte == b'#').filter(|&at| at > 0)?;
    let (base, digits) = (&key[..at], &key[at + 1..]);
    let is_number =
        matches!(digits, [b'1'..=b'9', rest @ ..] if rest.iter().all(u8::is_ascii_digit));
    let slot = str::from_utf8(digits).ok().filter(|_| is_number)?.parse().ok()?;
    (slot < SLOTS_MAX).then_some((base, slot))
}

/// The key of a slot of a semaphore. The key of the first slot is the name itself: an ordinary lock of this
/// name uses one permit.
pub fn slot_key(resource: &[u8], slot: u16) -> Vec<u8> {
    match slot {
        0 => resource.to_vec(),
        _ => [resource, format!("#{slot}").as_bytes()].concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_known_by_its_key() {
        for slot in [1, 9, 10, 255] {
            assert_eq!(slot_of(&slot_key(b"a#b", slot)), Some((&b"a#b"[..], slot)));
        }
        for other in [&b"a"[..], b"a#", b"a#0", b"a#01", b"a#1x", b"a#256", b"a#70000", b"#1", b""]
        {
            assert_eq!(slot_of(other), None, "{}", String::from_utf8_lossy(other));
        }
    }
}
