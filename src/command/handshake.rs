//! The first commands on a new connection: who we are, which database, what the server can do, and who it is.
//!
//! They are steps that are sent in one go. Each judges its own reply, and knows nothing of the others; a
//! further one has to be added to `steps` alone.

use std::collections::VecDeque;
use std::fmt;

use redis::{ServerError, Value};

use super::answer::failure_of;
use super::capabilities::{Capabilities, Delete};
use super::guard::{self, Borne, Mark, Reading};
use super::identity::{Identity, RunId};
use crate::failure::Failure;

/// A user, or the default one, and the password.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    pub user: Option<Vec<u8>>,
    pub password: Vec<u8>,
}

/// Never with the password.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").finish_non_exhaustive()
    }
}

/// What a connection is to be fit for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wishes {
    /// Grants are to be guarded: the server is asked about its memory.
    pub(crate) is_guarded: bool,
    /// Waiters are to be woken: the server is to tell us things by itself.
    pub(crate) is_waking: bool,
}

/// How far the conversation has come.
pub(crate) struct Handshake {
    /// Those that are not answered.
    steps: VecDeque<Step>,
    has_begun: bool,
    learnt: Learnt,
}

/// What a server can do, and who it is.
#[derive(Default)]
struct Learnt {
    capabilities: Capabilities,
    identity: Identity,
    /// What its clock showed, in microseconds.
    clock_us: Option<i64>,
    memory: Memory,
}

/// What a server says of its memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Memory {
    #[default]
    NotAsked,
    /// This user may not ask.
    Untold,
    Read(RunId, Reading),
}

/// What a reply leads to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    More,
    Done(Capabilities),
    /// The server is of no use to us, for now.
    Refused {
        failure: Failure,
        /// Whether it is the user or the password that it does not accept.
        is_of_credentials: bool,
    },
}

/// A command, and what its reply means.
struct Step {
    bytes: Vec<u8>,
    judge: Judge,
    is_login: bool,
}

/// Fails if the server is of no use to us. May learn what it can do, and who it is.
type Judge = fn(&Value, &mut Learnt) -> Result<(), Failure>;

/// All steps, in their order. What the server can do is asked by commands that lack their arguments and so
/// change nothing.
fn steps(
    credentials: Option<&Credentials>,
    database: i64,
    Wishes { is_guarded, is_waking }: Wishes,
) -> VecDeque<Step> {
    let log_in = credentials.map(|Credentials { user, password }| {
        let mut auth = redis::cmd("AUTH");
        auth.arg(user).arg(password);
        Step { is_login: true, ..Step::new(&auth, expect_ok) }
    });
    let select = (database != 0).then(|| Step::new(redis::cmd("SELECT").arg(database), expect_ok));
    let probes = [
        Step::new(&redis::cmd("DELEX"), learn_delex),
        Step::new(&redis::cmd("DELIFEQ"), learn_delifeq),
        Step::new(&redis::cmd("MSETEX"), |reply, learnt| {
            learnt.capabilities.sets_several = knows(reply)?;
            Ok(())
        }),
        Step::new(&redis::cmd("PING"), expect_pong),
    ];
    // Several sections in one command are of Redis 7.0.
    let info = |section: &str, judge| Step::new(redis::cmd("INFO").arg(section), judge);
    let questions = [
        match is_guarded {
            true => info("server", |reply, learnt| {
                is_told(reply)?;
                learnt.identity.learn_program(reply)
            }),
            false => info("server", |reply, learnt| learnt.identity.learn_program(reply)),
        },
        info("replication", |reply, learnt| learnt.identity.learn_role(reply)),
        match is_guarded {
            true => info("memory", |reply, learnt| {
                learnt.identity.learn_memory(reply)?;
                learnt.identity.check_eviction()
            }),
            false => info("memory", |reply, learnt| learnt.identity.learn_memory(reply)),
        },
        info("persistence", |reply, learnt| learnt.identity.learn_persistence(reply)),
        Step::new(redis::cmd("CONFIG").arg("GET").arg("appendfsync"), |reply, learnt| {
            learnt.identity.learn_syncing(reply)
        }),
    ];
    let guards = [
        Step::new(&redis::cmd("PEXPIRETIME"), |reply, learnt| {
            learnt.capabilities.expiry_time = knows(reply)?;
            Ok(())
        }),
        Step {
            bytes: guard::TIME.to_vec(),
            judge: |reply, learnt| {
                is_told(reply)?;
                learnt.clock_us = guard::time_us(reply)?;
                Ok(())
            },
            is_login: false,
        },
        Step { bytes: guard::READ.to_vec(), judge: learn_memory, is_login: false },
    ];
    let guards = guards.into_iter().filter(|_| is_guarded);
    // What comes before it is answered in the older form.
    let greeting = is_waking.then(|| Step::new(redis::cmd("HELLO").arg(3), learn_pushes));
    let steps = log_in.into_iter().chain(select).chain(probes).chain(questions).chain(guards);
    steps.chain(greeting).collect()
}

/// Whether the server tells it: this user may not ask, if not. Fails if it tells nobody, for now: it may be asked
/// again later.
fn is_told(reply: &Value) -> Result<bool, Failure> {
    match reply {
        Value::ServerError(error) => match failure_of(error) {
            forbidden if forbidden.is_of_the_kind() => Ok(false),
            failure => Err(failure),
        },
        _ => Ok(true),
    }
}

fn learn_memory(reply: &Value, learnt: &mut Learnt) -> Result<(), Failure> {
    let borne = match is_told(reply)? {
        false => None,
        true => Some(Borne::of(reply).ok_or(Failure::Nonsense)?),
    };
    learnt.memory = match (learnt.identity.life_id(), learnt.clock_us, borne) {
        (Some(id), Some(now_us), Some(note)) => {
            Memory::Read(id, Reading { now_us, grain_us: 0, note })
        }
        _ => Memory::Untold,
    };
    Ok(())
}

/// The server was told to bear a note.
fn learn_mark(reply: &Value, learnt: &mut Learnt) -> Result<(), Failure> {
    let Memory::Read(id, _) = learnt.memory else { return Err(Failure::Nonsense) };
    learnt.memory = match Reading::of_mark(id, reply) {
        Ok(reading) => Memory::Read(id, reading),
        Err(refused) if refused.is_of_the_kind() => Memory::Untold,
        Err(failure) => return Err(failure),
    };
    Ok(())
}

impl Step {
    fn new(command: &redis::Cmd, judge: Judge) -> Self {
        Self { bytes: command.get_packed_command(), judge, is_login: false }
    }
}

fn expect_ok(reply: &Value, _: &mut Learnt) -> Result<(), Failure> {
    match reply {
        Value::Okay => Ok(()),
        Value::ServerError(error) => Err(failure_of(error)),
        _ => Err(Failure::Nonsense),
    }
}

/// A server that has it answers with a map, and one that has it not, or may not let us use it, with an error.
fn learn_pushes(reply: &Value, learnt: &mut Learnt) -> Result<(), Failure> {
    match reply {
        Value::Map(_) => {
            learnt.capabilities.pushes = true;
            Ok(())
        }
        Value::ServerError(_) => Ok(()),
        _ => Err(Failure::Nonsense),
    }
}

fn learn_delex(reply: &Value, learnt: &mut Learnt) -> Result<(), Failure> {
    if knows(reply)? {
        learnt.capabilities.delete = Delete::Delex;
    }
    Ok(())
}

fn learn_delifeq(reply: &Value, learnt: &mut Learnt) -> Result<(), Failure> {
    if knows(reply)? {
        learnt.capabilities.delete = Delete::Delifeq;
    }
    Ok(())
}

/// Whether a server knows a command that was sent without its arguments. Then it complains of these, else
/// of the command.
fn knows(reply: &Value) -> Result<bool, Failure> {
    match reply {
        Value::ServerError(error) => Ok(says(error, "wrong number of arguments")),
        _ => Err(Failure::Nonsense),
    }
}

/// Shows whether the server serves us at all: it looks at that only after the arguments. Whoever may not
/// use PING may use what matters.
fn expect_pong(reply: &Value, _: &mut Learnt) -> Result<(), Failure> {
    match reply {
        Value::SimpleString(word) if word == "PONG" => Ok(()),
        Value::ServerError(error) if error.code() == "NOPERM" => Ok(()),
        Value::ServerError(error) => Err(failure_of(error)),
        _ => Err(Failure::Nonsense),
    }
}

/// Whether the server does not let us in. It says so to the first command, whatever that is.
fn turns_us_away(error: &ServerError) -> bool {
    says(error, "max number of clients") || error.code() == "DENIED"
}

fn says(error: &ServerError, words: &str) -> bool {
    error.details().is_some_and(|details| details.contains(words))
}

impl Handshake {
    pub(crate) fn new(credentials: Option<&Credentials>, database: i64, wishes: Wishes) -> Self {
        let steps = steps(credentials, database, wishes);
        let mut learnt = Learnt::default();
        learnt.capabilities.wakes = wishes.is_waking;
        Self { steps, has_begun: false, learnt }
    }

    /// Writes what is to be sent.
    pub(crate) fn write_to(&self, outbox: &mut Vec<u8>) {
        self.steps.iter().for_each(|step| outbox.extend_from_slice(&step.bytes));
    }

    /// Whether there is a step that is not answered.
    pub(crate) fn is_asking(&self) -> bool {
        !self.steps.is_empty()
    }

    /// Whether the server has answered something.
    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Handles the reply to the next step.
    pub(crate) fn handle_reply(&mut self, reply: &Value) -> Progress {
        let Some(step) = self.steps.pop_front() else {
            let failure = Failure::Nonsense;
            return Progress::Refused { failure, is_of_credentials: false };
        };
        self.has_begun = true;
        let judged = match reply {
            Value::ServerError(error) if turns_us_away(error) => Err(failure_of(error)),
            _ => (step.judge)(reply, &mut self.learnt),
        };
        match judged {
            Err(failure) => {
                let is_of_credentials = step.is_login && failure.is_of_the_password();
                Progress::Refused { failure, is_of_credentials }
            }
            Ok(()) if self.steps.is_empty() => Progress::Done(self.learnt.capabilities),
            Ok(()) => Progress::More,
        }
    }

    /// What the server has said of itself until now.
    pub(crate) fn identity(&self) -> &Identity {
        &self.learnt.identity
    }

    /// What the server has said of its memory.
    pub(crate) fn memory(&self) -> Memory {
        self.learnt.memory
    }

    pub(crate) fn capabilities(&self) -> Capabilities {
        self.learnt.capabilities
    }

    /// Adds a step: that the server is to bear a note from now on.
    pub(crate) fn mark(&mut self, longest_ms: i64, mark: Mark, outbox: &mut Vec<u8>) {
        let Memory::Read(id, _) = self.learnt.memory else { return };
        let step = Step::new(&guard::mark(id, longest_ms, mark), learn_mark);
        outbox.extend_from_slice(&step.bytes);
        self.steps.push_back(step);
    }
}

#[cfg(test)]
mod tests;
