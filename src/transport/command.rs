//! Requests as commands of Redis, and replies as answers. Everything of RESP is the redis crate's.

use std::fmt;
use std::sync::{Arc, OnceLock};

use redis::{Cmd, Value};

use super::failure::Failure;
use super::link::KEPT_MAX;
use crate::moment::Moment;
use crate::server_set::ServerSet;
use crate::token::Token;

/// What is asked of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Set the key to the token for the TTL, unless it is there.
    Acquire,
    /// Give the key, if it has the token, at least the TTL. Never sets it. Always a script: `SET … IFEQ`
    /// might shorten what is left, when it is carried out late, on a connection that was given up, after
    /// an extension for longer on the next one.
    Extend,
    /// Set the key again on a server that lost it, unless it is there; in the form of an acquire.
    Repair,
    /// Delete the key if it has the token.
    Release,
    /// What value has the key, and for how long?
    Inspect,
}

/// What a server says to a request, or why it says nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It did what was asked. To no request at all: the connection is up.
    Done,
    /// It extended the key, which had so long to live before.
    Extended { left_ms: i64 },
    /// The key was not there, or (to [`Verb::Release`]) not ours.
    Absent,
    /// The key has another value, and so long to live if that is known. Below 0: for ever.
    Foreign { left_ms: Option<i64> },
    /// The key has this value, and so long to live. At most [`VALUE_MAX`] bytes of it.
    Found { value: Vec<u8>, left_ms: i64 },
    /// No usable answer.
    Failed(Failure),
}

/// How much of a value is looked at. A token of ours has 40 bytes, others' have not many more,
/// and what else may stand under the name of a resource is not worth reading.
pub const VALUE_MAX: usize = 128;

/// Which commands a server has: found out once per connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Dialect {
    delete: Delete,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Delete {
    /// A script: every server since 2.6.
    #[default]
    Script,
    /// `DELEX key IFEQ value`: Redis 8.4.
    Delex,
    /// `DELIFEQ key value`: Valkey 9.0.
    Delifeq,
}

/// Deletes the key if it has our token.
const RELEASE: &str =
    "if redis.call('GET',KEYS[1])==ARGV[1] then return redis.call('DEL',KEYS[1]) end return 0";

/// Gives the key a longer life if it has our token (1), and leaves it alone if it is another's (2) or is not
/// there (0). Tells how long the key had to live before.
const EXTEND: &str = "local v=redis.call('GET',KEYS[1]) \
    if not v then return {0,-2} end \
    local t=redis.call('PTTL',KEYS[1]) \
    if v~=ARGV[1] then return {2,t} end \
    if t<tonumber(ARGV[2]) then redis.call('PEXPIRE',KEYS[1],ARGV[2]) end \
    return {1,t}";

/// A request, encoded once however many servers it goes to.
///
/// It is allocated for each call, and so are its bytes: servers that are not waited for may need
/// it for long after the call.
pub struct Request {
    verb: Verb,
    resource: Arc<[u8]>,
    token: Token,
    ttl_ms: i64,
    /// To whom a release or a repair goes.
    recipients: ServerSet,
    witness: Option<Arc<dyn Witness>>,
    /// By the form that the dialect of a server asks for.
    encoded: [OnceLock<Box<[u8]>>; FORMS],
}

const FORMS: usize = 3;

/// What the bytes to send take beside the names of the key: scripts, tokens, numbers.
const BESIDE_KEYS_MAX: usize = 512;

/// Hears what each server says to a request, also when nobody waits for the answer any more.
pub trait Witness: Send + Sync {
    /// A server has given this answer, heard at `now`. Called before anybody else is told of it, with a
    /// mutex held: it only takes note.
    fn hear(&self, server: usize, verb: Verb, answer: &Answer, now: Moment);
}

impl Request {
    /// A request about a resource. [`Verb::Inspect`] needs no token.
    pub fn new(verb: Verb, resource: Arc<[u8]>, token: Token, ttl_ms: i64) -> Self {
        let (recipients, encoded) = (ServerSet::default(), [const { OnceLock::new() }; FORMS]);
        Self { verb, resource, token, ttl_ms, recipients, witness: None, encoded }
    }

    /// The same request for these servers: a release, or a repair. A release goes to them later if it
    /// cannot go now, until the TTL is over.
    #[must_use]
    pub fn to(self, recipients: ServerSet) -> Self {
        Self { recipients, ..self }
    }

    /// The same request, with somebody who hears the answers.
    #[must_use]
    pub fn before(self, witness: Arc<dyn Witness>) -> Self {
        Self { witness: Some(witness), ..self }
    }

    /// A server has given this answer, heard at `now`. Called before anybody is told of it.
    pub fn note(&self, server: usize, answer: &Answer, now: Moment) {
        if let Some(witness) = &self.witness {
            witness.hear(server, self.verb, answer, now);
        }
    }

    /// Whether it is one that this server is to get, although nobody waits for the answer.
    pub fn is_for(&self, server: usize) -> bool {
        self.recipients.contains(server)
    }

    /// Whether it must reach this server even when nobody waits for it any more.
    pub fn is_needed_by(&self, server: usize) -> bool {
        self.verb == Verb::Release && self.is_for(server)
    }

    /// Whether it may set the key where there is none.
    pub fn sets_the_key(&self) -> bool {
        matches!(self.verb, Verb::Acquire | Verb::Repair)
    }

    /// What is asked.
    pub fn verb(&self) -> Verb {
        self.verb
    }

    /// The name of the key.
    pub fn resource(&self) -> &[u8] {
        &self.resource
    }

    /// The token that is, or is to be, its value.
    pub fn token(&self) -> &Token {
        &self.token
    }

    /// How long the key lives, or may live at most, once the request was carried out.
    pub fn ttl_ms(&self) -> i64 {
        self.ttl_ms
    }

    /// How many bytes there are to send, at most: each command has one reply, and names the key once.
    pub(super) fn size(&self) -> usize {
        self.replies() * self.resource.len() + BESIDE_KEYS_MAX
    }

    /// The bytes to send.
    pub(super) fn bytes(&self, dialect: Dialect, pen: &mut Pen) -> &[u8] {
        self.encoded[self.form(dialect)].get_or_init(|| {
            self.write(dialect, pen);
            pen.take()
        })
    }

    /// Whether that is a command that only some servers have, for what a script does on all.
    pub(super) fn is_native(&self, dialect: Dialect) -> bool {
        self.form(dialect) != 0
    }

    /// How many replies they bring.
    pub(super) fn replies(&self) -> usize {
        match self.verb {
            Verb::Release | Verb::Extend => 1,
            Verb::Acquire | Verb::Repair | Verb::Inspect => 2,
        }
    }

    /// What the replies mean; none if they are not such as the server owes.
    pub(super) fn answer(&self, replies: &mut Vec<Value>) -> Option<Answer> {
        let mut replies = replies.drain(..);
        let first = replies.next()?;
        if let Value::ServerError(error) = &first {
            if self.verb == Verb::Release && error.code() == "WRONGTYPE" {
                // Something else stands under the name, so nothing of ours does.
                return Some(Answer::Absent);
            }
            return Some(Answer::Failed(Failure::of_reply(error)));
        }
        match (self.verb, first) {
            (Verb::Release, Value::Int(1)) => Some(Answer::Done),
            (Verb::Release, Value::Int(0)) => Some(Answer::Absent),
            (Verb::Extend, Value::Array(said)) => extended(&said),
            (Verb::Acquire | Verb::Repair, first) => {
                let left_ms = left_ms(&replies.next()?)?;
                match first {
                    Value::Okay => Some(Answer::Done),
                    Value::Nil => Some(Answer::Foreign { left_ms }),
                    _ => None,
                }
            }
            (Verb::Inspect, Value::BulkString(value)) => {
                let second = replies.next()?;
                let left_ms = left_ms(&second)?;
                match second {
                    // It is ours, and for how long is what we are not told.
                    Value::ServerError(error) if value == self.token.as_bytes() => {
                        Some(Answer::Failed(Failure::of_reply(&error)))
                    }
                    _ => Some(found(value, left_ms)),
                }
            }
            _ => None,
        }
    }

    fn form(&self, dialect: Dialect) -> usize {
        match self.verb {
            Verb::Acquire | Verb::Extend | Verb::Repair | Verb::Inspect => 0,
            Verb::Release => dialect.delete as usize,
        }
    }

    fn write(&self, dialect: Dialect, pen: &mut Pen) {
        let (key, token) = (&*self.resource, self.token.as_bytes());
        match self.verb {
            Verb::Acquire | Verb::Repair => {
                pen.put(|it| {
                    it.arg("SET").arg(key).arg(token).arg("PX").arg(self.ttl_ms).arg("NX")
                });
            }
            Verb::Extend => {
                pen.put(|it| {
                    it.arg("EVAL").arg(EXTEND).arg(1).arg(key).arg(token).arg(self.ttl_ms)
                });
            }
            Verb::Release => pen.put(|it| match dialect.delete {
                Delete::Script => it.arg("EVAL").arg(RELEASE).arg(1).arg(key).arg(token),
                Delete::Delex => it.arg("DELEX").arg(key).arg("IFEQ").arg(token),
                Delete::Delifeq => it.arg("DELIFEQ").arg(key).arg(token),
            }),
            Verb::Inspect => pen.put(|it| it.arg("GETRANGE").arg(key).arg(0).arg(VALUE_MAX - 1)),
        }
        if self.replies() > 1 {
            pen.put(|it| it.arg("PTTL").arg(key));
        }
    }
}

/// Encodes requests, with buffers that are kept: the crate's command would allocate four times for
/// each of three commands that a lock and its release take.
#[derive(Default)]
pub(super) struct Pen {
    command: Cmd,
    bytes: Vec<u8>,
}

impl Pen {
    fn put(&mut self, fill: impl FnOnce(&mut Cmd) -> &mut Cmd) {
        fill(&mut self.command).write_packed_command(&mut self.bytes);
        self.command.clear();
    }

    /// What was put since the last time.
    fn take(&mut self) -> Box<[u8]> {
        let bytes = Box::from(&*self.bytes);
        self.bytes.clear();
        if self.bytes.capacity() > KEPT_MAX {
            *self = Self::default();
        }
        bytes
    }
}

/// What PTTL said: `Some(None)` if it was not allowed to, none if it is no such reply.
#[allow(clippy::option_option)]
fn left_ms(reply: &Value) -> Option<Option<i64>> {
    const NO_SUCH_KEY: i64 = -2;
    match reply {
        &Value::Int(NO_SUCH_KEY) | Value::ServerError(_) => Some(None),
        &Value::Int(left_ms) => Some(Some(left_ms)),
        _ => None,
    }
}

/// What the script said that extends.
fn extended(said: &[Value]) -> Option<Answer> {
    let &[Value::Int(what), Value::Int(left_ms)] = said else { return None };
    match what {
        0 => Some(Answer::Absent),
        1 => Some(Answer::Extended { left_ms }),
        2 => Some(Answer::Foreign { left_ms: Some(left_ms) }),
        _ => None,
    }
}

/// `GETRANGE` answers an empty value for a key that is not there.
fn found(value: Vec<u8>, left_ms: Option<i64>) -> Answer {
    match left_ms {
        // It was set in between. It is none of whatever others were found to have.
        Some(0..) if value.is_empty() => Answer::Absent,
        Some(left_ms) => Answer::Found { value, left_ms },
        None if value.is_empty() => Answer::Absent,
        None => Answer::Found { value, left_ms: 0 },
    }
}

/// The questions that find out the dialect, which lack their arguments and so change nothing, and one
/// that shows whether the server serves us at all: it looks at that only after the arguments.
pub(super) fn probe() -> Vec<u8> {
    let mut bytes = Vec::new();
    redis::cmd("DELEX").write_packed_command(&mut bytes);
    redis::cmd("DELIFEQ").write_packed_command(&mut bytes);
    redis::cmd("PING").write_packed_command(&mut bytes);
    bytes
}

/// How many replies [`probe`] brings.
pub(super) const PROBES: usize = 3;

impl Dialect {
    /// That of a server with a command of its own.
    #[cfg(test)]
    pub(super) const fn native() -> Self {
        Self { delete: Delete::Delifeq }
    }

    /// Learns from the reply to one of the probes.
    pub(super) fn learn(&mut self, probe: usize, reply: &Value) {
        match (probe, reply) {
            (0, Value::ServerError(error)) if knows(error) => self.delete = Delete::Delex,
            (1, Value::ServerError(error)) if knows(error) => self.delete = Delete::Delifeq,
            _ => {}
        }
    }
}

/// A server that knows a command complains of missing arguments, another of the command.
fn knows(error: &redis::ServerError) -> bool {
    error.details().is_some_and(|it| it.contains("wrong number of arguments"))
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Request({:?} {:?})", self.verb, String::from_utf8_lossy(&self.resource))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NATIVE: Dialect = Dialect::native();

    fn request(verb: Verb) -> Request {
        Request::new(verb, Arc::from(&b"r"[..]), Token::from_random([0xAB; 20]), 30_000)
    }

    fn commands(verb: Verb, dialect: Dialect) -> String {
        let request = request(verb);
        let mut pen = Pen::default();
        let bytes = request.bytes(dialect, &mut pen);
        let text = String::from_utf8_lossy(bytes).replace(request.token.as_str(), "T");
        let words = text.split("\r\n").filter(|it| !it.is_empty() && !it.starts_with(['$', '*']));
        words.collect::<Vec<_>>().join(" ")
    }

    fn answer(verb: Verb, replies: &[Value]) -> Option<Answer> {
        let request = request(verb);
        assert_eq!(request.replies(), replies.len());
        request.answer(&mut replies.to_vec())
    }

    #[test]
    fn the_wire_form_is_that_of_every_redlock_client() {
        let plain = Dialect::default();
        assert_eq!(commands(Verb::Acquire, plain), "SET r T PX 30000 NX PTTL r");
        assert_eq!(commands(Verb::Repair, plain), commands(Verb::Acquire, plain));
        assert_eq!(commands(Verb::Release, NATIVE), "DELIFEQ r T");
        assert!(commands(Verb::Extend, NATIVE).starts_with("EVAL local"));
        assert!(!commands(Verb::Extend, plain).contains("SET"));
        let delex = Dialect { delete: Delete::Delex };
        assert_eq!(commands(Verb::Release, delex), "DELEX r IFEQ T");
        assert!(commands(Verb::Release, plain).starts_with("EVAL if"));
    }

    #[test]
    fn a_request_is_as_long_as_it_is_counted_and_little_shorter() {
        for verb in [Verb::Acquire, Verb::Extend, Verb::Release, Verb::Inspect] {
            for dialect in [Dialect::default(), NATIVE, Dialect { delete: Delete::Delex }] {
                let (resource, token) =
                    (Arc::from(&[b'r'; 65_536][..]), Token::from_random([0; 20]));
                let request = Request::new(verb, resource, token, i64::MAX);
                let mut pen = Pen::default();
                let (counted, length) = (request.size(), request.bytes(dialect, &mut pen).len());
                assert!((length..length + BESIDE_KEYS_MAX).contains(&counted), "{verb:?} {length}");
            }
        }
    }

    #[test]
    fn replies_become_answers() {
        use Value::{Int, Nil, Okay};
        let foreign = |left_ms| Some(Answer::Foreign { left_ms });
        assert_eq!(answer(Verb::Acquire, &[Okay, Int(30_000)]), Some(Answer::Done));
        assert_eq!(answer(Verb::Acquire, &[Nil, Int(7)]), foreign(Some(7)));
        assert_eq!(answer(Verb::Acquire, &[Nil, Int(-2)]), foreign(None));
        let pair = |what, left_ms| [Value::Array(vec![Int(what), Int(left_ms)])];
        let kept = Some(Answer::Extended { left_ms: 7 });
        assert_eq!(answer(Verb::Extend, &pair(1, 7)), kept);
        assert_eq!(answer(Verb::Extend, &pair(2, 7)), foreign(Some(7)));
        assert_eq!(answer(Verb::Extend, &pair(0, -2)), Some(Answer::Absent));
        assert_eq!(answer(Verb::Repair, &[Okay, Int(30_000)]), Some(Answer::Done));
        assert_eq!(answer(Verb::Repair, &[Nil, Int(7)]), foreign(Some(7)));
        assert_eq!(answer(Verb::Release, &[Int(0)]), Some(Answer::Absent));
        let empty = Value::BulkString(Vec::new());
        assert_eq!(answer(Verb::Inspect, &[empty.clone(), Int(-2)]), Some(Answer::Absent));
        let found = Some(Answer::Found { value: Vec::new(), left_ms: -1 });
        assert_eq!(answer(Verb::Inspect, &[empty.clone(), Int(-1)]), found);
        // One that was not there when it was read, and was when its time was asked for.
        assert_eq!(answer(Verb::Inspect, &[empty, Int(5)]), Some(Answer::Absent));
    }

    #[test]
    fn a_lock_of_ours_that_is_there_for_nobody_knows_how_long_is_not_a_short_one() {
        let refused = redis::parse_redis_value(b"-NOPERM no\r\n").expect("a reply");
        let asked = |value: &[u8]| {
            answer(Verb::Inspect, &[Value::BulkString(value.to_vec()), refused.clone()])
        };
        let ours = request(Verb::Inspect).token;
        assert!(matches!(asked(ours.as_bytes()), Some(Answer::Failed(_))));
        // That there is one is all that others want to know.
        assert!(matches!(asked(b"theirs"), Some(Answer::Found { .. })));
        assert_eq!(asked(b""), Some(Answer::Absent));
    }

    #[test]
    fn what_no_server_owes_is_no_answer() {
        use Value::{Int, Nil, Okay};
        assert_eq!(answer(Verb::Acquire, &[Int(1), Int(1)]), None);
        assert_eq!(answer(Verb::Acquire, &[Okay, Okay]), None);
        assert_eq!(answer(Verb::Release, &[Okay]), None);
        assert_eq!(answer(Verb::Release, &[Int(2)]), None);
        assert_eq!(answer(Verb::Extend, &[Okay]), None);
        assert_eq!(answer(Verb::Extend, &[Value::Array(vec![Int(1)])]), None);
        assert_eq!(answer(Verb::Extend, &[Value::Array(vec![Int(3), Int(1)])]), None);
        assert_eq!(answer(Verb::Inspect, &[Nil, Int(1)]), None);
    }
}
