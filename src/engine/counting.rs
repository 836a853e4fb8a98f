//! Statistics of operations: at their end, and while they run.

use super::Engine;
use super::state::{Slot, State};
use crate::log::Level;
use crate::moment::Moment;
use crate::operation::{End, Failed};
use crate::stats::{Counts, Mark, Outcome};

impl State {
    /// The operation at this place has ended. If it was one slice of a wait, it is not counted as ended:
    /// the next slice continues it.
    pub(super) fn note_end(&mut self, place: usize, end: &mut End, now: Moment) {
        let Some(slot) = self.slots.get(place) else { return };
        let outcome = match end {
            Ok(_) => Outcome::Ok,
            Err(Failed { broken_off: Some(wait), .. }) => {
                wait.sliced_wait = Some(slot.record.sliced_wait(now));
                return;
            }
            Err(failed) => failed.error.status().into(),
        };
        let tracing = self.settings.tracing();
        let line = slot.record.end(outcome, now, tracing, &mut self.counts);
        self.effects.lines.extend(line.map(|it| (Level::Event, it)));
    }

    /// Something countable has happened while the operation runs.
    pub(super) fn note_mark(&mut self, place: usize, mark: Mark) {
        let Some(slot) = self.slots.get(place) else { return };
        let line = slot.record.mark(mark, self.settings.tracing(), &mut self.counts);
        self.effects.lines.extend(line.map(|it| (Level::Event, it)));
    }
}

impl Engine {
    pub(crate) fn counts(&self) -> &Counts {
        &self.state.counts
    }

    /// How many operations wait for a lock, and how many locks are kept.
    pub(crate) fn waiting_and_kept(&self) -> (u64, u64) {
        let waits = |slot: &&Slot| slot.record.is_waiting();
        let waiting = self.state.slots.iter().filter(|(_, slot)| waits(slot)).count();
        (waiting as u64, self.state.keepers.len() as u64)
    }
}
