//! The steps of a caller: what it asks for, when, and how.

use std::mem;

use super::Maker;
use crate::schedules::schedule::{Call, How, SLOTS, Step};
use crate::world::clocks::MS;

impl Maker {
    pub(super) fn steps(&mut self, list: &[usize], others: &[Vec<usize>]) -> Vec<Step> {
        let mut steps = Vec::new();
        let count = self.dice.between(1, if self.clients > 3 { 5 } else { 8 }) as usize;
        while steps.len() < count {
            let (slot, resource) = (self.dice.below(SLOTS), self.dice.below(self.resources));
            let mut add = |maker: &mut Self, call, before_end| {
                let (pause, mishap, how) = (maker.pause(), maker.mishap(), maker.how());
                // No lock may be taken through a manager that knows other servers.
                let manager = maker.dice.below(others.len() + 1);
                let takes =
                    !matches!(call, Call::Extend { .. } | Call::Confirm { .. } | Call::Unlock);
                let is_same = |it: &Vec<usize>| it.len() == list.len();
                let may = manager == 0 || !takes || is_same(&others[manager - 1]);
                let manager = if may { manager } else { 0 };
                let (keeps, drives) = (false, false);
                let step = Step {
                    pause,
                    before_end,
                    call,
                    manager,
                    slot,
                    resource,
                    mishap,
                    how,
                    keeps,
                    drives,
                    shares: false,
                };
                steps.push(step);
            };
            let take = self.take();
            add(self, take, None);
            while self.dice.once_in(2) || self.is_siege && !self.dice.once_in(3) {
                let (keep, before_end) = (self.keep(), self.before_end());
                add(self, keep, before_end);
            }
            let last = match self.dice.below(10) {
                0 => Call::Forget,
                1 => Call::IsLocked,
                _ => Call::Unlock,
            };
            let before_end = self.before_end();
            add(self, last, before_end);
        }
        if self.keeps_in > 0 {
            let is_foreign = |it: usize| it > 0 && others[it - 1].len() != list.len();
            self.keep_some(&mut steps, is_foreign);
        }
        steps
    }

    /// The pause between two calls, usually a part of a TTL.
    fn pause(&mut self) -> i64 {
        let ttl_ms = self.ttl_ms();
        match self.dice.below(10) {
            _ if self.is_siege => self.ms(0, 8),
            it if it < self.tardy => self.ms(ttl_ms, 2 * ttl_ms),
            0..=3 => 0,
            4..=6 => self.ms(0, 5),
            _ => self.ms(0, ttl_ms),
        }
    }

    /// Sometimes: how long before the end of the lock's validity the call starts.
    fn before_end(&mut self) -> Option<i64> {
        let before = self.ms(0, 4);
        self.dice.once_in(4).then_some(before)
    }

    /// In half of the schedules all callers block. In the others some of the calls are submitted, and some
    /// of those are cancelled in any state.
    fn how(&mut self) -> How {
        if self.submits_in == 0 || !self.dice.once_in(self.submits_in) {
            return How::Blocks;
        }
        let (soon, late) = (self.ms(0, 4), self.ms(0, 200));
        let cancelled_after = match self.dice.below(8) {
            0 => Some(0),
            1 => Some(soon),
            2 => Some(late),
            _ => None,
        };
        How::Submits { cancelled_after }
    }

    fn take(&mut self) -> Call {
        let ttl_ms = self.ttl_ms();
        match self.dice.below(5) {
            0 => Call::Lock { ttl_ms },
            1 => Call::Continue { ttl_ms },
            2 => Call::TryLock { ttl_ms, wait_ms: 0 },
            _ => Call::TryLock { ttl_ms, wait_ms: self.dice.pick(&[20, 100, 500]) },
        }
    }

    fn keep(&mut self) -> Call {
        let ttl_ms = self.ttl_ms();
        match self.dice.below(6) {
            0 => Call::Confirm { least_ms: self.dice.pick(&[0, 10, 100]) },
            1 => Call::Continue { ttl_ms },
            2 => Call::IsLocked,
            _ => Call::Extend { ttl_ms },
        }
    }

    /// Makes some of the locks kept, from their beginning or from a later time. A caller that has some of
    /// these usually drives between its calls.
    fn keep_some(&mut self, steps: &mut Vec<Step>, is_foreign: impl Fn(usize) -> bool) {
        for mut step in mem::take(steps) {
            let is_about_one = step.call.ttl_ms().is_some();
            let is_kept = is_about_one && self.keeping.once_in(self.keeps_in);
            let is_new = matches!(step.call, Call::Lock { .. } | Call::TryLock { .. });
            let is_later = is_kept && (!is_new || self.keeping.once_in(3));
            step.keeps = is_kept && !is_later;
            step.drives = !self.keeping.once_in(4) && step.pause < self.longest_drive();
            steps.push(step);
            if is_later {
                let (call, mishap) = (Call::KeepAlive, None);
                let pause = self.keeping.between(0, 3 * MS);
                let (before_end, how) = (None, How::Blocks);
                steps.push(Step { call, mishap, pause, before_end, how, ..step });
            }
            let ttl_ms = step.call.ttl_ms().filter(|_| is_kept && !is_foreign(step.manager));
            if let Some(ttl_ms) = ttl_ms {
                self.drive_for_long(steps, step, ttl_ms);
            }
        }
    }

    /// A lock is renewed at most a few hundred times.
    fn longest_drive(&self) -> i64 {
        200 * self.ttls_ms.iter().min().copied().unwrap_or(0) * MS
    }

    /// Sometimes a kept lock outlives its TTL.
    fn drive_for_long(&mut self, steps: &mut Vec<Step>, step: Step, ttl_ms: i64) {
        let (pause, drives) = (self.keeping.between(0, 3 * ttl_ms * MS), !self.keeping.once_in(6));
        let drives = drives && pause < self.longest_drive();
        if self.keeping.once_in(2) {
            let (call, mishap, how) = (Call::IsLocked, None, How::Blocks);
            let before_end = None;
            let keeps = false;
            steps.push(Step { call, mishap, pause, before_end, how, drives, keeps, ..step });
        }
    }
}
