//! Which servers have had a lock all the time: those that set it soon enough after it was asked for.

use super::HeldLock;
use crate::moment::Moment;

impl HeldLock {
    /// Whether a server is known to have set the key within the window of the acquire, because the key has this
    /// much time left, heard at `now`. An earlier extension makes the key look as if it was set later.
    pub(super) fn was_set_in_time(&self, left_ms: i64, now: Moment) -> bool {
        if now <= self.window_end() {
            return true;
        }
        // A server counts whole milliseconds, and its clock may be fast.
        let passed_ms = self.asked.ttl_ms.saturating_sub(left_ms).saturating_sub(1);
        if left_ms < 0 || passed_ms < 0 {
            return false;
        }
        let least_ms = passed_ms - self.asked.drift.share_ms(passed_ms);
        now <= self.window_end().plus_ms(least_ms)
    }

    /// The end of the time in which a server may have granted the lock and counts as if it had granted it at
    /// once.
    pub(super) fn window_end(&self) -> Moment {
        self.asked.at.plus_ms(self.asked.window_ms)
    }
}
