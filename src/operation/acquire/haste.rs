//! A divided attempt: some servers have granted it, others have refused it, and others are silent. The grants
//! keep everybody else out. Therefore a caller that will try again does not wait for a server that may be
//! frozen.

use super::{Acquire, Plan, Stage};
use crate::moment::Moment;
use crate::operation::question::Question;

/// How often the time is doubled at most. Because of the doubling, a server that has become slow is waited for
/// after a few tries.
const DOUBLINGS_MAX: u32 = 5;

impl Acquire {
    /// How often the time is doubled in a divided attempt.
    pub(super) fn hastes(&self, now: Moment) -> Option<u32> {
        let tries_again = matches!(self.wanted.plan, Plan::Until(until) if now < until);
        match &self.stage {
            Stage::Asking(question) if tries_again && question.is_divided() => {
                Some(self.divided.min(DOUBLINGS_MAX))
            }
            _ => None,
        }
    }

    /// Notes an attempt that has failed. Returns whether it was divided to its end.
    pub(super) fn note_divided(&mut self, question: &Question) -> bool {
        let is_divided = question.is_divided();
        self.divided += u32::from(is_divided);
        is_divided
    }
}
