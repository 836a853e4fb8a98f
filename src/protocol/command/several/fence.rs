//! Sets all keys to the token for the TTL, unless one of them exists, and draws one fencing token for all.
//! The token is greater than every one of their numbers, and all these numbers are set to it. So it is greater
//! than the token of any earlier lock of any of the resources, as with one resource.

use super::blocked;
use crate::protocol::command::answer::Answer;
use crate::protocol::command::definition::{Definition, Replies, Subject, numbers};
use crate::protocol::command::fence::{SPREAD_US, drawn, put_fenced};
use crate::protocol::command::pttl::NO_KEY;
use crate::protocol::command::script::script;

pub(in crate::protocol::command) static DEFINITION: Definition = Definition::script(
    1,
    |subject, _, encoder| {
        let arguments = [subject.ttl_ms, subject.number, SPREAD_US];
        put_fenced(subject, &SCRIPT, &arguments, encoder);
    },
    decode,
);

pub(crate) static SCRIPT: &str = script!("in_the_way.lua", "../draw.lua", "fenced.lua");

fn decode(subject: &Subject, replies: &mut Replies<'_>) -> Option<Answer> {
    match numbers(replies)? {
        Err(refused) => Some(refused),
        Ok([0, NO_KEY]) => Some(Answer::Foreign { left_ms: None }),
        Ok([nth, left_ms]) if nth > 0 => blocked(subject, nth, left_ms),
        Ok(said) => drawn(said),
    }
}
