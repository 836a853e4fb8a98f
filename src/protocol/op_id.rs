//! Identifies the operation that waits for an answer.

use std::num::NonZeroU64;

/// Identifies one question of an operation, or one wait. A ticket is never used twice, so a late answer
/// reaches nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpId {
    place: usize,
    /// The number plus 1, so that an `Option` needs no more room.
    after: NonZeroU64,
}

impl OpId {
    /// The ticket of the operation at this place, with a number that was never used before.
    pub(crate) const fn new(place: usize, generation: u64) -> Self {
        Self { place, after: NonZeroU64::MIN.saturating_add(generation) }
    }

    /// The place of the operation.
    pub(crate) fn place(self) -> usize {
        self.place
    }

    /// The number.
    pub(crate) fn generation(self) -> u64 {
        self.after.get() - 1
    }
}
