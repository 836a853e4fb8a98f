//! Names who waits for answers.

/// Names one question of an operation, or one wait. Never used twice, so an answer that comes late finds
/// nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    place: usize,
    generation: u64,
}

impl Ticket {
    /// That of the operation at this place, with a number that was never used.
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
