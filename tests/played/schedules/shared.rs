//! Locks that several clients hold at the same time. Nobody holds such a lock exclusively meanwhile, and a
//! writer that becomes a reader keeps its lock.

use std::mem;

use crate::schedules::promises::Promise;
use crate::schedules::records::HeldLock;
use crate::schedules::schedule::{Call, RESOURCES, Schedule, Step};
use crate::schedules::verdicts::{Asked, Told};
use crate::world::World;
use crate::world::clocks::MS;
use crate::world::dice::Dice;

/// In some schedules, some of the locks are shared, and some become shared. Everything else remains the
/// same.
pub(crate) fn share_some(schedule: &mut Schedule) {
    let mut dice = Dice::of(schedule.seed, 12, 0);
    // Permits are shared in a different way.
    if !dice.once_in(2) || schedule.permits > 0 {
        return;
    }
    // Other leases may continue the same lock, and these checks do not know that it is shared. A lock of
    // several resources does not become a shared one.
    let may_become = !schedule
        .steps()
        .any(|it| matches!(it.call, Call::Continue { .. }) || it.resource >= RESOURCES.len());
    let shared_in = dice.pick(&[1, 2, 2, 3]);
    for steps in schedule.callers_mut() {
        for mut step in mem::take(steps) {
            match step.call {
                Call::Lock { .. } | Call::TryLock { .. } => step.shares = dice.once_in(shared_in),
                Call::Unlock if may_become && dice.once_in(3) => {
                    steps.push(Step { call: Call::Downgrade, ..step });
                    step.pause = dice.between(0, 20 * MS);
                    (step.mishap, step.before_end) = (None, None);
                }
                _ => {}
            }
            steps.push(step);
        }
    }
}

impl HeldLock {
    /// From now on a server may let others in.
    pub(crate) fn begin_to_share(&mut self, now: i64) {
        self.shared_from = self.shared_from.min(now);
    }
}

impl World {
    /// A call that should have made the lock a shared one has ended. If no server was asked, the lock is
    /// not shared.
    pub(crate) fn note_shared(&mut self, asked: &Asked, told: &Told) {
        let is_same = asked.tag.is_some() && asked.tag == told.tag;
        if matches!(asked.call, Call::Downgrade)
            && is_same
            && !told.is_shared
            && let Some(hold) = asked.tag.and_then(|it| self.records.hold(it))
        {
            hold.shared_from = i64::MAX;
        }
    }

    /// A quorum has the lock, and its end is unchanged.
    pub(crate) fn judge_downgraded(&mut self, asked: &Asked, told: &Told) {
        let Some(tag) = told.tag.filter(|tag| asked.tag == Some(*tag)) else {
            return self.records.violate(Promise::TrueExtend, "a lock without a token");
        };
        let (now, quorum) = (self.now, self.clients[asked.client].quorum());
        if !told.is_shared {
            let words = "a lock is not shared that was told to be";
            return self.records.violate(Promise::WriterAlone, words);
        }
        if self.records.extended(tag, asked.at, now + 1) < quorum {
            let words = "a lock is shared that no quorum has";
            return self.records.violate(Promise::TrueExtend, words);
        }
        self.judge_vouched(asked.client, asked.at, tag);
        self.judge_kept_until(asked.client, tag, told.valid_until);
    }
}
