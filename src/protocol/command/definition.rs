//! The definition of a command. Each command has a file of its own with its definition.

use std::fmt;
use std::slice;
use std::sync::Arc;
use std::vec;

use redis::Value;

use super::answer::Answer;
use super::capabilities::Capabilities;
use super::encoder::Encoder;
use super::numbers::Restored;
use super::script::Script;
use super::wire_form::FirstReply;
use crate::protocol::lock_kind::LockKind;
use crate::protocol::token::Token;

/// A command of ours. It may consist of several server commands that are sent together.
pub(super) struct Definition {
    /// The number of replies: one for each server command.
    pub(super) replies: u8,
    /// How often it names the resource, beside the slots of a semaphore.
    pub(super) names: usize,
    /// The form in which it is sent, below [`super::wire_form::FORMS`]. All servers know form 0.
    pub(super) form: fn(Capabilities) -> usize,
    pub(super) encode: Encode,
    pub(super) decode: Decode,
    /// The first reply when it has done what was asked ([`Answer::Done`]), if such a reply can be told by its bytes. The
    /// only other reply that may follow is the number of [`Request::tells_end`].
    ///
    /// [`Request::tells_end`]: super::Request::tells_end
    pub(super) usual: Option<FirstReply>,
}

type Encode = fn(&Subject, Capabilities, &mut Encoder);

/// The meaning of the replies. None if they are not valid replies to this command.
type Decode = fn(&Subject, &mut Replies<'_>) -> Option<Answer>;

impl Definition {
    /// A command that is one script for all servers, and names the resource so often.
    pub(super) const fn script(names: usize, encode: Encode, decode: Decode) -> Self {
        Self { replies: 1, names, form: |_| 0, encode, decode, usual: None }
    }
}

/// All replies to a request.
pub(super) type Replies<'a> = vec::Drain<'a, Value>;

/// The array that a script returns, or the error instead. None if it returns anything else.
pub(super) fn array(replies: &mut Replies<'_>) -> Option<Result<Vec<Value>, Answer>> {
    match replies.next()? {
        Value::ServerError(error) => Some(Err(Answer::refused(&error))),
        Value::Array(said) => Some(Ok(said)),
        _ => None,
    }
}

/// The meaning of the reply of a script that returns 1 if it did what was asked, and 0 if there was nothing to do.
pub(super) fn done_or_absent(_: &Subject, replies: &mut Replies<'_>) -> Option<Answer> {
    match replies.next()? {
        Value::Int(1) => Some(Answer::Done),
        Value::Int(0) => Some(Answer::Absent),
        Value::ServerError(error) => Some(Answer::refused(&error)),
        _ => None,
    }
}

/// An array of `N` numbers that a script returns, or the error instead. None if it returns anything else.
pub(super) fn numbers<const N: usize>(
    replies: &mut Replies<'_>,
) -> Option<Result<[i64; N], Answer>> {
    let said = match array(replies)? {
        Ok(said) => <[Value; N]>::try_from(said).ok()?,
        Err(refused) => return Some(Err(refused)),
    };
    let mut numbers = [0; N];
    for (number, value) in numbers.iter_mut().zip(said) {
        let Value::Int(it) = value else { return None };
        *number = it;
    }
    Some(Ok(numbers))
}

/// What a request is about.
pub(super) struct Subject {
    pub(super) resource: Arc<[u8]>,
    pub(super) kind: LockKind,
    pub(super) token: Token,
    pub(super) ttl_ms: i64,
    /// The number that is proposed, or was drawn, as a fencing token.
    pub(super) number: i64,
    /// The resources whose wait queues it is about: a bit for each.
    pub(super) lines: u128,
    /// What is written to a server whose numbers are restored.
    pub(super) restored: Option<Box<Restored>>,
}

impl Subject {
    /// The names of all resources: one, or several.
    pub(super) fn names(&self) -> &[Arc<[u8]>] {
        match &self.kind {
            LockKind::Several(names) => names,
            _ => slice::from_ref(&self.resource),
        }
    }

    /// The resources whose wait queues it is about, each with its number from 1.
    pub(super) fn lined(&self) -> impl Iterator<Item = (usize, &Arc<[u8]>)> {
        let is_meant = |it: &(usize, &Arc<[u8]>)| {
            self.lines.checked_shr(u32::try_from(it.0 - 1).unwrap_or(u32::MAX)).unwrap_or(0) & 1
                != 0
        };
        (1..).zip(self.names()).filter(is_meant)
    }
}

#[cfg(test)]
impl Subject {
    /// Some subject, for tests.
    pub(super) fn sample() -> Self {
        let token = Token::from_random([0xAB; 20]);
        let (resource, kind) = (Arc::from(&b"r"[..]), LockKind::Exclusive);
        Self { resource, kind, token, ttl_ms: 30_000, number: 0, lines: u128::MAX, restored: None }
    }

    /// Some semaphore, for tests.
    pub(super) fn semaphore(of: u16) -> Self {
        Self { kind: LockKind::Permit { of }, ..Self::sample() }
    }
}

/// Adds a script about all resources, with further arguments behind the token.
pub(super) fn put_script(
    subject: &Subject,
    script: Script,
    arguments: &[i64],
    encoder: &mut Encoder,
) {
    let names = subject.names();
    encoder.put_script(script, |command| {
        command.arg(names.len());
        for name in names {
            command.key(&**name);
        }
        command.arg(subject.token.as_bytes());
        for &argument in arguments {
            command.arg(argument);
        }
        command
    });
}

/// The effect of a request on a server, for the delivering module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyEffect {
    /// It may leave something on the server until its TTL is over.
    Leaves,
    /// It undoes what an earlier request with the same token may have left.
    Undoes,
    /// It undoes what an earlier request with the same token may have left, except for what must stay.
    UndoesRest,
    /// It does nothing that must be undone.
    Passes,
}

/// The kinds of work that requests do. Whether a server refuses requests is tracked for each kind separately.
/// The words say what the server does or does not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Acquiring,
    Extending,
    Releasing,
    Inspecting,
    Waiting,
    AcquiringSeveral,
    ExtendingSeveral,
    ReleasingSeveral,
    InspectingSeveral,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Acquiring => "taking locks",
            Self::Extending => "extending locks",
            Self::Releasing => "releasing locks",
            Self::Inspecting => "inspecting locks",
            Self::Waiting => "wait queue",
            Self::AcquiringSeveral => "taking locks of several resources",
            Self::ExtendingSeveral => "extending locks of several resources",
            Self::ReleasingSeveral => "releasing locks of several resources",
            Self::InspectingSeveral => "inspecting locks of several resources",
        })
    }
}

#[cfg(test)]
mod tests {
    use redis::Value::{Int, Okay};

    use super::*;

    #[test]
    fn one_is_done_and_zero_is_absent() {
        let answer = |reply| done_or_absent(&Subject::sample(), &mut vec![reply].drain(..));
        assert_eq!(answer(Int(1)), Some(Answer::Done));
        assert_eq!(answer(Int(0)), Some(Answer::Absent));
        assert_eq!((answer(Int(2)), answer(Okay)), (None, None));
        let error = redis::parse_redis_value(b"-NOPERM no\r\n").expect("a reply");
        assert!(matches!(answer(error), Some(Answer::Failed(_))));
    }
}
