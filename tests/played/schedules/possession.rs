//! Records which server had which token, and when, in true time. This shows whether a majority ever lost a
//! lock.

use crate::protocol::quorum::validity::Drift;
use crate::schedules::promises::Promise;
use crate::schedules::records::{HeldLock, Records, Token};
use crate::schedules::schedule::{At, share};
use crate::schedules::verdicts::{Asked, reply_ms};
use crate::world::clocks::MS;
use crate::world::store::{Deed, Place, tag};
use crate::world::{START, World};

/// A server has a token in this time span.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    server: usize,
    /// The slot of a semaphore.
    slot: u16,
    from: i64,
    /// The end of the span, if nothing more happens to the token.
    until: i64,
    /// The same end, regardless of changes of the server's clock.
    due: i64,
    /// Whether the attempt that took the lock set the token, and the token was not set again after the
    /// server had lost it.
    is_grant: bool,
    /// The time from which the server seems to have the token, computed from the remaining TTL. If the
    /// clock was set forward, this time looks earlier.
    seems_from: i64,
}

impl Span {
    fn has(&self, from: i64, at: i64) -> bool {
        from <= at && at < self.until
    }
}

impl Token {
    /// A server was asked to set the token, for the first time or because it had lost the token; or it gave
    /// the token more time.
    fn begin(&mut self, server: usize, now: i64, until: i64) {
        let is_again = self.spans.iter().any(|it| it.server == server);
        let is_grant = !is_again && self.lost & (1 << server) == 0;
        self.push(server, now, until, is_grant);
    }

    /// The server has given the token another slot of a semaphore. Its earlier slot was not part of the
    /// lock.
    fn move_there(&mut self, server: usize, now: i64, until: i64) {
        self.give_until(server, now);
        self.push(server, now, until, true);
    }

    fn push(&mut self, server: usize, from: i64, until: i64, is_grant: bool) {
        let (slot, due, seems_from) = (self.slots[server], until, from);
        self.spans.push(Span { server, slot, from, until, due, is_grant, seems_from });
    }

    /// The token was given more time, or was released.
    fn give_until(&mut self, server: usize, until: i64) {
        self.set_end(server, until);
        if let Some(span) = self.spans.iter_mut().rfind(|it| it.server == server) {
            span.due = until;
        }
    }

    fn set_end(&mut self, server: usize, until: i64) {
        if let Some(span) = self.spans.iter_mut().rfind(|it| it.server == server) {
            span.until = until;
        }
    }

    /// The server's clock was set forward or back by this amount, so the server has the token for less time
    /// or for more.
    fn note_clock(&mut self, server: usize, forward: i64) {
        if let Some(span) = self.spans.iter_mut().rfind(|it| it.server == server) {
            span.seems_from -= forward.max(0);
        }
    }

    /// The first time at which fewer than a quorum had the token, between `had_at` and `end`. If
    /// `is_forgiving`, a grant that was still on its way counts as if it had been there from the start.
    pub(crate) fn lost_at(&self, quorum: usize, end: i64, is_forgiving: bool) -> Option<i64> {
        let from = |span: &Span| {
            let counts_before = is_forgiving
                && span.is_grant
                && span.seems_from <= self.window_end.max(self.had_at);
            if counts_before { span.from.min(self.had_at) } else { span.from }
        };
        let has_too_few =
            |at: &i64| self.spans.iter().filter(|it| it.has(from(it), *at)).count() < quorum;
        let ends =
            self.spans.iter().map(|it| it.until).filter(|it| (self.had_at..end).contains(it));
        let begin = Some(self.had_at).filter(|it| *it < end);
        begin.into_iter().chain(ends).filter(has_too_few).min()
    }

    /// Whether a quorum of these servers had the token throughout this time span.
    pub(crate) fn was_there(
        &self,
        (list, quorum): (&[usize], usize),
        from: i64,
        until: i64,
    ) -> bool {
        let all_the_time =
            |it: &&Span| it.from <= from && until < it.until && list.contains(&it.server);
        self.spans.iter().filter(all_the_time).count() >= quorum
    }

    /// Whether any server had the token at this time.
    pub(crate) fn was_anywhere(&self, at: i64) -> bool {
        self.spans.iter().any(|it| it.from < at && at < it.until)
    }

    /// Whether any server had the token after this time.
    pub(crate) fn was_anywhere_since(&self, since: i64) -> bool {
        self.spans.iter().any(|it| since < it.until)
    }

    /// When this server granted the token in this slot, if that was not later than `by`.
    pub(crate) fn granted_on(&self, server: usize, slot: u16, by: i64) -> Option<i64> {
        let is_there = |it: &Span| (it.server, it.slot) == (server, slot);
        let is_it = |it: &&Span| is_there(it) && it.is_grant && it.from <= by;
        self.spans.iter().rfind(is_it).map(|it| it.from)
    }

    /// If this server does not have the token in this slot at this time, but would have it if nothing had happened to
    /// its data and its clock: since when it had the token there.
    pub(crate) fn missing_since(&self, server: usize, slot: u16, at: i64) -> Option<i64> {
        let is_its = move |it: &&Span| (it.server, it.slot) == (server, slot) && it.from < at;
        let own = || self.spans.iter().filter(is_its);
        let is_there = own().any(|it| it.has(it.from, at));
        let owed = own().filter(|it| it.until <= at && at < it.due).map(|it| it.from).min();
        owed.filter(|_| !is_there)
    }

    /// The end of the token on this server, in the past or in the future.
    fn end_on(&self, server: usize) -> i64 {
        let own = self.spans.iter().filter(|it| it.server == server);
        own.map(|it| it.until).max().unwrap_or(i64::MIN)
    }

    /// One bit for each server that has had the token since the lock was taken. A server that was given the
    /// token again may not vouch for it at once.
    pub(crate) fn servers_that_had_it(&self, at: i64) -> u64 {
        let there = self.spans.iter().filter(|it| it.is_grant && it.has(it.from, at));
        there.fold(0, |servers, it| servers | 1 << it.server)
    }

    /// The ends of the token on the servers that had it at some time in this span.
    pub(crate) fn ends_within(&self, from: i64, until: i64) -> impl Iterator<Item = i64> {
        let spans = self.spans.iter().filter(move |it| it.from <= until && from < it.until);
        spans.map(|it| it.until)
    }
}

impl Records {
    /// The caller was told that it holds the lock. From now on the token must be on a quorum.
    pub(crate) fn note_had(&mut self, tag: u64, now: i64, window_end: i64) {
        if let Some(token) = self.find(tag).filter(|it| it.had_at == i64::MAX) {
            (token.had_at, token.window_end) = (now, window_end);
        }
    }
}

impl World {
    /// Records changes of possession that a server's action causes.
    pub(crate) fn note_possession(&mut self, server: usize, deed: &Deed<'_>) {
        let (now, it) = (self.now, &self.servers[server]);
        let server = self.voter_of(server);
        let kept_until = |value| (tag(value), it.kept_until(tag(value)));
        let (tag, until, begins) = match *deed {
            Deed::Acquire { value, done: true, .. }
            | Deed::Extend { value, repaired: true, .. } => {
                let (tag, until) = kept_until(value);
                (tag, until, true)
            }
            Deed::Extend { value, done: true, .. } => {
                let (tag, until) = kept_until(value);
                (tag, until, false)
            }
            Deed::Release { value, done: true, .. } | Deed::GiveUp { value, done: true, .. } => {
                (tag(value), now, false)
            }
            Deed::Move { value, done: true, .. } => {
                let (tag, until) = kept_until(value);
                if let Some(token) = self.records.find(tag) {
                    token.move_there(server, now, until);
                }
                return;
            }
            _ => return,
        };
        if let Some(token) = self.records.find(tag) {
            match begins {
                true => token.begin(server, now, until),
                false => token.give_until(server, until),
            }
        }
    }

    /// The time until which a quorum of a client's servers has, or had, a token.
    pub(crate) fn had_until(&mut self, client: usize, tag: u64) -> i64 {
        let (list, quorum) = (&self.clients[client].list, self.clients[client].quorum());
        let Some(token) = self.records.find(tag) else { return i64::MIN };
        let mut ends: Vec<i64> = list.iter().map(|&server| token.end_on(server)).collect();
        ends.sort_unstable_by(|a, b| b.cmp(a));
        ends[quorum - 1]
    }

    /// A server's clock was set forward, or back, by this amount.
    pub(crate) fn note_clock(&mut self, server: usize, forward: i64) {
        self.records.tokens.iter_mut().for_each(|token| token.note_clock(server, forward));
    }

    /// Other keys took the place of a server's keys. A token may be gone, back, or in another slot of its semaphore.
    pub(crate) fn note_replaced(&mut self, server: usize, had: &[Place], has: &[Place]) {
        let (now, voter) = (self.now, self.voter_of(server));
        for place in had.iter().filter(|it| !has.contains(it)) {
            let token = self.records.find(place.tag);
            if let Some(token) = token.filter(|it| it.slots[voter] == place.slot) {
                token.set_end(voter, now);
            }
        }
        let mut back: Vec<_> = has.iter().filter(|it| !had.contains(it)).copied().collect();
        let records = &mut self.records;
        back.retain(|it| records.find(it.tag).is_some_and(|it| it.end_on(voter) <= now));
        self.note_back(server, &back);
    }

    /// A server has tokens again that it had lost.
    pub(crate) fn note_back(&mut self, server: usize, places: &[Place]) {
        for place in places {
            let (now, until) = (self.now, self.servers[server].kept_until(place.tag));
            let voter = self.voter_of(server);
            if let Some(token) = self.records.find(place.tag) {
                token.slots[voter] = place.slot;
                token.begin(voter, now, until);
            }
        }
    }

    /// Something has happened to a server's keys, or to its clock. Some of these tokens are gone now, and
    /// some end at another time.
    pub(crate) fn note_ends(&mut self, server: usize, tags: &[u64]) {
        for &tag in tags {
            let until = self.servers[server].kept_until(tag).max(self.now);
            if let Some(token) = self.records.find(tag) {
                token.set_end(server, until);
            }
        }
    }

    /// A lock was taken: until when grants of it count as if they had been there from the start. That is as
    /// long as the library waits for grants, and at least as long as it waits by default.
    pub(crate) fn window_end(&self, asked: &Asked, ttl_ms: i64, valid_until: i64) -> i64 {
        let plan = &self.schedule.clients[asked.client];
        let drift = Drift::new(plan.drift).unwrap_or(Drift::DEFAULT);
        let began = valid_until - drift.validity_ms(ttl_ms) * MS;
        let window_ms = plan.reply_ms.max(reply_ms(0, ttl_ms));
        let clock = &self.clients[asked.client].clock;
        clock.when(began + window_ms * MS)
    }

    /// A call that began at `since` vouches for a lock. A majority must not have lost the lock before.
    pub(crate) fn judge_vouched(&mut self, client: usize, since: i64, tag: u64) {
        let quorum = self.clients[client].quorum();
        // An adopter does not know which servers had the lock all the time.
        let Some(token) = self.records.find(tag).filter(|it| !it.is_handed) else { return };
        let Some(strictly) = token.lost_at(quorum, since, false) else { return };
        let (had_at, window_end) = (token.had_at, token.window_end);
        let resource = token.resource;
        if token.lost_at(quorum, since, true).is_some() {
            let at = At(strictly - START);
            let words = format!("a lock was vouched for that a majority had lost at {at}");
            return self.records.violate(Promise::LostStaysLost, words);
        }
        self.records.excused += 1;
        let is_rival = |it: &HeldLock| {
            share(it.resource, resource) && it.tag != tag && (had_at..window_end).contains(&it.from)
        };
        let has_rival = self.records.holds.iter().any(is_rival);
        self.records.excused_with_rival += u64::from(has_rival);
    }
}
