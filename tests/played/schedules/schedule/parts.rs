//! The parts of a schedule that can be left out.

use super::{Schedule, Step};

/// A part that can be left out of a schedule to make it smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Step { client: usize, caller: usize, index: usize },
    Hitch { client: usize, index: usize },
    Fault { index: usize },
}

impl Schedule {
    pub(crate) fn parts(&self) -> Vec<Part> {
        let mut parts: Vec<Part> =
            (0..self.faults.len()).map(|index| Part::Fault { index }).collect();
        for (client, plan) in self.clients.iter().enumerate() {
            parts.extend((0..plan.hitches.len()).map(|index| Part::Hitch { client, index }));
            for (caller, steps) in plan.callers.iter().enumerate() {
                parts.extend((0..steps.len()).map(|index| Part::Step { client, caller, index }));
            }
        }
        parts
    }

    /// The same schedule with only these parts. The time between two calls does not change.
    pub(crate) fn with_only(&self, parts: &[Part]) -> Self {
        let mut smaller = self.clone();
        let keeps = |part| parts.contains(&part);
        let mut index = 0;
        smaller.faults.retain(|_| {
            index += 1;
            keeps(Part::Fault { index: index - 1 })
        });
        for (client, plan) in smaller.clients.iter_mut().enumerate() {
            let mut index = 0;
            plan.hitches.retain(|_| {
                index += 1;
                keeps(Part::Hitch { client, index: index - 1 })
            });
            for (caller, steps) in plan.callers.iter_mut().enumerate() {
                let mut pause = 0;
                let mut kept = Vec::new();
                for (index, step) in steps.iter().enumerate() {
                    pause += step.pause;
                    if keeps(Part::Step { client, caller, index }) {
                        kept.push(Step { pause, ..*step });
                        pause = 0;
                    }
                }
                *steps = kept;
            }
        }
        smaller
    }
}
