//! Raises the counters of all resources to a fencing token that another server drew, as long as all locks are
//! ours.

use super::put_fenced;
use crate::command::definition::{Definition, KeyEffect, Kind, Subject, only_form};
use crate::command::fence::counter_ttl_ms;
use crate::command::raise_fence;
use crate::command::script::script;

pub(super) static DEFINITION: Definition = Definition {
    kind: Kind::AcquiringSeveral,
    effect: KeyEffect::Passes,
    replies: 1,
    names: 2,
    form: only_form,
    encode: |subject, _, encoder| {
        let &Subject { ttl_ms, number, .. } = subject;
        put_fenced(subject, &SCRIPT, &[number, counter_ttl_ms(ttl_ms)], encoder);
    },
    decode: raise_fence::decode,
};

pub(crate) static SCRIPT: &str = script!("raise.lua");
