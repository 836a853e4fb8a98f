//! Leaves the readers of a resource. Always a script.

use super::{LONGEST_MS, readers};
use crate::command::capabilities::Capabilities;
use crate::command::definition::{Definition, Subject, only_form};
use crate::command::encoder::Encoder;
use crate::command::release;
use crate::command::script::Script;

pub(in crate::command) static DEFINITION: Definition =
    Definition { names: 2, form: only_form, encode, ..release::DEFINITION };

const FILE: &str = include_str!("release.lua");
const LINE: Script<{ FILE.len() }> = Script::of(FILE);
pub(crate) static SCRIPT: &str = LINE.text();

fn encode(subject: &Subject, _: Capabilities, encoder: &mut Encoder) {
    let (key, token) = (&*subject.resource, subject.token.as_bytes());
    encoder.put(|command| {
        let command = command.arg("EVAL").arg(SCRIPT).arg(2).arg(key).arg(readers(key));
        command.arg(token).arg(LONGEST_MS)
    });
}
