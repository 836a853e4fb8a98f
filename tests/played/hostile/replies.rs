//! Bytes from the wire, in pieces, against a queue of requests. The client interprets them as
//! [`crate::judge`] does, keeps the connection exactly as long, and allocates no more than the bounds
//! allow.
//!
//! The first bytes determine the run, and all others are the wire: see [`Plan`] and [`expand`].

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use crate::choices::Choices;
use crate::manager::process_state::ProcessStates;
use crate::manager::runtime::Runtime;
use crate::memory;
use crate::peer::{self, Peer};
use crate::protocol::command::{Answer, Request, Verb};
use crate::protocol::failure::Failure;
use crate::protocol::lock_kind::{LockKind, Target};
use crate::protocol::moment::Moment;
use crate::protocol::operation::round::Round;
use crate::protocol::operation::{Actions, Ended, Event, Limits, Operation};
use crate::protocol::server_set::ServerSet;
use crate::protocol::servers::endpoint::Endpoint;
use crate::protocol::servers::roster::Roster;
use crate::protocol::token::Token;
use crate::resp::LENGTH_MAX;
use crate::world::{self, Connection};

/// Twice the longest reply, for buffers that grow by doubling: the crate's parser has one.
const ALLOCATION_MAX: usize = 2 * LENGTH_MAX + 8192;

/// The longest wire. A longer one would show nothing new.
const WIRE_MAX: usize = LENGTH_MAX + 10_000;

const CONNECT_MS: i64 = 300;
const REPLY_MS: i64 = 200;
const TTL_MS: i64 = 10_000;

/// The course of a run.
struct Plan {
    /// Whether the wire begins with the replies to the handshake.
    has_greeting: bool,
    /// Whether the server sends when nothing is owed.
    is_eager: bool,
    /// Whether it closes the connection after the last byte.
    ends: bool,
    /// The URL of the server, with the log-in.
    url: &'static str,
    requests: Vec<Asking>,
    pieces: VecDeque<Vec<u8>>,
    pace_ms: i64,
}

#[derive(Clone, Copy)]
struct Asking {
    verb: Verb,
    /// Whether it is about two resources at once.
    is_of_several: bool,
    /// Whether nobody waits for the answer.
    is_brief: bool,
}

/// Plays one run.
pub fn replies(data: &[u8]) {
    let plan = Plan::new(data);
    let largest = memory::largest_in(|| play(plan));
    world::end();
    assert!(largest <= ALLOCATION_MAX, "{largest} bytes were allocated at once");
}

fn play(plan: Plan) {
    let requests = memory::uncounted(|| plan.requests.clone());
    let endpoint = Endpoint::parse(plan.url, 0).expect("a good URL");
    world::begin(Wire { plan });
    let states = ProcessStates::default();
    let roster = || Ok(Roster::new(vec![endpoint]));
    let state = states.own(roster, &Arc::default(), &Arc::default()).expect("descriptors");
    Ear::hear_from(state, None, CONNECT_MS);
    judge_connections();
    for (number, asking) in requests.iter().enumerate() {
        let wait_ms = if asking.is_brief { 0 } else { REPLY_MS };
        let request = request(number, *asking);
        judge(number, request.needs_pushes(), Ear::hear_from(state, Some(request), wait_ms));
        judge_connections();
    }
}

fn limits(ms: i64) -> Limits {
    let since = world::now();
    Limits { since, until: since.plus_ms(ms), reply_ms: 10 * REPLY_MS }
}

fn request(number: usize, Asking { verb, is_of_several, .. }: Asking) -> Request {
    let resource: Arc<[u8]> = name(number).into_bytes().into();
    let mut target = Target::from(Arc::clone(&resource));
    if is_of_several {
        let names = [resource, Arc::from(&b"other"[..])];
        target.kind = LockKind::Several(Arc::from(names));
    }
    let token = Token::from_random([u8::try_from(number).expect("few"); 20]);
    match verb {
        Verb::Release | Verb::ReleaseAndWake => {
            Request::new(verb, target, token, TTL_MS).to(ServerSet::first(1))
        }
        _ => Request::new(verb, target, token, TTL_MS),
    }
}

fn name(number: usize) -> String {
    format!("r{number}")
}

/// Checks that the answer is what the received bytes mean.
fn judge(number: usize, waits: bool, heard: Option<Answer>) {
    let name = name(number);
    let right = world::with(|world| {
        world.connections.iter().find_map(|it| it.judge.answer_about(name.as_bytes()))
    });
    match heard.expect("every call is told of every server") {
        // A server is not asked again for something that it has refused.
        Answer::Failed(Failure::Refused(_)) if right.is_none() && waits => {
            let is_unheard = |it: &Connection| it.judge.is_unheard;
            assert!(world::with(|world| world.connections.iter().any(is_unheard)), "{name}");
        }
        // A refused release is sent again, although nobody waits for it.
        Answer::Failed(Failure::Refused(_)) if right.is_none() => {
            let has = |it: &Connection| it.judge.has_refused_release(name.as_bytes());
            assert!(world::with(|world| world.connections.iter().any(has)), "{name} was refused");
        }
        Answer::Failed(
            Failure::Refused(_)
            | Failure::NoFences
            | Failure::ClockBeyond
            | Failure::Unfenced { .. },
        ) => {
            assert_eq!(right, Some(Answer::Failed(Failure::ProtocolError)), "{name} was refused");
        }
        Answer::Failed(why) => assert_eq!(right, None, "{name} was answered, but: {why}"),
        answer => assert_eq!(right, Some(answer), "{name}"),
    }
}

/// A connection is closed when its data makes no sense, and not before.
fn judge_connections() {
    world::with(|world| {
        for it in &world.connections {
            let is_over = it.judge.end.is_some() || it.has_ended();
            assert_eq!(it.is_closed, is_over, "closed, over: {:?}", it.judge.end);
        }
    });
}

/// Asks for a connection, or something else, and receives one answer.
struct Ear {
    /// The request; `None` for a connection.
    request: Option<Request>,
    wait_ms: i64,
    heard: Arc<Mutex<Option<Answer>>>,
}

impl Ear {
    fn hear_from(state: &Runtime, request: Option<Request>, wait_ms: i64) -> Option<Answer> {
        let heard = Arc::<Mutex<Option<Answer>>>::default();
        let ear = Self { request, wait_ms, heard: Arc::clone(&heard) };
        state.run(Box::new(ear), None).expect("it always ends like that");
        heard.lock().expect("nobody panics with it").take()
    }
}

impl Operation for Ear {
    fn handle(&mut self, event: Event, actions: &mut dyn Actions) {
        match (event, self.request.take()) {
            (Event::Started, Some(request)) => actions.ask(request, limits(self.wait_ms)),
            (Event::Started, None) => actions.prepare(1),
            (Event::Prepared(_), _) => actions.connect(limits(self.wait_ms)),
            _ => actions.end(Ok(Ended::Inspected {
                locked_until: None,
                readers: None,
                absent: String::new(),
            })),
        }
    }

    fn round(&mut self) -> Option<&mut Round> {
        None
    }

    fn hear(&mut self, _server: usize, answer: Answer, _now: Moment) -> bool {
        let before = self.heard.lock().expect("nobody panics with it").replace(answer);
        assert_eq!(before, None, "one request, two answers");
        true
    }
}

impl Plan {
    fn new(data: &[u8]) -> Self {
        let mut choices = Choices::new(data);
        let options = choices.byte();
        let cut = choices.byte();
        let count = 1 + choices.below(4);
        let requests = (0..count).map(|_| Asking::new(choices.byte())).collect();
        let wire = expand(choices.rest());
        let urls = ["redis://127.0.0.1", "redis://:p@127.0.0.1", "redis://u:p@127.0.0.1/1"];
        Self {
            has_greeting: options & 1 != 0,
            is_eager: options & 2 != 0,
            ends: options & 4 != 0,
            url: urls[usize::from(options >> 3) % urls.len()],
            requests,
            pieces: pieces(&wire, cut),
            pace_ms: i64::from(options >> 6),
        }
    }
}

impl Asking {
    fn new(byte: u8) -> Self {
        let verbs = [Verb::Acquire, Verb::Release, Verb::Extend, Verb::Inspect];
        let verb = match byte >> 5 {
            3 => [Verb::JoinWaitlist, Verb::Leave, Verb::ReleaseAndWake][usize::from(byte & 3) % 3],
            6 => Verb::AcquireFenced,
            7 => Verb::RaiseFence,
            _ => verbs[usize::from(byte & 3)],
        };
        let fenced = [Verb::AcquireFenced, Verb::RaiseFence];
        let (verb, is_of_several) = match byte >> 5 {
            4 => (verb, true),
            5 if byte & 8 != 0 => {
                ([Verb::JoinWaitlist, Verb::ReleaseAndWake][usize::from(byte & 1)], true)
            }
            5 if byte & 4 != 0 => (Verb::ReadFences, false),
            5 => (fenced[usize::from(byte & 1)], true),
            _ => (verb, false),
        };
        Self { verb, is_of_several, is_brief: byte & 4 != 0 }
    }
}

/// The wire. Most bytes stand for themselves. The byte 1 and the two that follow stand for many repetitions
/// of one byte; the byte 2 and the two that follow stand for repetitions of the last few bytes.
fn expand(bytes: &[u8]) -> Vec<u8> {
    let mut wire = Vec::new();
    let mut choices = Choices::new(bytes);
    while !choices.is_empty() && wire.len() < WIRE_MAX {
        match choices.byte() {
            1 => {
                let (byte, times) = (choices.byte(), times(&mut choices));
                wire.resize(wire.len() + times, byte);
            }
            2 => {
                let length = usize::from(choices.byte() % 16 + 1).min(wire.len());
                let last = wire[wire.len() - length..].to_vec();
                let times = times(&mut choices).min(WIRE_MAX / length.max(1));
                wire.extend(last.repeat(times));
            }
            byte => wire.push(byte),
        }
    }
    wire.truncate(WIRE_MAX);
    wire
}

/// The number of repetitions, usually a few.
fn times(choices: &mut Choices<'_>) -> usize {
    match choices.byte() {
        few @ 0..238 => usize::from(few),
        many => 1 << (many - 238),
    }
}

/// The wire in pieces: 0 leaves it whole, 1 makes small pieces, other values make pieces of many sizes.
fn pieces(wire: &[u8], cut: u8) -> VecDeque<Vec<u8>> {
    let mut pieces = VecDeque::new();
    let (mut rest, mut dice) = (wire, u32::from(cut));
    let least = if wire.len() <= 200 { 1 } else { wire.len() / 25 };
    while !rest.is_empty() {
        dice = dice.wrapping_mul(1_103_515_245).wrapping_add(12_345);
        let length = match cut {
            0 => rest.len(),
            1 => least,
            _ => least + (dice >> 16) as usize % (2 * least + 8),
        };
        let (piece, others) = rest.split_at(length.min(rest.len()));
        pieces.push_back(piece.to_vec());
        rest = others;
    }
    pieces
}

/// A server that sends the wire.
struct Wire {
    plan: Plan,
}

impl Peer for Wire {
    fn accept(&mut self, _place: &str) -> Option<(usize, u32)> {
        Some((0, 0))
    }

    fn serve(&mut self, connection: &mut Connection, now: i64) {
        let heard = std::mem::take(&mut connection.heard);
        if !connection.is_heard() {
            return;
        }
        if !self.plan.has_greeting && !connection.judge.is_up {
            if !heard.is_empty() {
                connection.to_come.push((now, peer::greeting(connection.judge.owes())));
            }
        } else if self.plan.is_eager || connection.judge.owes() > 0 {
            match self.plan.pieces.pop_front() {
                Some(it) => connection.to_come.push((now + self.plan.pace_ms * 1_000_000, it)),
                None => connection.ends |= self.plan.ends,
            }
        }
    }
}
