//! Locks of several resources at once: on a server, all of them or none. Each command is one script, so no
//! other client gets in between, and a server gives one answer for all resources.
//!
//! All keys have the same token. The plain commands give answers about one key. These commands give answers
//! about all keys: that they are ours, or the place of one that is not. No name is ever quoted.

pub(crate) mod acquire;
pub(crate) mod extend;
pub(crate) mod fence;
pub(super) mod inspect;
pub(crate) mod release;
pub(crate) mod repair;
pub(crate) mod waking;

use super::answer::{Answer, NthKey};
use super::definition::Subject;
use super::pttl;

/// The maximum number of bytes of the request that each key takes beside its name.
pub(super) const BESIDE_KEY_MAX: usize = 24;

/// A key that is in the way, according to a script. None if the script cannot return that.
fn blocked(subject: &Subject, nth: i64, said: i64) -> Option<Answer> {
    Some(Answer::Blocked { place: place(subject, nth)?, left_ms: pttl::left_ms(said) })
}

/// The place of the n-th resource, from 1.
fn place(subject: &Subject, nth: i64) -> Option<NthKey> {
    let (nth, of) = (u16::try_from(nth).ok()?, u16::try_from(subject.names().len()).ok()?);
    (1..=of).contains(&nth).then_some(NthKey { nth, of })
}

#[cfg(test)]
mod tests;
