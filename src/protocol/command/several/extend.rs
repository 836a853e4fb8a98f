//! Gives all keys at least the TTL if all have the token, and none otherwise. Never sets a key.

use super::{blocked, place};
use crate::protocol::command::answer::Answer;
use crate::protocol::command::definition::{Definition, Replies, Subject, numbers, put_script};
use crate::protocol::command::script::script;

pub(in crate::protocol::command) static DEFINITION: Definition = Definition::script(
    1,
    |subject, _, encoder| put_script(subject, &SCRIPT, &[subject.ttl_ms], encoder),
    decode,
);

/// Without a TTL the script only checks, and changes nothing.
pub(crate) static SCRIPT: &str = script!("extend.lua");

pub(super) fn decode(subject: &Subject, replies: &mut Replies<'_>) -> Option<Answer> {
    match numbers(replies)? {
        Err(refused) => Some(refused),
        Ok([0, _, nth]) => Some(Answer::Lacking { place: place(subject, nth)? }),
        Ok([1, left_ms, 0]) => Some(Answer::Extended { left_ms }),
        Ok([2, left_ms, nth]) => blocked(subject, nth, left_ms),
        Ok(_) => None,
    }
}
