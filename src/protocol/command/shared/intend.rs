//! Announces a waiting writer, if readers hold the resource.

use super::{INTENT_MS, intent};
use crate::protocol::command::capabilities::Capabilities;
use crate::protocol::command::definition::{Definition, Subject, done_or_absent};
use crate::protocol::command::encoder::Encoder;
use crate::protocol::command::release;
use crate::protocol::command::script::script;

pub(in crate::protocol::command) static DEFINITION: Definition =
    Definition::script(2, encode, done_or_absent);

/// Takes back the announcement.
pub(in crate::protocol::command) static RECANT: Definition =
    Definition::script(1, encode_recant, done_or_absent);

pub(crate) static SCRIPT: &str = script!("intend.lua");

fn encode(subject: &Subject, _: Capabilities, encoder: &mut Encoder) {
    let key = &*subject.resource;
    encoder.put_script(&SCRIPT, |command| command.arg(2).key(key).key(intent(key)).arg(INTENT_MS));
}

fn encode_recant(subject: &Subject, _: Capabilities, encoder: &mut Encoder) {
    let key = intent(&subject.resource);
    encoder.put_script(&release::SCRIPT, |command| command.arg(1).key(key).arg("redlock:writer"));
}
