//! Sets all keys to the token for the TTL, unless one of them exists.

use super::blocked;
use crate::protocol::command::answer::Answer;
use crate::protocol::command::definition::{Definition, Replies, Subject, numbers, put_script};
use crate::protocol::command::pttl::NO_KEY;
use crate::protocol::command::script::script;

pub(in crate::protocol::command) static DEFINITION: Definition = Definition {
    replies: 1,
    names: 1,
    form: |capabilities| usize::from(capabilities.sets_several),
    encode: |subject, capabilities, encoder| {
        let script = if capabilities.sets_several { &SCRIPT_MSETEX } else { &SCRIPT };
        put_script(subject, script, &[subject.ttl_ms], encoder);
    },
    decode,
    usual: None,
};

pub(crate) static SCRIPT: &str = script!("in_the_way.lua", "acquire.lua");

pub(crate) static SCRIPT_MSETEX: &str = script!("in_the_way.lua", "acquire_msetex.lua");

pub(super) fn decode(subject: &Subject, replies: &mut Replies<'_>) -> Option<Answer> {
    match numbers(replies)? {
        Err(refused) => Some(refused),
        Ok([0, 0]) => Some(Answer::Done),
        // The key expired while the script looked for it.
        Ok([0, NO_KEY]) => Some(Answer::Foreign { left_ms: None }),
        Ok([nth, left_ms]) => blocked(subject, nth, left_ms),
    }
}
