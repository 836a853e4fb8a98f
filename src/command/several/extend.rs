//! Gives all keys at least the TTL if all have the token; else none. Never sets one.

use super::{blocked, numbers, place, put_script};
use crate::command::answer::Answer;
use crate::command::definition::{Definition, KeyEffect, Kind, Replies, Subject, only_form};
use crate::command::script::Script;

pub(super) static DEFINITION: Definition = Definition {
    kind: Kind::ExtendingSeveral,
    effect: KeyEffect::Passes,
    replies: 1,
    names: 1,
    form: only_form,
    encode: |subject, _, encoder| put_script(subject, SCRIPT, &[subject.ttl_ms], encoder),
    decode,
};

const FILE: &str = include_str!("extend.lua");
const LINE: Script<{ FILE.len() }> = Script::of(FILE);
/// Without a TTL it looks, and changes nothing.
pub(crate) static SCRIPT: &str = LINE.text();

pub(super) fn decode(subject: &Subject, replies: &mut Replies<'_>) -> Option<Answer> {
    match numbers(replies)? {
        Err(refused) => Some(refused),
        Ok([0, _, nth]) => Some(Answer::Lacking { place: place(subject, nth)? }),
        Ok([1, left_ms, 0]) => Some(Answer::Extended { left_ms }),
        Ok([2, left_ms, nth]) => blocked(subject, nth, left_ms),
        Ok(_) => None,
    }
}
