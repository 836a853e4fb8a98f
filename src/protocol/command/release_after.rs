//! Lets the key end after a time instead of deleting it, if it has the token. For one resource, and for several.

use super::capabilities::Capabilities;
use super::definition::{Definition, Subject, done_or_absent};
use super::encoder::Encoder;
use super::script::script;

pub(super) static DEFINITION: Definition = Definition::script(1, encode, done_or_absent);

pub(crate) static SCRIPT: &str = script!("release_after.lua");

fn encode(subject: &Subject, _: Capabilities, encoder: &mut Encoder) {
    let names = subject.names();
    encoder.put_script(&SCRIPT, |command| {
        command.arg(names.len());
        names.iter().for_each(|name| {
            command.arg(&**name);
        });
        command.arg(subject.token.as_bytes()).arg(subject.number)
    });
}
