//! Deletes the keys that have the token. If not all had it, the server did not have the lock any more.

use redis::Value;

use crate::protocol::command::answer::Answer;
use crate::protocol::command::definition::{Definition, Replies, Subject, put_script};
use crate::protocol::command::script::script;

pub(in crate::protocol::command) static DEFINITION: Definition =
    Definition::script(1, |subject, _, encoder| put_script(subject, &SCRIPT, &[], encoder), decode);

pub(crate) static SCRIPT: &str = script!("release.lua");

fn decode(subject: &Subject, replies: &mut Replies<'_>) -> Option<Answer> {
    let count = i64::try_from(subject.names().len()).ok()?;
    match replies.next()? {
        Value::Int(deleted) if deleted == count => Some(Answer::Done),
        Value::Int(deleted) if (0..count).contains(&deleted) => Some(Answer::Absent),
        Value::ServerError(error) => Some(Answer::refused(&error)),
        _ => None,
    }
}
