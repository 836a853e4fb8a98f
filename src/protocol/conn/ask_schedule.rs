//! When to ask an external source that may take long: the system's resolver, or the program that knows a
//! password.

use crate::protocol::moment::Moment;

/// How long the source is not asked again: ten times as long as the last answer took, within these bounds.
const REST_MIN_MS: i64 = 1_000;
pub(crate) const REST_MAX_MS: i64 = 60_000;

#[derive(Debug)]
pub(crate) struct AskSchedule {
    is_under_way: bool,
    next_at: Moment,
}

impl AskSchedule {
    pub(crate) fn new() -> Self {
        Self { is_under_way: false, next_at: Moment::from_nanos(0) }
    }

    pub(crate) fn is_under_way(&self) -> bool {
        self.is_under_way
    }

    /// Whether [`Self::begin`] would return true.
    pub(crate) fn is_due(&self, now: Moment) -> bool {
        now >= self.next_at()
    }

    /// From when on [`Self::begin`] would return true. Never if an answer is awaited.
    pub(crate) fn next_at(&self) -> Moment {
        if self.is_under_way { Moment::NEVER } else { self.next_at }
    }

    /// Whether to ask now. If so, the caller must call [`Self::end`] afterwards.
    pub(crate) fn begin(&mut self, now: Moment) -> bool {
        let begins = self.is_due(now);
        self.is_under_way |= begins;
        begins
    }

    /// The answer to the question that was asked at `began` is there.
    pub(crate) fn end(&mut self, began: Moment, now: Moment) {
        let rest_ms = (now.ms_since(began) * 10).clamp(REST_MIN_MS, REST_MAX_MS);
        self.is_under_way = false;
        self.next_at = now.plus_ms(rest_ms);
    }
}
