//! Leaves the readers of a resource. Always a script.

use super::readers;
use crate::command::capabilities::Capabilities;
use crate::command::definition::{Definition, Subject, only_form};
use crate::command::encoder::Encoder;
use crate::command::release;
use crate::command::script::Script;
use crate::quorum::validity::TTL_MAX_MS;

pub(in crate::command) static DEFINITION: Definition =
    Definition { names: 2, form: only_form, encode, ..release::DEFINITION };

const FILE: &str = include_str!("release.lua");
const LINE: Script<{ FILE.len() }> = Script::of(FILE);
pub(crate) static SCRIPT: &str = LINE.text();

fn encode(subject: &Subject, _: Capabilities, encoder: &mut Encoder) {
    let (key, token) = (&*subject.resource, subject.token.as_bytes());
    encoder.put(|command| {
        let command = command.arg("EVAL").arg(SCRIPT).arg(2).arg(key).arg(readers(key));
        command.arg(token).arg(TTL_MAX_MS)
    });
}
