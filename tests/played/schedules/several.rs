//! Locks of several resources at once, beside locks of one.

use crate::schedules::schedule::{ALL, Call, Schedule, Step};
use crate::world::dice::Dice;

/// In a third of the schedules, some locks are for all resources at once. Everything else remains the same.
pub(crate) fn take_some_together(schedule: &mut Schedule) {
    let mut dice = Dice::of(schedule.seed, 12, 0);
    let is_handed = schedule.steps().any(|it| matches!(it.call, Call::Detach | Call::Adopt));
    if is_handed || !dice.once_in(3) {
        return;
    }
    let takes = |it: &&mut Step| matches!(it.call, Call::Lock { .. } | Call::TryLock { .. });
    for step in schedule.steps_mut().filter(takes) {
        if dice.once_in(2) {
            step.resource = ALL;
        }
    }
}
