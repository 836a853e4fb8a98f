//! Which of several resources the servers have refused.

use super::Question;
use crate::command::Answer;

impl Question {
    /// Those that servers said to be in the way: a bit for each.
    pub(crate) fn in_the_way(&self) -> u128 {
        let bit = |reason: &(usize, Answer)| match reason.1 {
            Answer::Blocked { place, .. } => 1_u128.checked_shl(u32::from(place.nth) - 1),
            _ => None,
        };
        self.reasons.iter().filter_map(bit).fold(0, |all, bit| all | bit)
    }
}
