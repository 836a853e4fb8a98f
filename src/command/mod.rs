//! What servers are asked, and what they say: requests as commands of Redis, and replies as answers. Each
//! command has a file, which says how it is encoded, how many replies it brings, and what they mean.
//! Everything of RESP is the redis crate's.
//!
//! Nothing here knows over which connection a request goes, and when. Who delivers it is told what matters
//! for that: [`KeyEffect`], [`Request::must_reach`], [`Request::ttl_ms`].

mod acquire;
pub(crate) mod acquire_fenced;
mod answer;
mod capabilities;
mod definition;
mod encoder;
mod enrol;
mod extend;
mod fence;
pub mod guard;
pub mod handshake;
pub mod identity;
mod inspect;
mod leave;
mod pttl;
pub(crate) mod raise_fence;
mod release;
mod release_and_wake;
mod script;
pub(crate) mod sentinel;
pub(crate) mod waking;

use std::fmt;
use std::sync::{Arc, OnceLock};

use redis::Value;

pub use self::answer::Answer;
pub(crate) use self::capabilities::Capabilities;
use self::definition::{Definition, FORMS, Subject};
pub use self::definition::{KeyEffect, Kind};
pub(crate) use self::encoder::Encoder;
use crate::moment::Moment;
use crate::server_set::ServerSet;
use crate::token::Token;

/// What is asked of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Set the key to the token for the TTL, unless it is there.
    Acquire,
    /// The same as to acquire, and draw a fencing token.
    AcquireFenced,
    /// Have the counter of fencing tokens reach the one that another server drew, if the key has the token.
    RaiseFence,
    /// Give the key, if it has the token, at least the TTL. Never sets it.
    Extend,
    /// Set the key again on a server that lost it, unless it is there; in the form of an acquire.
    Repair,
    /// Delete the key if it has the token.
    Release,
    /// The same, and wake who waits for it first.
    ReleaseAndWake,
    /// What value has the key, and for how long?
    Inspect,
    /// Stand in the line of those who wait, under the channel of the token, unless nobody has the key.
    Enrol,
    /// Stand in it no longer, and pass on what came too late.
    Leave,
}

impl Verb {
    fn definition(self) -> &'static Definition {
        match self {
            Self::Acquire | Self::Repair => &acquire::DEFINITION,
            Self::AcquireFenced => &acquire_fenced::DEFINITION,
            Self::RaiseFence => &raise_fence::DEFINITION,
            Self::Extend => &extend::DEFINITION,
            Self::Release => &release::DEFINITION,
            Self::ReleaseAndWake => &release_and_wake::DEFINITION,
            Self::Inspect => &inspect::DEFINITION,
            Self::Enrol => &enrol::DEFINITION,
            Self::Leave => &leave::DEFINITION,
        }
    }
}

/// Hears what each server says to a request, also when nobody waits for the answer any more.
pub trait Witness: Send + Sync {
    /// A server has given this answer, heard at `now`. What was asked is told by its verb and the number
    /// of the request. Called before anybody else is told of it, with a mutex held: it only takes note.
    fn hear(&self, server: usize, asked: (Verb, u32), answer: &Answer, now: Moment);
}

/// A request, encoded once however many servers it goes to.
///
/// It is allocated for each call, and so are its bytes: servers that are not waited for may need
/// it for long after the call.
pub struct Request {
    verb: Verb,
    /// Which of the requests about one lock it is, for whoever hears the answers.
    number: u32,
    subject: Subject,
    /// To whom it goes although nobody waits for the answer.
    recipients: ServerSet,
    witness: Option<Arc<dyn Witness>>,
    /// By the form that the capabilities of a server ask for.
    encoded: [OnceLock<Box<[u8]>>; FORMS],
}

/// What the bytes to send take beside the names of the key: scripts, tokens, numbers.
const BESIDE_KEYS_MAX: usize = 1024;

impl Request {
    /// A request about a resource. [`Verb::Inspect`] needs no token.
    pub fn new(verb: Verb, resource: Arc<[u8]>, token: Token, ttl_ms: i64) -> Self {
        let subject = Subject { resource, token, ttl_ms, number: 0 };
        let (recipients, encoded) = (ServerSet::default(), [const { OnceLock::new() }; FORMS]);
        Self { verb, number: 0, subject, recipients, witness: None, encoded }
    }

    /// The same request for these servers: a release, or a repair. A release goes to them later if it
    /// cannot go now, until the TTL is over.
    #[must_use]
    pub fn to(self, recipients: ServerSet) -> Self {
        Self { recipients, ..self }
    }

    /// The same request, which proposes this number as a fencing token, or tells which was drawn.
    #[must_use]
    pub fn with_fence(self, number: i64) -> Self {
        Self { subject: Subject { number, ..self.subject }, ..self }
    }

    /// The same request, of who waits since then, in microseconds since 1970.
    #[must_use]
    pub fn waiting_since(self, us: i64) -> Self {
        Self { subject: Subject { number: us, ..self.subject }, ..self }
    }

    /// The same request, with this number in the place of 0.
    #[must_use]
    pub fn numbered(self, number: u32) -> Self {
        Self { number, ..self }
    }

    /// The same request, with somebody who hears the answers.
    #[must_use]
    pub fn before(self, witness: Arc<dyn Witness>) -> Self {
        Self { witness: Some(witness), ..self }
    }

    /// A server has given this answer, heard at `now`. Called before anybody is told of it.
    pub fn note(&self, server: usize, answer: &Answer, now: Moment) {
        if let Some(witness) = &self.witness {
            witness.hear(server, (self.verb, self.number), answer, now);
        }
    }

    /// Whether it is one that this server is to get, although nobody waits for the answer.
    pub fn is_for(&self, server: usize) -> bool {
        self.recipients.contains(server)
    }

    /// Whether it has to reach this server even when nobody waits for it any more, and over another
    /// connection if need be, until its TTL is over.
    pub fn must_reach(&self, server: usize) -> bool {
        self.effect() == KeyEffect::Undoes && self.is_for(server)
    }

    /// Whether what it is granted is a vote for a lock.
    pub fn asks_for_vote(&self) -> bool {
        matches!(self.verb, Verb::Acquire | Verb::AcquireFenced | Verb::RaiseFence)
    }

    /// Whether it is of use only where the server tells us things by itself.
    pub fn needs_pushes(&self) -> bool {
        self.verb == Verb::Enrol
    }

    /// What is sent behind it to find out whether it has to wake somebody, if that is not a part of it.
    pub(crate) fn look_for_waiters(&self, capabilities: Capabilities) -> Option<Vec<u8>> {
        let looks = self.verb == Verb::ReleaseAndWake
            && release_and_wake::looks_for_waiters(capabilities);
        looks.then(|| release_and_wake::look_for_waiters(self.resource()))
    }

    /// What wakes somebody, where that was found out only after the release.
    pub(crate) fn wake_late(&self) -> Self {
        // Under the name of a channel that nobody has.
        Self::new(Verb::Leave, Arc::clone(&self.subject.resource), *self.token(), self.ttl_ms())
    }

    /// Whether the answer tells when the key ends by the server's clock, in milliseconds, and not how long it lives.
    pub(crate) fn tells_end(&self, capabilities: Capabilities) -> bool {
        matches!(self.verb, Verb::Acquire | Verb::Repair) && capabilities.expiry_time
    }

    /// Whether a key may live for longer after it than any request before has asked for.
    pub fn may_prolong(&self) -> bool {
        matches!(self.verb, Verb::Acquire | Verb::AcquireFenced | Verb::Extend)
    }

    /// What it does to a server, for those who deliver it.
    pub fn effect(&self) -> KeyEffect {
        self.definition().effect
    }

    /// The kind of work that it does.
    pub fn kind(&self) -> Kind {
        self.definition().kind
    }

    /// What is asked.
    pub fn verb(&self) -> Verb {
        self.verb
    }

    /// The name of the key.
    pub fn resource(&self) -> &[u8] {
        &self.subject.resource
    }

    /// The token that is, or is to be, the value of the key: requests with one token belong together.
    pub fn token(&self) -> &Token {
        &self.subject.token
    }

    /// How long the key lives, or may live at most, once the request was carried out.
    pub fn ttl_ms(&self) -> i64 {
        self.subject.ttl_ms
    }

    /// How many bytes there are to send, at most.
    pub(crate) fn size(&self) -> usize {
        self.definition().names * self.resource().len() + BESIDE_KEYS_MAX
    }

    /// The bytes to send.
    pub(crate) fn bytes(&self, capabilities: Capabilities, encoder: &mut Encoder) -> &[u8] {
        self.encoded[self.form(capabilities)].get_or_init(|| {
            (self.definition().encode)(&self.subject, capabilities, encoder);
            encoder.take()
        })
    }

    /// Whether it is sent in a form that only servers with these capabilities know, although there is one
    /// that all know.
    pub(crate) fn relies_on(&self, capabilities: Capabilities) -> bool {
        // What sets a key is never sent twice.
        self.effect() == KeyEffect::Undoes
            && self.form(capabilities) != self.form(Capabilities::default())
    }

    /// How many replies it brings.
    pub(crate) fn replies(&self) -> usize {
        self.definition().replies
    }

    /// What the replies mean, which are taken out; none if they are not such as the server owes.
    pub(crate) fn answer(&self, replies: &mut Vec<Value>) -> Option<Answer> {
        (self.definition().decode)(&self.subject, &mut replies.drain(..))
    }

    fn form(&self, capabilities: Capabilities) -> usize {
        (self.definition().form)(capabilities)
    }

    fn definition(&self) -> &'static Definition {
        self.verb.definition()
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Request({:?} {:?})", self.verb, String::from_utf8_lossy(self.resource()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Capabilities = Capabilities::PLAIN;

    fn request(verb: Verb) -> Request {
        Request::new(verb, Arc::from(&b"r"[..]), Token::from_random([0xAB; 20]), 30_000)
    }

    fn commands(verb: Verb, capabilities: Capabilities) -> String {
        let request = request(verb);
        let mut encoder = Encoder::default();
        let bytes = request.bytes(capabilities, &mut encoder);
        let text = String::from_utf8_lossy(bytes).replace(request.token().as_str(), "T");
        let words =
            text.split("\r\n").filter(|word| !word.is_empty() && !word.starts_with(['$', '*']));
        words.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_wire_form_is_that_of_every_redlock_client() {
        assert_eq!(commands(Verb::Acquire, PLAIN), "SET r T PX 30000 NX PTTL r");
        assert_eq!(commands(Verb::Repair, PLAIN), commands(Verb::Acquire, PLAIN));
        let timed = commands(Verb::Acquire, Capabilities::EXPIRY_TIME);
        assert_eq!(timed, "SET r T PX 30000 NX PEXPIRETIME r");
        let fenced = commands(Verb::AcquireFenced, PLAIN);
        assert!(fenced.starts_with("EVAL local "), "{fenced}");
        assert!(fenced.ends_with(" 2 r r:f T 30000 0 1000000 3600000"), "{fenced}");
        let raise = commands(Verb::RaiseFence, PLAIN);
        assert!(raise.ends_with(" 2 r r:f T 0 3600000"), "{raise}");
        assert_eq!(commands(Verb::Inspect, PLAIN), "GETRANGE r 0 127 PTTL r");
        assert_eq!(commands(Verb::Release, Capabilities::DELIFEQ), "DELIFEQ r T");
        assert_eq!(commands(Verb::Release, Capabilities::DELEX), "DELEX r IFEQ T");
        let script = commands(Verb::Release, PLAIN);
        assert!(script.starts_with("EVAL if ") && script.ends_with(" 1 r T"), "{script}");
        for capabilities in [PLAIN, Capabilities::DELIFEQ, Capabilities::DELEX] {
            let script = commands(Verb::Extend, capabilities);
            assert!(script.starts_with("EVAL local ") && script.ends_with(" 1 r T 30000"));
            assert!(!script.contains("SET"));
        }
    }

    #[test]
    fn a_request_is_as_long_as_it_is_counted_and_little_shorter() {
        let others = [Verb::Extend, Verb::Release, Verb::Inspect];
        for verb in [Verb::Acquire, Verb::AcquireFenced, Verb::RaiseFence].into_iter().chain(others)
        {
            for capabilities in [PLAIN, Capabilities::DELIFEQ, Capabilities::DELEX] {
                let (resource, token) =
                    (Arc::from(&[b'r'; 65_536][..]), Token::from_random([0; 20]));
                let request = Request::new(verb, resource, token, i64::MAX).with_fence(i64::MAX);
                let mut encoder = Encoder::default();
                let length = request.bytes(capabilities, &mut encoder).len();
                let counted = request.size();
                assert!((length..length + BESIDE_KEYS_MAX).contains(&counted), "{verb:?} {length}");
            }
        }
    }

    #[test]
    fn whoever_delivers_a_request_is_told_what_matters_for_that() {
        let effects = [
            (Verb::Acquire, KeyEffect::Leaves),
            (Verb::AcquireFenced, KeyEffect::Leaves),
            (Verb::RaiseFence, KeyEffect::Passes),
            (Verb::Repair, KeyEffect::Leaves),
            (Verb::Extend, KeyEffect::Passes),
            (Verb::Inspect, KeyEffect::Passes),
            (Verb::Release, KeyEffect::Undoes),
        ];
        for (verb, effect) in effects {
            let request = request(verb).to(ServerSet::default().with(1));
            assert_eq!(request.effect(), effect);
            assert!(request.is_for(1) && !request.is_for(0));
            assert_eq!(request.must_reach(1), verb == Verb::Release);
            assert!(!request.must_reach(0));
            let votes = [Verb::Acquire, Verb::AcquireFenced, Verb::RaiseFence];
            assert_eq!(request.asks_for_vote(), votes.contains(&verb));
            let prolongs = [Verb::Acquire, Verb::AcquireFenced, Verb::Extend];
            assert_eq!(request.may_prolong(), prolongs.contains(&verb));
            assert!(!request.relies_on(PLAIN));
            assert_eq!(request.relies_on(Capabilities::DELEX), verb == Verb::Release);
            assert!(!request.relies_on(Capabilities::EXPIRY_TIME));
            let tells_end = [Verb::Acquire, Verb::Repair].contains(&verb);
            assert_eq!(request.tells_end(Capabilities::EXPIRY_TIME), tells_end);
            assert!(!request.tells_end(PLAIN));
        }
        assert_eq!(request(Verb::Repair).kind(), request(Verb::Acquire).kind());
    }
}
