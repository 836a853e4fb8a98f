//! What was done and what was held, in true time; and the first thing that was wrong with it.

use crate::clocks::{Clock, MS};
use crate::store::{Deed, tag};
use crate::world::World;

/// Servers beyond these are in no schedule.
pub(crate) const SERVERS_MAX: usize = 8;

#[derive(Default)]
pub(crate) struct Records {
    tokens: Vec<Token>,
    pub(crate) holds: Vec<Hold>,
    /// What was found wrong first.
    pub(crate) violation: Option<String>,
}

/// A token, and what the servers did with it.
pub(crate) struct Token {
    tag: u64,
    client: usize,
    ttl_ms: i64,
    /// By server: whether it was sent to it to be set, and was; and was to be deleted.
    asked: u64,
    granted: u64,
    pub(crate) released: u64,
    /// By server: when it last extended it, and when it last told of it.
    extended_at: [i64; SERVERS_MAX],
    seen_at: [i64; SERVERS_MAX],
    /// By server: when it last told of it, or for how long it has it.
    noticed_at: [i64; SERVERS_MAX],
}

/// A lock that a client has, as it was told.
#[derive(Clone, Debug)]
pub(crate) struct Hold {
    pub(crate) tag: u64,
    pub(crate) client: usize,
    pub(crate) resource: usize,
    pub(crate) from: i64,
    /// On the client's clock.
    pub(crate) until: i64,
    /// When it was known to have ended, if that was before.
    pub(crate) ended: Option<i64>,
    /// How often somebody has begun to release it, and to extend it.
    pub(crate) releases: usize,
    pub(crate) extensions: usize,
}

impl Hold {
    /// When it ends, or ended, in truth.
    pub(crate) fn end(&self, clock: &Clock) -> i64 {
        clock.when(self.until).min(self.ended.unwrap_or(i64::MAX))
    }
}

impl Records {
    /// Only what is wrong first is kept: the rest may come of it.
    pub(crate) fn violate(&mut self, what: impl Into<String>) {
        self.violation.get_or_insert_with(|| what.into());
    }

    /// A server did something for a client.
    pub(crate) fn note(&mut self, now: i64, client: usize, server: usize, deed: &Deed<'_>) {
        match *deed {
            Deed::Nothing | Deed::Inspect { tag: None, .. } | Deed::Notice { tag: None, .. } => {}
            Deed::Acquire { value, ttl_ms, done, .. } => {
                let was_asked = self.token(value, client).asked & (1 << server) != 0;
                // One that lost a lock may be given it again.
                let is_repair = self.hold(tag(value)).is_some();
                if was_asked && !is_repair {
                    self.violate("the same acquire was sent to a server twice");
                }
                let token = self.token(value, client);
                token.ttl_ms = ttl_ms.unwrap_or(i64::MAX);
                token.asked |= 1 << server;
                token.granted |= u64::from(done) << server;
            }
            Deed::Extend { value, done, .. } => {
                let token = self.token(value, client);
                if done {
                    token.extended_at[server] = now;
                }
            }
            Deed::Release { value, .. } => self.token(value, client).released |= 1 << server,
            Deed::Inspect { tag: Some(tag), .. } => {
                if let Some(token) = self.find(tag) {
                    (token.seen_at[server], token.noticed_at[server]) = (now, now);
                }
            }
            Deed::Notice { tag: Some(tag), .. } => {
                if let Some(token) = self.find(tag) {
                    token.noticed_at[server] = now;
                }
            }
            Deed::Trample { .. } => {
                self.violate("a key was changed with no regard to whose it is");
            }
            Deed::UnknownScript => {
                self.violate("a script was sent that the simulated servers do not know");
            }
        }
    }

    /// The token with this value, which this client uses.
    fn token(&mut self, value: &[u8], client: usize) -> &mut Token {
        let tag = tag(value);
        let place = self.tokens.iter().rposition(|it| it.tag == tag).unwrap_or_else(|| {
            self.tokens.push(Token {
                tag,
                client,
                ttl_ms: 0,
                asked: 0,
                granted: 0,
                released: 0,
                extended_at: [i64::MIN; SERVERS_MAX],
                seen_at: [i64::MIN; SERVERS_MAX],
                noticed_at: [i64::MIN; SERVERS_MAX],
            });
            self.tokens.len() - 1
        });
        if self.tokens[place].client != client {
            self.violate("two clients used the same token");
        }
        &mut self.tokens[place]
    }

    fn find(&mut self, tag: u64) -> Option<&mut Token> {
        self.tokens.iter_mut().rfind(|it| it.tag == tag)
    }

    /// How many servers have set it.
    pub(crate) fn granted(&mut self, tag: u64) -> usize {
        self.find(tag).map_or(0, |it| it.granted.count_ones() as usize)
    }

    /// How many servers were told to delete it.
    pub(crate) fn released(&mut self, tag: u64) -> usize {
        self.find(tag).map_or(0, |it| it.released.count_ones() as usize)
    }

    /// How many servers have extended it since then, and before its end.
    pub(crate) fn extended(&mut self, tag: u64, since: i64, end: i64) -> usize {
        let is_counted = |at: &&i64| (since..end).contains(*at);
        self.find(tag).map_or(0, |it| it.extended_at.iter().filter(is_counted).count())
    }

    /// How many servers have told of it since then.
    pub(crate) fn seen(&mut self, tag: u64, since: i64) -> usize {
        self.find(tag).map_or(0, |it| it.seen_at.iter().filter(|at| **at >= since).count())
    }

    /// Whether so many servers have told since then that they have one value. Who asks for the value
    /// and then for its time may see a key come in between, and not know whose it is.
    pub(crate) fn has_noticed(&self, count: usize, since: i64) -> bool {
        let seen = |it: &Token| it.noticed_at.iter().filter(|at| **at >= since).count();
        self.tokens.iter().any(|it| seen(it) >= count)
    }

    /// Whether it is a token of this client that no lock has any more: of an attempt that came to
    /// nothing, or of a lock that it has released. A release is worth sending for one TTL: if so much
    /// was held up for longer, in all, it may have come too late.
    pub(crate) fn is_spent(&self, tag: u64, client: usize, held_up: i64) -> bool {
        let token = self.tokens.iter().rfind(|it| it.tag == tag);
        let is_it = |it: &Token| it.client == client && it.ttl_ms > held_up / MS;
        let hold = self.holds.iter().rfind(|it| it.tag == tag);
        token.is_some_and(is_it) && hold.is_none_or(|it| it.releases > 0)
    }

    /// All of these.
    pub(crate) fn spent(&self, client: usize, held_up: i64) -> impl Iterator<Item = u64> {
        self.tokens.iter().map(|it| it.tag).filter(move |it| self.is_spent(*it, client, held_up))
    }

    /// Whether a server that has set it was never told to delete it.
    pub(crate) fn is_forgotten(&self, tag: u64) -> bool {
        self.tokens.iter().any(|it| it.tag == tag && it.granted & !it.released != 0)
    }

    pub(crate) fn hold(&mut self, tag: u64) -> Option<&mut Hold> {
        self.holds.iter_mut().rfind(|it| it.tag == tag)
    }

    /// Whoever had it does not any more.
    pub(crate) fn end(&mut self, tag: u64, now: i64) {
        if let Some(hold) = self.hold(tag) {
            hold.ended.get_or_insert(now);
        }
    }

    /// The client is no more, so it has nothing.
    pub(crate) fn end_all(&mut self, client: usize, now: i64) {
        for hold in self.holds.iter_mut().filter(|it| it.client == client) {
            hold.ended.get_or_insert(now);
        }
    }
}

impl World {
    /// Two holds of one resource at one time, if there are any; with the time of it.
    pub(crate) fn overlap(&self) -> Option<(&Hold, &Hold, i64)> {
        let spans =
            self.records.holds.iter().map(|it| (it, it.end(&self.clients[it.client].clock)));
        let spans: Vec<_> = spans.filter(|(it, end)| it.from < *end).collect();
        let pairs = spans.iter().enumerate();
        let mut pairs = pairs.flat_map(|(i, one)| spans[i + 1..].iter().map(move |two| (one, two)));
        pairs.find_map(|((one, end), (two, other_end))| {
            let (from, until) = (one.from.max(two.from), *end.min(other_end));
            (one.resource == two.resource && from < until).then_some((*one, *two, from))
        })
    }

    /// Until when a quorum of the client's servers keeps this value if nothing more happens.
    pub(crate) fn kept_until(&self, client: usize, tag: u64) -> i64 {
        let client = &self.clients[client];
        let mut ends: Vec<i64> =
            client.list.iter().map(|&it| self.servers[it].kept_until(tag)).collect();
        ends.sort_unstable_by(|a, b| b.cmp(a));
        ends[client.quorum() - 1]
    }
}
