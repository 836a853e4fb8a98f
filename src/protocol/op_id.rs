//! Identifies the operation that waits for an answer.

/// Identifies one question of an operation, or one wait. A ticket is never used twice, so a late answer
/// reaches nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpId {
    place: usize,
    generation: u64,
}

impl OpId {
    /// The ticket of the operation at this place, with a number that was never used before.
    pub(crate) const fn new(place: usize, generation: u64) -> Self {
        Self { place, generation }
    }

    /// The place of the operation.
    pub(crate) fn place(self) -> usize {
        self.place
    }

    /// The number.
    pub(crate) fn generation(self) -> u64 {
        self.generation
    }
}
