//! Which of several resources the servers have refused.

use super::Question;
use crate::command::{Answer, Place};

impl Question {
    /// The resources that servers said to be in the way: one bit for each.
    pub(crate) fn in_the_way(&self) -> u128 {
        self.places_where(|answer| match *answer {
            Answer::Blocked { place, .. } | Answer::EnrolledForOne { place, .. } => Some(place),
            _ => None,
        })
    }

    /// Those of them that readers hold, or may hold. A server says so only to a client that asks for a place in
    /// line.
    pub(crate) fn readers_in_the_way(&self) -> u128 {
        self.places_where(|answer| match *answer {
            Answer::Blocked { place, .. }
            | Answer::EnrolledForOne { place, is_shared: true, .. } => Some(place),
            _ => None,
        })
    }

    fn places_where(&self, place: impl Fn(&Answer) -> Option<Place>) -> u128 {
        let bit = |place: Place| 1_u128.checked_shl(u32::from(place.nth) - 1);
        let bits = self.reasons.iter().filter_map(|reason| place(&reason.1).and_then(bit));
        bits.fold(0, |all, bit| all | bit)
    }
}
