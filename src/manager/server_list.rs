//! The servers of a manager, in the order in which they are added.

use std::iter;

use once_cell::race::OnceBox;

use crate::protocol::error::Error;
use crate::protocol::quorum::ballot::SERVERS_MAX;
use crate::protocol::servers::endpoint::Endpoint;

/// The servers in the order in which they were added. The list only grows, at its end. No mutex guards it: a
/// child might find that mutex locked by a thread of its parent that made the first lock call at that moment.
#[derive(Debug, Default)]
pub(crate) struct ServerList(OnceBox<Entry>);

#[derive(Debug)]
struct Entry {
    endpoint: Endpoint,
    next: ServerList,
}

impl ServerList {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Endpoint> {
        let entries = iter::successors(self.0.get(), |entry| entry.next.0.get());
        entries.map(|entry| &entry.endpoint)
    }

    pub(crate) fn add(&self, endpoint: Endpoint) -> Result<(), Error> {
        let mut entry = Box::new(Entry { endpoint, next: Self::default() });
        let (mut place, mut count) = (self, 0);
        loop {
            if let Some(other) = place.0.get() {
                if other.endpoint.is_same_server(&entry.endpoint) {
                    let words = format!("server was already added, as number {}", count + 1);
                    return Err(Error::invalid(words));
                }
                (place, count) = (&other.next, count + 1);
            } else if count == SERVERS_MAX {
                let words = format!("too many servers: the maximum is {SERVERS_MAX}");
                return Err(Error::invalid(words));
            } else if let Err(back) = place.0.set(entry) {
                // Another thread was faster. Its server must be compared, too.
                entry = back;
            } else {
                return Ok(());
            }
        }
    }
}
