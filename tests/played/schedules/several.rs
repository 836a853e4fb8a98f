//! Locks of several resources at once, beside those of one.

use crate::schedules::schedule::{ALL, Call, Schedule};
use crate::world::dice::Dice;

/// In a third of the schedules some locks are of all resources at once. All else is as it would be.
pub(crate) fn take_some_together(schedule: &mut Schedule) {
    let mut dice = Dice::of(schedule.seed, 12, 0);
    let steps = || schedule.clients.iter().flat_map(|it| it.callers.iter().flatten());
    let is_handed = steps().any(|it| matches!(it.call, Call::Detach | Call::Adopt));
    if is_handed || !dice.once_in(3) {
        return;
    }
    let steps = schedule.clients.iter_mut().flat_map(|it| it.callers.iter_mut().flatten());
    for step in steps.filter(|it| matches!(it.call, Call::Lock { .. } | Call::TryLock { .. })) {
        if dice.once_in(2) {
            step.resource = ALL;
        }
    }
}
