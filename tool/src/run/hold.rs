//! The lock while a program runs: until when it lasts, and when the program has to be stopped for that.

use std::time::Duration;

use redlock::{Lease, Lost, Status};

use crate::time::now;

/// What is left of a lock when its program is killed: a part of the TTL, at least and at most so long. The kernel may
/// take that long to let this process run, and to end the other ones.
const MARGIN_PART: u32 = 20;
const MARGIN_MIN: Duration = Duration::from_millis(100);
const MARGIN_MAX: Duration = Duration::from_secs(1);

/// A lock that is held while a program runs.
pub(crate) struct Hold {
    lease: Lease,
    lost: Lost,
    margin: Duration,
    /// Until when it was valid when that was looked at last.
    end: Duration,
    /// Whether the program was told to stop, and killed.
    is_stopping: bool,
    is_killing: bool,
}

impl Hold {
    pub(crate) fn new(lease: Lease, ttl: Duration) -> Self {
        let margin = (ttl / MARGIN_PART).clamp(MARGIN_MIN, MARGIN_MAX);
        let lost = lease.lost();
        Self { lease, lost, margin, end: now(), is_stopping: false, is_killing: false }
    }

    pub(crate) fn remaining(&self) -> Duration {
        self.lease.remaining()
    }

    /// Until when it is valid; what that was last, if it is no more.
    pub(crate) fn end(&self) -> Duration {
        self.end
    }

    /// When whoever stands by has to kill the program, if nobody else has.
    pub(crate) fn last_moment(&mut self) -> Duration {
        let (now, left) = (now(), self.lease.remaining());
        if !left.is_zero() {
            self.end = now + left;
        }
        now + left.saturating_sub(self.margin / 2)
    }

    /// How long to wait at most for anything to happen: then the program is to be killed.
    pub(crate) fn time_to_next_step(&self) -> Option<Duration> {
        // Then there is only its end to wait for.
        (!self.is_killing).then(|| self.lease.remaining().saturating_sub(self.margin))
    }

    /// Why the program is to be told to stop, once.
    pub(crate) fn is_to_be_stopped(&mut self) -> Option<String> {
        let error = self.lost.reason().filter(|_| !self.is_stopping)?;
        self.is_stopping = true;
        Some(error.to_string())
    }

    /// Whether it was.
    pub(crate) fn was_to_be_stopped(&self) -> bool {
        self.is_stopping || self.is_killing
    }

    /// Whether the program is to be killed: the lock is about to end, or it has.
    pub(crate) fn is_to_be_killed(&mut self) -> bool {
        self.is_killing |= self.lease.remaining() <= self.margin;
        self.is_killing
    }

    /// Releases the lock. Returns words if it was lost while the program ran.
    pub(crate) fn release(&mut self) -> Option<String> {
        let was_lost = self.is_stopping || self.is_killing || self.lost.is_lost();
        let known = self.lost.reason().map(|error| error.to_string());
        match self.lease.unlock() {
            _ if was_lost => {
                Some(known.unwrap_or_else(|| "the lock could not be kept in time".to_owned()))
            }
            Err(error) if error.status() == Status::Lost => Some(error.to_string()),
            // It is released on whichever server hears of it, and ends with its TTL on the others.
            _ => None,
        }
    }
}
