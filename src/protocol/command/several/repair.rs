//! Sets the keys again that a server has lost, if nobody else has one of them. A server with only some of the
//! keys does not have the lock.

use super::{acquire, put_script};
use crate::protocol::command::definition::{Definition, KeyEffect, Kind, only_form};
use crate::protocol::command::script::script;

pub(super) static DEFINITION: Definition = Definition {
    kind: Kind::AcquiringSeveral,
    effect: KeyEffect::Leaves,
    replies: 1,
    names: 1,
    form: only_form,
    encode: |subject, _, encoder| put_script(subject, &SCRIPT, &[subject.ttl_ms], encoder),
    decode: acquire::decode,
};

pub(crate) static SCRIPT: &str = script!("repair.lua");
