//! What a server has sent and nobody has read yet.

use std::io;

use redis::Value;

use super::reply::{Nonsense, Scan};
use super::wire::{KEPT_MAX, Wire};

/// Room for what is received at once. Replies of ours are short; more room is made when one is not.
const ROOM: usize = 4096;

/// What was there to receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Received {
    Nothing,
    /// All that there was, as it seems.
    All,
    /// As much as there was room for.
    Part,
}

#[derive(Default)]
pub(super) struct Inbox {
    bytes: Vec<u8>,
    /// Where the unread part begins and ends.
    start: usize,
    end: usize,
    /// What is known of the reply that begins there.
    scan: Scan,
    /// Replies that belong to the request whose last reply is not there yet.
    replies: Vec<Value>,
}

impl Inbox {
    pub(super) fn clear(&mut self) {
        self.scan = Scan::default();
        self.replies.clear();
        self.empty();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// The first byte that nobody has read.
    pub(super) fn first(&self) -> Option<u8> {
        self.bytes[self.start..self.end].first().copied()
    }

    /// Receives what the connection has, once. The end of the stream is an error.
    pub(super) fn receive(&mut self, wire: &mut Wire) -> io::Result<Received> {
        if self.start > 0 {
            self.bytes.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.bytes.len() < self.end + ROOM {
            let length = (self.end + ROOM).next_multiple_of(ROOM);
            // Not twice as much, as a vector likes to have: what is needed is bounded.
            self.bytes.reserve_exact(length - self.bytes.len());
            self.bytes.resize(length, 0);
        }
        let room = self.bytes.len() - self.end;
        match wire.receive(&mut self.bytes[self.end..])? {
            None => Ok(Received::Nothing),
            Some(0) => {
                Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it closed the connection"))
            }
            Some(received) => {
                self.end += received;
                Ok(if received < room { Received::All } else { Received::Part })
            }
        }
    }

    /// The next reply, if it is there as a whole.
    pub(super) fn next(&mut self) -> Result<Option<Value>, Nonsense> {
        let Some((value, length)) = self.scan.take(&self.bytes[self.start..self.end])? else {
            return Ok(None);
        };
        self.start += length;
        if self.is_empty() {
            self.empty();
        }
        Ok(Some(value))
    }

    fn empty(&mut self) {
        (self.start, self.end) = (0, 0);
        if self.bytes.len() > KEPT_MAX {
            self.bytes = Vec::new();
        }
    }

    /// Whether the next replies, so many of them, are there.
    pub(super) fn has_replies(&mut self, wanted: usize) -> Result<bool, Nonsense> {
        while self.replies.len() < wanted {
            match self.next()? {
                Some(value) => self.replies.push(value),
                None => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Those that [`Self::has_replies`] has found, to be taken out.
    pub(super) fn replies(&mut self) -> &mut Vec<Value> {
        &mut self.replies
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_connection_is_left_for_the_next() {
        let mut inbox = Inbox::default();
        inbox.bytes = b"+OK\r\n:1".to_vec();
        inbox.end = inbox.bytes.len();
        assert_eq!(inbox.has_replies(2), Ok(false));
        assert_eq!((inbox.replies().len(), inbox.first()), (1, Some(b':')));
        inbox.clear();
        assert!(inbox.replies().is_empty() && inbox.is_empty());
    }
}
