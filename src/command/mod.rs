//! What servers are asked, and what they say: requests as commands of Redis, and replies as answers. Each
//! command has a file, which says how it is encoded, how many replies it brings, and what they mean.
//! Everything of RESP is the redis crate's.
//!
//! Nothing here knows over which connection a request goes, and when. Who delivers it is told what matters
//! for that: [`KeyEffect`], [`Request::must_reach`], [`Request::ttl_ms`].

mod acquire;
mod acquire_again;
pub(crate) mod acquire_fenced;
mod answer;
mod capabilities;
mod definition;
mod encoded;
mod encoder;
mod enrol;
mod extend;
mod fence;
pub mod guard;
pub mod handshake;
pub mod identity;
mod inspect;
pub(crate) mod inspect_permits;
mod leave;
mod permits;
mod pttl;
pub(crate) mod raise_fence;
mod release;
mod release_and_wake;
pub(crate) mod release_permits;
pub(crate) mod script;
pub(crate) mod sentinel;
pub(crate) mod several;
pub(crate) mod shared;
pub(crate) mod take_permit;
mod wait_for_permits;
pub(crate) mod waking;
mod waking_requests;

use std::fmt;
use std::sync::{Arc, OnceLock};

use redis::Value;

pub use self::answer::{Answer, Place, SlotValue, Slots};
pub(crate) use self::capabilities::Capabilities;
use self::definition::{Definition, FORMS, Subject};
pub use self::definition::{KeyEffect, Kind};
pub(crate) use self::encoded::{Encoded, Hash};
pub(crate) use self::encoder::Encoder;
use crate::lock_kind::{LockKind, Target};
use crate::moment::Moment;
use crate::server_set::ServerSet;
use crate::token::Token;

/// What is asked of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Set the key to the token for the TTL, unless it is there. Of a semaphore: any slot that is free.
    Acquire,
    /// The same, by one that waits: it asks as well for readers that are in the way.
    AcquireAgain,
    /// Move the token to this slot of a semaphore, if it is free.
    Move,
    /// The same as to acquire, and draw a fencing token.
    AcquireFenced,
    /// Have the counter of fencing tokens reach the one that another server drew, if the key has the token.
    RaiseFence,
    /// Give the key, if it has the token, at least the TTL. Never sets it.
    Extend,
    /// Make a shared lock of an exclusive one, which keeps its end.
    Downgrade,
    /// Say that a writer waits, where readers have the resource.
    Intend,
    /// Take that back.
    Recant,
    /// Set the key again on a server that lost it, unless it is there; in the form of an acquire.
    Repair,
    /// Delete the key if it has the token. Of a semaphore: every slot that has it.
    Release,
    /// The same, and wake who waits for it first.
    ReleaseAndWake,
    /// Delete every slot of a semaphore that has the token, but for this one.
    ReleaseRest,
    /// The same, and wake who waits for a permit first.
    ReleaseRestAndWake,
    /// What value has the key, and for how long?
    Inspect,
    /// Stand in the line of those who wait, under the channel of the token, unless nobody has the key.
    Enrol,
    /// Stand in it no longer, and pass on what came too late.
    Leave,
}

impl Verb {
    /// Whether it asks for a lock that is not had yet.
    pub(crate) fn acquires(self) -> bool {
        matches!(self, Self::Acquire | Self::AcquireAgain | Self::AcquireFenced)
    }

    /// By which command it is done for a lock of this kind.
    fn definition(self, kind: &LockKind) -> &'static Definition {
        match (self, kind) {
            (verb, LockKind::Several(_)) => several::definition(verb),
            (verb, LockKind::Permit { .. }) => verb.permit_definition(),
            (Self::Acquire | Self::Repair, LockKind::Shared) => &shared::acquire::DEFINITION,
            (Self::Extend, LockKind::Shared) => &shared::extend::DEFINITION,
            (Self::Release, LockKind::Shared) => &shared::release::DEFINITION,
            (Self::ReleaseAndWake, LockKind::Shared) => &shared::release::AND_WAKE,
            (Self::Enrol, LockKind::Shared) => &shared::enrol::DEFINITION,
            (Self::Inspect, LockKind::Shared) => &shared::inspect::DEFINITION,
            (verb, _) => verb.exclusive(),
        }
    }

    /// By which command it is done for a lock that one has alone.
    fn exclusive(self) -> &'static Definition {
        match self {
            Self::Acquire | Self::Repair | Self::Move => &acquire::DEFINITION,
            Self::AcquireAgain => &acquire_again::DEFINITION,
            Self::Downgrade => &shared::extend::DOWNGRADE,
            Self::Intend => &shared::intend::DEFINITION,
            Self::Recant => &shared::intend::RECANT,
            Self::AcquireFenced => &acquire_fenced::DEFINITION,
            Self::RaiseFence => &raise_fence::DEFINITION,
            Self::Extend => &extend::DEFINITION,
            Self::Release | Self::ReleaseRest => &release::DEFINITION,
            Self::ReleaseAndWake | Self::ReleaseRestAndWake => &release_and_wake::DEFINITION,
            Self::Inspect => &inspect::DEFINITION,
            Self::Enrol => &enrol::DEFINITION,
            Self::Leave => &leave::DEFINITION,
        }
    }

    /// The same for a permit, before it has a slot: a slot is an ordinary lock.
    fn permit_definition(self) -> &'static Definition {
        match self {
            Self::Acquire | Self::AcquireAgain | Self::AcquireFenced | Self::Repair => {
                &take_permit::ANY
            }
            Self::Move | Self::RaiseFence | Self::Extend => &take_permit::ONE,
            Self::Release => &release_permits::ALL,
            Self::ReleaseAndWake => &release_permits::ALL_AND_WAKE,
            Self::ReleaseRest => &release_permits::REST,
            Self::ReleaseRestAndWake => &release_permits::REST_AND_WAKE,
            // What is asked about readers is asked about one resource.
            Self::Inspect | Self::Downgrade | Self::Intend | Self::Recant => {
                &inspect_permits::DEFINITION
            }
            Self::Enrol => &wait_for_permits::ENROL,
            Self::Leave => &wait_for_permits::LEAVE,
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
    /// How it is done, and how many bytes there are to send, at most.
    definition: &'static Definition,
    size: usize,
    /// To whom it goes although nobody waits for the answer.
    recipients: ServerSet,
    witness: Option<Arc<dyn Witness>>,
    /// By the form that the capabilities of a server ask for.
    encoded: [OnceLock<Encoded>; FORMS],
}

/// What the bytes to send take beside the names of the key: scripts, tokens, numbers.
const BESIDE_KEYS_MAX: usize = 1024;

/// That of a shared lock.
const BESIDE_KEYS_OF_READERS_MAX: usize = 1536;

impl Request {
    /// A request about a lock, an exclusive one if no more is told than its name. [`Verb::Inspect`] needs no token.
    pub fn new(verb: Verb, target: impl Into<Target>, token: Token, ttl_ms: i64) -> Self {
        let Target { resource, kind } = target.into();
        let subject = Subject { resource, kind, token, ttl_ms, number: 0, lines: u128::MAX };
        let definition = verb.definition(&subject.kind);
        let size = size(verb, definition, &subject);
        let (recipients, encoded) = (ServerSet::default(), [const { OnceLock::new() }; FORMS]);
        Self { verb, number: 0, subject, definition, size, recipients, witness: None, encoded }
    }

    /// The same request for these servers. A release goes to them later if it cannot now, until the TTL is over.
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

    /// The same request, about the lines of these of several resources: a bit for each.
    #[must_use]
    pub fn with_lines(self, lines: u128) -> Self {
        Self { subject: Subject { lines, ..self.subject }, ..self }
    }

    /// The same request, for the slot that is wanted, or is to stay.
    #[must_use]
    pub fn with_slot(self, slot: u16) -> Self {
        Self { subject: Subject { number: i64::from(slot) + 1, ..self.subject }, ..self }
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
        self.undoes() && self.is_for(server)
    }

    /// Whether what it is granted is a vote for a lock.
    pub fn asks_for_vote(&self) -> bool {
        self.verb.acquires() || matches!(self.verb, Verb::Move | Verb::RaiseFence)
    }

    /// Whether it is of use only where the server tells us things by itself.
    pub fn needs_pushes(&self) -> bool {
        self.verb == Verb::Enrol
    }

    /// Whether the answer tells when the key ends by the server's clock, in milliseconds, and not how long it lives.
    pub(crate) fn tells_end(&self, capabilities: Capabilities) -> bool {
        let is_plain = matches!(self.verb, Verb::Acquire | Verb::AcquireAgain | Verb::Repair);
        is_plain && self.subject.kind == LockKind::Exclusive && capabilities.expiry_time
    }

    /// Whether it can be asked without asking when the key ends.
    pub(crate) fn may_leave_out_end(&self) -> bool {
        self.verb == Verb::Acquire && self.subject.kind == LockKind::Exclusive
    }

    /// Whether it is an attempt to take a lock.
    pub(crate) fn is_attempt(&self) -> bool {
        matches!(self.verb, Verb::Acquire | Verb::AcquireAgain | Verb::AcquireFenced)
    }

    /// Whether another goes right behind it that counts on what this one does: readers are told of it.
    pub(crate) fn is_followed(&self) -> bool {
        self.verb == Verb::Downgrade
    }

    /// Whether a key may live for longer after it than any request before has asked for.
    pub fn may_prolong(&self) -> bool {
        self.verb.acquires() || matches!(self.verb, Verb::Move | Verb::Extend)
    }

    /// Whether it undoes something that an earlier request with its token may have left.
    pub fn undoes(&self) -> bool {
        matches!(self.effect(), KeyEffect::Undoes | KeyEffect::UndoesRest)
    }

    /// What it does to a server, for those who deliver it.
    pub fn effect(&self) -> KeyEffect {
        self.definition.effect
    }

    /// The kind of work that it does.
    pub fn kind(&self) -> Kind {
        self.definition.kind
    }

    /// What is asked.
    pub fn verb(&self) -> Verb {
        self.verb
    }

    /// The name of the key, or of the first.
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
        self.size
    }

    /// What there is to send.
    pub(crate) fn encoded(&self, capabilities: Capabilities, encoder: &mut Encoder) -> &Encoded {
        self.encoded[self.form(capabilities)].get_or_init(|| {
            (self.definition.encode)(&self.subject, capabilities, encoder);
            encoder.take()
        })
    }

    /// Whether it is sent in a form that only servers with these capabilities know, although all know another.
    pub(crate) fn relies_on(&self, capabilities: Capabilities) -> bool {
        // Without PEXPIRETIME the answer to an acquire is as good.
        let is_one = self.effect() == KeyEffect::Leaves && self.subject.kind == LockKind::Exclusive;
        !is_one && self.form(capabilities) != self.form(Capabilities::default())
    }

    /// How many replies it brings.
    pub(crate) fn replies(&self) -> usize {
        self.definition.replies
    }

    /// What the replies mean, which are taken out; none if the server does not owe such to a request that wakes, or that
    /// does not.
    pub(crate) fn answer(&self, wakes: bool, replies: &mut Vec<Value>) -> Option<Answer> {
        let verb = if wakes { self.verb } else { self.verb.without_waking() };
        (verb.definition(&self.subject.kind).decode)(&self.subject, &mut replies.drain(..))
    }

    /// What a server is taken for that has refused this form, which wakes or not, if its capabilities lead to it still.
    pub(crate) fn after_refusal(
        &self,
        capabilities: Capabilities,
        form: usize,
        wakes: bool,
    ) -> Capabilities {
        let is_known = self.form(capabilities.expecting(wakes)) != form;
        if is_known {
            capabilities
        } else {
            capabilities.after_refusal(wakes, self.definition.form)
        }
    }

    /// In which form it is sent to a server with these capabilities.
    pub(crate) fn form(&self, capabilities: Capabilities) -> usize {
        (self.definition.form)(capabilities)
    }
}

/// How many bytes a request takes, at most.
fn size(verb: Verb, definition: &Definition, subject: &Subject) -> usize {
    let names = subject.names();
    let (once, count) = (names.iter().map(|it| it.len()).sum::<usize>(), names.len() - 1);
    let names = definition.names * (once + count * several::BESIDE_KEY_MAX);
    let is_shared = subject.kind == LockKind::Shared || verb == Verb::Downgrade;
    let beside = if is_shared { BESIDE_KEYS_OF_READERS_MAX } else { BESIDE_KEYS_MAX };
    names + permits::size(subject) + beside
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Request({:?} {:?})", self.verb, String::from_utf8_lossy(self.resource()))
    }
}

#[cfg(test)]
mod tests;
