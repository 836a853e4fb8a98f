//! The commands of a client, parsed from their words.

use super::Asked;
use crate::protocol::command::identity::PROMOTION;
use crate::protocol::command::several::{
    acquire, extend, fence, release, repair, waking as several,
};
use crate::protocol::command::shared;
use crate::protocol::command::waking::{
    ENROL, ENROL_PERMITS, LEAVE, LEAVE_PERMITS, LEAVE_SLOT, RELEASE_AND_WAKE, RELEASE_PERMITS,
    RELEASE_SLOT,
};
use crate::protocol::command::{Verb, acquire_with_token, raise_fence, read_fences};

/// The key of the note that servers keep about their memory.
const NOTE: &[u8] = b"redlock:guard";

/// The maximum length that is kept of a name: the length of a token.
const KEPT_MAX: usize = 40;

/// The client's questions about the server itself, by the form of their answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Question {
    /// `INFO`: a text; about the program, unless the user may not ask.
    Info { is_program: bool },
    /// `CONFIG`: an array.
    Setting,
    /// `TIME`: two numbers.
    Clock,
    /// The note of its memory, or its promotion: any text.
    Note,
}

#[derive(Clone, Debug)]
pub(super) enum Command {
    Oath,
    /// A writer's announcement while it waits.
    Aside,
    Probe {
        is_ping: bool,
    },
    /// The last of these ends the handshake.
    Question(Question),
    /// Asks for RESP3. Also ends the handshake.
    Hello,
    Ask(Asked),
}

pub(super) fn command(words: &[Vec<u8>]) -> Option<Command> {
    let asked = |verb, resource: usize, token: usize| {
        let word = |it: usize| words.get(it).map_or(&[][..], |it| &it[..it.len().min(KEPT_MAX)]);
        let (resource, token) = (word(resource).to_vec(), word(token).to_vec());
        Some(Command::Ask(Asked { verb, resource, token, ..Asked::default() }))
    };
    let is = |script: &str| words.len() > 3 && words[1] == script.as_bytes();
    let of_reader = |verb, token: usize| {
        let Some(Command::Ask(asked)) = asked(verb, 3, token) else { return None };
        Some(Command::Ask(Asked { is_of_reader: true, ..asked }))
    };
    if words.len() > 4 && (is(several::ENROL_SCRIPT) || is(several::RELEASE_SCRIPT)) {
        return in_lines_of_several(words);
    }
    match (&*words[0], words.len()) {
        (b"AUTH" | b"SELECT", _) => Some(Command::Oath),
        (b"DELEX" | b"DELIFEQ" | b"MSETEX" | b"PEXPIRETIME", 1) => {
            Some(Command::Probe { is_ping: false })
        }
        (b"PING", 1) => Some(Command::Probe { is_ping: true }),
        (b"INFO", 2) => {
            Some(Command::Question(Question::Info { is_program: words[1] == b"server" }))
        }
        (b"CONFIG", 3) => Some(Command::Question(Question::Setting)),
        (b"TIME", 1) => Some(Command::Question(Question::Clock)),
        (b"GETRANGE", 4) if words[1] == NOTE => Some(Command::Question(Question::Note)),
        (b"EVAL", 3) if words[1] == PROMOTION.as_bytes() => Some(Command::Question(Question::Note)),
        (b"HELLO", 2) => Some(Command::Hello),
        (b"SET", _) => asked(Verb::Acquire, 1, 2),
        (b"EVAL", 5) if words[4] == b"redlock:writer" => Some(Command::Aside),
        (b"EVAL", 6) if words[4].ends_with(b":i") => Some(Command::Aside),
        (b"EVAL", _) if is(shared::acquire::SCRIPT) => of_reader(Verb::Acquire, 6),
        (b"EVAL", _) if is(shared::extend::SCRIPT) => of_reader(Verb::Extend, 5),
        (b"EVAL", _) if is(shared::release::SCRIPT) => of_reader(Verb::Release, 5),
        (b"EVAL", _) if is(shared::release::WAKING_SCRIPT) => of_reader(Verb::ReleaseAndWake, 7),
        (b"EVAL", _) if is(shared::inspect::SCRIPT) => of_reader(Verb::Inspect, 5),
        (b"EVAL", _) if is(shared::enrol::SCRIPT) => of_reader(Verb::JoinWaitlist, 6),
        (b"EVAL", 11) if is(acquire_with_token::SCRIPT) => asked(Verb::AcquireFenced, 3, 5),
        (b"EVAL", 9) if is(raise_fence::SCRIPT) => asked(Verb::RaiseFence, 3, 5),
        (b"EVAL", 5) if is(read_fences::SCRIPT) => asked(Verb::ReadFences, 3, 4),
        (b"EVAL", 8) if is(ENROL) => asked(Verb::JoinWaitlist, 3, 5),
        (b"EVAL", 6) if is(LEAVE) => asked(Verb::Leave, 3, 5),
        (b"EVAL", 6) if is(RELEASE_AND_WAKE) => asked(Verb::ReleaseAndWake, 3, 5),
        (b"EVAL", 7) if is(RELEASE_SLOT) => asked(Verb::ReleaseAndWake, 3, 6),
        (b"EVAL", 7) if is(LEAVE_SLOT) => asked(Verb::Leave, 3, 6),
        (b"EVAL", 7) if is(LEAVE_PERMITS) => asked(Verb::Leave, 3, 6),
        (b"EVAL", 8) if is(RELEASE_PERMITS) => asked(Verb::ReleaseRestAndWake, 3, 6),
        // A client that waits for a permit gets the same answers as one that waits for a lock.
        (b"EVAL", 9) if is(ENROL_PERMITS) => asked(Verb::JoinWaitlist, 3, 6),
        (b"EVAL", 9) if words[4].ends_with(b"#1") => asked(Verb::Move, 3, 5),
        (b"EVAL", 7) if words[4].ends_with(b"#1") => asked(Verb::ReleaseRest, 3, 5),
        (b"EVAL", 6..) if words[2] == b"2" => of_several(words),
        (b"EVAL", 8..) if words[2] == b"3" => of_several(words),
        (b"EVAL", 5) => asked(Verb::Release, 3, 4),
        (b"EVAL", 6) => asked(Verb::Extend, 3, 4),
        (b"DELEX", 4) => asked(Verb::Release, 1, 3),
        (b"DELIFEQ", 3) => asked(Verb::Release, 1, 2),
        (b"GETRANGE", 4) => asked(Verb::Inspect, 1, 4),
        _ => panic!("we sent an unknown command: {words:?}"),
    }
}

/// A script about two keys and the wait queues of some of them.
fn in_lines_of_several(words: &[Vec<u8>]) -> Option<Command> {
    let keys: usize = String::from_utf8_lossy(&words[2]).parse().expect("a number");
    let verb = match words[1] == several::ENROL_SCRIPT.as_bytes() {
        true => Verb::JoinWaitlist,
        false => Verb::ReleaseAndWake,
    };
    let word = |it: usize| words[it][..words[it].len().min(KEPT_MAX)].to_vec();
    let (resource, token, is_of_several) = (word(3), word(3 + keys), true);
    Some(Command::Ask(Asked { is_of_several, verb, resource, token, ..Asked::default() }))
}

/// A script about two keys, or about the fencing token of both.
fn of_several(words: &[Vec<u8>]) -> Option<Command> {
    let is = |script: &str| words[1] == script.as_bytes();
    let takes = [acquire::SCRIPT, acquire::SCRIPT_MSETEX, repair::SCRIPT].into_iter().any(is);
    let (verb, is_of_several, token) = match (&*words[2], words.len()) {
        (b"2", 7) if takes => (Verb::Acquire, true, 5),
        (b"2", 7) if is(extend::SCRIPT) => (Verb::Extend, true, 5),
        (b"2", 6) if is(extend::SCRIPT) => (Verb::Inspect, true, 5),
        (b"2", 6) if is(release::SCRIPT) => (Verb::Release, true, 5),
        (b"3", 11) if is(raise_fence::SCRIPT) => (Verb::RaiseFence, true, 6),
        (b"3", 13) if is(fence::SCRIPT) => (Verb::AcquireFenced, true, 6),
        _ => panic!("we sent an unknown script: {words:?}"),
    };
    let word = |it: usize| words[it][..words[it].len().min(KEPT_MAX)].to_vec();
    let (resource, token) = (word(3), word(token));
    Some(Command::Ask(Asked { is_of_several, verb, resource, token, ..Asked::default() }))
}
