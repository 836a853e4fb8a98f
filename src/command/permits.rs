//! What the commands about semaphores share: the slots of one, each of which is a key.

use redis::Cmd;

use super::definition::Subject;
use crate::lock_kind::slot_key;

/// What a key takes beside the name: its length, its number, the ends of lines.
const BESIDE_NAME_MAX: usize = 16;

/// How many slots there are.
pub(super) fn slots(subject: &Subject) -> u16 {
    subject.kind.permits().unwrap_or(1)
}

/// How many bytes the keys of all slots are, at most; 0 for a lock.
pub(super) fn size(subject: &Subject) -> usize {
    let of = usize::from(subject.kind.permits().unwrap_or(0));
    of * (subject.resource.len() + BESIDE_NAME_MAX)
}

/// Begins a script about all slots: what comes next are its other arguments.
pub(super) fn begin<'a>(subject: &Subject, script: &str, command: &'a mut Cmd) -> &'a mut Cmd {
    let of = slots(subject);
    command.arg("EVAL").arg(script).arg(of);
    for slot in 0..of {
        command.arg(slot_key(&subject.resource, slot));
    }
    command
}

#[cfg(test)]
impl Subject {
    /// Some semaphore, for tests.
    pub(super) fn semaphore(of: u16) -> Self {
        Self { kind: crate::lock_kind::LockKind::Permit { of }, ..Self::sample() }
    }
}
