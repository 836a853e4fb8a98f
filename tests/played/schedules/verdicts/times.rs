//! How long calls may take, and whether a call has taken longer.

use super::Asked;
use crate::schedules::promises::Promise;
use crate::schedules::schedule::{Call, ClientPlan, Fault, What};
use crate::world::World;
use crate::world::clocks::MS;

/// What a computer with nothing else to do may take, generously measured.
const SLACK_MS: i64 = 25;

/// How long the library gives servers to follow once a quorum is connected, and how long the last try that
/// began in time may take. As in `src/protocol/operation`.
const STRAGGLERS_MS: i64 = 20;
const LAST_TRY_MS: i64 = 25;

impl World {
    /// A call must end in time, not counting the time during which its client was stopped.
    pub(super) fn judge_time(&mut self, asked: &Asked) {
        let client = &self.clients[asked.client];
        let stopped = client.stopped - asked.stopped;
        let took = client.read(self.now) - asked.shown - stopped - stopped / 100;
        let plan = &self.schedule.clients[asked.client];
        // One of a client's callers may do work that another one waits for.
        let company = i64::try_from(client.callers).unwrap_or(1);
        // If a lock was extended while servers were asked for it, they are asked once more.
        let hold = asked.tag.and_then(|it| self.records.holds.iter().rfind(|hold| hold.tag == it));
        let was_extended = hold.is_some_and(|it| it.is_kept || it.extensions > asked.extensions);
        let rounds = match asked.call {
            Call::Confirm { .. } if was_extended => 2,
            _ => 1,
        };
        let more = match self.schedule.permits {
            0 => i64::from(self.schedule.is_fenced),
            // An attempt may move three times.
            _ => 3,
        };
        let longest_ms = longest_ms(plan, asked, more) * company * rounds;
        if took > (longest_ms + longest_ms / 50 + SLACK_MS) * MS {
            let words = format!("took {} ms, not at most {longest_ms}", took / MS);
            let words = format!("a call outlived its time: {words}");
            self.records.violate(Promise::InTime, words);
        }
    }

    /// How long a call may wait for a lock at most, when nothing goes wrong any more.
    pub(crate) fn longest_wait_ms(&self, client: usize, ttl_ms: i64) -> i64 {
        let plan = &self.schedule.clients[client];
        let grace_ms = self.schedule.longest_grace() / MS;
        // A machine that ends silently is given up after this time, and a question is waited for like a
        // lock of that TTL.
        let is_quiet = |it: &Fault| matches!(it.what, What::Kill { quietly: true, .. });
        let silence_ms = if self.schedule.faults.iter().any(is_quiet) { 11_000 } else { 0 };
        silence_ms
            + ttl_ms
            + ttl_ms / 20
            + grace_ms
            + i64::from(plan.delay_ms) * 2
            + 2 * plan.connect_ms
            + 1_000
    }
}

/// The reply timeout: the one that is set, or the default for a lock of this TTL.
pub(crate) fn reply_ms(set_ms: i64, ttl_ms: i64) -> i64 {
    if set_ms > 0 { set_ms } else { (ttl_ms / 20).clamp(25, 500) }
}

/// How long a call may take on its client's clock.
fn longest_ms(plan: &ClientPlan, asked: &Asked, more: i64) -> i64 {
    // A server that connects while others are already asked has its own time to answer.
    let connect_ms = 2 * plan.connect_ms;
    let once = |ttl_ms| connect_ms + STRAGGLERS_MS + reply_ms(plan.reply_ms, ttl_ms);
    let pause_ms = i64::from(plan.delay_ms) * 3 / 2 + 1;
    // A fencing token may take one more round trip, and so may another slot.
    let raise_ms = |ttl_ms| more * reply_ms(plan.reply_ms, ttl_ms);
    let attempt = |ttl_ms| once(ttl_ms) + raise_ms(ttl_ms);
    let tries = |ttl_ms| (attempt(ttl_ms) + pause_ms) * i64::from(plan.tries);
    match asked.call {
        Call::Lock { ttl_ms } => tries(ttl_ms),
        Call::TryLock { ttl_ms, wait_ms } => wait_ms + attempt(ttl_ms) + LAST_TRY_MS,
        Call::Continue { ttl_ms } => tries(ttl_ms.max(asked.longest_ttl_ms)),
        Call::Extend { ttl_ms } => once(ttl_ms),
        Call::Confirm { .. } | Call::Downgrade | Call::Unlock => once(asked.longest_ttl_ms),
        // The call must also ask about a lock that may be becoming a shared one.
        Call::IsLocked => once(10_000) + reply_ms(plan.reply_ms, 10_000),
        Call::Adopt => once(10_000),
        Call::KeepAlive | Call::Detach | Call::Forget => 0,
    }
}
