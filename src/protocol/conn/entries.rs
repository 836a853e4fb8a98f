//! Requests in the order in which they were queued, and their size in bytes.

use std::collections::{VecDeque, vec_deque};
use std::sync::Arc;

use crate::protocol::command::{Form, Request};
use crate::protocol::moment::Moment;
use crate::protocol::op_id::OpId;
use crate::protocol::token::Token;

pub(crate) struct Entry {
    pub(crate) request: Arc<Request>,
    /// The ticket that waits for the answer, if any.
    pub(crate) ticket: Option<OpId>,
    /// When the request was queued. Later, when it was sent.
    pub(crate) since: Moment,
    /// The form in which it was sent.
    pub(crate) form: Form,
    /// Whether it was sent by the hash of its script.
    pub(crate) goes_by_hash: bool,
    /// Whether the server was asked for its role before it, and whether a longer TTL was noted before it.
    pub(crate) asks_role: bool,
    pub(crate) raises: bool,
    /// `reads`: whether the server's note is read behind it. `read_behind`: if its own grant depends on the
    /// note, how many requests later the note is read that counts for it.
    pub(crate) reads: bool,
    pub(crate) read_behind: Option<u8>,
    /// Whether we subscribe to our channel before it, and whether the server is asked behind it for waiters.
    pub(crate) subscribes: bool,
    pub(crate) looks: bool,
    /// Whether the server's clock is read behind it.
    pub(crate) reads_clock: bool,
    /// It was not sent before this time.
    pub(crate) written_at: Moment,
    /// Whether it is sent once more, in another form, and how long after the first time, in ms.
    pub(crate) is_again: bool,
    again_after_ms: u32,
    /// Whether it was or is sent over another connection, too. Then it may have been executed there first.
    pub(crate) is_repeated: bool,
    /// A request that must reach the server is worth sending until this time, over another connection if
    /// necessary. After that time, what the request undoes has expired. No other request is ever sent twice.
    pub(crate) keep_until: Option<Moment>,
}

impl Entry {
    /// A request that was queued at `now`.
    pub(crate) fn new(
        request: Arc<Request>,
        ticket: Option<OpId>,
        now: Moment,
        keep_until: Option<Moment>,
    ) -> Self {
        Self {
            request,
            ticket,
            since: now,
            form: Form::default(),
            goes_by_hash: false,
            asks_role: false,
            raises: false,
            reads: false,
            read_behind: None,
            subscribes: false,
            looks: false,
            reads_clock: false,
            written_at: now,
            is_again: false,
            again_after_ms: 0,
            is_repeated: false,
            keep_until,
        }
    }

    pub(crate) fn token(&self) -> Token {
        *self.request.token()
    }

    /// The request counts as sent from now on.
    pub(crate) fn note_sent(&mut self, now: Moment) {
        if self.is_again {
            let after_ms = u32::try_from(now.ms_since(self.since)).unwrap_or(u32::MAX);
            self.again_after_ms = self.again_after_ms.saturating_add(after_ms);
        }
        self.since = now;
    }

    /// Since when the caller has waited for the answer. A server that needs another form of the request gets
    /// no extra time.
    pub(crate) fn first_sent_at(&self) -> Moment {
        self.since.plus_ms(-i64::from(self.again_after_ms))
    }

    /// Whether it still must reach the server.
    pub(crate) fn is_worth_sending(&self, now: Moment) -> bool {
        self.keep_until.is_some_and(|until| now < until)
    }

    /// The number of replies to it.
    pub(crate) fn replies(&self) -> usize {
        let one = |is_there| usize::from(is_there);
        let beside =
            one(self.asks_role) + one(self.raises) + one(self.subscribes) + one(self.looks);
        let readings = one(self.reads) + one(self.reads_clock);
        usize::from(self.form.replies) + beside + readings
    }

    /// The first reply when it has done what was asked, if that can be told by its bytes and nothing was asked before it.
    pub(crate) fn usual(&self) -> Option<&'static [u8]> {
        self.form.usual.filter(|_| !(self.asks_role || self.raises || self.subscribes))
    }

    /// A copy for another connection, which takes over the waiting ticket.
    pub(crate) fn hand_over(&mut self) -> Self {
        let ticket = self.ticket.take();
        Self { request: Arc::clone(&self.request), ticket, is_repeated: true, ..*self }
    }
}

/// Also counted in bytes, because the name of a resource may have 64 KiB.
#[derive(Default)]
pub(crate) struct Entries {
    list: VecDeque<Entry>,
    bytes: usize,
}

impl Entries {
    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The size of all requests in bytes, when they are sent.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn front(&self) -> Option<&Entry> {
        self.list.front()
    }

    pub(crate) fn get(&self, place: usize) -> Option<&Entry> {
        self.list.get(place)
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &Entry> {
        self.list.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut Entry> {
        self.list.iter_mut()
    }

    /// Searches from both ends at the same time. If the server answers, the wanted request is among the
    /// oldest. If it does not, the wanted request is among the latest, behind many that nobody waits for any
    /// more.
    pub(crate) fn find_mut(&mut self, is_it: impl Fn(&Entry) -> bool) -> Option<&mut Entry> {
        let (mut front, mut back) = (0, self.list.len());
        while front < back {
            back -= 1;
            let found = [front, back].into_iter().find(|&place| is_it(&self.list[place]));
            if let Some(place) = found {
                return self.list.get_mut(place);
            }
            front += 1;
        }
        None
    }

    pub(crate) fn push_back(&mut self, entry: Entry) {
        self.bytes += entry.request.size();
        self.list.push_back(entry);
    }

    pub(crate) fn push_front(&mut self, entry: Entry) {
        self.bytes += entry.request.size();
        self.list.push_front(entry);
    }

    pub(crate) fn pop_front(&mut self) -> Option<Entry> {
        let entry = self.list.pop_front()?;
        self.bytes -= entry.request.size();
        Some(entry)
    }

    pub(crate) fn retain_mut(&mut self, mut is_kept: impl FnMut(&mut Entry) -> bool) {
        let bytes = &mut self.bytes;
        self.list.retain_mut(|entry| {
            let is_kept = is_kept(entry);
            if !is_kept {
                *bytes -= entry.request.size();
            }
            is_kept
        });
    }

    /// Moves up to `count` requests from the front of another list to the end of this one.
    pub(crate) fn take_from(&mut self, other: &mut Self, count: usize) {
        (0..count).map_while(|_| other.pop_front()).for_each(|entry| self.push_back(entry));
    }
}

impl IntoIterator for Entries {
    type Item = Entry;
    type IntoIter = vec_deque::IntoIter<Entry>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::command::Verb;
    use crate::protocol::conn::queue::samples::{NOW, request};

    #[test]
    fn an_entry_is_found_at_any_position() {
        for length in 1..=5 {
            let mut entries = Entries::default();
            for place in 0..length {
                let since = NOW.plus_ms(place);
                entries.push_back(Entry::new(request(Verb::Acquire), None, since, None));
            }
            for place in 0..length {
                let since = NOW.plus_ms(place);
                let found = entries.find_mut(|entry| entry.since == since);
                assert!(found.is_some_and(|entry| entry.since == since), "{place} of {length}");
            }
            assert!(entries.find_mut(|_| false).is_none());
        }
    }
}
