//! One lock that was asked for: its phase, and what each server has said of it.

mod slot;

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

pub(crate) use self::slot::Granted;
use self::slot::Permit;
use crate::protocol::command::{Answer, ReplyObserver, Slots, Verb};
use crate::protocol::error::{Error, Status};
use crate::protocol::lock_kind::{LockKind, Target};
use crate::protocol::moment::Moment;
use crate::protocol::quorum::soundness::{Soundness, Word};
use crate::protocol::quorum::validity::Drift;
use crate::protocol::server_set::ServerSet;
use crate::protocol::servers::roster::{Places, Roster};
use crate::protocol::token::Token;

/// A lock that was asked for, and perhaps taken. The leases that continue one lock share it.
///
/// It identifies servers by their places in the list of the manager that took the lock. Another manager uses it
/// through a [`View`].
#[derive(Debug)]
pub(crate) struct Lock {
    target: Target,
    /// The slot that the lock has, if it is a permit of a semaphore.
    permit: OnceLock<Permit>,
    token: Token,
    /// The servers, in the order of the manager that took the lock.
    roster: Roster,
    asked: Asked,
    /// Until when the lock is valid. This only grows, unless the servers' clocks are set forward. Before the
    /// lock is taken, it is the beginning of time.
    valid_until: AtomicI64,
    /// The servers that may have the lock: those to which it was sent.
    servers: AtomicU64,
    soundness: Mutex<Soundness>,
    /// The TTL that the lock was last given.
    ttl_ms: AtomicI64,
    /// The longest TTL that a server may have given the lock.
    longest_ttl_ms: AtomicI64,
    /// 0 means none.
    fencing_token: AtomicI64,
    /// The round in which the lock became a shared one; 0 means in none.
    downgraded_in: AtomicU32,
    phase: AtomicU8,
    /// Until when its keys stay after it was released. The beginning of time: they are deleted.
    stays_until: AtomicI64,
    /// Whether the holder has released the lock before it was found to be lost.
    was_released: AtomicBool,
    /// Whether a call that found the lock ended sent a second release, beside the call that ends it.
    release_sent: AtomicBool,
}

/// How a lock was asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(crate) at: Moment,
    pub(crate) ttl_ms: i64,
    /// A server that granted the lock within this time counts as if it had granted it at once.
    pub(crate) window_ms: i64,
    pub(crate) drift: Drift,
}

/// How far a lock's life has come. The phase only goes forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The lock was taken. The clock tells whether it is still valid.
    Taken,
    /// The lock was found to be no longer ours. Something of it may be left on a server.
    Lost,
    /// The lock is being released. Perhaps not all servers were told yet.
    Releasing,
    /// Nothing is left of the lock.
    Over,
    /// The lock was given away.
    Detached,
}

impl Lock {
    /// A lock that is about to be asked for.
    pub(crate) fn new(target: Target, token: Token, asked: Asked, roster: Roster) -> Self {
        let soundness = Soundness::new(roster.len());
        Self {
            target,
            permit: OnceLock::new(),
            token,
            roster,
            asked,
            valid_until: AtomicI64::new(0),
            servers: AtomicU64::new(0),
            soundness: Mutex::new(soundness),
            ttl_ms: AtomicI64::new(asked.ttl_ms),
            longest_ttl_ms: AtomicI64::new(asked.ttl_ms),
            fencing_token: AtomicI64::new(0),
            downgraded_in: AtomicU32::new(0),
            phase: AtomicU8::new(Phase::Taken as u8),
            stays_until: AtomicI64::new(0),
            was_released: AtomicBool::new(false),
            release_sent: AtomicBool::new(false),
        }
    }

    /// A lock that was taken on one server.
    #[cfg(test)]
    pub(crate) fn of_one_server(
        resource: &[u8],
        token: Token,
        (at, ttl_ms): (Moment, i64),
    ) -> Self {
        Self::of_one_server_as(resource, false, token, (at, ttl_ms))
    }

    /// Marks the lock as taken. `granted`: the servers that had granted it by then. `sent`: those that were asked.
    pub(crate) fn take(&self, granted: ServerSet, sent: ServerSet) {
        self.soundness().take(granted.bits(), sent.bits());
        self.servers.store(sent.bits(), Ordering::Release);
        self.extend_to(self.deadline(), self.asked.ttl_ms);
    }

    /// When the lock was asked for.
    pub(crate) fn asked_at(&self) -> Moment {
        self.asked.at
    }

    /// From now on, a release of the lock lets its keys stay until then.
    pub(crate) fn stay_until(&self, until: Moment) {
        self.stays_until.fetch_max(until.as_nanos(), Ordering::AcqRel);
    }

    /// For how many more milliseconds its keys stay if it is released now. The keys of a lock that has become a shared
    /// one never stay.
    pub(crate) fn stays_ms(&self, now: Moment) -> i64 {
        if self.is_shared() {
            return 0;
        }
        now.ms_until(Moment::from_nanos(self.stays_until.load(Ordering::Acquire)))
    }

    /// Until when the lock is valid if it is not extended.
    pub(crate) fn deadline(&self) -> Moment {
        self.asked.drift.deadline(self.asked.at, self.asked.ttl_ms)
    }

    /// What was asked for.
    pub(crate) fn target(&self) -> &Target {
        &self.target
    }

    /// The name of what was asked for.
    pub(crate) fn resource(&self) -> &Arc<[u8]> {
        &self.target.resource
    }

    pub(crate) fn token(&self) -> &Token {
        &self.token
    }

    /// The TTL that the lock was last given.
    pub(crate) fn ttl_ms(&self) -> i64 {
        self.ttl_ms.load(Ordering::Relaxed)
    }

    /// The number of this lock in the order in which the locks of its resource were taken; 0 if that is not known.
    pub(crate) fn fencing_token(&self) -> i64 {
        self.fencing_token.load(Ordering::Relaxed)
    }

    pub(crate) fn set_fencing_token(&self, token: i64) {
        self.fencing_token.store(token, Ordering::Relaxed);
    }

    pub(crate) fn longest_ttl_ms(&self) -> i64 {
        self.longest_ttl_ms.load(Ordering::Relaxed)
    }

    /// Notes that a server may have given the lock this TTL from now on.
    pub(crate) fn note_ttl(&self, ttl_ms: i64) {
        self.longest_ttl_ms.fetch_max(ttl_ms, Ordering::Relaxed);
    }

    fn soundness(&self) -> MutexGuard<'_, Soundness> {
        self.soundness.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn valid_until(&self) -> Moment {
        Moment::from_nanos(self.valid_until.load(Ordering::Acquire))
    }

    /// Extends the validity until this moment, with this TTL. Never shortens the validity.
    pub(crate) fn extend_to(&self, valid_until: Moment, ttl_ms: i64) {
        self.ttl_ms.store(ttl_ms, Ordering::Relaxed);
        self.valid_until.fetch_max(valid_until.as_nanos(), Ordering::AcqRel);
    }

    /// Shortens the validity, which lasted until `known`, if a quorum of the servers has the lock until an
    /// earlier moment at the latest. In that case somebody has set the servers' clocks. From then on, the lock
    /// is valid for as long as the servers certainly have it. Does nothing if the lock was extended since.
    /// Returns whether the validity was shortened.
    pub(crate) fn shorten(&self, known: Moment, (latest, sure): (Moment, Moment)) -> bool {
        if latest.plus_ms(Drift::PRECISION_MS) >= known || sure >= known {
            return false;
        }
        let (known, sure) = (known.as_nanos(), sure.as_nanos());
        self.valid_until.compare_exchange(known, sure, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Goes on to a later phase. Returns the phase before.
    pub(crate) fn pass_to(&self, phase: Phase) -> Phase {
        match self.phase.fetch_max(phase as u8, Ordering::AcqRel) {
            0 => Phase::Taken,
            1 => Phase::Lost,
            2 => Phase::Releasing,
            3 => Phase::Over,
            _ => Phase::Detached,
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.phase.load(Ordering::Acquire) != Phase::Taken as u8
    }

    /// Whether the holder has released the lock, or given it away, and the lock was not lost before.
    pub(crate) fn was_released(&self) -> bool {
        self.was_released.load(Ordering::Acquire) || self.is_detached()
    }

    /// The holder releases the lock. Returns the phase that the lock was in.
    pub(crate) fn begin_release(&self) -> Phase {
        if !self.is_lost_or_over() {
            self.was_released.store(true, Ordering::Release);
        }
        self.pass_to(Phase::Releasing)
    }

    /// Notes that a release is about to be sent in addition to the one that ends the lock.
    pub(crate) fn note_release(&self) {
        self.release_sent.store(true, Ordering::Release);
    }

    /// Whether such a release may have been sent. If so, a server that has nothing to delete was told before.
    pub(crate) fn was_release_sent(&self) -> bool {
        self.release_sent.load(Ordering::Acquire)
    }

    /// Whether another client may hold the lock by now: nothing is left of it, it was given away, or it was
    /// found to be lost.
    pub(crate) fn is_lost_or_over(&self) -> bool {
        let phase = self.phase.load(Ordering::Acquire);
        phase == Phase::Lost as u8 || phase >= Phase::Over as u8
    }

    /// Whether nothing is left of the lock.
    pub(crate) fn is_over(&self) -> bool {
        self.phase.load(Ordering::Acquire) == Phase::Over as u8
    }

    /// How many milliseconds the lock is valid after `now`; 0 if it is not valid.
    pub(crate) fn remaining_ms(&self, now: Moment) -> i64 {
        if self.has_ended() {
            return 0;
        }
        self.valid_until().ms_since(now)
    }

    pub(crate) fn is_held(&self, now: Moment) -> bool {
        !self.has_ended() && now < self.valid_until()
    }

    /// Hears what a server says of the key. The request of this number asked for it, and the answer was heard
    /// at `now`.
    fn hear(&self, server: usize, (verb, number): (Verb, u32), answer: &Answer, now: Moment) {
        let word = match (verb, answer) {
            (_, Answer::Slots(Slots { got, .. })) => {
                return self.hear_slot(server, *got, now);
            }
            (verb, answer) if verb.acquires() && answer.is_grant() => {
                Word::Granted { in_time: now <= self.window_end() }
            }
            (Verb::Repair, Answer::Done) => Word::Repaired,
            // An error reply is a reply, too: the server does not come back to the request.
            (verb, _) if verb.acquires() || matches!(verb, Verb::Move | Verb::Repair) => {
                Word::NotSet
            }
            (Verb::Extend | Verb::Downgrade, &Answer::Extended { left_ms }) => {
                Word::Has { in_time: self.was_set_in_time(left_ms, now) }
            }
            (Verb::Inspect, Answer::Found { value, left_ms }) => {
                if value == self.token.as_bytes() {
                    Word::Has { in_time: self.was_set_in_time(*left_ms, now) }
                } else if self.was_exclusive_in(number) {
                    return;
                } else {
                    Word::Foreign
                }
            }
            (Verb::Extend, Answer::Foreign { .. }) if self.was_exclusive_in(number) => return,
            // The lock is a shared one: other readers have it, and this lock can join them again.
            (Verb::Inspect, Answer::Shared { .. }) => Word::Absent,
            (
                Verb::Extend | Verb::Downgrade | Verb::Inspect,
                Answer::Absent | Answer::Lacking { .. },
            ) => Word::Absent,
            (
                Verb::Extend | Verb::Downgrade | Verb::Inspect,
                Answer::Foreign { .. } | Answer::Blocked { .. },
            ) => Word::Foreign,
            _ => return,
        };
        self.soundness().hear(server, number, word);
    }
}

/// Whether a call can go on with the lock.
impl Lock {
    /// For a call that wants to extend or confirm the lock. An error if the lock is no longer valid.
    pub(crate) fn check_valid(&self, now: Moment) -> Result<(), Error> {
        if self.is_detached() {
            return Err(detached());
        }
        if self.has_ended() {
            return Err(Error::new(Status::Lost, "the lock was already released or lost"));
        }
        let valid_until = self.valid_until();
        if now < valid_until {
            return Ok(());
        }
        self.pass_to(Phase::Lost);
        let words = format!("the lock expired {} ms ago", now.ms_since(valid_until));
        Err(Error::new(Status::Lost, words))
    }
}

/// The error of a call on a lock that was given away.
pub(crate) fn detached() -> Error {
    Error::new(Status::Lost, "the lock was detached: adopt its ticket to use it")
}

impl ReplyObserver for Lock {
    fn hear(&self, server: usize, asked: (Verb, u32), answer: &Answer, now: Moment) {
        Self::hear(self, server, asked, answer, now);
    }

    fn hear_end(&self, server: usize, number: u32) {
        self.soundness().hear(server, number, Word::Ended);
    }
}

/// A lock as one manager sees it. Servers are identified by their places in that manager's list.
#[derive(Clone, Debug)]
pub(crate) struct View {
    lock: Arc<Lock>,
    places: Places,
}

impl View {
    /// Returns nothing if the lock is on other servers than the manager's.
    pub(crate) fn new(lock: &Arc<Lock>, roster: &Roster) -> Option<Self> {
        let places = roster.places_in(&lock.roster)?;
        Some(Self { lock: Arc::clone(lock), places })
    }

    pub(crate) fn held_lock(&self) -> &Arc<Lock> {
        &self.lock
    }

    /// The witness that hears what the servers say to this manager.
    pub(crate) fn observer(&self) -> Arc<dyn ReplyObserver> {
        if self.places.is_same() {
            return Arc::clone(&self.lock) as Arc<dyn ReplyObserver>;
        }
        Arc::new(self.clone())
    }

    /// The servers that may have the lock.
    pub(crate) fn servers(&self) -> ServerSet {
        self.places.here(ServerSet::from_bits(self.lock.servers.load(Ordering::Acquire)))
    }

    /// Notes that these servers may have the lock from now on.
    pub(crate) fn note_servers(&self, servers: ServerSet) {
        self.lock.servers.fetch_or(self.places.there(servers).bits(), Ordering::AcqRel);
    }

    /// Whether the word of this server that it has the key is a vote.
    pub(crate) fn is_sound(&self, server: usize) -> bool {
        self.lock.soundness().is_sound(self.places.place_there(server))
    }

    /// Whether so many servers have lost the lock that no quorum can ever vouch for it again.
    pub(crate) fn is_lost(&self) -> bool {
        self.lock.soundness().voters() < self.lock.roster.quorum()
    }

    pub(crate) fn begin_round(&self) -> u32 {
        self.lock.soundness().begin_round()
    }

    /// Ends a round in which these servers said in time that they have the lock. Returns whether they are still
    /// a quorum.
    pub(crate) fn pass_round(&self, number: u32, voters: ServerSet) -> bool {
        let voters = self.places.there(voters).bits();
        self.lock.soundness().pass_round(number, voters, self.lock.roster.quorum())
    }

    pub(crate) fn fail_round(&self, number: u32) {
        self.lock.soundness().fail_round(number);
    }

    /// The number of the next repair, and the servers that must be sent it now.
    pub(crate) fn begin_repairs(&self) -> (u32, ServerSet) {
        let mut soundness = self.lock.soundness();
        if self.lock.is_detached() {
            return (0, ServerSet::default());
        }
        let (number, servers) = soundness.begin_repairs();
        (number, self.places.here(ServerSet::from_bits(servers)))
    }

    /// Takes the repair back for these servers, because it was not sent to them.
    pub(crate) fn withdraw_repairs(&self, servers: ServerSet) {
        self.lock.soundness().withdraw_repairs(self.places.there(servers).bits());
    }
}

impl ReplyObserver for View {
    fn hear(&self, server: usize, asked: (Verb, u32), answer: &Answer, now: Moment) {
        self.lock.hear(self.places.place_there(server), asked, answer, now);
    }

    fn hear_end(&self, server: usize, number: u32) {
        self.lock.hear_end(self.places.place_there(server), number);
    }
}

/// A lock that goes from one holder to another. A holder that gives a lock away sends nothing about it any
/// more.
impl Lock {
    /// The holder gives the lock away. From now on, nothing is sent that could release the lock, or set it
    /// anywhere again. Returns false, and changes nothing, if the lock was already released or lost.
    pub(crate) fn detach(&self) -> bool {
        // Repairs begin while this mutex is held, so none begins after this.
        let _standings = self.soundness();
        let (taken, detached) = (Phase::Taken as u8, Phase::Detached as u8);
        let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
        self.phase.compare_exchange(taken, detached, success, failure).is_ok()
    }

    pub(crate) fn is_detached(&self) -> bool {
        self.phase.load(Ordering::Acquire) == Phase::Detached as u8
    }

    /// Adopts the lock. `all` are the servers that may have it, and `having` those that said that they have it.
    /// A quorum has it until `valid_until`.
    pub(crate) fn adopt(&self, having: ServerSet, all: ServerSet, valid_until: Moment) {
        self.soundness().take(having.bits(), all.bits());
        self.servers.store(all.bits(), Ordering::Release);
        self.note_ttl(valid_until.ms_since(self.asked.at));
        self.extend_to(valid_until, self.asked.ttl_ms);
    }
}

/// A permit of a semaphore: which slot it has. Once it has a slot, it is an ordinary lock of that slot.
impl Lock {
    /// Takes this slot.
    pub(crate) fn take_slot(&self, slot: u16, granted: &Granted<'_>, now: Moment) {
        let &Granted { voters, sent, given } = granted;
        let key = self.target.slot(slot);
        if self.permit.set(Permit { key, slot }).is_err() {
            return;
        }
        self.take(voters, sent);
        for &(server, got) in given.iter().filter(|&&(server, _)| !voters.contains(server)) {
            self.hear_of_slot(server, got == Some(slot), got.is_some(), now);
        }
    }

    /// The slot that the lock has, if it is a permit of a semaphore.
    pub(crate) fn slot(&self) -> Option<u16> {
        self.permit.get().map(|permit| permit.slot)
    }

    /// Hears that a server has given the lock this slot, or none. Before the lock has taken a slot, this says
    /// nothing. In that case [`Self::take_slot`] is told of it. Afterwards it is the answer to the last request
    /// that the server was sent, because no server is sent a move before it has answered.
    fn hear_slot(&self, server: usize, got: Option<u16>, now: Moment) {
        let Some(permit) = self.permit.get() else { return };
        self.hear_of_slot(server, got == Some(permit.slot), got.is_some(), now);
    }

    fn hear_of_slot(&self, server: usize, is_ours: bool, has_other: bool, now: Moment) {
        let mut soundness = self.soundness();
        if is_ours {
            let in_time = now <= self.window_end();
            return soundness.hear(server, 0, Word::Granted { in_time });
        }
        soundness.hear(server, 0, Word::NotSet);
        if has_other {
            // The other slot is released there, so the server may be given this one.
            soundness.hear(server, 0, Word::Absent);
        }
    }
}

/// A lock that becomes a shared one. From then on, others may hold it, too.
impl Lock {
    /// What the lock has on the servers. A permit of a semaphore has a slot, which is an ordinary lock. The
    /// lock may also have become a shared one.
    pub(crate) fn key(&self) -> Target {
        let mut key = self.permit.get().map_or(&self.target, |permit| &permit.key).clone();
        if self.is_shared() {
            key.kind = LockKind::Shared;
        }
        key
    }

    /// Whether others may hold the lock at the same time, or may soon.
    pub(crate) fn is_shared(&self) -> bool {
        self.target.kind == LockKind::Shared || self.downgraded_in.load(Ordering::Acquire) != 0
    }

    /// Whether that round asked for the exclusive lock that this was before. If so, the readers that a server
    /// has may be this holder itself.
    fn was_exclusive_in(&self, number: u32) -> bool {
        number < self.downgraded_in.load(Ordering::Acquire)
    }
}

impl View {
    /// Makes this a shared lock from now on, whatever its servers answer to the request of this round, because
    /// they may carry out the request at any time.
    pub(crate) fn begin_downgrade(&self) -> u32 {
        let number = self.begin_round();
        let first = &self.lock.downgraded_in;
        let _ = first.compare_exchange(0, number, Ordering::AcqRel, Ordering::Acquire);
        number
    }
}

/// Which servers have had a lock all the time: those that set it soon enough after it was asked for.
impl Lock {
    /// Whether a server is known to have set the key within the window of the acquire, because the key has this
    /// much time left, heard at `now`. An earlier extension makes the key look as if it was set later.
    fn was_set_in_time(&self, left_ms: i64, now: Moment) -> bool {
        if now <= self.window_end() {
            return true;
        }
        // A server counts whole milliseconds, and its clock may be fast.
        let passed_ms = self.asked.ttl_ms.saturating_sub(left_ms).saturating_sub(1);
        if left_ms < 0 || passed_ms < 0 {
            return false;
        }
        let least_ms = passed_ms - self.asked.drift.share_ms(passed_ms);
        now <= self.window_end().plus_ms(least_ms)
    }

    /// The end of the time in which a server may have granted the lock and counts as if it had granted it at
    /// once.
    fn window_end(&self) -> Moment {
        self.asked.at.plus_ms(self.asked.window_ms)
    }
}

#[cfg(test)]
mod tests;
