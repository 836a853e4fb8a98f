//! Tokens, and what servers did with them.

use super::{SERVERS_MAX, Sender, resource_of};
use crate::schedules::possession::Span;

/// A token, and what the servers did with it.
pub(crate) struct Token {
    pub(crate) tag: u64,
    /// The number in the order in which tokens were drawn.
    pub(crate) number: u64,
    pub(crate) client: usize,
    /// Which of the client's managers asked for it, and which was the last to do something about it.
    pub(super) taken_by: usize,
    pub(crate) kept_by: usize,
    /// All that have sent something about it, one bit each.
    pub(super) used_by: u64,
    pub(crate) resource: usize,
    pub(super) ttl_ms: i64,
    /// By server: whether it was sent to it to be set, and was; and was to be deleted.
    pub(super) asked: u64,
    pub(super) granted: u64,
    pub(crate) released: u64,
    /// By server: whether it said that it has it not, since it was last sent to it to be set.
    pub(super) missed: u64,
    /// By server: whether it ever said so.
    pub(crate) lost: u64,
    /// Which servers have extended it, and when.
    pub(super) extended: Vec<(usize, i64)>,
    /// By server: when it was sent to it first, when the answer to that arrived, and when it last told of it.
    pub(super) asked_at: [i64; SERVERS_MAX],
    pub(crate) heard_at: [i64; SERVERS_MAX],
    pub(super) seen_at: [i64; SERVERS_MAX],
    /// By server: when it last told of it, or for how long it has it.
    pub(super) noticed_at: [i64; SERVERS_MAX],
    /// On which connection it was set after it had been released, with no release behind it yet.
    pub(crate) overtaken: Option<usize>,
    /// By server: which slot of a semaphore it last had there.
    pub(crate) slots: [u16; SERVERS_MAX],
    /// It was released through another manager while it was on its way to be set; or its release was cancelled,
    /// and goes on only as long as somebody calls.
    pub(crate) is_stray: bool,
    /// It was given away, and what its giver has sent before may come after what its taker sends.
    pub(crate) is_handed: bool,
    /// Which servers have it, and had it.
    pub(crate) spans: Vec<Span>,
    /// When its client was told that it has the lock, and until when grants were on their way.
    pub(crate) had_at: i64,
    pub(crate) window_end: i64,
}

impl Token {
    /// Whether more than one manager had to do with it: then what one sends may pass what another has sent,
    /// and a release waits until the manager is used that owes it.
    pub(crate) fn is_shared(&self) -> bool {
        self.is_handed || self.used_by_several() || self.taken_by != self.kept_by
    }

    /// Whether several managers of its client have sent something about it.
    pub(crate) fn used_by_several(&self) -> bool {
        self.used_by.count_ones() > 1
    }

    /// Which of the client's managers asked for it.
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

    /// A server says that it has it not. One that was not sent it yet has not lost it.
    pub(super) fn miss(&mut self, server: usize) {
        self.missed |= 1 << server;
        self.lost |= self.asked & (1 << server);
    }

    /// Whether some server was sent it after that.
    pub(crate) fn was_asked_since(&self, since: i64) -> bool {
        self.asked_at.iter().any(|it| *it >= since)
    }
}
