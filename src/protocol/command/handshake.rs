//! The first commands on a new connection: the login, the database, what the server can do, and its identity.
//!
//! These steps are sent together. Each step judges its own reply, and knows nothing of the others. A further
//! step needs to be added only to `steps`.

use std::collections::VecDeque;
use std::fmt;

use redis::{ServerError, Value};

use super::answer::{failure_of, has_lost_slot};
use super::capabilities::{Capabilities, Delete};
use super::guard::{self, Borne, Note, Reading, Since};
use super::identity::{Identity, RunId};
use crate::protocol::failure::Failure;
use crate::protocol::refusal::Refusal;

/// A user, or the default user, and the password.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    pub user: Option<Vec<u8>>,
    pub password: Vec<u8>,
}

/// Never shows the password.
impl Credentials {
    /// Logs in.
    pub(crate) fn command(&self) -> redis::Cmd {
        let mut command = redis::cmd("AUTH");
        command.arg(&self.user).arg(&self.password);
        command
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").finish_non_exhaustive()
    }
}

/// What a connection must be able to do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Requirements {
    /// Grants must be guarded, so the server is asked about its memory.
    pub(crate) is_guarded: bool,
    /// Waiters must be woken, so the server must send push messages.
    pub(crate) is_waking: bool,
}

/// The state of the conversation.
pub(crate) struct Handshake {
    /// The steps without a reply so far.
    steps: VecDeque<Step>,
    has_begun: bool,
    /// What all keys have before their names.
    prefix: Box<[u8]>,
    learnt: Learnt,
}

/// What a server can do, and its identity.
#[derive(Default)]
struct Learnt {
    capabilities: Capabilities,
    identity: Identity,
    /// What its clock showed, in microseconds.
    clock_us: Option<i64>,
    memory: Memory,
    /// The first question about its memory that it has refused.
    denied: Option<Refusal>,
}

/// What a server says about its memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Memory {
    #[default]
    NotAsked,
    /// This user may not ask. The refusal, if the server has said so.
    Untold(Option<Refusal>),
    /// The server's process, and what was read.
    Read(RunId, Box<Reading>),
}

/// The result of a reply.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    More,
    Done(Capabilities),
    /// The server is of no use to us, for now.
    Refused {
        failure: Failure,
        /// Whether the server rejects the user or the password.
        is_of_credentials: bool,
    },
}

/// A command, and the meaning of its reply.
struct Step {
    bytes: Vec<u8>,
    judge: Judge,
    is_login: bool,
    /// Whether the guard needs the answer.
    is_of_guard: bool,
}

/// Fails if the server is of no use to us. May learn what the server can do, and its identity.
type Judge = fn(&Value, &mut Learnt) -> Result<(), Failure>;

/// All steps, in their order. Capabilities are probed by commands without their arguments, which change
/// nothing.
fn steps(
    credentials: Option<&Credentials>,
    database: i64,
    prefix: &[u8],
    Requirements { is_guarded, is_waking }: Requirements,
) -> VecDeque<Step> {
    let log_in =
        credentials.map(|it| Step { is_login: true, ..Step::new(&it.command(), expect_ok) });
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
    // Only since Redis 7.0 one command can ask for several sections.
    let info = |section: &str, judge| Step::new(redis::cmd("INFO").arg(section), judge);
    let rounds = [
        match is_guarded {
            true => info("server", |reply, learnt| {
                is_told(reply)?;
                learnt.identity.learn_program(reply)
            })
            .of_guard(),
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
    let guards = guard_steps(prefix).into_iter().filter(|_| is_guarded);
    // The replies before it have the older form.
    let greeting = is_waking.then(|| Step::new(redis::cmd("HELLO").arg(3), learn_pushes));
    let steps = log_in.into_iter().chain(select).chain(probes).chain(rounds).chain(guards);
    steps.chain(greeting).collect()
}

/// The questions about the memory of the server.
fn guard_steps(prefix: &[u8]) -> [Step; 3] {
    [
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
            is_of_guard: true,
        },
        Step {
            bytes: guard::read(prefix),
            judge: learn_memory,
            is_login: false,
            is_of_guard: true,
        },
    ]
}

/// Whether the server gives the information. It does not if this user may not ask. Fails if the server tells
/// nobody for now, because it may be asked again later.
fn is_told(reply: &Value) -> Result<bool, Failure> {
    match reply {
        Value::ServerError(error) => match failure_of(error) {
            forbidden if forbidden.is_of_the_kind() => Ok(false),
            failure => Err(failure),
        },
        _ => Ok(true),
    }
}

/// The refusal in the reply to a question about the memory.
fn denial(reply: &Value) -> Option<Refusal> {
    match reply {
        Value::ServerError(error) => {
            Some(failure_of(error).refusal()?.about_keys("~redlock:guard"))
        }
        _ => None,
    }
}

fn learn_memory(reply: &Value, learnt: &mut Learnt) -> Result<(), Failure> {
    let borne = match Borne::of(reply) {
        None if !is_told(reply)? => None,
        borne => Some(borne.ok_or(Failure::ProtocolError)?),
    };
    let text = match reply {
        Value::BulkString(text) => text.clone(),
        _ => Vec::new(),
    };
    learnt.memory = match (learnt.identity.run_id(), learnt.clock_us, borne) {
        (Some(id), Some(now_us), Some(borne)) => {
            Memory::Read(id, Box::new(Reading { now_us, grain_us: 0, borne, text }))
        }
        _ => Memory::Untold(learnt.denied),
    };
    Ok(())
}

/// The server was told to write a note.
fn learn_mark(reply: &Value, learnt: &mut Learnt) -> Result<(), Failure> {
    let Memory::Read(id, before) = &learnt.memory else { return Err(Failure::ProtocolError) };
    learnt.memory = match Reading::of_mark(reply) {
        Ok(reading) => Memory::Read(*id, Box::new(reading)),
        // Another program has put it there since the note was read.
        Err(failure) if failure.is_of_another_type() => {
            Memory::Read(*id, Box::new(before.of_another_type()))
        }
        Err(refused) if refused.is_of_the_kind() => Memory::Untold(refused.refusal()),
        Err(failure) => return Err(failure),
    };
    Ok(())
}

impl Step {
    fn new(command: &redis::Cmd, judge: Judge) -> Self {
        Self { bytes: command.get_packed_command(), judge, is_login: false, is_of_guard: false }
    }

    fn of_guard(self) -> Self {
        Self { is_of_guard: true, ..self }
    }
}

fn expect_ok(reply: &Value, _: &mut Learnt) -> Result<(), Failure> {
    match reply {
        Value::Okay => Ok(()),
        Value::ServerError(error) => Err(failure_of(error)),
        _ => Err(Failure::ProtocolError),
    }
}

/// A server with this command replies with a map. A server that does not have it, or does not let us use it,
/// replies with an error.
fn learn_pushes(reply: &Value, learnt: &mut Learnt) -> Result<(), Failure> {
    match reply {
        Value::Map(_) => {
            learnt.capabilities.pushes = true;
            Ok(())
        }
        Value::ServerError(_) => Ok(()),
        _ => Err(Failure::ProtocolError),
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

/// Whether a server knows a command that was sent without its arguments. If it does, its error is about the
/// arguments, and otherwise about the command.
fn knows(reply: &Value) -> Result<bool, Failure> {
    match reply {
        Value::ServerError(error) => Ok(says(error, "wrong number of arguments")),
        _ => Err(Failure::ProtocolError),
    }
}

/// Shows whether the server serves us at all. The probes do not show that, because the server checks their
/// arguments first. A user that may not use `PING` may still use the commands that matter.
fn expect_pong(reply: &Value, _: &mut Learnt) -> Result<(), Failure> {
    match reply {
        Value::SimpleString(word) if word == "PONG" => Ok(()),
        Value::ServerError(error) if error.code() == "NOPERM" => Ok(()),
        Value::ServerError(error) => Err(failure_of(error)),
        _ => Err(Failure::ProtocolError),
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
    pub(crate) fn new(
        credentials: Option<&Credentials>,
        database: i64,
        prefix: &[u8],
        requirements: Requirements,
    ) -> Self {
        let steps = steps(credentials, database, prefix, requirements);
        let mut learnt = Learnt::default();
        learnt.capabilities.wakes = requirements.is_waking;
        Self { steps, has_begun: false, prefix: prefix.into(), learnt }
    }

    /// Writes the commands to send.
    pub(crate) fn write_to(&self, outbox: &mut Vec<u8>) {
        self.steps.iter().for_each(|step| outbox.extend_from_slice(&step.bytes));
    }

    /// Whether a step has no reply yet.
    pub(crate) fn is_asking(&self) -> bool {
        !self.steps.is_empty()
    }

    /// Whether the server has answered anything.
    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Handles the reply to the next step.
    pub(crate) fn handle_reply(&mut self, reply: &Value) -> Progress {
        let Some(step) = self.steps.pop_front() else {
            let failure = Failure::ProtocolError;
            return Progress::Refused { failure, is_of_credentials: false };
        };
        self.has_begun = true;
        if step.is_of_guard {
            self.learnt.denied = self.learnt.denied.or_else(|| denial(reply));
        }
        let judged = match reply {
            lost if !self.prefix.is_empty() && has_lost_slot(lost) => Err(Failure::SlotMoved),
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

    /// What the server has said about itself so far.
    pub(crate) fn identity(&self) -> &Identity {
        &self.learnt.identity
    }

    /// What the server has said about its memory.
    pub(crate) fn memory(&self) -> &Memory {
        &self.learnt.memory
    }

    pub(crate) fn capabilities(&self) -> Capabilities {
        self.learnt.capabilities
    }

    /// Adds a step that gives the server another note, unless it has another one by now than the one that was
    /// read.
    pub(crate) fn mark(&mut self, note: &Note, since: Since, outbox: &mut Vec<u8>) {
        let Memory::Read(_, reading) = &self.learnt.memory else { return };
        let step = Step::new(&guard::mark(&self.prefix, &reading.text, note, since), learn_mark);
        outbox.extend_from_slice(&step.bytes);
        self.steps.push_back(step);
    }
}

#[cfg(test)]
mod tests;
