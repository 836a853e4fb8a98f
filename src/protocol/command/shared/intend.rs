//! Announces a waiting writer, if readers hold the resource.

use redis::Value;

use super::{INTENT_MS, intent};
use crate::protocol::command::answer::Answer;
use crate::protocol::command::capabilities::Capabilities;
use crate::protocol::command::definition::{
    Definition, KeyEffect, Kind, Replies, Subject, only_form,
};
use crate::protocol::command::encoder::Encoder;
use crate::protocol::command::release;
use crate::protocol::command::script::script;

pub(in crate::protocol::command) static DEFINITION: Definition = Definition {
    kind: Kind::Acquiring,
    effect: KeyEffect::Passes,
    replies: 1,
    names: 2,
    form: only_form,
    encode,
    decode,
};

/// Takes back the announcement.
pub(in crate::protocol::command) static RECANT: Definition =
    Definition { names: 1, encode: encode_recant, ..DEFINITION };

pub(crate) static SCRIPT: &str = script!("intend.lua");

fn encode(subject: &Subject, _: Capabilities, encoder: &mut Encoder) {
    let key = &*subject.resource;
    encoder.put_script(&SCRIPT, |command| command.arg(2).arg(key).arg(intent(key)).arg(INTENT_MS));
}

fn encode_recant(subject: &Subject, _: Capabilities, encoder: &mut Encoder) {
    let key = intent(&subject.resource);
    encoder.put_script(&release::SCRIPT, |command| command.arg(1).arg(key).arg("redlock:writer"));
}

fn decode(_: &Subject, replies: &mut Replies<'_>) -> Option<Answer> {
    match replies.next()? {
        Value::Int(1) => Some(Answer::Done),
        Value::Int(0) => Some(Answer::Absent),
        Value::ServerError(error) => Some(Answer::refused(&error)),
        _ => None,
    }
}
