//! One lock that was asked for: how far its life has come, and what each server has said of it.

mod handover;
mod permit;
mod sharing;
mod slot;
mod window;

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

pub(crate) use self::slot::Granted;
use self::slot::Permit;
use crate::command::{Answer, Slots, Verb, Witness};
use crate::lock_kind::Target;
use crate::moment::Moment;
use crate::quorum::standing::{Standings, Word};
use crate::quorum::validity::Drift;
use crate::server_set::ServerSet;
use crate::system::process::{Generation, this_process};
use crate::token::Token;
use crate::transport::roster::{Places, Roster};

/// A lock that was asked for, and perhaps taken. The leases that continue one lock share it.
///
/// What it knows of servers is by their places in the list of the manager that took the lock; through
/// another manager it is used as a [`View`].
#[derive(Debug)]
pub(crate) struct HeldLock {
    target: Target,
    /// The slot that it has, of a semaphore.
    permit: OnceLock<Permit>,
    token: Token,
    /// The process that took it, and that alone may use it.
    process: Generation,
    /// The servers, in the order of the manager that took it.
    roster: Roster,
    asked: Asked,
    /// Until when it is valid; grows, unless the servers' clocks are set forward. The beginning of time before it is taken.
    valid_until: AtomicI64,
    /// The servers that may have it: those to which it was sent.
    servers: AtomicU64,
    standings: Mutex<Standings>,
    /// The TTL that it was last given.
    ttl_ms: AtomicI64,
    /// The longest TTL that a server may have given it.
    longest_ttl_ms: AtomicI64,
    /// 0: none.
    fencing_token: AtomicI64,
    /// The round in which it became a shared lock; 0: in none.
    downgraded_in: AtomicU32,
    phase: AtomicU8,
    /// Whether its holder has released it, before it was found out to be lost.
    was_released: AtomicBool,
    /// Whether a release was sent by a call that found it ended, for another that ends it.
    release_sent: AtomicBool,
}

/// How a lock was asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(crate) at: Moment,
    pub(crate) ttl_ms: i64,
    /// A server that granted it within this time counts as if it had granted it at once.
    pub(crate) window_ms: i64,
    pub(crate) drift: Drift,
}

/// How far a lock's life has come. It only goes forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It was taken. Whether it is still valid, the clock tells.
    Taken,
    /// It was found out not to be ours any more; perhaps something of it is left somewhere.
    Lost,
    /// It is being released; perhaps not all servers were told yet.
    Releasing,
    /// Nothing is left of it.
    Over,
    /// It was given away.
    Detached,
}

impl HeldLock {
    /// One that is about to be asked for.
    pub(crate) fn new(target: Target, token: Token, asked: Asked, roster: Roster) -> Self {
        let standings = Standings::new(roster.len());
        Self {
            target,
            permit: OnceLock::new(),
            token,
            process: this_process(),
            roster,
            asked,
            valid_until: AtomicI64::new(0),
            servers: AtomicU64::new(0),
            standings: Mutex::new(standings),
            ttl_ms: AtomicI64::new(asked.ttl_ms),
            longest_ttl_ms: AtomicI64::new(asked.ttl_ms),
            fencing_token: AtomicI64::new(0),
            downgraded_in: AtomicU32::new(0),
            phase: AtomicU8::new(Phase::Taken as u8),
            was_released: AtomicBool::new(false),
            release_sent: AtomicBool::new(false),
        }
    }

    /// One that was taken on one server.
    #[cfg(test)]
    pub(crate) fn of_one_server(
        resource: &[u8],
        token: Token,
        (at, ttl_ms): (Moment, i64),
    ) -> Self {
        Self::of_one_server_as(resource, false, token, (at, ttl_ms))
    }

    /// It is taken: these servers had granted it when that was decided, and to these it was sent.
    pub(crate) fn take(&self, granted: ServerSet, sent: ServerSet) {
        self.standings().take(granted.bits(), sent.bits());
        self.servers.store(sent.bits(), Ordering::Release);
        self.extend_to(self.deadline(), self.asked.ttl_ms);
    }

    /// When it was asked for.
    pub(crate) fn asked_at(&self) -> Moment {
        self.asked.at
    }

    /// Until when it is valid as long as it is not extended.
    pub(crate) fn deadline(&self) -> Moment {
        self.asked.drift.deadline(self.asked.at, self.asked.ttl_ms)
    }

    /// What was asked for.
    pub(crate) fn target(&self) -> &Target {
        &self.target
    }

    /// What was asked for, by its name.
    pub(crate) fn resource(&self) -> &Arc<[u8]> {
        &self.target.resource
    }

    pub(crate) fn token(&self) -> &Token {
        &self.token
    }

    /// The TTL that it was last given.
    pub(crate) fn ttl_ms(&self) -> i64 {
        self.ttl_ms.load(Ordering::Relaxed)
    }

    /// Which lock of this resource it is, in the order in which they were taken; 0 if that is not known.
    pub(crate) fn fencing_token(&self) -> i64 {
        self.fencing_token.load(Ordering::Relaxed)
    }

    pub(crate) fn set_fencing_token(&self, token: i64) {
        self.fencing_token.store(token, Ordering::Relaxed);
    }

    pub(crate) fn longest_ttl_ms(&self) -> i64 {
        self.longest_ttl_ms.load(Ordering::Relaxed)
    }

    /// A server may have given it this TTL from now on.
    pub(crate) fn note_ttl(&self, ttl_ms: i64) {
        self.longest_ttl_ms.fetch_max(ttl_ms, Ordering::Relaxed);
    }

    fn standings(&self) -> MutexGuard<'_, Standings> {
        self.standings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn valid_until(&self) -> Moment {
        Moment::from_nanos(self.valid_until.load(Ordering::Acquire))
    }

    /// Extends the validity, by this TTL; never shortens it.
    pub(crate) fn extend_to(&self, valid_until: Moment, ttl_ms: i64) {
        self.ttl_ms.store(ttl_ms, Ordering::Relaxed);
        self.valid_until.fetch_max(valid_until.as_nanos(), Ordering::AcqRel);
    }

    /// Shortens the validity, which was until `known`, if a quorum of the servers have the lock at the latest until before
    /// that: somebody has set their clocks. From then on it is valid for as long as they have it for sure. Not if somebody
    /// has extended it since. Returns whether it was shortened.
    pub(crate) fn shorten(&self, known: Moment, (latest, sure): (Moment, Moment)) -> bool {
        if latest.plus_ms(Drift::PRECISION_MS) >= known || sure >= known {
            return false;
        }
        let (known, sure) = (known.as_nanos(), sure.as_nanos());
        self.valid_until.compare_exchange(known, sure, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Goes on to a later phase. Returns the one before.
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

    /// Whether its holder has released it, or given it away, and it was not lost before.
    pub(crate) fn was_released(&self) -> bool {
        self.was_released.load(Ordering::Acquire) || self.is_detached()
    }

    /// Its holder releases it. Returns the phase that it was in.
    pub(crate) fn begin_release(&self) -> Phase {
        if !self.is_lost_or_over() {
            self.was_released.store(true, Ordering::Release);
        }
        self.pass_to(Phase::Releasing)
    }

    /// A release is about to be sent beside the one that ends it.
    pub(crate) fn note_release(&self) {
        self.release_sent.store(true, Ordering::Release);
    }

    /// Whether one may have been: then a server that has nothing to delete was told before.
    pub(crate) fn was_release_sent(&self) -> bool {
        self.release_sent.load(Ordering::Acquire)
    }

    /// Whether somebody else may have it by now: nothing is left of it, it was given away, or found out to be lost.
    pub(crate) fn is_lost_or_over(&self) -> bool {
        let phase = self.phase.load(Ordering::Acquire);
        phase == Phase::Lost as u8 || phase >= Phase::Over as u8
    }

    /// Whether nothing is left of it.
    pub(crate) fn is_over(&self) -> bool {
        self.phase.load(Ordering::Acquire) == Phase::Over as u8
    }

    pub(crate) fn is_ours(&self) -> bool {
        self.process == this_process()
    }

    /// How long it is valid after `now`; 0 if it is not, or is another process's.
    pub(crate) fn remaining_ms(&self, now: Moment) -> i64 {
        if self.has_ended() || !self.is_ours() {
            return 0;
        }
        self.valid_until().ms_since(now)
    }

    pub(crate) fn is_held(&self, now: Moment) -> bool {
        !self.has_ended() && now < self.valid_until() && self.is_ours()
    }

    /// What a server says of the key, asked by the request of this number, and heard at `now`.
    fn hear(&self, server: usize, (verb, number): (Verb, u32), answer: &Answer, now: Moment) {
        let word = match (verb, answer) {
            (_, Answer::Slots(Slots { got, .. })) => {
                return self.hear_slot(server, verb, *got, now);
            }
            (verb, answer) if verb.acquires() && answer.is_grant() => {
                Word::Granted { in_time: now <= self.window_end() }
            }
            (Verb::Repair, Answer::Done) => Word::Repaired,
            // A reply that is an error is a reply: the server does not come back to the request.
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
            // Of one that shares it: other readers have it, and it can be joined once more.
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
        self.standings().hear(server, number, word);
    }
}

impl Witness for HeldLock {
    fn hear(&self, server: usize, asked: (Verb, u32), answer: &Answer, now: Moment) {
        Self::hear(self, server, asked, answer, now);
    }
}

/// A lock as one manager sees it: with the servers by their places in that manager's list.
#[derive(Clone, Debug)]
pub(crate) struct View {
    hold: Arc<HeldLock>,
    places: Places,
}

impl View {
    /// Nothing if the lock is one of other servers than the manager's.
    pub(crate) fn new(hold: &Arc<HeldLock>, roster: &Roster) -> Option<Self> {
        let places = roster.places_in(&hold.roster)?;
        Some(Self { hold: Arc::clone(hold), places })
    }

    pub(crate) fn hold(&self) -> &Arc<HeldLock> {
        &self.hold
    }

    /// Who hears what the servers say to this manager.
    pub(crate) fn witness(&self) -> Arc<dyn Witness> {
        if self.places.is_same() {
            return Arc::clone(&self.hold) as Arc<dyn Witness>;
        }
        Arc::new(self.clone())
    }

    /// The servers that may have it.
    pub(crate) fn servers(&self) -> ServerSet {
        self.places.here(ServerSet::from_bits(self.hold.servers.load(Ordering::Acquire)))
    }

    /// These servers may have it from now on.
    pub(crate) fn note_servers(&self, servers: ServerSet) {
        self.hold.servers.fetch_or(self.places.there(servers).bits(), Ordering::AcqRel);
    }

    /// Whether the word of this server, that it has the key, is a vote.
    pub(crate) fn is_sound(&self, server: usize) -> bool {
        self.hold.standings().is_sound(self.places.place_there(server))
    }

    /// Whether so many servers have lost it that no quorum can ever vouch for it again.
    pub(crate) fn is_lost(&self) -> bool {
        self.hold.standings().voters() < self.hold.roster.quorum()
    }

    pub(crate) fn begin_round(&self) -> u32 {
        self.hold.standings().begin_round()
    }

    /// These servers have said in time that they have it. Returns whether that is a quorum still.
    pub(crate) fn pass_round(&self, number: u32, voters: ServerSet) -> bool {
        let voters = self.places.there(voters).bits();
        self.hold.standings().pass_round(number, voters, self.hold.roster.quorum())
    }

    pub(crate) fn fail_round(&self, number: u32) {
        self.hold.standings().fail_round(number);
    }

    /// The servers that are to be sent a repair now, and its number.
    pub(crate) fn begin_repairs(&self) -> (u32, ServerSet) {
        let mut standings = self.hold.standings();
        if self.hold.is_detached() {
            return (0, ServerSet::default());
        }
        let (number, servers) = standings.begin_repairs();
        (number, self.places.here(ServerSet::from_bits(servers)))
    }

    /// To these it was not sent.
    pub(crate) fn withdraw_repairs(&self, servers: ServerSet) {
        self.hold.standings().withdraw_repairs(self.places.there(servers).bits());
    }
}

impl Witness for View {
    fn hear(&self, server: usize, asked: (Verb, u32), answer: &Answer, now: Moment) {
        self.hold.hear(self.places.place_there(server), asked, answer, now);
    }
}

#[cfg(test)]
mod tests;
