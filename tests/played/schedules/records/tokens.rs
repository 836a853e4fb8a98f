//! Tokens, and what servers did with them.

use super::{SERVERS_MAX, Sender, resource_of};
use crate::schedules::possession::Span;

/// A token, and what the servers did with it.
pub(crate) struct Token {
    pub(crate) tag: u64,
    /// Its number in the order in which tokens were drawn.
    pub(crate) number: u64,
    pub(crate) client: usize,
    /// The manager of the client that asked for it, and the manager that last did something about it.
    pub(super) taken_by: usize,
    pub(crate) kept_by: usize,
    /// All managers that have sent something about it, one bit each.
    pub(super) used_by: u64,
    pub(crate) resource: usize,
    pub(super) ttl_ms: i64,
    /// By server: whether a request to set it was sent, whether the server set it, and whether it must
    /// delete it.
    pub(super) asked: u64,
    pub(super) granted: u64,
    pub(crate) released: u64,
    /// By server: whether it has reported that it does not have the token, since the last request to set
    /// it.
    pub(super) missed: u64,
    /// By server: whether it ever reported that.
    pub(crate) lost: u64,
    /// The servers that have extended it, and when.
    pub(super) extended: Vec<(usize, i64)>,
    /// By server: when the token was first sent to it, when the answer to that arrived, and when it last
    /// reported the token.
    pub(super) asked_at: [i64; SERVERS_MAX],
    /// `offered_at`: when its client had the last of these requests to send.
    pub(crate) heard_at: [i64; SERVERS_MAX],
    pub(crate) offered_at: [i64; SERVERS_MAX],
    pub(super) seen_at: [i64; SERVERS_MAX],
    /// By server: when it last reported the token, or its TTL.
    pub(super) noticed_at: [i64; SERVERS_MAX],
    /// The connection on which it was set after its release, if no later release has followed yet.
    pub(crate) overtaken: Option<usize>,
    /// By server: the slot of a semaphore that the token last had there.
    pub(crate) slots: [u16; SERVERS_MAX],
    /// It was released through another manager while it was on its way to be set; or its release was
    /// cancelled, and makes progress only while somebody calls.
    pub(crate) is_stray: bool,
    /// It was given away. Earlier messages of its giver may arrive after those of its adopter.
    pub(crate) is_handed: bool,
    /// Which servers have it or had it, and when.
    pub(crate) spans: Vec<Span>,
    /// When its client was told that it holds the lock, and until when grants were on their way.
    pub(crate) had_at: i64,
    pub(crate) window_end: i64,
}

impl Token {
    /// Whether more than one manager used the token. Then messages of one manager may pass those of
    /// another, and a release waits until the manager that owes it is used.
    pub(crate) fn is_shared(&self) -> bool {
        self.is_handed || self.used_by_several() || self.taken_by != self.kept_by
    }

    /// Whether several managers of its client have sent something about it.
    pub(crate) fn used_by_several(&self) -> bool {
        self.used_by.count_ones() > 1
    }

    pub(crate) fn ttl_ms(&self) -> i64 {
        self.ttl_ms
    }

    /// When the token was first sent to this server.
    pub(crate) fn asked_on(&self, server: usize) -> i64 {
        self.asked_at[server]
    }

    /// The manager of the client that asked for it.
    pub(crate) fn taken_by(&self) -> usize {
        self.taken_by
    }

    pub(crate) fn note_use(&mut self, manager: usize) {
        self.used_by |= 1 << manager;
    }

    pub(super) fn new(tag: u64, sender: Sender, key: &[u8]) -> Self {
        let never = [i64::MIN; SERVERS_MAX];
        Self {
            tag,
            client: sender.client,
            taken_by: sender.manager,
            kept_by: sender.manager,
            used_by: 0,
            resource: resource_of(key),
            ttl_ms: 0,
            asked: 0,
            granted: 0,
            released: 0,
            missed: 0,
            lost: 0,
            asked_at: never,
            number: 0,
            heard_at: never,
            offered_at: never,
            extended: Vec::new(),
            seen_at: never,
            noticed_at: never,
            overtaken: None,
            slots: [0; SERVERS_MAX],
            is_stray: false,
            is_handed: false,
            spans: Vec::new(),
            had_at: i64::MAX,
            window_end: i64::MIN,
        }
    }

    /// A server reports that it does not have the token. A server that was not sent the token yet has not
    /// lost it.
    pub(super) fn miss(&mut self, server: usize) {
        self.missed |= 1 << server;
        self.lost |= self.asked & (1 << server);
    }

    /// Whether the token was sent to some server since then.
    pub(crate) fn was_asked_since(&self, since: i64) -> bool {
        self.asked_at.iter().any(|it| *it >= since)
    }
}
