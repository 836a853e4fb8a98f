//! The lock while a program runs: when it ends, and when the program must be stopped because of that.

use std::time::Duration;

use redlock::{Lease, Lost, Status};

use crate::time::now;

/// What must be left of a lock when its program is killed: this part of the TTL, within these bounds. The
/// kernel may take that long to schedule this process, and to end the others.
const MARGIN_PART: u32 = 20;
const MARGIN_MIN: Duration = Duration::from_millis(100);
const MARGIN_MAX: Duration = Duration::from_secs(1);

/// A lock that is held while a program runs.
pub(crate) struct Hold {
    lease: Lease,
    lost: Lost,
    margin: Duration,
    /// The end of validity when the lock was last seen valid. If the lock was deleted since, or taken away, its program
    /// has until then to stop by itself.
    end: Duration,
    /// For how long others are kept out since the lock was taken, although the program has ended.
    least: Option<Duration>,
    /// Whether the program was asked to stop, and whether it was killed.
    is_stopping: bool,
    is_killing: bool,
}

impl Hold {
    pub(crate) fn new(lease: Lease, ttl: Duration, least: Option<Duration>) -> Self {
        let margin = (ttl / MARGIN_PART).clamp(MARGIN_MIN, MARGIN_MAX);
        let lost = lease.lost();
        let end = now() + lease.remaining();
        Self { lease, lost, margin, end, least, is_stopping: false, is_killing: false }
    }

    /// How long the program may go on.
    pub(crate) fn remaining(&self) -> Duration {
        self.kill_at().saturating_sub(now())
    }

    fn kill_at(&self) -> Duration {
        self.end.saturating_sub(self.margin)
    }

    fn look(&mut self) {
        let left = self.lease.remaining();
        if !left.is_zero() {
            self.end = now() + left;
        }
    }

    /// The end of the lock's validity; the last known end if the lock is no longer valid.
    pub(crate) fn end(&self) -> Duration {
        self.end
    }

    /// When the guard must kill the program, if this process has not done so.
    pub(crate) fn last_moment(&mut self) -> Duration {
        self.look();
        self.end.saturating_sub(self.margin / 2)
    }

    /// The longest time to wait for an event. After that time the program must be killed.
    pub(crate) fn time_to_next_step(&self) -> Option<Duration> {
        // After the kill there is only the program's end to wait for.
        (!self.is_killing).then(|| self.remaining())
    }

    /// The reason why the program must be asked to stop; returned once.
    pub(crate) fn is_to_be_stopped(&mut self) -> Option<String> {
        let error = self.lost.reason().filter(|_| !self.is_stopping)?;
        self.is_stopping = true;
        Some(error.to_string())
    }

    /// Whether the program was asked to stop, or killed.
    pub(crate) fn was_to_be_stopped(&self) -> bool {
        self.is_stopping || self.is_killing
    }

    /// Whether the program must be killed because the lock is about to end, or has ended.
    pub(crate) fn is_to_be_killed(&mut self) -> bool {
        self.look();
        self.is_killing |= self.remaining().is_zero();
        self.is_killing
    }

    /// The program was not run, so another one may run now.
    pub(crate) fn release_at_once(&mut self) {
        self.least = None;
        self.release();
    }

    /// Releases the lock. Returns a message if the lock was lost while the program ran.
    pub(crate) fn release(&mut self) -> Option<String> {
        let was_lost = self.is_stopping || self.is_killing || self.lost.is_lost();
        let known = self.lost.reason().map(|error| error.to_string());
        let released = match self.least {
            Some(least) => self.lease.unlock_after(least),
            None => self.lease.unlock(),
        };
        match released {
            _ if was_lost => {
                Some(known.unwrap_or_else(|| "the lock could not be kept alive in time".to_owned()))
            }
            Err(error) if error.status() == Status::Lost => Some(error.to_string()),
            // The lock is released on every server that receives the release, and ends with its TTL on the
            // others.
            _ => None,
        }
    }
}
