//! Lets the key end after a time instead of deleting it, if it has the token. For one resource, and for several.

use super::definition::{Definition, done_or_absent, put_script};
use super::script::script;

pub(super) static DEFINITION: Definition = Definition::script(
    1,
    |subject, _, encoder| put_script(subject, &SCRIPT, &[subject.number], encoder),
    done_or_absent,
);

pub(crate) static SCRIPT: &str = script!("release_after.lua");
