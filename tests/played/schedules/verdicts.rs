//! Whether the result of a call is true, and came in time.

mod sent;
mod times;

pub(crate) use self::times::reply_ms;
use crate::protocol::error::Error;
use crate::schedules::promises::Promise;
use crate::schedules::records::{HeldLock, Token};
use crate::schedules::schedule::{ALL, Call, Fault, Keeps, Sin, What, share};
use crate::world::World;
use crate::world::clocks::MS;

/// The state when a call begins.
pub(crate) struct Asked {
    pub(crate) call: Call,
    pub(crate) client: usize,
    pub(crate) manager: usize,
    pub(crate) resource: usize,
    /// Whether its lease held a lock, as far as that is known without asking.
    pub(crate) is_held: bool,
    /// Whether the lease has given its lock away.
    pub(crate) is_detached: bool,
    /// The tag of the lock that its lease had, and until when it was valid on the client's clock.
    pub(crate) tag: Option<u64>,
    pub(crate) valid_until: i64,
    pub(crate) longest_ttl_ms: i64,
    /// When the call began, in true time and on the client's clock, and for how long the client had been
    /// stopped.
    pub(crate) at: i64,
    pub(crate) shown: i64,
    pub(crate) stopped: i64,
    /// Whether the caller cancels it.
    pub(crate) may_be_cancelled: bool,
    /// The servers whose handshake was under way.
    pub(crate) greeted: u64,
    /// How many tokens had been drawn.
    pub(crate) drawn: u64,
    /// How often the lock had been extended and released, including this call.
    pub(crate) extensions: usize,
    pub(crate) releases: usize,
}

/// The result of a call.
pub(crate) struct Told {
    pub(crate) said: Result<(), Error>,
    /// The time of the result. For a submitted call, the time when one of the client's callers took its
    /// event.
    pub(crate) at: i64,
    pub(crate) found: Option<bool>,
    /// The lock that the lease has now.
    pub(crate) tag: Option<u64>,
    pub(crate) valid_until: i64,
    /// Until when that lock was valid when it was granted.
    pub(crate) granted_until: i64,
    /// The slot of a semaphore.
    pub(crate) slot: u16,
    /// The fencing token; 0: none.
    pub(crate) fence: i64,
    pub(crate) has_ended: bool,
    pub(crate) is_shared: bool,
    /// A message about servers that could not take part.
    pub(crate) absent: String,
}

impl World {
    /// A call begins.
    pub(crate) fn note_call(&mut self, asked: &mut Asked) {
        let now = self.now;
        let whose = (asked.client, asked.manager);
        let list = self.clients[asked.client].list.iter();
        let greeted = list.filter(|server| self.is_greeted(whose, **server));
        asked.greeted = greeted.fold(0, |servers, server| servers | 1 << server);
        let is_foreign = self.schedule.clients[asked.client].is_foreign(asked.manager);
        let Some(hold) = asked.tag.and_then(|it| self.records.hold(it)) else { return };
        if !asked.is_held {
            // The lease says so.
            hold.told_lost.get_or_insert(now);
        }
        match asked.call {
            // A call with other servers must be refused.
            _ if is_foreign => {}
            Call::Unlock => {
                hold.releases += 1;
                hold.ended.get_or_insert(now);
            }
            Call::Forget => {
                hold.is_forgotten |= hold.ended.is_none();
                hold.ended.get_or_insert(now);
            }
            Call::Extend { .. } | Call::Continue { .. } => {
                hold.extensions += 1;
                hold.was_cancelled |= asked.may_be_cancelled;
            }
            Call::Downgrade => {
                hold.was_cancelled |= asked.may_be_cancelled;
                hold.begin_to_share(now);
            }
            _ => {}
        }
        if !matches!(asked.call, Call::IsLocked | Call::Adopt | Call::Forget)
            && !is_foreign
            && let Some(token) = asked.tag.and_then(|it| self.records.find(it))
        {
            token.kept_by = asked.manager;
            token.note_use(asked.manager);
        }
        let Some(hold) = asked.tag.and_then(|it| self.records.hold(it)) else { return };
        (asked.extensions, asked.releases) = (hold.extensions, hold.releases);
    }

    /// A caller is told the result of a call.
    pub(crate) fn note_result(&mut self, asked: &Asked, told: &Told) {
        let words = match &told.said {
            Ok(()) => format!("OK, absent: {}", told.absent),
            Err(error) => format!("{:?}: {error}, absent: {}", error.status(), told.absent),
        };
        let flags =
            [told.found.is_some_and(|it| it), told.has_ended, told.is_shared].map(u64::from);
        let numbers = [told.valid_until, told.granted_until, told.fence].map(i64::cast_unsigned);
        let of = [asked.client as u64, told.tag.unwrap_or(0), told.slot.into()];
        self.digest.answers.add(told.at, &[&of[..], &flags, &numbers].concat(), words.as_bytes());
    }

    /// A call has ended.
    pub(crate) fn judge(&mut self, asked: &Asked, told: &Told) {
        self.judge_time(asked);
        self.judge_words(told);
        if self.judge_handover(asked, told) {
            return;
        }
        self.note_shared(asked, told);
        self.note_confirmed(asked, told);
        let status = told.said.as_ref().err().map(Error::status);
        if let Some(status) = status {
            self.judge_failure(asked, told, status);
        } else {
            self.judge_success(asked, told);
        }
        self.judge_sent(asked);
    }

    fn judge_success(&mut self, asked: &Asked, told: &Told) {
        let is_same = asked.tag.is_some() && asked.tag == told.tag;
        if self.is_of_others(asked) {
            let words = "a lease was taken that is of other servers";
            return self.records.violate(Promise::OtherServers, words);
        }
        // If clocks go wrong, or servers that lost a lock are given it for less time, the validity ends
        // when the servers may no longer have it.
        let wrong = [Sin::LeapingClocks, Sin::FastClocks, Sin::StoppedClocks, Sin::LostKeys];
        // So it does if a client asks whether the lock is there, and not all servers answer.
        let is_exact = !self.schedule.sins.iter().any(|it| wrong.contains(it))
            && !matches!(asked.call, Call::Confirm { .. });
        if is_same && is_exact && told.valid_until < asked.valid_until {
            return self.records.violate(Promise::DeadlineGrows, "a lock was made shorter");
        }
        match asked.call {
            Call::Lock { .. } | Call::TryLock { .. } => self.judge_taken(asked, told),
            Call::Continue { .. } => match told.tag.and_then(|it| self.records.hold(it)) {
                // It may have been the lock of another lease.
                Some(hold) => {
                    let is_alone = is_same && hold.extensions == asked.extensions;
                    self.judge_extended(asked, told, is_alone);
                }
                None => self.judge_taken(asked, told),
            },
            Call::Extend { .. } => self.judge_extended(asked, told, true),
            Call::Confirm { least_ms } => self.judge_confirmed(asked, told, least_ms),
            Call::Downgrade => self.judge_downgraded(asked, told),
            Call::Unlock => self.judge_released(asked),
            Call::IsLocked => self.judge_found(asked, told.found),
            Call::KeepAlive if !asked.is_held => {
                self.records.violate(Promise::TrueLost, "a lock is kept that is not held");
            }
            Call::KeepAlive | Call::Detach | Call::Adopt | Call::Forget => {}
        }
    }

    /// One value on a quorum means that a resource is locked. If the value was there all the time, nobody
    /// can have been told that the resource is free.
    fn judge_found(&mut self, asked: &Asked, found: Option<bool>) {
        let (client, now) = (&self.clients[asked.client], self.now);
        let (list, quorum) = (&client.list, client.quorum());
        let is_there = |it: &Token| {
            share(it.resource, asked.resource)
                && it.slots.iter().all(|slot| *slot == 0)
                && it.was_there((list, quorum), asked.at, now)
        };
        let words = match found {
            Some(true) if !self.records.has_noticed(quorum, asked.at) => {
                "no quorum has what was said to be locked"
            }
            Some(false) if self.records.tokens.iter().any(is_there) => {
                "a quorum has one value, and it was said to be free"
            }
            _ => return,
        };
        self.records.violate(Promise::TrueIsLocked, words);
    }

    fn judge_taken(&mut self, asked: &Asked, told: &Told) {
        let Some(tag) = told.tag else {
            return self.records.violate(Promise::TrueLock, "a lock without a token");
        };
        let quorum = self.clients[asked.client].quorum();
        let granted = match self.schedule.permits {
            0 => self.records.granted(tag),
            _ => self.records.granted_slot(tag, told.slot),
        };
        if granted < quorum {
            let promise =
                if asked.resource == ALL { Promise::AllOrNothing } else { Promise::TrueLock };
            self.records.violate(promise, "a lock that no quorum granted");
        }
        if self.records.hold(tag).is_some() {
            self.records.violate(Promise::TokensDiffer, "a lock with the token of another");
        }
        // The client may have been stopped between its last look at the clock and the end of the call.
        let client = &self.clients[asked.client];
        let is_over = told.valid_until <= client.read(self.now);
        if is_over && client.callers == 1 && client.stopped == asked.stopped {
            self.records.violate(Promise::GrantInTime, "a lock was granted that was over");
        }
        let ttl_ms = asked.call.ttl_ms().unwrap_or(0);
        let window_end = self.window_end(asked, ttl_ms, told.granted_until);
        self.records.note_had(tag, self.now, window_end);
        self.judge_fence(asked, told);
        self.note_held(asked, told, tag, asked.resource);
        self.judge_deadline(asked, told);
    }

    /// From now on the caller holds a lock of this resource with this tag.
    pub(crate) fn note_held(&mut self, asked: &Asked, told: &Told, tag: u64, resource: usize) {
        self.records.holds.push(HeldLock {
            tag,
            client: asked.client,
            resource,
            slot: told.slot,
            fence: told.fence,
            from: self.now,
            until: told.valid_until,
            ended: None,
            told_lost: None,
            is_forgotten: false,
            is_kept: false,
            was_cancelled: false,
            releases: 0,
            extensions: 0,
            shared_from: if told.is_shared { i64::MIN } else { i64::MAX },
        });
    }

    /// A fencing token is greater than that of any lock that somebody was told of before this call began,
    /// and no two are the same, whatever happened to those locks.
    fn judge_fence(&mut self, asked: &Asked, told: &Told) {
        // A shared lock has no fencing token.
        let (fence, is_due) = (told.fence, self.schedule.is_fenced && !told.is_shared);
        let sins = &self.schedule.sins;
        // A server that is kept down until all locks have ended still loses its counters.
        let loses = |it: &Fault| matches!(it.what, What::Kill { keeps, .. } if keeps != Keeps::All);
        let is_lossy = !self.schedule.is_guarded
            && (sins.contains(&Sin::LostKeys) || self.schedule.faults.iter().any(loses));
        if is_due != (fence > 0) {
            let words =
                "a lock has no fencing token that is to have one, or one that is to have none";
            return self.records.violate(Promise::TokensGrow, words);
        }
        if !is_due || is_lossy || sins.contains(&Sin::SplitLists) {
            return;
        }
        let others = self.records.holds.iter().filter(|it| it.resource == asked.resource);
        let is_over = |it: &HeldLock| it.fence == fence || it.from <= asked.at && it.fence > fence;
        if let Some(other) = others.into_iter().find(|it| is_over(it)) {
            let words = format!("the fencing token {fence} comes after {}", other.fence);
            self.records.violate(Promise::TokensGrow, words);
        }
    }

    /// A lock that has ended does not come back.
    fn judge_extended(&mut self, asked: &Asked, told: &Told, is_alone: bool) {
        let Some(tag) = told.tag else {
            return self.records.violate(Promise::TrueExtend, "a lock without a token");
        };
        let (now, quorum) = (self.now, self.clients[asked.client].quorum());
        let Some(hold) = self.records.hold(tag) else {
            return self.records.violate(Promise::TrueExtend, "nobody had what was extended");
        };
        let is_kept = hold.is_kept;
        let is_alone = is_alone && !is_kept && hold.extensions == asked.extensions;
        if hold.releases > asked.releases {
            // It was released meanwhile, through another lease.
            return;
        }
        let (was_released, old_until) = (hold.releases > 0, hold.until);
        hold.until = hold.until.max(told.valid_until);
        if hold.ended.is_some() && told.valid_until > self.clients[asked.client].read(now) {
            // Its lease was dropped, and a later call of the manager took it up again.
            let again = HeldLock {
                from: now,
                ended: None,
                told_lost: None,
                is_forgotten: false,
                ..hold.clone()
            };
            self.records.holds.push(again);
        }
        if was_released {
            self.records.violate(Promise::TrueExtend, "what was released was extended");
        }
        // A client that is stopped between a look at its clock and a look at its sockets may take a late
        // answer for one in time. The keys were there, or the servers would not have extended them.
        let is_alone = is_alone && self.clients[asked.client].stopped == asked.stopped;
        let end = match is_alone {
            true => self.clients[asked.client].clock.when(asked.valid_until.max(old_until)),
            false => i64::MAX,
        };
        if is_alone && self.records.extended(tag, asked.at, end) < quorum {
            let words = "a lock was extended that no quorum extended before its end";
            self.records.violate(Promise::TrueExtend, words);
        }
        self.judge_vouched(asked.client, asked.at, tag);
        self.judge_deadline(asked, told);
    }

    /// A quorum must keep the lock until its deadline, unless an assumption is broken.
    fn judge_deadline(&mut self, asked: &Asked, told: &Told) {
        if let Some(tag) = told.tag {
            self.judge_kept_until(asked.client, tag, told.valid_until);
        }
    }

    /// The same for a client that uses this time on its clock.
    pub(crate) fn judge_kept_until(&mut self, client: usize, tag: u64, shown: i64) {
        let until = self.clients[client].clock.when(shown);
        let releases = self.records.hold(tag).map_or(0, |it| it.releases);
        let is_kept = until <= self.now || self.kept_until(client, tag) >= until;
        if self.schedule.sins.is_empty() && releases == 0 && !is_kept {
            let words = "no quorum keeps the lock until its deadline";
            self.records.violate(Promise::DeadlineKept, words);
        }
    }

    /// Whoever asks whether a lock is there may learn of fewer servers that have it than before, because some are silent.
    /// Then it is valid for as long as a quorum has said.
    fn note_confirmed(&mut self, asked: &Asked, told: &Told) {
        let is_confirmed = matches!(asked.call, Call::Confirm { .. }) && asked.tag == told.tag;
        let mut holds = self.records.holds.iter_mut();
        if let Some(tag) = asked.tag.filter(|_| is_confirmed)
            && let Some(hold) = holds.rfind(|it| it.tag == tag)
        {
            hold.until = hold.until.min(told.valid_until);
        }
    }

    fn judge_confirmed(&mut self, asked: &Asked, told: &Told, least_ms: i64) {
        let Some(tag) = asked.tag else {
            return self.records.violate(Promise::TrueConfirm, "nothing was confirmed");
        };
        if self.records.seen(tag, asked.at) < self.clients[asked.client].quorum() {
            let words = "a lock was confirmed that no quorum has";
            self.records.violate(Promise::TrueConfirm, words);
        }
        self.judge_vouched(asked.client, asked.at, tag);
        let releases = self.records.hold(tag).map_or(0, |it| it.releases);
        let until = told.at + least_ms * MS;
        // A caller that was told a while ago may check only when the lock is over.
        let is_kept = self.kept_until(asked.client, tag) >= until
            || self.had_until(asked.client, tag) >= until;
        // A client that is stopped after its last look receives the result later.
        let was_stopped = self.clients[asked.client].stopped > asked.stopped;
        if self.schedule.sins.is_empty() && releases == 0 && !is_kept && !was_stopped {
            let words = "a lock was confirmed for longer than it is there";
            self.records.violate(Promise::TrueConfirm, words);
        }
    }

    fn judge_released(&mut self, asked: &Asked) {
        let Some(tag) = asked.tag else {
            return self.records.violate(Promise::TrueUnlock, "nothing was released");
        };
        if self.records.released(tag) < self.clients[asked.client].quorum() {
            let words = "a lock was released without a quorum being told";
            self.records.violate(Promise::TrueUnlock, words);
        }
    }

    /// Nobody is told that a lock is lost that nobody else can have.
    pub(crate) fn judge_lost(&mut self, asked: &Asked) {
        let now = self.now;
        let clock = &self.clients[asked.client].clock;
        let Some(hold) =
            asked.tag.and_then(|it| self.records.holds.iter_mut().rfind(|hold| hold.tag == it))
        else {
            return;
        };
        let was_valid = now < clock.when(hold.until.max(asked.valid_until));
        let is_released = hold.releases > usize::from(matches!(asked.call, Call::Unlock));
        let was_lost =
            matches!(asked.call, Call::Unlock) && hold.ended.is_some_and(|it| it < asked.at);
        hold.ended.get_or_insert(now);
        if self.schedule.sins.is_empty() && was_valid && !is_released && !was_lost {
            self.records.violate(Promise::TrueLost, "a lock was told to be lost that was not");
        }
    }
}
