//! Data that a server has sent and nobody has read yet.

use std::io;
use std::mem;

use redis::Value;

use super::reply::{ProtocolError, Scan};
use crate::protocol::command::waking::is_subscription;

/// The most memory that an empty buffer keeps for later.
pub(crate) const KEPT_MAX: usize = 8 * 1024;

/// The space for one read. Replies to our requests are short. More space is made for a longer one.
const ROOM: usize = 4096;

/// What a read has received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Received {
    Nothing,
    /// Apparently all available data.
    All,
    /// As much as there was space for.
    Part,
}

#[derive(Default)]
pub(crate) struct Inbox {
    bytes: Vec<u8>,
    /// Where the unread part begins and ends.
    start: usize,
    end: usize,
    /// What is known of the reply that begins at `start`.
    scan: Scan,
    /// Replies that were read and belong to no request yet. The first `taken` of them are already taken.
    /// `replies` holds those of the request that is being settled.
    found: Vec<Value>,
    taken: usize,
    replies: Vec<Value>,
    /// The server's push messages, each with the number of found replies before it. `early` is the number of
    /// these messages that came before the replies that were taken last.
    pushes: Vec<(usize, Value)>,
    early: usize,
}

/// The first byte of a push message.
const PUSH: u8 = b'>';

impl Inbox {
    /// A connection begins. `is_resp3` says whether the server is told to speak RESP3.
    pub(crate) fn begin(&mut self, is_resp3: bool) {
        self.scan = Scan::new(is_resp3);
    }

    pub(crate) fn clear(&mut self) {
        self.scan = Scan::default();
        self.found.clear();
        self.taken = 0;
        self.replies.clear();
        self.pushes.clear();
        self.early = 0;
        self.empty();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Whether nothing is here that was not taken: no byte, no reply, no push message.
    pub(crate) fn is_drained(&self) -> bool {
        self.is_empty() && self.found.is_empty() && self.pushes.is_empty()
    }

    /// The first unread byte.
    pub(crate) fn first(&self) -> Option<u8> {
        self.bytes[self.start..self.end].first().copied()
    }

    /// Makes space, and has `read` put data there, once. It returns how much: `None` if there is none for now, and 0 at
    /// the end of the stream, which is an error.
    pub(crate) fn receive(
        &mut self,
        read: impl FnOnce(&mut [u8]) -> io::Result<Option<usize>>,
    ) -> io::Result<Received> {
        if self.start > 0 {
            self.bytes.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.bytes.len() < self.end + ROOM {
            let length = (self.end + ROOM).next_multiple_of(ROOM);
            // Not twice as much, as a vector would reserve, because the needed size is bounded.
            self.bytes.reserve_exact(length - self.bytes.len());
            self.bytes.resize(length, 0);
        }
        let room = self.bytes.len() - self.end;
        match read(&mut self.bytes[self.end..])? {
            None => Ok(Received::Nothing),
            Some(0) => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "closed by the server")),
            Some(received) => {
                self.end += received;
                Ok(if received < room { Received::All } else { Received::Part })
            }
        }
    }

    /// The unread bytes, if no reply or push message was found before them that nobody has taken.
    pub(crate) fn unread(&self) -> Option<&[u8]> {
        let is_new = self.found.is_empty() && self.pushes.is_empty();
        is_new.then(|| &self.bytes[self.start..self.end])
    }

    /// Takes so many unread bytes, which are whole replies.
    pub(crate) fn skip(&mut self, length: usize) {
        self.scan.restart();
        self.start += length;
        if self.is_empty() {
            self.empty();
        }
    }

    /// The next reply, if it is complete.
    pub(crate) fn next(&mut self) -> Result<Option<Value>, ProtocolError> {
        let Some((value, length)) = self.scan.take(&self.bytes[self.start..self.end])? else {
            return Ok(None);
        };
        self.skip(length);
        Ok(Some(value))
    }

    fn empty(&mut self) {
        (self.start, self.end) = (0, 0);
        if self.bytes.len() > KEPT_MAX {
            self.bytes = Vec::new();
        }
    }

    /// Whether the next `wanted` replies are there. A subscription may be confirmed by a push message, which
    /// then counts as the first reply.
    pub(crate) fn has_replies(
        &mut self,
        wanted: usize,
        subscribes: bool,
    ) -> Result<bool, ProtocolError> {
        while self.found_count() < wanted {
            let Some(value) = self.next()? else { return Ok(false) };
            let count = self.found_count();
            let is_reply = !matches!(value, Value::Push { .. })
                || subscribes && count == 0 && is_subscription(&value);
            match is_reply {
                true => self.found.push(value),
                false => self.pushes.push((count, value)),
            }
        }
        Ok(true)
    }

    /// The number of found replies that nobody has taken.
    fn found_count(&self) -> usize {
        self.found.len() - self.taken
    }

    /// Whether there is data that is neither a push message nor the beginning of one.
    #[inline]
    pub(crate) fn has_surplus(&mut self) -> Result<bool, ProtocolError> {
        while self.first() == Some(PUSH) {
            match self.next()? {
                Some(push) => self.pushes.push((self.found_count(), push)),
                None => return Ok(false),
            }
        }
        Ok(!self.is_empty())
    }

    /// Takes the next `count` replies that [`Self::has_replies`] has found. The caller must take them out of
    /// the returned vector.
    pub(crate) fn take_replies(&mut self, count: usize) -> &mut Vec<Value> {
        self.replies.clear();
        let until = self.taken + count;
        if self.taken == 0 && until == self.found.len() {
            mem::swap(&mut self.found, &mut self.replies);
        } else {
            let taken = self.found[self.taken..until].iter_mut();
            self.replies.extend(taken.map(|value| mem::replace(value, Value::Nil)));
            self.taken = until;
        }
        if self.taken == self.found.len() {
            self.found.clear();
            self.taken = 0;
        }
        if self.pushes.is_empty() {
            return &mut self.replies;
        }
        self.early = self.pushes.partition_point(|push| push.0 < count);
        for push in &mut self.pushes[self.early..] {
            push.0 -= count;
        }
        &mut self.replies
    }

    /// One of the found replies, if there are so many.
    pub(crate) fn found(&mut self, place: usize) -> Option<&mut Value> {
        self.found.get_mut(self.taken + place)
    }

    /// Whether there are push messages that nobody has taken out.
    pub(crate) fn has_pushes(&self) -> bool {
        !self.pushes.is_empty()
    }

    /// Takes out the push messages that came before the last of the replies that were taken last.
    pub(crate) fn early_pushes(&mut self) -> impl Iterator<Item = Value> {
        let early = mem::take(&mut self.early);
        self.pushes.drain(..early).map(|push| push.1)
    }

    /// Takes out the push messages. Those after a reply that belongs to a request with `replies` replies are
    /// left, because the caller must get that reply first.
    pub(crate) fn pushes_amid(&mut self, replies: usize) -> impl Iterator<Item = Value> {
        self.early = 0;
        let count = self.pushes.partition_point(|push| push.0 < replies.max(1));
        self.pushes.drain(..count).map(|push| push.1)
    }
}

#[cfg(test)]
impl Inbox {
    /// Receives these bytes.
    pub(crate) fn put(&mut self, bytes: &[u8]) {
        self.bytes.truncate(self.end);
        self.bytes.extend_from_slice(bytes);
        self.end = self.bytes.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_connection_starts_with_an_empty_inbox() {
        let mut inbox = Inbox::default();
        inbox.bytes = b"+OK\r\n:1".to_vec();
        inbox.end = inbox.bytes.len();
        assert_eq!(inbox.has_replies(2, false), Ok(false));
        assert_eq!((inbox.found.len(), inbox.first()), (1, Some(b':')));
        inbox.clear();
        assert!(inbox.found.is_empty() && inbox.is_empty());
    }

    fn inbox_with(bytes: &[u8]) -> Inbox {
        let mut inbox = Inbox::default();
        inbox.begin(true);
        (inbox.bytes, inbox.end) = (bytes.to_vec(), bytes.len());
        inbox
    }

    const PUSHED: &[u8] = b">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nr\r\n";
    const SUBSCRIBED: &[u8] = b">3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n";

    #[test]
    fn a_push_is_never_a_reply() {
        let mut inbox = inbox_with(&[PUSHED, b"+OK\r\n", PUSHED, b":1\r\n", PUSHED].concat());
        assert_eq!(inbox.has_replies(2, false), Ok(true));
        assert_eq!(*inbox.take_replies(2), [Value::Okay, Value::Int(1)]);
        assert_eq!(inbox.has_surplus(), Ok(false));
        assert_eq!((inbox.early_pushes().count(), inbox.pushes_amid(0).count()), (2, 1));
        assert!(inbox.is_empty());
    }

    #[test]
    fn a_push_behind_a_reply_comes_after_it() {
        let said = [b":1\r\n", PUSHED, b":2\r\n", PUSHED, b":3\r\n", PUSHED].concat();
        let mut inbox = inbox_with(&said);
        assert_eq!(inbox.has_replies(4, false), Ok(false));
        // The first request has two replies, and is not settled before another request has all of its own.
        assert_eq!((inbox.pushes_amid(2).count(), inbox.pushes_amid(2).count()), (1, 0));
        assert_eq!(*inbox.take_replies(2), [Value::Int(1), Value::Int(2)]);
        assert_eq!((inbox.early_pushes().count(), inbox.pushes_amid(1).count()), (0, 1));
        assert_eq!(*inbox.take_replies(1), [Value::Int(3)]);
        assert_eq!((inbox.early_pushes().count(), inbox.pushes_amid(0).count()), (0, 1));
    }

    #[test]
    fn a_surplus_reply_is_noticed_behind_a_push() {
        let mut inbox = inbox_with(&[PUSHED, b"+OK\r\n"].concat());
        assert_eq!(inbox.has_surplus(), Ok(true));
        let mut inbox = inbox_with(&PUSHED[..9]);
        assert_eq!((inbox.has_surplus(), inbox.is_empty()), (Ok(false), false));
    }

    #[test]
    fn a_subscription_is_confirmed_by_push_or_refused() {
        let mut inbox = inbox_with(&[PUSHED, SUBSCRIBED, b":1\r\n", SUBSCRIBED].concat());
        assert_eq!(inbox.has_replies(2, true), Ok(true));
        assert!(is_subscription(&inbox.take_replies(2)[0]));
        let mut inbox = inbox_with(b"-NOPERM no\r\n:1\r\n");
        assert_eq!(inbox.has_replies(2, true), Ok(true));
        // Nobody has asked for it.
        let mut inbox = inbox_with(&[SUBSCRIBED, b":1\r\n"].concat());
        assert_eq!(inbox.has_replies(2, false), Ok(false));
        assert_eq!(*inbox.take_replies(1), [Value::Int(1)]);
    }
}
