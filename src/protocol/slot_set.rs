//! Slots of a semaphore, by their numbers. Slot 0 is the resource itself.

/// The maximum number of permits of a semaphore: one bit each.
pub const SLOTS_MAX: u16 = 256;

/// A set of slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlotSet([u64; SLOTS_MAX as usize / 64]);

impl SlotSet {
    /// The same set with this slot.
    #[must_use]
    pub fn with(mut self, slot: u16) -> Self {
        self.0[usize::from(slot) / 64] |= 1 << (slot % 64);
        self
    }

    /// Whether the slot is in the set.
    pub fn contains(self, slot: u16) -> bool {
        self.0[usize::from(slot) / 64] & (1 << (slot % 64)) != 0
    }

    /// The bits, one per slot.
    pub fn bits(self) -> [u64; SLOTS_MAX as usize / 64] {
        self.0
    }

    /// The number of slots in the set.
    pub fn count(self) -> u32 {
        self.0.iter().map(|bits| bits.count_ones()).sum()
    }
}

impl FromIterator<u16> for SlotSet {
    fn from_iter<I: IntoIterator<Item = u16>>(slots: I) -> Self {
        slots.into_iter().fold(Self::default(), Self::with)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_slot_has_its_own_bit() {
        for slot in 0..SLOTS_MAX {
            let set = SlotSet::default().with(slot);
            assert!((0..SLOTS_MAX).all(|other| set.contains(other) == (other == slot)));
            assert_eq!(set.count(), 1);
        }
        assert_eq!((0..SLOTS_MAX).collect::<SlotSet>().count(), 256);
    }
}
