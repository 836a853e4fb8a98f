//! Sets the keys again that a server has lost, if nobody else has one of them. A server with only some of the
//! keys does not have the lock.

use super::acquire;
use crate::protocol::command::definition::{Definition, put_script};
use crate::protocol::command::script::script;

pub(in crate::protocol::command) static DEFINITION: Definition = Definition::script(
    1,
    |subject, _, encoder| put_script(subject, &SCRIPT, &[subject.ttl_ms], encoder),
    acquire::decode,
);

pub(crate) static SCRIPT: &str = script!("repair.lua");
