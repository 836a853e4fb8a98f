//! How a connection that is up is set aside, so that another one can be opened.

use std::mem;

use super::{Link, State};
use crate::moment::Moment;
use crate::transport::stream::Stream;

impl Link {
    /// Gives away the connection that is up. Another one is opened at once.
    pub(in crate::transport) fn set_aside(&mut self, now: Moment) -> Option<Stream> {
        match mem::replace(&mut self.state, State::Down) {
            State::Up { wire } => {
                self.place_shown = 1 - self.place_shown;
                self.retry_at = now;
                self.master_aside.clone_from(&self.master);
                let (inbox, outbox) = (mem::take(&mut self.inbox), mem::take(&mut self.outbox));
                Some(Stream { wire, inbox, outbox, heard_at: self.heard_at })
            }
            state => {
                self.state = state;
                None
            }
        }
    }

    /// Takes back the connection that was set aside, in place of the one that was being opened.
    pub(in crate::transport) fn take_back(&mut self, stream: Stream) {
        self.close();
        self.place_shown = 1 - self.place_shown;
        (self.failures, self.down_since) = (0, None);
        let Stream { wire, inbox, outbox, heard_at } = stream;
        (self.inbox, self.outbox, self.heard_at) = (inbox, outbox, heard_at);
        self.state = State::Up { wire };
        // This connection may lead to a server that is not the master any more.
        self.master = self.master_aside.take();
        self.sentinel_client.iter_mut().for_each(|sentinel_client| sentinel_client.doubt());
    }

    /// The connection that was set aside is lost before there is another one.
    pub(in crate::transport) fn note_loss(&mut self, how: &str) {
        if self.failures == 0 {
            self.failures = 1;
            self.why_down = how.into();
        }
    }
}
