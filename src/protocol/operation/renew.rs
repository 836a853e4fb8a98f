//! Keeping a lock: extending it again and again, until its holder releases it or it cannot be kept.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use super::extend::{Attempt, Extension};
use super::round::Round;
use super::{Actions, Ended, Event, Operation, Urgency};
use crate::protocol::error::{Error, Status};
use crate::protocol::keeper::Kept;
use crate::protocol::lock::View;
use crate::protocol::moment::Moment;
use crate::protocol::quorum::backoff::jitter;
use crate::protocol::stats::Mark;

/// A lock is extended when a third of its TTL has passed at the latest, as by similar libraries. That leaves time
/// for two more attempts before the lock ends. It is extended when a sixth has passed at the earliest. The moment in
/// between is another one for each lock and each renewal. So thousands of locks that were taken together, by
/// one manager or by a hundred, do not stay together.
const LATEST_PARTS: i64 = 3;
const EARLIEST_PARTS: i64 = 6;

/// The renewals of one manager come at multiples of this part of the TTL, so that a few of many go out in one write.
const GRID_PARTS: i64 = 512;
const GRID_MAX_MS: i64 = 50;

const NANOS_PER_MS: i64 = 1_000_000;

/// How long after a failed attempt the next one comes, as a part of the TTL.
const PAUSE_PARTS: i64 = 30;

/// How much of the TTL is left at least when the library reports that the lock cannot be kept. A tenth is
/// promised, and another twentieth is for delivering the report.
const LEFT_PERCENT: i64 = 15;

/// Keeps a lock.
pub(crate) struct Renew {
    view: View,
    kept: Kept,
    stage: Stage,
    /// After a failed attempt: the earliest moment of the next attempt, and the error of the failed one.
    again_at: Moment,
    failure: Option<Error>,
    /// A number of the manager: the renewals of different managers do not come at the same multiples.
    phase: i64,
}

enum Stage {
    Submitted,
    Waiting,
    Extending(Box<Extension>),
}

impl Renew {
    pub(crate) fn new(view: View, kept: Kept) -> Self {
        let again_at = Moment::from_nanos(0);
        Self { view, kept, stage: Stage::Submitted, again_at, failure: None, phase: 0 }
    }

    fn begin(&mut self, actions: &mut dyn Actions) {
        actions.keep(*self.view.held_lock().token());
        self.phase = actions.channel().map_or(0, |channel| (number_of(&channel) >> 1) as i64);
        self.go_on(actions);
    }

    /// Waits for the next step, or takes it.
    fn go_on(&mut self, actions: &mut dyn Actions) {
        let (lock, now) = (self.view.held_lock(), actions.now());
        if self.kept.is_given_up() || lock.was_released() {
            return actions.end(Ok(Ended::Stopped));
        }
        let (renew_at, given_up_at) = (self.renew_at(), self.given_up_at());
        if lock.has_ended() || now >= given_up_at {
            return self.end(actions);
        }
        if now < renew_at {
            self.stage = Stage::Waiting;
            return actions.wait_until(renew_at.min(given_up_at).min(self.look_at(now)));
        }
        let mut extension = Extension::new(self.view.clone(), lock.ttl_ms(), given_up_at);
        let attempt = extension.begin(actions);
        self.stage = Stage::Extending(Box::new(extension));
        self.handle_attempt(attempt, actions);
    }

    fn handle_attempt(&mut self, attempt: Attempt, actions: &mut dyn Actions) {
        match attempt {
            Attempt::Pending => {
                let has_round = self.round().is_some();
                if !has_round {
                    // The extension is preparing to connect, which may take any time.
                    actions.wait_until(self.given_up_at());
                }
                return;
            }
            Attempt::Extended { .. } => {
                actions.mark(Mark::Renewed);
                self.again_at = Moment::from_nanos(0);
                self.failure = None;
            }
            Attempt::Failed { error, .. } => {
                actions.mark(Mark::NotRenewed);
                self.again_at = actions.now().plus_ms((self.ttl_ms() / PAUSE_PARTS).max(1));
                self.failure = Some(error);
            }
        }
        self.stage = Stage::Waiting;
        self.go_on(actions);
    }

    /// Reports that the lock cannot be kept.
    fn end(&mut self, actions: &mut dyn Actions) {
        let lock = self.view.held_lock();
        let is_lost = lock.has_ended() || actions.now() >= lock.valid_until();
        let status = if is_lost { Status::Lost } else { Status::Unreachable };
        let why = self.failure.take().map(|error| format!(": {error}")).unwrap_or_default();
        let words = format!("the lock could not be kept alive{why}");
        actions.mark(Mark::Unkept);
        let (lock, error) = (Arc::clone(lock), Error::new(status, words));
        actions.end(Ok(Ended::Unkept { lock, error }));
    }

    fn ttl_ms(&self) -> i64 {
        self.view.held_lock().ttl_ms()
    }

    fn renew_at(&self) -> Moment {
        let (lock, ttl_ms) = (self.view.held_lock(), self.ttl_ms());
        let granted_at = lock.valid_until().plus_ms(-ttl_ms);
        let (earliest_ms, latest_ms) = (ttl_ms / EARLIEST_PARTS, ttl_ms / LATEST_PARTS);
        let spread = Duration::from_millis((latest_ms - earliest_ms).max(0).unsigned_abs());
        let random = number_of(&(lock.token(), granted_at.as_nanos()));
        let renew_at = granted_at.plus_ms(earliest_ms).plus(jitter(spread, random)).as_nanos();
        let grid_ms = (ttl_ms / GRID_PARTS).clamp(1, GRID_MAX_MS);
        let phase = self.phase % grid_ms * NANOS_PER_MS;
        let ahead = (renew_at - phase).rem_euclid(grid_ms * NANOS_PER_MS);
        Moment::from_nanos(renew_at - ahead).max(self.again_at)
    }

    /// When to look again at the latest. Another manager may give the lock a longer TTL without waking this
    /// keeper, and then the lock must be renewed earlier. Looking after half of the time that is left is soon
    /// enough, because no extension ends earlier than the lock does.
    fn look_at(&self, now: Moment) -> Moment {
        now.plus_ms((self.view.held_lock().valid_until().ms_since(now) / 2).max(1))
    }

    /// When the library reports that the lock cannot be kept, unless it is extended before.
    fn given_up_at(&self) -> Moment {
        // Rounded up, plus one millisecond because the remaining time is rounded down. Not more: a short TTL
        // would leave no time to renew.
        let (hundreds, rest) = (self.ttl_ms() / 100, self.ttl_ms() % 100);
        let left_ms = hundreds * LEFT_PERCENT + (rest * LEFT_PERCENT + 99) / 100 + 1;
        self.view.held_lock().valid_until().plus_ms(-left_ms)
    }
}

/// A number that looks like a random one and is the same for the same value.
fn number_of(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

impl Operation for Renew {
    fn handle(&mut self, event: Event, actions: &mut dyn Actions) {
        match (mem::replace(&mut self.stage, Stage::Waiting), event) {
            (_, Event::Cancelled { .. }) => actions.end(Ok(Ended::Stopped)),
            (Stage::Submitted, _) => self.begin(actions),
            (Stage::Waiting, _) => self.go_on(actions),
            // The preparation did not finish in time.
            (Stage::Extending(_), Event::TimeOut) => self.go_on(actions),
            // The extension was connecting, and the holder has released the lock meanwhile.
            (Stage::Extending(extension), _)
                if self.kept.is_given_up() && !extension.has_asked() =>
            {
                actions.end(Ok(Ended::Stopped));
            }
            (Stage::Extending(mut extension), event) => {
                let attempt = extension.handle(event, actions);
                self.stage = Stage::Extending(extension);
                self.handle_attempt(attempt, actions);
            }
        }
    }

    fn urgency(&self) -> Urgency {
        Urgency::Keeps
    }

    /// A confirmation or a downgrade may find that the lock ends earlier, while it is being extended.
    fn limit(&self) -> Option<Moment> {
        Some(self.given_up_at())
    }

    fn resource(&self) -> Option<&Arc<[u8]>> {
        Some(self.view.held_lock().resource())
    }

    fn round(&mut self) -> Option<&mut Round> {
        match &mut self.stage {
            Stage::Submitted | Stage::Waiting => None,
            Stage::Extending(extension) => extension.round(),
        }
    }
}
