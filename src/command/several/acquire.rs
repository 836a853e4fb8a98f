//! Sets all keys to the token for the TTL, unless one of them is there.

use super::{blocked, numbers, put_script};
use crate::command::answer::Answer;
use crate::command::definition::{Definition, KeyEffect, Kind, Replies, Subject};
use crate::command::script::Script;

pub(super) static DEFINITION: Definition = Definition {
    kind: Kind::AcquiringSeveral,
    effect: KeyEffect::Leaves,
    replies: 1,
    names: 1,
    form: |capabilities| usize::from(capabilities.sets_several),
    encode: |subject, capabilities, encoder| {
        let script = if capabilities.sets_several { SCRIPT_MSETEX } else { SCRIPT };
        put_script(subject, script, &[subject.ttl_ms], encoder);
    },
    decode,
};

const FILE: &str =
    concat!(include_str!("acquire.lua"), include_str!("in_the_way.lua"), include_str!("tell.lua"));
const LINE: Script<{ FILE.len() }> = Script::of(FILE);
pub(crate) static SCRIPT: &str = LINE.text();

const FILE_MSETEX: &str = concat!(
    include_str!("acquire_msetex.lua"),
    include_str!("in_the_way.lua"),
    include_str!("tell.lua")
);
const LINE_MSETEX: Script<{ FILE_MSETEX.len() }> = Script::of(FILE_MSETEX);
pub(crate) static SCRIPT_MSETEX: &str = LINE_MSETEX.text();

pub(super) fn decode(subject: &Subject, replies: &mut Replies<'_>) -> Option<Answer> {
    match numbers(replies)? {
        Err(refused) => Some(refused),
        Ok([0, 0]) => Some(Answer::Done),
        // It has ended while it was looked for.
        Ok([0, -2]) => Some(Answer::Foreign { left_ms: None }),
        Ok([nth, left_ms]) => blocked(subject, nth, left_ms),
    }
}
