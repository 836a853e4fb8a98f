//! How the waiting requests are written.

use std::mem;

use super::Queue;
use super::readings::Group;
use crate::command::Capabilities;
use crate::moment::Moment;

/// The approximate size of a request on the wire.
const USUAL_BYTES: usize = 600;

impl Queue {
    /// Moves the waiting requests into the outbox. From then on they count as sent; see
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
            // A caller that waits for the answer must get one, even if its thread did not run for a while
            // after it asked.
            if entry.ticket.is_none() && entry.keep_until.is_some_and(|until| now >= until) {
                continue;
            }
            if entry.request.needs_pushes() {
                self.read_note(&mut group, outbox);
            }
            entry.leaves_out_end = leaves_out_ends && entry.request.may_leave_out_end();
            self.write(&mut entry, outbox, capabilities, now);
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

    /// The socket was given the contents of the outbox. `outbox_bytes` is the size of the buffer for data
    /// that the socket did not take. The requests count as sent from now on. This thread may not have run for
    /// a while since it last read the clock, and that time must not count against the server. Returns the
    /// number of these requests.
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
