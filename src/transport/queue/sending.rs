//! How what waits to be sent is written.

use std::mem;

use super::Queue;
use super::readings::Group;
use crate::command::Capabilities;
use crate::moment::Moment;

/// What a request takes on the wire, more or less.
const USUAL_BYTES: usize = 600;

impl Queue {
    /// Moves what waits to be sent into the outbox. From then on it counts as sent; see
    /// [`Self::note_written`].
    pub(in crate::transport) fn send(
        &mut self,
        outbox: &mut Vec<u8>,
        capabilities: Capabilities,
        now: Moment,
    ) {
        outbox.reserve(self.unsent.len() * USUAL_BYTES);
        self.scripts.begin_write();
        let mut group = Group::default();
        let leaves_out_ends = self.leaves_out_ends();
        while let Some(mut entry) = self.unsent.pop_front() {
            // Whoever waits for the answer, and was kept from running since it asked, is owed one.
            if entry.ticket.is_none() && entry.keep_until.is_some_and(|until| now >= until) {
                continue;
            }
            if entry.request.needs_pushes() {
                self.read_note(&mut group, outbox);
            }
            entry.leaves_out_end = leaves_out_ends && entry.request.may_leave_out_end();
            self.write(&mut entry, outbox, capabilities);
            entry.note_sent(now);
            entry.written_at = now;
            group.add(&entry);
            self.awaiting.push_back(entry);
            self.unwritten += 1;
            if group.is_full() {
                self.read_note(&mut group, outbox);
            }
        }
        self.read_note(&mut group, outbox);
    }

    /// The socket was given what is in the outbox, which has so much room for what it did not take. The
    /// requests count as sent from now on: this thread may have been kept from running since it last read
    /// the clock, and that is not the server's time. Returns how many there were.
    pub(in crate::transport) fn note_written(
        &mut self,
        outbox_bytes: usize,
        clock: impl FnOnce() -> Moment,
    ) -> u64 {
        self.outbox_bytes = outbox_bytes;
        let written = mem::take(&mut self.unwritten);
        if written == 0 {
            return 0;
        }
        let now = clock();
        let mut longest_ms = 0;
        for entry in self.awaiting.iter_mut().rev().take(written) {
            entry.note_sent(now);
            longest_ms = longest_ms.max(entry.request.ttl_ms());
        }
        self.bear_silence(longest_ms, now);
        written as u64
    }
}
