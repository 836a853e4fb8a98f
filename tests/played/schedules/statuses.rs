//! Whether the reason for a failed call is true.

use crate::protocol::error::Status;
use crate::protocol::quorum::validity::Drift;
use crate::schedules::generate::PASSWORD;
use crate::schedules::promises::Promise;
use crate::schedules::records::{HeldLock, Token};
use crate::schedules::schedule::{Call, Sin, Weather, What, share};
use crate::schedules::verdicts::{Asked, Told, reply_ms};
use crate::world::clocks::MS;
use crate::world::{START, World};

/// Remaining TTLs are reported in whole milliseconds, and by clocks that differ a little.
const GRAIN_MS: i64 = 5;

/// How many times at most a message must travel one way in a call: for a connection, its handshake and the
/// question itself.
pub(crate) const WAYS: i64 = 8;

impl World {
    /// Text that a person may read contains no token and no password.
    pub(crate) fn judge_words(&mut self, told: &Told) {
        let tells = |words: &str| {
            let is_token = |it: &str| it.len() >= 40 && it.bytes().all(|it| it.is_ascii_hexdigit());
            words.contains(PASSWORD) || words.split(|it: char| !it.is_alphanumeric()).any(is_token)
        };
        let error = told.said.as_ref().err().map(ToString::to_string);
        if tells(&told.absent) || error.is_some_and(|it| tells(&it)) {
            self.records.violate(Promise::NoSecrets, "a message holds a token or a password");
        }
    }

    /// Whether the lease of a call belongs to servers other than the manager's.
    pub(crate) fn is_of_others(&self, asked: &Asked) -> bool {
        let asks = matches!(
            asked.call,
            Call::Extend { .. }
                | Call::Continue { .. }
                | Call::Confirm { .. }
                | Call::Unlock
                | Call::Downgrade
                | Call::KeepAlive
        );
        let is_foreign = self.schedule.clients[asked.client].is_foreign(asked.manager);
        asks && is_foreign && asked.tag.is_some()
    }

    /// A call has failed.
    pub(crate) fn judge_failure(&mut self, asked: &Asked, told: &Told, status: Status) {
        let is_of_others = self.is_of_others(asked);
        if is_of_others && asked.is_held && status != Status::InvalidArgument {
            let words = "a lease of other servers was not refused for that";
            return self.records.violate(Promise::OtherServers, words);
        }
        match status {
            Status::InvalidArgument => self.judge_invalid(asked, is_of_others),
            Status::Internal | Status::Forked | Status::NoServers => {
                self.records.violate(Promise::NoFault, "a call failed for no reason");
            }
            Status::Taken => self.judge_refused(asked),
            Status::TooSlow => self.judge_too_slow(asked),
            Status::Unreachable => self.judge_unreachable(asked),
            Status::Lost => {
                self.end_lost(asked, told);
                self.judge_ended(asked, told);
                self.judge_lost(asked);
            }
            Status::TooShort => self.judge_too_short(asked, told),
            Status::Cancelled if asked.may_be_cancelled => {
                let token = asked.tag.filter(|_| matches!(asked.call, Call::Unlock));
                if let Some(token) = token.and_then(|tag| self.records.find(tag)) {
                    token.is_stray = true;
                }
            }
            Status::Cancelled => {
                let words = "a call was cancelled by nobody";
                self.records.violate(Promise::NoFault, words);
            }
        }
        self.judge_emptiness(asked, told, status);
    }

    /// A caller that continues a lock which another lease has taken is told of the same lock.
    fn end_lost(&mut self, asked: &Asked, told: &Told) {
        let (now, tag) = (self.now, told.tag.or(asked.tag));
        let continues = tag.is_none() && matches!(asked.call, Call::Continue { .. });
        let is_it = |it: &&mut HeldLock| match tag {
            Some(tag) => it.tag == tag && told.has_ended,
            None => continues && (it.client, it.resource) == (asked.client, asked.resource),
        };
        for hold in self.records.holds.iter_mut().filter(is_it) {
            hold.told_lost.get_or_insert(now);
        }
    }

    /// A lease that had no lock still has none after a call that took none. There is one exception: a lock
    /// that an earlier lease has continued, and that is still held.
    fn judge_emptiness(&mut self, asked: &Asked, told: &Told, status: Status) {
        let takes = match asked.call {
            Call::Lock { .. } | Call::TryLock { .. } => true,
            Call::Continue { .. } => status != Status::Unreachable,
            _ => false,
        };
        let is_answer =
            !matches!(status, Status::InvalidArgument | Status::Forked | Status::NoServers);
        if takes && is_answer && asked.tag.is_none() && told.tag.is_some() {
            self.records.violate(Promise::LostIsNotHeld, "a lease has a lock that was not had");
        }
    }

    /// No step has invalid arguments, but leases may already hold a lock.
    fn judge_invalid(&mut self, asked: &Asked, is_of_others: bool) {
        let takes =
            matches!(asked.call, Call::Lock { .. } | Call::TryLock { .. } | Call::Continue { .. });
        if is_of_others || takes && asked.is_held {
            return;
        }
        let promise = if asked.manager > 0 { Promise::AnyOrder } else { Promise::TrueInvalid };
        self.records.violate(promise, "an argument was refused that makes sense");
    }

    /// A server had another client's key; or this process holds the lock; or other callers of this process
    /// come first.
    fn judge_refused(&mut self, asked: &Asked) {
        let (client, resource) = (asked.client, asked.resource);
        let clock = &self.clients[client].clock;
        let drift = self.schedule.clients[client].drift;
        // A permit that was not released is taken for as long as servers have it, which is longer than it
        // was valid.
        let outlives = |it: &HeldLock| {
            if it.releases > 0 || self.schedule.permits == 0 {
                return 0;
            }
            let held = (it.kept_until(clock) - it.from).max(0);
            (held as f64 * drift.max(0.025) * 2.0) as i64 + GRAIN_MS * MS
        };
        let mut holds = self.records.holds.iter();
        let is_own = holds.any(|it| {
            let is_its = it.client == client && share(it.resource, resource);
            is_its && it.kept_until(clock).saturating_add(outlives(it)) >= asked.at
        });
        let is_refused = self.records.was_refused(client, resource, asked.at)
            || self.records.was_in_the_way(client, resource, asked.at);
        // If a server's clock was set, nobody knows which of its permits are free.
        let is_unsure = self.schedule.sins.contains(&Sin::LeapingClocks);
        let has_rival = self.schedule.permits > 0
            && (is_unsure
                || self.records.has_rival(client, resource)
                || self.records.lingers(client, resource, asked.at));
        if !is_own && !is_refused && !has_rival && self.clients[client].callers == 1 {
            self.records.violate(Promise::TrueTaken, "nobody had what was said to be taken");
        }
    }

    /// If nothing goes wrong, a lock is confirmed for almost as long as all servers have it.
    fn judge_too_short(&mut self, asked: &Asked, told: &Told) {
        let Call::Confirm { least_ms } = asked.call else {
            let words = "a call that asks for no time was told that it is too short";
            return self.records.violate(Promise::TrueTooShort, words);
        };
        let took = self.now - asked.at;
        let drift = self.schedule.clients[asked.client].drift;
        let for_clocks_ms = (least_ms as f64 * drift.max(0.025) * 2.0) as i64;
        let until = self.now + took + (least_ms + for_clocks_ms + GRAIN_MS) * MS;
        let is_plain = self.schedule.faults.is_empty() && self.schedule.sins.is_empty();
        // The renewal of a kept lock may have reported more since the servers answered.
        let is_kept_besides = asked.tag.is_some_and(|tag| self.records.is_kept(tag));
        if is_kept_besides {
            return;
        }
        // Another lease may have released or extended the lock after the servers answered and before the
        // answer was read.
        let hold = asked.tag.and_then(|it| self.records.holds.iter().rfind(|hold| hold.tag == it));
        let was_released = hold.is_some_and(|it| it.releases > asked.releases);
        let now = self.now;
        let extended = asked.tag.map_or(0, |tag| self.records.extended(tag, asked.at, now));
        if was_released || extended > 0 {
            return;
        }
        let client = &self.clients[asked.client];
        let is_kept = |tag| client.list.iter().all(|&it| self.servers[it].kept_until(tag) >= until);
        if told.has_ended || is_plain && asked.tag.is_some_and(is_kept) {
            let words = "a lock was there for as long as was asked, or not there at all";
            self.records.violate(Promise::TrueTooShort, words);
        }
    }

    fn judge_too_slow(&mut self, asked: &Asked) {
        let client = &self.clients[asked.client];
        let drift = Drift::new(self.schedule.clients[asked.client].drift);
        let ttl_ms = asked.call.ttl_ms().unwrap_or(0);
        let valid_ms = drift.unwrap_or(Drift::DEFAULT).validity_ms(ttl_ms);
        let was_quick = client.read(self.now) - asked.shown < valid_ms * MS;
        if was_quick || !self.records.has_granted(asked.client, client.quorum(), asked.at) {
            self.records.violate(Promise::TrueTooSlow, "it was not too slow");
        }
    }

    /// No quorum answered in time. Then the last attempt had no result in time, and more than a minority of
    /// the servers had a reason not to answer.
    fn judge_unreachable(&mut self, asked: &Asked) {
        let client = &self.clients[asked.client];
        if client.stopped > asked.stopped || client.callers > 1 {
            return;
        }
        let (plan, quorum) = (&self.schedule.clients[asked.client], client.quorum());
        let ttl_ms = asked.call.ttl_ms().unwrap_or(asked.longest_ttl_ms);
        let reply_ms = reply_ms(plan.reply_ms, ttl_ms);
        let takes = matches!(asked.call, Call::Lock { .. } | Call::TryLock { .. });
        // An answer that was received so soon after the beginning of the call was received in time by the
        // only attempt.
        let tries_once = match asked.call {
            Call::Lock { .. } => plan.tries == 1,
            Call::TryLock { wait_ms, .. } => wait_ms == 0,
            _ => false,
        };
        let in_time = asked.at..(asked.at + (reply_ms - 1) * MS).min(self.now - self.weather.wake);
        let is_of_it = |it: &&Token| {
            (it.client, it.resource) == (asked.client, asked.resource)
                && it.was_asked_since(asked.at)
        };
        // If there are two, one belongs to an earlier call.
        let mut tokens = self.records.tokens.iter().filter(is_of_it);
        let only = tokens.next().filter(|it| it.number > asked.drawn);
        let only = only.filter(|_| tokens.next().is_none());
        let heard =
            only.map_or(0, |it| it.heard_at.iter().filter(|at| in_time.contains(at)).count());
        // With a fencing token the servers may have been asked a second time.
        let asks_more = self.schedule.is_fenced || self.schedule.permits > 0;
        if tries_once && heard >= quorum && !asks_more {
            let words = "a quorum had answered, and was said not to";
            return self.records.violate(Promise::TrueUnreachable, words);
        }
        // There are exceptions: the lock is about to end, or little more of it is left than must be
        // confirmed. Then there is no time to wait.
        let way = self.weather.most + self.weather.wake;
        let ways = match self.schedule.permits {
            0 if self.schedule.is_fenced => WAYS + 2,
            0 => WAYS,
            _ => WAYS + 6,
        };
        let least_ms = match asked.call {
            Call::Confirm { least_ms } => least_ms,
            _ => 0,
        };
        let left = if takes { i64::MAX } else { asked.valid_until - asked.shown - least_ms * MS };
        let is_quick = self.weather.slow_in == 0
            && self.weather.room >= Weather::CALM.room
            && way * ways < plan.connect_ms.min(reply_ms) * MS
            && way * ways < left;
        // A token is raised only on servers where the lock is this client's. One server that another client
        // has, and one server that fails, are too many.
        let (client_number, resource) = (asked.client, asked.resource);
        let was_refused = || self.records.was_refused(client_number, resource, asked.at);
        if takes && self.schedule.is_fenced && was_refused() {
            return;
        }
        // If another client has keys on a part of the servers and one server fails, these keys may or may
        // not be a lock.
        if matches!(asked.call, Call::IsLocked) && self.records.has_rival(client_number, resource) {
            return;
        }
        let hold = asked.tag.and_then(|it| self.records.holds.iter().rfind(|hold| hold.tag == it));
        // If the lock was taken long ago, its age no longer proves that a server granted it in time, when
        // that server is heard only now.
        let since = hold.map_or(asked.at, |it| it.from);
        let unsure_ms = plan.drift.max(0.01) * ((self.now - since) / MS) as f64;
        // After an extension the age proves nothing either, because nobody may have heard of that
        // extension.
        let may_hide = |it: &HeldLock| it.was_cancelled || it.is_kept || it.extensions > 1;
        let is_proven = !hold.is_some_and(may_hide) && unsure_ms < reply_ms as f64 / 2.0;
        let is_quick = is_quick && (takes || is_proven);
        if is_quick && !plan.is_stopped() && self.ailing(asked) < client.list.len() - quorum + 1 {
            let words = "a minority of the servers kept a call from what it was to do";
            self.records.violate(Promise::TrueUnreachable, words);
        }
    }

    /// How many of the client's servers had something by now that may have affected the call, or did not
    /// have the lock that the call was about. All servers, if something happened to the client itself.
    fn ailing(&self, asked: &Asked) -> usize {
        let mut ailing = self.struck(asked.client);
        let takes = matches!(asked.call, Call::Lock { .. } | Call::TryLock { .. });
        if takes {
            // An attempt asks the servers that are connected when it begins.
            ailing |= asked.greeted;
        }
        if let Some(tag) = asked.tag.filter(|_| !takes) {
            let tokens = &self.records.tokens;
            let token = tokens.iter().rfind(|it| it.tag == tag);
            let had = |at: i64| token.map_or(0, |it| it.servers_that_had_it(at));
            ailing |= !(had(asked.at) & had(self.now));
        }
        let list = &self.clients[asked.client].list;
        // If a quorum is connected, the attempt waits for servers in their handshake for less time than for
        // answers.
        let whose = (asked.client, asked.manager);
        let greeted = || list.iter().filter(|server| self.is_greeted(whose, **server));
        if takes && greeted().count() <= list.len() - self.clients[asked.client].quorum() {
            ailing |= greeted().fold(0, |servers, server| servers | 1 << server);
        }
        list.iter().filter(|server| ailing & (1 << **server) != 0).count()
    }

    /// One bit for each server to which something has happened by now that this client may notice. All
    /// bits, if something has happened to the client.
    pub(crate) fn struck(&self, me: usize) -> u64 {
        // The grant must still be there when its token is raised.
        let mut ailing = if self.schedule.is_fenced { self.records.forgetful } else { 0 };
        for fault in self.schedule.faults.iter().filter(|it| START + it.at <= self.now) {
            ailing |= match fault.what {
                What::Freeze { server }
                | What::Kill { server, .. }
                | What::Refuse { server, .. }
                | What::Flush { server }
                | What::Live { server, .. }
                | What::StepClock { server, .. } => 1 << server,
                What::Cut { client, server, .. } | What::Stall { client, server, .. }
                    if client == me =>
                {
                    1 << server
                }
                What::Pause { client }
                | What::Suspend { client, .. }
                | What::Crash { client, .. }
                    if client == me =>
                {
                    u64::MAX
                }
                _ => 0,
            };
        }
        ailing
    }

    /// A lease whose lock was found lost does not say that it is held, unless the lock may be there for too
    /// short a time.
    fn judge_ended(&mut self, asked: &Asked, told: &Told) {
        let is_same = asked.tag.is_some() && asked.tag == told.tag;
        let client = &self.clients[asked.client];
        let is_over = told.valid_until <= client.read(self.now);
        if !is_same || told.has_ended || is_over || client.callers > 1 {
            return;
        }
        if let Call::Confirm { least_ms } = asked.call {
            let drift = Drift::new(self.schedule.clients[asked.client].drift);
            let drift = drift.unwrap_or(Drift::DEFAULT);
            let elapsed_ms = (self.now - asked.at) / MS + GRAIN_MS;
            let now = self.now;
            let is_short = |until: i64| {
                // To be safe, the elapsed time is subtracted from what is left when the answer arrives.
                let left_ms = (until - now) / MS;
                drift.validity_ms(left_ms) - elapsed_ms < least_ms
            };
            let tag = asked.tag.unwrap_or(0);
            let Some(token) = self.records.find(tag) else { return };
            if token.ends_within(asked.at, self.now).any(is_short) {
                return;
            }
        }
        self.records.violate(Promise::LostIsNotHeld, "a lease says that it is held, and was lost");
    }
}
