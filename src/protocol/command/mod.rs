//! The requests to servers and their replies: requests become Redis commands, and replies become answers. Each
//! command has a file with its encoding, its number of replies and their meaning. The redis crate handles RESP.
//!
//! This module does not know when a request is sent, or over which connection. The delivering module learns what it
//! needs from [`KeyEffect`], [`Request::must_reach`] and [`Request::ttl_ms`].

mod acquire;
mod acquire_again;
pub(crate) mod acquire_with_token;
mod answer;
pub(crate) mod arbiter;
mod capabilities;
pub(crate) mod cluster;
pub mod cluster_nodes;
mod definition;
mod encoder;
mod enrol;
mod extend;
pub(crate) mod fence;
pub mod guard;
pub mod handshake;
pub(crate) mod heard;
pub mod identity;
mod inspect;
pub(crate) mod inspect_permits;
mod leave;
mod memory_id;
mod numbers;
mod permits;
mod pttl;
pub(crate) mod raise_fence;
pub(crate) mod read_fences;
mod release;
pub(crate) mod release_after;
mod release_and_wake;
pub(crate) mod release_permits;
pub(crate) mod restore_fences;
pub(crate) mod script;
pub(crate) mod sentinel;
pub(crate) mod several;
pub(crate) mod shared;
pub(crate) mod take_permit;
mod wait_for_permits;
pub(crate) mod waking;
mod wire_form;

use std::fmt;
use std::sync::{Arc, Weak};

use redis::Value;

pub(crate) use self::answer::has_lost_slot;
pub use self::answer::{Answer, NthKey, SlotValue, Slots};
pub(crate) use self::capabilities::Capabilities;
use self::definition::{Definition, Subject};
pub use self::definition::{KeyEffect, Kind};
pub(crate) use self::encoder::Encoder;
pub(crate) use self::numbers::Restored;
pub use self::numbers::{Fences, FencesState, NotedMemory};
use self::wire_form::AllEncoded;
pub(crate) use self::wire_form::{Encoded, FirstReply, Form, Hash};
use crate::protocol::failure::Failure;
use crate::protocol::lock_kind::{LockKind, Target};
use crate::protocol::moment::Moment;
use crate::protocol::server_set::ServerSet;
use crate::protocol::token::Token;

/// What a request asks of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Set the key to the token for the TTL, unless the key exists. For a semaphore: take any free slot.
    Acquire,
    /// The same for a waiting client. It also asks for readers that are in the way.
    AcquireAgain,
    /// Move the token to this slot of a semaphore, if the slot is free.
    Move,
    /// Acquire, and draw a fencing token.
    AcquireFenced,
    /// Raise the number of the resource to the fencing token that another server drew, if the key has the token.
    RaiseFence,
    /// Ask what a server knows of fencing tokens.
    ReadFences,
    /// Restore the numbers of a server that has lost them.
    RestoreFences,
    /// Give the key at least the TTL, if it has the token. Never sets the key.
    Extend,
    /// Turn an exclusive lock into a shared one, which keeps its end.
    Downgrade,
    /// Announce a waiting writer, if readers hold the resource.
    AnnounceWriter,
    /// Take back that announcement.
    WithdrawWriter,
    /// Set the key again on a server that lost it, unless it exists. Has the form of an acquire.
    Repair,
    /// Delete the key if it has the token. For a semaphore: every slot that has it.
    Release,
    /// The same, and wake the first waiter.
    ReleaseAndWake,
    /// Let the key end after a time, if it has the token.
    ReleaseAfter,
    /// Delete every slot of a semaphore that has the token, except this one.
    ReleaseRest,
    /// The same, and wake the first waiter for a permit.
    ReleaseRestAndWake,
    /// Ask for the value of the key and its remaining time.
    Inspect,
    /// Join the wait queue, with the channel of the token, unless nobody holds the key.
    JoinWaitlist,
    /// Leave the wait queue, and pass on a wake-up that came too late.
    Leave,
}

impl Verb {
    /// Whether it asks for a lock that is not held yet.
    pub(crate) fn acquires(self) -> bool {
        matches!(self, Self::Acquire | Self::AcquireAgain | Self::AcquireFenced)
    }

    /// Whether its answer counts only if the server knows everything that it ever said.
    fn asks_for_vote(self) -> bool {
        self.acquires() || matches!(self, Self::Move | Self::RaiseFence | Self::ReadFences)
    }

    /// Its effect on a server, for the delivering module.
    fn effect(self) -> KeyEffect {
        match self {
            Self::Acquire
            | Self::AcquireAgain
            | Self::AcquireFenced
            | Self::Move
            | Self::Repair => KeyEffect::Leaves,
            Self::Release | Self::ReleaseAndWake | Self::ReleaseAfter => KeyEffect::Undoes,
            Self::ReleaseRest | Self::ReleaseRestAndWake => KeyEffect::UndoesRest,
            Self::RaiseFence
            | Self::ReadFences
            | Self::RestoreFences
            | Self::Extend
            | Self::Downgrade
            | Self::AnnounceWriter
            | Self::WithdrawWriter
            | Self::Inspect
            | Self::JoinWaitlist
            | Self::Leave => KeyEffect::Passes,
        }
    }

    /// The kind of work that it does for a lock of this kind.
    fn work(self, kind: &LockKind) -> Kind {
        let (of_one, of_several) = match self {
            Self::Acquire
            | Self::AcquireAgain
            | Self::Move
            | Self::AcquireFenced
            | Self::RaiseFence
            | Self::ReadFences
            | Self::RestoreFences
            | Self::AnnounceWriter
            | Self::WithdrawWriter
            | Self::Repair => (Kind::Acquiring, Kind::AcquiringSeveral),
            Self::Extend | Self::Downgrade => (Kind::Extending, Kind::ExtendingSeveral),
            Self::Release
            | Self::ReleaseAndWake
            | Self::ReleaseAfter
            | Self::ReleaseRest
            | Self::ReleaseRestAndWake => (Kind::Releasing, Kind::ReleasingSeveral),
            Self::Inspect => (Kind::Inspecting, Kind::InspectingSeveral),
            Self::JoinWaitlist | Self::Leave => (Kind::Waiting, Kind::Waiting),
        };
        if matches!(kind, LockKind::Several(_)) { of_several } else { of_one }
    }

    /// The command for a lock of this kind. A permit has no slot yet: with a slot, it is an exclusive lock. A verb that a
    /// kind never needs has the command of an exclusive lock.
    fn definition(self, kind: &LockKind) -> &'static Definition {
        use LockKind::{Permit, Several, Shared};
        match (self, kind) {
            (Self::Acquire | Self::Repair, Shared) => &shared::acquire::DEFINITION,
            (
                Self::Acquire | Self::AcquireAgain | Self::AcquireFenced | Self::Repair,
                Permit { .. },
            ) => &take_permit::ANY,
            (Self::Move, Permit { .. }) => &take_permit::ONE,
            (Self::Acquire | Self::AcquireAgain, Several(_)) => &several::acquire::DEFINITION,
            (Self::Repair, Several(_)) => &several::repair::DEFINITION,
            (Self::Acquire | Self::Repair | Self::Move, _) => &acquire::DEFINITION,
            (Self::AcquireAgain, _) => &acquire_again::DEFINITION,
            (Self::AcquireFenced, Several(_)) => &several::fence::DEFINITION,
            (Self::AcquireFenced, _) => &acquire_with_token::DEFINITION,
            (Self::RaiseFence, _) => &raise_fence::DEFINITION,
            (Self::ReadFences, _) => &read_fences::DEFINITION,
            (Self::RestoreFences, _) => &restore_fences::DEFINITION,
            (Self::Extend, Shared) => &shared::extend::DEFINITION,
            (Self::Extend, Several(_)) => &several::extend::DEFINITION,
            (Self::Extend, _) => &extend::DEFINITION,
            (Self::Downgrade, _) => &shared::extend::DOWNGRADE,
            (Self::AnnounceWriter, _) => &shared::intend::DEFINITION,
            (Self::WithdrawWriter, _) => &shared::intend::RECANT,
            (Self::Release, Shared) => &shared::release::DEFINITION,
            (Self::ReleaseAndWake, Shared) => &shared::release::AND_WAKE,
            (Self::Release | Self::ReleaseRest, Permit { .. }) => &release_permits::DEFINITION,
            (Self::ReleaseAndWake | Self::ReleaseRestAndWake, Permit { .. }) => {
                &release_permits::AND_WAKE
            }
            (Self::Release, Several(_)) => &several::release::DEFINITION,
            (Self::ReleaseAndWake, Several(_)) => &several::waking::RELEASE,
            (Self::Release | Self::ReleaseRest, _) => &release::DEFINITION,
            (Self::ReleaseAndWake | Self::ReleaseRestAndWake, _) => &release_and_wake::DEFINITION,
            (Self::ReleaseAfter, _) => &release_after::DEFINITION,
            (Self::Inspect, Shared) => &shared::inspect::DEFINITION,
            (Self::Inspect, Several(_)) => &several::inspect::DEFINITION,
            (Self::Inspect, Permit { .. }) => &inspect_permits::DEFINITION,
            (Self::Inspect, _) => &inspect::DEFINITION,
            (Self::JoinWaitlist, Shared) => &shared::enrol::DEFINITION,
            (Self::JoinWaitlist, Several(_)) => &several::waking::ENROL,
            (Self::JoinWaitlist, Permit { .. }) => &wait_for_permits::ENROL,
            (Self::JoinWaitlist, _) => &enrol::DEFINITION,
            (Self::Leave, Permit { .. }) => &wait_for_permits::LEAVE,
            (Self::Leave, _) => &leave::DEFINITION,
        }
    }
}

impl Verb {
    /// The keys that it names for a lock of this kind, as patterns for the ACL rules of a user. NAME stands for
    /// the resource.
    fn key_patterns(self, kind: &LockKind) -> &'static str {
        match (self, kind) {
            (Self::ReadFences | Self::RestoreFences, _) => "~redlock:fence",
            (
                Self::AcquireFenced | Self::RaiseFence,
                LockKind::Exclusive | LockKind::Several(_),
            ) => "~NAME or ~redlock:fence (NAME: the resource)",
            (
                Self::AcquireAgain | Self::Downgrade | Self::AnnounceWriter | Self::WithdrawWriter,
                _,
            )
            | (_, LockKind::Shared) => "~NAME, ~NAME:r, ~NAME:i or ~NAME:w (NAME: the resource)",
            (_, LockKind::Permit { .. }) => "~NAME, ~NAME#* or ~NAME:w (NAME: the resource)",
            (
                Self::JoinWaitlist | Self::Leave | Self::ReleaseAndWake | Self::ReleaseRestAndWake,
                _,
            ) => "~NAME or ~NAME:w (NAME: the resource)",
            _ => "~NAME (NAME: the resource)",
        }
    }
}

/// Receives every server's answer to a request, even if nobody waits for the answer any more.
pub trait ReplyObserver: Send + Sync {
    /// A server has given this answer, received at `now`. The verb and the number identify the request.
    /// Called with a mutex held, before any caller gets the answer, so it must only take note.
    fn hear(&self, server: usize, asked: (Verb, u32), answer: &Answer, now: Moment);

    /// The request of this number, which may set the key, will never be answered. From now on it will not be carried
    /// out, either.
    fn hear_end(&self, server: usize, number: u32);
}

/// A request that may set a key on a server, if anybody may still want to know whether it was carried out.
pub struct Setter {
    server: usize,
    number: u32,
    observer: Weak<dyn ReplyObserver>,
}

impl Setter {
    /// Whether the lock still exists.
    pub(crate) fn matters(&self) -> bool {
        self.observer.strong_count() > 0
    }

    /// It will not be carried out any more.
    pub(crate) fn note_end(&self) {
        if let Some(observer) = self.observer.upgrade() {
            observer.hear_end(self.server, self.number);
        }
    }
}

/// A witness that remembers which requests have ended.
#[cfg(test)]
pub(crate) struct Told(Arc<Ended>);

#[cfg(test)]
#[derive(Default)]
struct Ended(std::sync::Mutex<Vec<(usize, u32)>>);

#[cfg(test)]
impl Told {
    pub(crate) fn new() -> Self {
        Self(Arc::default())
    }

    pub(crate) fn setter(&self, server: usize, number: u32) -> Setter {
        let observer = Arc::clone(&self.0) as Arc<dyn ReplyObserver>;
        Setter { server, number, observer: Arc::downgrade(&observer) }
    }

    pub(crate) fn observer(&self) -> Arc<dyn ReplyObserver> {
        Arc::clone(&self.0) as Arc<dyn ReplyObserver>
    }

    pub(crate) fn all(&self) -> Vec<(usize, u32)> {
        self.0.0.lock().expect("nobody panics").clone()
    }
}

#[cfg(test)]
impl ReplyObserver for Ended {
    fn hear(&self, _: usize, _: (Verb, u32), _: &Answer, _: Moment) {}

    fn hear_end(&self, server: usize, number: u32) {
        self.0.lock().expect("nobody panics").push((server, number));
    }
}

/// A request, encoded once for all servers that get it.
///
/// It is allocated for each call, and so are its bytes, because servers that nobody waits for may need it
/// long after the call.
pub struct Request {
    verb: Verb,
    /// What follows from the verb. Found out once, because each server asks for it several times.
    effect: KeyEffect,
    work: Kind,
    asks_for_vote: bool,
    /// Which of the requests about one lock it is, for the witness.
    number: u32,
    subject: Subject,
    /// How to do it, and the maximum number of bytes to send.
    definition: &'static Definition,
    size: usize,
    /// The servers that get it although nobody waits for the answer. Of a move, those that may get it at all.
    recipients: ServerSet,
    observer: Option<Arc<dyn ReplyObserver>>,
    encoded: AllEncoded,
}

/// The maximum size of the bytes beside the names of the key: scripts, tokens, numbers.
const BESIDE_KEYS_MAX: usize = 1024;

/// The same for a shared lock, with a fencing token, and for a place in a wait queue: the scripts are long.
const BESIDE_KEYS_LONG_MAX: usize = 1664;

impl Request {
    /// A request about a lock. A bare name means an exclusive lock. [`Verb::Inspect`] needs no token.
    pub fn new(verb: Verb, target: impl Into<Target>, token: Token, ttl_ms: i64) -> Self {
        let Target { resource, kind } = target.into();
        let subject =
            Subject { resource, kind, token, ttl_ms, number: 0, lines: u128::MAX, restored: None };
        let definition = verb.definition(&subject.kind);
        let size = size(verb, definition, &subject);
        let (recipients, encoded) = Default::default();
        Self {
            verb,
            effect: verb.effect(),
            work: verb.work(&subject.kind),
            asks_for_vote: verb.asks_for_vote(),
            number: 0,
            subject,
            definition,
            size,
            recipients,
            observer: None,
            encoded,
        }
    }

    /// Sets the servers that must get it. A release that cannot be sent now is sent later, until the TTL is over.
    #[must_use]
    pub fn to(self, recipients: ServerSet) -> Self {
        Self { recipients, ..self }
    }

    /// Sets the number to propose as a fencing token, or the number that was drawn.
    #[must_use]
    pub fn with_fence(self, number: i64) -> Self {
        Self { subject: Subject { number, ..self.subject }, ..self }
    }

    /// Sets what is written to a server whose numbers are restored.
    #[must_use]
    pub(crate) fn with_restored(self, restored: Restored) -> Self {
        let restored = Some(Box::new(restored));
        Self { subject: Subject { restored, ..self.subject }, ..self }
    }

    /// Sets since when the client waits, in microseconds since 1970.
    #[must_use]
    pub fn waiting_since(self, us: i64) -> Self {
        Self { subject: Subject { number: us, ..self.subject }, ..self }
    }

    /// Sets the resources whose wait queues it is about: a bit for each.
    #[must_use]
    pub fn with_lines(self, lines: u128) -> Self {
        Self { subject: Subject { lines, ..self.subject }, ..self }
    }

    /// Sets for how many more milliseconds a key stays that is not deleted.
    #[must_use]
    pub(crate) fn keeping_for(self, ms: i64) -> Self {
        Self { subject: Subject { number: ms, ..self.subject }, ..self }
    }

    /// Sets the slot that is wanted, or that must stay.
    #[must_use]
    pub fn with_slot(self, slot: u16) -> Self {
        Self { subject: Subject { number: i64::from(slot) + 1, ..self.subject }, ..self }
    }

    /// Sets the number of the request, which is 0 otherwise.
    #[must_use]
    pub fn numbered(self, number: u32) -> Self {
        Self { number, ..self }
    }

    /// Sets the witness that receives the answers.
    #[must_use]
    pub fn before(self, observer: Arc<dyn ReplyObserver>) -> Self {
        Self { observer: Some(observer), ..self }
    }

    /// A server has given this answer, received at `now`. Called before any caller gets it.
    pub fn note(&self, server: usize, answer: &Answer, now: Moment) {
        if let Some(observer) = &self.observer {
            observer.hear(server, (self.verb, self.number), answer, now);
        }
    }

    /// The request as one that may set a key on this server, if it is one.
    pub(crate) fn setter(&self, server: usize) -> Option<Setter> {
        let sets = self.effect() == KeyEffect::Leaves;
        let observer = self.observer.as_ref().filter(|_| sets)?;
        Some(Setter { server, number: self.number, observer: Arc::downgrade(observer) })
    }

    /// Whether this server must get it although nobody waits for the answer.
    pub fn is_for(&self, server: usize) -> bool {
        self.recipients.contains(server)
    }

    /// Whether it may be that not all servers can be asked this.
    pub(crate) fn is_for_some(&self) -> bool {
        self.verb == Verb::Move || self.needs_pushes()
    }

    /// Whether this server must not get it: a move is only for servers that have answered what came before it.
    pub fn leaves_out(&self, server: usize) -> bool {
        self.verb == Verb::Move && !self.is_for(server)
    }

    /// Whether it must reach this server even when nobody waits for it any more, over another connection if
    /// necessary, until its TTL is over.
    pub fn must_reach(&self, server: usize) -> bool {
        self.undoes() && self.is_for(server)
    }

    /// Whether its answer counts only if the server knows everything that it ever said: the grant of a lock, and what
    /// is read to restore another server.
    pub fn asks_for_vote(&self) -> bool {
        self.asks_for_vote
    }

    /// Whether this answer claims that a lock is held or a number known, so that it counts only if the server is what it
    /// takes itself for.
    pub(crate) fn claims(&self, answer: &Answer) -> bool {
        let is_claim = matches!(self.verb, Verb::Extend | Verb::Inspect) || self.asks_for_vote();
        is_claim
            && match answer {
                Answer::Extended { .. } => true,
                Answer::Found { value, .. } => value == self.token().as_bytes(),
                answer => answer.is_grant(),
            }
    }

    /// Whether it asks what a server knows of fencing tokens.
    pub(crate) fn reads_fences(&self) -> bool {
        self.verb == Verb::ReadFences
    }

    /// Whether its last argument is the memory of the server that gets it ([`fence::name_memory`]).
    pub(crate) fn names_memory(&self) -> bool {
        match self.verb {
            Verb::ReadFences => true,
            Verb::AcquireFenced | Verb::RaiseFence => {
                matches!(self.subject.kind, LockKind::Exclusive | LockKind::Several(_))
            }
            _ => false,
        }
    }

    /// Whether it is of use only if the server sends push messages.
    pub fn needs_pushes(&self) -> bool {
        self.verb == Verb::JoinWaitlist
    }

    /// Whether the answer gives the key's end by the server's clock, in milliseconds, and not its remaining time.
    fn tells_end(&self, capabilities: Capabilities) -> bool {
        let is_plain = matches!(self.verb, Verb::Acquire | Verb::AcquireAgain | Verb::Repair);
        is_plain && self.is_about_one() && capabilities.expiry_time
    }

    /// Whether it is about an exclusive lock of one resource.
    fn is_about_one(&self) -> bool {
        matches!(self.subject.kind, LockKind::Exclusive)
    }

    /// Whether it can be sent without the question when the key ends.
    pub(crate) fn may_leave_out_end(&self) -> bool {
        self.verb == Verb::Acquire && self.is_about_one()
    }

    /// Whether it is an attempt to take a lock.
    pub(crate) fn is_attempt(&self) -> bool {
        matches!(self.verb, Verb::Acquire | Verb::AcquireAgain | Verb::AcquireFenced)
    }

    /// Whether another request right behind it relies on its effect: the one that tells readers of it.
    pub(crate) fn is_followed(&self) -> bool {
        self.verb == Verb::Downgrade
    }

    /// Whether it may make a key live longer than any request before it asked for.
    pub fn may_prolong(&self) -> bool {
        self.verb.acquires() || matches!(self.verb, Verb::Move | Verb::Extend)
    }

    /// Whether what this request does would be undone by the other one, if that were executed after it.
    pub fn may_be_undone_by(&self, later: &Self) -> bool {
        let prolongs = later.verb == Verb::Extend && self.verb == Verb::ReleaseAfter;
        self.token() == later.token() && (prolongs || later.effect() == KeyEffect::Leaves)
    }

    /// Whether it undoes something that an earlier request with its token may have left.
    pub fn undoes(&self) -> bool {
        matches!(self.effect(), KeyEffect::Undoes | KeyEffect::UndoesRest)
    }

    /// Its effect on a server, for the delivering module.
    pub fn effect(&self) -> KeyEffect {
        self.effect
    }

    /// The kind of work that it does.
    pub fn kind(&self) -> Kind {
        self.work
    }

    /// What it asks for.
    pub fn verb(&self) -> Verb {
        self.verb
    }

    /// The name of the key, or of the first key.
    pub fn resource(&self) -> &[u8] {
        &self.subject.resource
    }

    /// The token that is or becomes the value of the key. Requests with the same token belong together.
    pub fn token(&self) -> &Token {
        &self.subject.token
    }

    /// How long the key lives, or may live at most, after the server has executed the request.
    pub fn ttl_ms(&self) -> i64 {
        self.subject.ttl_ms
    }

    /// The maximum number of bytes to send.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// The bytes to send. They are the same for all servers on which keys have no prefix.
    pub(crate) fn encoded<'a>(
        &'a self,
        capabilities: Capabilities,
        encoder: &'a mut Encoder,
    ) -> &'a Encoded {
        if encoder.has_prefix() {
            let encoded = self.encode(capabilities, encoder);
            return encoder.keep(encoded);
        }
        let number = self.form(capabilities);
        self.encoded.get_or_encode(number, || self.encode(capabilities, encoder))
    }

    fn encode(&self, capabilities: Capabilities, encoder: &mut Encoder) -> Encoded {
        (self.definition.encode)(&self.subject, capabilities, encoder);
        encoder.take_as(self.form_for(capabilities))
    }

    /// The form in which it is sent to servers with these capabilities. Its number tells everything else.
    fn form_for(&self, capabilities: Capabilities) -> Form {
        let number = self.form(capabilities);
        let leaves_out_end = capabilities.leaves_out_end && self.may_leave_out_end();
        Form {
            number: number as u8,
            is_special: number != 0 && self.relies_on(capabilities),
            wakes: self.wakes_in(capabilities),
            tells_end: !leaves_out_end && self.tells_end(capabilities),
            replies: self.definition.replies - u8::from(leaves_out_end),
            usual: self.definition.usual,
        }
    }

    /// Whether it is sent in a form that only servers with these capabilities know, although all know another form.
    fn relies_on(&self, capabilities: Capabilities) -> bool {
        // An acquire without `PEXPIRETIME` has an equally good answer.
        let is_one = self.effect() == KeyEffect::Leaves && self.is_about_one();
        !is_one && self.form(capabilities) != self.form(Capabilities::default())
    }

    /// The answer that the replies mean. The replies are taken out of `replies`. None if they are not valid
    /// for the request in the form that wakes, or that does not.
    pub(crate) fn answer(&self, wakes: bool, replies: &mut Vec<Value>) -> Option<Answer> {
        let verb = if wakes { self.verb } else { self.verb.without_waking() };
        let decode = verb.definition(&self.subject.kind).decode;
        Some(match decode(&self.subject, &mut replies.drain(..))? {
            Answer::Failed(Failure::Refused(refusal)) => {
                let patterns = verb.key_patterns(&self.subject.kind);
                Answer::Failed(Failure::Refused(refusal.about_keys(patterns)))
            }
            answer => answer,
        })
    }

    /// The capabilities to assume after a server has refused this form, in the variant that wakes or not.
    /// They stay unchanged if they do not lead to this form any more.
    pub(crate) fn after_refusal(&self, capabilities: Capabilities, form: &Form) -> Capabilities {
        let is_known = self.form(capabilities.expecting(form.wakes)) != usize::from(form.number);
        if is_known {
            capabilities
        } else {
            capabilities.after_refusal(form.wakes, self.definition.form)
        }
    }

    /// The form in which it is sent to a server with these capabilities.
    pub(crate) fn form(&self, capabilities: Capabilities) -> usize {
        (self.definition.form)(capabilities)
    }
}

/// The maximum number of bytes of a request.
fn size(verb: Verb, definition: &Definition, subject: &Subject) -> usize {
    let names = subject.names();
    let (once, count) = (names.iter().map(|it| it.len()).sum::<usize>(), names.len() - 1);
    let names = definition.names * (once + count * several::BESIDE_KEY_MAX);
    let is_long = subject.kind == LockKind::Shared
        || matches!(
            verb,
            Verb::Downgrade | Verb::AcquireFenced | Verb::RestoreFences | Verb::JoinWaitlist
        );
    let beside = if is_long { BESIDE_KEYS_LONG_MAX } else { BESIDE_KEYS_MAX };
    names + permits::size(subject) + beside
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Request({:?} {:?})", self.verb, String::from_utf8_lossy(self.resource()))
    }
}

/// Which requests wake waiters, and in which form.
impl Verb {
    /// What to do if no waiter can be woken.
    fn without_waking(self) -> Self {
        match self {
            Self::ReleaseAndWake => Self::Release,
            Self::ReleaseRestAndWake => Self::ReleaseRest,
            other => other,
        }
    }
}

impl Request {
    /// Whether it must wake a waiter.
    pub(crate) fn wakes(&self) -> bool {
        self.verb == Verb::ReleaseAndWake
    }

    /// Whether it wakes in the form in which it is sent to a server with these capabilities.
    fn wakes_in(&self, capabilities: Capabilities) -> bool {
        self.form(capabilities) != self.form(capabilities.without_waking())
    }

    /// The question to send behind it whether it must wake a waiter, if that is no part of it.
    pub(crate) fn look_for_waiters(
        &self,
        capabilities: Capabilities,
        prefix: &[u8],
    ) -> Option<Vec<u8>> {
        let looks = self.is_about_one()
            && self.wakes()
            && release_and_wake::looks_for_waiters(capabilities);
        looks.then(|| release_and_wake::look_for_waiters(self.resource(), prefix))
    }

    /// The request that wakes a waiter if that turned out to be necessary only after the release.
    pub(crate) fn wake_late(&self) -> Self {
        // With the name of a channel that nobody uses.
        let resource = Arc::clone(&self.subject.resource);
        Self::new(Verb::Leave, resource, *self.token(), self.ttl_ms())
    }
}

#[cfg(test)]
mod tests;
