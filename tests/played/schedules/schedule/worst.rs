//! The worst effects of everything that goes wrong in a schedule.

use super::{ClientPlan, Fault, Mishap, Schedule, Step, Weather, What};
use crate::world::clocks::MS;
use crate::world::store::Refusal;

/// With this many bytes, a socket accepts all data of a few calls at once.
const ROOM_ENOUGH: usize = 4_096;

impl Schedule {
    /// Whether everything that is sent arrives and is done, and soon.
    pub(crate) fn loses_nothing(&self) -> bool {
        let is_lie = |it: &Fault| matches!(it.what, What::Refuse { how: Refusal::AfterAll, .. });
        let is_calm = self.weather.slow_in == 0 && self.weather.room >= Weather::CALM.room;
        is_calm
            && !self.clients.iter().any(ClientPlan::is_stopped)
            && self.faults.iter().all(is_lie)
    }

    /// For how long something may be held up, by all causes together.
    pub(crate) fn held_up(&self) -> i64 {
        let faults: i64 = self.faults.iter().map(|it| it.lasts).sum();
        let hitches = self.clients.iter().flat_map(|it| &it.hitches);
        let hitches: i64 = hitches.filter_map(|it| it.lasts).sum();
        let stops = self.steps().filter_map(|it| match it.mishap {
            Some((
                _,
                Mishap::Stop { lasts } | Mishap::Stall { lasts, .. } | Mishap::Lose { lasts, .. },
            )) => Some(lasts),
            _ => None,
        });
        let slow = if self.weather.slow_in > 0 { self.weather.slow } else { 0 };
        // Data that a socket did not accept waits for the next call, which may wait for the end of a lock.
        let pause = |it: &Step| match it.before_end {
            Some(_) => it.pause.max(self.longest_ttl_ms() * MS),
            None => it.pause,
        };
        let idle = if self.weather.room < ROOM_ENOUGH { self.steps().map(pause).sum() } else { 0 };
        faults + hitches + stops.sum::<i64>() + slow + idle
    }

    /// By how much keys may outlive their TTL because of their servers' clocks.
    pub(crate) fn longest_grace(&self) -> i64 {
        let back = |it: &Fault| match it.what {
            What::StepClock { by, .. } => (-by).max(0),
            _ => 0,
        };
        self.faults.iter().map(back).sum()
    }
}
