//! Requests in the order in which they were queued, and their size in bytes.

use std::collections::{VecDeque, vec_deque};
use std::sync::Arc;

use crate::protocol::command::{FirstReply, Form, Request};
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
    /// The generation of its ticket, also when nobody waits any more, or of one that was queued before it.
    generation: u64,
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
            generation: ticket.map_or(0, OpId::generation),
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

    /// Whether it had to reach the server, and need not any more.
    pub(crate) fn is_over(&self, now: Moment) -> bool {
        self.keep_until.is_some_and(|until| now >= until)
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
    pub(crate) fn usual(&self) -> Option<FirstReply> {
        self.form.usual.filter(|_| !(self.asks_role || self.raises || self.subscribes))
    }

    /// The same request once more, which takes over the waiting ticket.
    pub(crate) fn renew(&mut self) -> Self {
        Self { request: Arc::clone(&self.request), ticket: self.ticket.take(), ..*self }
    }

    /// A copy for another connection, which takes over the waiting ticket.
    pub(crate) fn hand_over(&mut self) -> Self {
        Self { is_repeated: true, ..self.renew() }
    }
}

/// First the requests that were sent and await their replies, then those that wait to be sent. Also counted in bytes,
/// because the name of a resource may have 64 KiB.
#[derive(Default)]
pub(crate) struct Entries {
    list: VecDeque<Entry>,
    /// How many of them were sent.
    sent: usize,
    bytes: usize,
    /// The latest generation of a ticket among those that were here.
    generation: u64,
}

impl Entries {
    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(crate) fn sent_count(&self) -> usize {
        self.sent
    }

    pub(crate) fn unsent_count(&self) -> usize {
        self.list.len() - self.sent
    }

    /// The size of all requests in bytes, when they are sent.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &Entry> {
        self.list.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut Entry> {
        self.list.iter_mut()
    }

    pub(crate) fn sent(&self) -> impl DoubleEndedIterator<Item = &Entry> {
        self.list.range(..self.sent)
    }

    pub(crate) fn unsent(&self) -> impl DoubleEndedIterator<Item = &Entry> {
        self.list.range(self.sent..)
    }

    /// The request at this place among those that were sent. The oldest is at place 0.
    pub(crate) fn sent_at(&self, place: usize) -> Option<&Entry> {
        self.list.get(place).filter(|_| place < self.sent)
    }

    pub(crate) fn oldest_sent(&self) -> Option<&Entry> {
        self.sent_at(0)
    }

    /// The requests that were sent last, the latest of them first.
    pub(crate) fn latest_sent(&mut self, count: usize) -> impl Iterator<Item = &mut Entry> {
        self.list.range_mut(self.sent.saturating_sub(count)..self.sent).rev()
    }

    /// The request whose answer this ticket waits for, and whether it was sent. Nearly always the requests were queued
    /// in the order of their generations: only one that is sent once more has an earlier ticket than those before it.
    pub(crate) fn find(&mut self, ticket: OpId) -> Option<(&mut Entry, bool)> {
        let is_it = |entry: &Entry| entry.ticket == Some(ticket);
        let place = self.list.partition_point(|it| it.generation < ticket.generation());
        let place = match self.list.get(place).is_some_and(is_it) {
            true => place,
            false => self.list.iter().position(is_it)?,
        };
        let was_sent = place < self.sent;
        self.list.get_mut(place).map(|entry| (entry, was_sent))
    }

    /// Adds a request to send behind all others.
    #[inline]
    pub(crate) fn push(&mut self, mut entry: Entry) {
        self.generation = self.generation.max(entry.generation);
        entry.generation = self.generation;
        self.bytes += entry.request.size();
        self.list.push_back(entry);
    }

    /// The next request to send.
    pub(crate) fn next_to_send(&mut self) -> Option<&mut Entry> {
        self.list.get_mut(self.sent)
    }

    /// The next request to send was sent.
    pub(crate) fn note_sent(&mut self) {
        self.sent += 1;
    }

    /// Takes out the oldest request that was sent.
    pub(crate) fn take_sent(&mut self) -> Option<Entry> {
        self.sent = self.sent.checked_sub(1)?;
        let entry = self.list.pop_front()?;
        self.bytes -= entry.request.size();
        Some(entry)
    }

    /// Puts the oldest request back that was sent.
    pub(crate) fn put_back_sent(&mut self, entry: Entry) {
        self.bytes += entry.request.size();
        self.list.push_front(entry);
        self.sent += 1;
    }

    /// Drops requests that were not sent.
    pub(crate) fn drop_unsent(&mut self, is_dropped: impl Fn(&Entry) -> bool) {
        if !self.unsent().any(&is_dropped) {
            return;
        }
        let (bytes, mut place) = (&mut self.bytes, 0);
        self.list.retain(|entry| {
            place += 1;
            let is_kept = place <= self.sent || !is_dropped(entry);
            if !is_kept {
                *bytes -= entry.request.size();
            }
            is_kept
        });
    }

    /// Moves up to `count` requests, none of which was sent, from the front of another list to the end of this one.
    pub(crate) fn take_from(&mut self, other: &mut Self, count: usize) {
        for _ in 0..count {
            let Some(entry) = other.list.pop_front() else { return };
            other.bytes -= entry.request.size();
            self.push(entry);
        }
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

    fn entry(ticket: Option<OpId>) -> Entry {
        Entry::new(request(Verb::Acquire), ticket, NOW, None)
    }

    #[test]
    fn the_entry_of_a_ticket_is_found_at_any_place() {
        for length in 1..=5 {
            let tickets: Vec<_> = (0..length).map(|it| OpId::new(7, it)).collect();
            let mut entries = Entries::default();
            tickets.iter().for_each(|&it| entries.push(entry(Some(it))));
            entries.note_sent();
            for (place, &ticket) in tickets.iter().enumerate() {
                let (found, was_sent) = entries.find(ticket).unwrap();
                assert_eq!((found.ticket, was_sent), (Some(ticket), place == 0), "{length}");
            }
            let others = [OpId::new(7, length), OpId::new(8, 0)];
            assert!(others.into_iter().all(|it| entries.find(it).is_none()));
        }
    }

    #[test]
    fn an_entry_is_found_behind_later_ones_and_among_those_without_a_ticket() {
        let mut entries = Entries::default();
        let ticket = |generation| OpId::new(1, generation);
        for generation in [Some(5), None, Some(6), None, Some(3), Some(7), Some(4)] {
            entries.push(entry(generation.map(ticket)));
        }
        for generation in 3..=7 {
            let found = entries.find(ticket(generation)).map(|it| it.0.ticket);
            assert_eq!(found, Some(Some(ticket(generation))), "{generation}");
        }
        // Nobody waits for it any more.
        entries.find(ticket(6)).unwrap().0.ticket = None;
        assert!(entries.find(ticket(6)).is_none() && entries.find(ticket(7)).is_some());
    }

    #[test]
    fn only_unsent_entries_are_dropped() {
        let mut entries = Entries::default();
        (0..4).for_each(|place| {
            let since = NOW.plus_ms(place);
            entries.push(Entry::new(request(Verb::Acquire), None, since, None));
        });
        (0..2).for_each(|_| entries.note_sent());
        let bytes = entries.bytes() / 4;
        entries.drop_unsent(|entry| [NOW, NOW.plus_ms(2)].contains(&entry.since));
        let left: Vec<_> = entries.iter().map(|it| it.since).collect();
        assert_eq!(left, [NOW, NOW.plus_ms(1), NOW.plus_ms(3)]);
        assert_eq!((entries.sent_count(), entries.unsent_count()), (2, 1));
        assert_eq!(entries.bytes(), 3 * bytes);
        entries.drop_unsent(|_| true);
        assert_eq!((entries.sent_count(), entries.unsent_count()), (2, 0));
        let taken = [entries.take_sent(), entries.take_sent(), entries.take_sent()];
        assert_eq!(taken.map(|it| it.is_some()), [true, true, false]);
        assert!(entries.is_empty() && entries.bytes() == 0);
    }
}
