//! Sets all keys to the token for the TTL, unless one of them exists, and draws one fencing token for all.
//! The token is greater than every one of their counters, and all counters are set to it. So it is greater
//! than the token of any earlier lock of any of the resources, as with one resource.

use super::{blocked, put_fenced};
use crate::command::answer::Answer;
use crate::command::definition::{
    Definition, KeyEffect, Kind, Replies, Subject, numbers, only_form,
};
use crate::command::fence::{SPREAD_US, counter_ttl_ms};
use crate::command::pttl::NO_KEY;
use crate::command::script::script;
use crate::failure::Failure;

pub(super) static DEFINITION: Definition = Definition {
    kind: Kind::AcquiringSeveral,
    effect: KeyEffect::Leaves,
    replies: 1,
    names: 2,
    form: only_form,
    encode: |subject, _, encoder| {
        let &Subject { ttl_ms, number, .. } = subject;
        let arguments = [ttl_ms, number, SPREAD_US, counter_ttl_ms(ttl_ms)];
        put_fenced(subject, &SCRIPT, &arguments, encoder);
    },
    decode,
};

pub(crate) static SCRIPT: &str = script!("fenced.lua", "in_the_way.lua", "tell.lua");

fn decode(subject: &Subject, replies: &mut Replies<'_>) -> Option<Answer> {
    match numbers(replies)? {
        Err(refused) => Some(refused),
        Ok([0, number]) if number > 0 => Some(Answer::Granted { number }),
        Ok([0, NO_KEY]) => Some(Answer::Foreign { left_ms: None }),
        Ok([-1, 0]) => Some(Answer::Failed(Failure::NoCounter)),
        Ok([nth, left_ms]) => blocked(subject, nth, left_ms),
    }
}
