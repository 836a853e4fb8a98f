//! Locks of several resources at once: all of them on a server, or none. Each command is one script, so nobody comes in
//! between, and a server's answer is one for all resources.
//!
//! All keys have the same token. What the plain commands say of one key, these say of all: that they are ours, or which
//! of them is not, by its place. No name is ever quoted.

pub(crate) mod acquire;
pub(crate) mod extend;
pub(crate) mod fenced;
mod inspect;
pub(crate) mod raise;
pub(crate) mod release;
pub(crate) mod repair;
pub(crate) mod waking;

use super::Verb;
use super::answer::{Answer, Place};
use super::definition::{Definition, Subject};
use super::encoder::Encoder;
use super::fence::counter;
use super::leave;
use super::pttl;
use super::script::Script;

/// How many bytes of the request each key takes beside its name, at most.
pub(super) const BESIDE_KEY_MAX: usize = 16;

pub(super) fn definition(verb: Verb) -> &'static Definition {
    match verb {
        Verb::Acquire | Verb::AcquireAgain | Verb::Move => &acquire::DEFINITION,
        Verb::Repair => &repair::DEFINITION,
        Verb::AcquireFenced => &fenced::DEFINITION,
        Verb::RaiseFence => &raise::DEFINITION,
        Verb::Extend => &extend::DEFINITION,
        Verb::Release | Verb::ReleaseRest => &release::DEFINITION,
        Verb::ReleaseAndWake | Verb::ReleaseRestAndWake => &waking::RELEASE,
        // What is asked about readers is asked about one resource.
        Verb::Inspect | Verb::Downgrade | Verb::Intend | Verb::Recant => &inspect::DEFINITION,
        Verb::Enrol => &waking::ENROL,
        Verb::Leave => &leave::DEFINITION,
    }
}

/// A script about all keys, and further arguments behind the token.
fn put_script(subject: &Subject, script: Script, arguments: &[i64], encoder: &mut Encoder) {
    let names = subject.names();
    encoder.put_script(script, |command| {
        command.arg(names.len());
        for name in names {
            command.arg(&**name);
        }
        command.arg(subject.token.as_bytes());
        for &argument in arguments {
            command.arg(argument);
        }
        command
    });
}

/// The same about all keys and their counters.
fn put_fenced(subject: &Subject, script: Script, arguments: &[i64], encoder: &mut Encoder) {
    let names = subject.names();
    encoder.put_script(script, |command| {
        command.arg(2 * names.len());
        for name in names {
            command.arg(&**name);
        }
        for name in names {
            command.arg(counter(name));
        }
        command.arg(subject.token.as_bytes());
        for &argument in arguments {
            command.arg(argument);
        }
        command
    });
}

/// One that is in the way, by what a script says; none if it says no such thing.
fn blocked(subject: &Subject, nth: i64, said: i64) -> Option<Answer> {
    Some(Answer::Blocked { place: place(subject, nth)?, left_ms: pttl::left_ms(said) })
}

/// The place of the n-th resource, from 1.
fn place(subject: &Subject, nth: i64) -> Option<Place> {
    let (nth, of) = (u16::try_from(nth).ok()?, u16::try_from(subject.names().len()).ok()?);
    (1..=of).contains(&nth).then_some(Place { nth, of })
}

#[cfg(test)]
mod tests;
