//! Records what was done and what was held, in true time, and the first violation.

mod holds;
mod tokens;

pub(crate) use self::holds::HeldLock;
pub(crate) use self::tokens::Token;
use crate::schedules::handed::Offer;
use crate::schedules::kept::Keeping;
use crate::schedules::promises::Promise;
use crate::schedules::schedule::{ALL, RESOURCES, share};
use crate::world::clocks::MS;
use crate::world::readers::shared_tag;
use crate::world::several;
use crate::world::store::{Deed, tag};

/// No schedule has more servers.
pub(crate) const SERVERS_MAX: usize = 12;

#[derive(Default)]
pub(crate) struct Records {
    /// Tickets of locks that were given away.
    pub(crate) offers: Vec<Offer>,
    pub(crate) tokens: Vec<Token>,
    /// How many tokens were drawn; and the tokens that no server has seen yet, with their numbers.
    pub(crate) drawn: u64,
    unseen: Vec<(u64, u64)>,
    pub(crate) holds: Vec<HeldLock>,
    pub(crate) keepings: Vec<Keeping>,
    /// The servers that have lost their keys during a call.
    pub(crate) forgetful: u64,
    /// Whether more servers than a minority have lacked the numbers of their fencing tokens at one time. Then tokens may
    /// run backwards: `docs/fencing.md`, "What servers remember".
    pub(crate) too_many_lack_numbers: bool,
    /// What is not promised in this schedule.
    pub(crate) waived: &'static [Promise],
    /// The first violation.
    pub(crate) violation: Option<String>,
    /// How often a call vouched for a lock that a quorum had only if a grant counts that was on its way;
    /// and in how many of these cases another client had the lock in between.
    pub(crate) excused: u64,
    pub(crate) excused_with_rival: u64,
}

/// The sender of a request.
#[derive(Clone, Copy)]
pub(crate) struct Sender {
    pub(crate) client: usize,
    pub(crate) manager: usize,
    pub(crate) connection: usize,
}

/// Several resources have one key that represents all of them. A slot of a semaphore belongs to the
/// semaphore's resource.
pub(crate) fn resource_of(key: &[u8]) -> usize {
    if key == several::ALL {
        return ALL;
    }
    let name = key.split(|it| *it == b'#').next().unwrap_or(key);
    RESOURCES.iter().position(|it| it.as_bytes() == name).unwrap_or(usize::MAX)
}

/// The slot of its resource that a key represents.
pub(crate) fn slot_of(key: &[u8]) -> u16 {
    let number = key.split(|it| *it == b'#').nth(1).unwrap_or(b"0");
    std::str::from_utf8(number).ok().and_then(|it| it.parse().ok()).unwrap_or(u16::MAX)
}

impl Records {
    /// Keeps only the first violation, because it may cause the others.
    pub(crate) fn violate(&mut self, promise: Promise, what: impl AsRef<str>) {
        if self.waived.contains(&promise) {
            return;
        }
        self.violation.get_or_insert_with(|| format!("{promise}: {}", what.as_ref()));
    }

    /// A server did something for a client.
    pub(crate) fn note(&mut self, now: i64, sender: Sender, server: usize, deed: &Deed<'_>) {
        match *deed {
            // Only scenarios shorten locks.
            Deed::Nothing | Deed::Shorten { .. } => {}
            // The key may have ended between the two commands of one question.
            Deed::Inspect { key, tag: None } | Deed::Notice { key, tag: None } => {
                let resource = resource_of(key);
                let is_it = |it: &&mut Token| {
                    (it.client == sender.client || it.is_handed) && it.resource == resource
                };
                self.tokens.iter_mut().filter(is_it).for_each(|it| it.miss(server));
            }
            Deed::Acquire { key, value, ttl_ms, done } => {
                self.note_acquire(now, sender, server, (key, value), done);
                self.token(value, sender, key).ttl_ms = ttl_ms.unwrap_or(i64::MAX);
            }
            Deed::Move { key, value, done, .. } => {
                let token = self.token(value, sender, key);
                token.asked |= 1 << server;
                if done {
                    token.granted |= 1 << server;
                    token.slots[server] = slot_of(key);
                }
            }
            Deed::GiveUp { kept, value, .. } => {
                let token = self.token(value, sender, kept);
                // The server no longer has the token in its old slot, and may be given it again.
                if token.granted & (1 << server) == 0 || token.slots[server] != slot_of(kept) {
                    token.miss(server);
                }
            }
            // A client that asks whether a lock is being made a shared one asks for another client's token,
            // and changes nothing.
            Deed::Extend { key, value, done: false, absent: true, .. }
                if self.is_of_another(value, sender) =>
            {
                self.note_readers(key);
            }
            Deed::Extend { key, value, done, absent, .. } => {
                let token = self.token(value, sender, key);
                if done {
                    token.extended.push((server, now));
                }
                // The server has another client's key instead, or none.
                if absent || !done {
                    token.miss(server);
                }
            }
            Deed::Release { key, value, .. } => {
                let token = self.token(value, sender, key);
                token.released |= 1 << server;
                token.overtaken.take_if(|it| *it == sender.connection);
            }
            Deed::Inspect { key, tag: Some(tag) } => {
                if tag == shared_tag() {
                    self.note_readers(key);
                }
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
                let words = "a key was changed with no regard to whose it is";
                self.violate(Promise::OthersKeys, words);
            }
            Deed::Unknown => {
                let words = "something was sent that the simulated servers do not know";
                self.violate(Promise::KnownRequests, words);
            }
        }
    }

    /// A server was sent a release of the lock. A client releases a lost lock only after it has said that
    /// the lock is lost. For a kept lock, the program may not have asked for the event yet, but the lease
    /// has already said so.
    pub(crate) fn note_given_up(&mut self, now: i64, tag: u64) {
        for hold in self.holds.iter_mut().filter(|it| it.tag == tag) {
            hold.told_lost.get_or_insert(now);
        }
    }

    /// The server has answered with an error. If this was a repair, the server has not set the token.
    pub(crate) fn note_denied(&mut self, server: usize, deed: &Deed<'_>) {
        let Deed::Acquire { value, .. } = *deed else { return };
        if let Some(token) = self.find(tag(value)).filter(|it| it.lost & (1 << server) != 0) {
            token.missed |= 1 << server;
        }
    }

    fn note_acquire(
        &mut self,
        now: i64,
        sender: Sender,
        server: usize,
        (key, value): (&[u8], &[u8]),
        done: bool,
    ) {
        let bit = 1 << server;
        let token = self.token(value, sender, key);
        let (was_asked, was_missed) = (token.asked & bit != 0, token.missed & bit != 0);
        // A repeated request is for the same slot. A server that has the token in another slot may be given
        // the slot that the other servers have.
        let had_another = token.granted & bit != 0 && token.slots[server] != slot_of(key);
        token.asked |= bit;
        // Another manager may hear only now that the server lacked the token. A request that comes for the
        // first time may have been on its way since before the server was found to lack the token.
        if !token.is_shared() && was_asked {
            token.missed &= !bit;
        }
        token.granted |= u64::from(done) << server;
        if done {
            token.slots[server] = slot_of(key);
        }
        if !was_asked {
            token.asked_at[server] = now;
        }
        let is_late = done && token.released & bit != 0;
        if is_late {
            // Through another manager, a release may arrive before the request that it releases.
            match token.is_shared() {
                true => token.is_stray = true,
                false => token.overtaken = Some(sender.connection),
            }
        }
        if was_asked && !was_missed && !is_late && !had_another {
            self.violate(Promise::AcquireOnce, "the same acquire was sent to a server twice");
        }
    }

    /// A client has drawn a token.
    pub(crate) fn note_drawn(&mut self, tag: u64) {
        self.drawn += 1;
        self.unseen.push((tag, self.drawn));
    }

    /// The token with this value, which this client uses.
    fn token(&mut self, value: &[u8], sender: Sender, key: &[u8]) -> &mut Token {
        let tag = tag(value);
        let place = self.tokens.iter().rposition(|it| it.tag == tag).unwrap_or_else(|| {
            let unseen = self.unseen.iter().rposition(|it| it.0 == tag);
            let number = unseen.map_or(0, |place| self.unseen.swap_remove(place).1);
            self.tokens.push(Token { number, ..Token::new(tag, sender, key) });
            self.tokens.len() - 1
        });
        if self.tokens[place].client != sender.client && !self.tokens[place].is_handed {
            self.violate(Promise::TokensDiffer, "two clients used the same token");
        }
        self.tokens[place].note_use(sender.manager);
        &mut self.tokens[place]
    }

    /// All readers have one value, which belongs to nobody.
    fn note_readers(&mut self, key: &[u8]) {
        let tag = shared_tag();
        if self.find(tag).is_none() {
            let nobody = usize::MAX;
            let sender = Sender { client: nobody, manager: 0, connection: nobody };
            self.tokens.push(Token::new(tag, sender, key));
        }
    }

    /// Whether another client drew the token, and has not handed it over.
    fn is_of_another(&mut self, value: &[u8], sender: Sender) -> bool {
        self.find(tag(value)).is_some_and(|it| it.client != sender.client && !it.is_handed)
    }

    pub(crate) fn look(&self, tag: u64) -> Option<&Token> {
        self.tokens.iter().rfind(|it| it.tag == tag)
    }

    pub(crate) fn find(&mut self, tag: u64) -> Option<&mut Token> {
        self.tokens.iter_mut().rfind(|it| it.tag == tag)
    }

    /// How many servers have set the token.
    pub(crate) fn granted(&mut self, tag: u64) -> usize {
        self.find(tag).map_or(0, |it| it.granted.count_ones() as usize)
    }

    /// How many servers were told to delete the token.
    pub(crate) fn released(&mut self, tag: u64) -> usize {
        self.find(tag).map_or(0, |it| it.released.count_ones() as usize)
    }

    /// How many servers have extended the token since then, and before its end.
    pub(crate) fn extended(&mut self, tag: u64, since: i64, end: i64) -> usize {
        let Some(token) = self.find(tag) else { return 0 };
        let counted = token.extended.iter().filter(|it| (since..end).contains(&it.1));
        counted.fold(0_u64, |servers, it| servers | 1 << it.0).count_ones() as usize
    }

    /// How many servers have reported the token since then.
    pub(crate) fn seen(&mut self, tag: u64, since: i64) -> usize {
        self.find(tag).map_or(0, |it| it.seen_at.iter().filter(|at| **at >= since).count())
    }

    /// Whether this number of servers have reported one value since then. A client that asks first for the
    /// value and then for its TTL may see a key appear in between, and not know whose it is.
    pub(crate) fn has_noticed(&self, count: usize, since: i64) -> bool {
        let seen = |it: &Token| it.noticed_at.iter().filter(|at| **at >= since).count();
        self.tokens.iter().any(|it| seen(it) >= count)
    }

    /// Whether a quorum granted an attempt of this client that began since then.
    pub(crate) fn has_granted(&self, client: usize, quorum: usize, since: i64) -> bool {
        let is_it = |it: &Token| {
            it.client == client
                && it.granted.count_ones() as usize >= quorum
                && it.was_asked_since(since)
        };
        self.tokens.iter().any(is_it)
    }

    /// On how many servers the token was last given this slot of a semaphore.
    pub(crate) fn granted_slot(&mut self, tag: u64, slot: u16) -> usize {
        self.find(tag).map_or(0, |it| {
            let has = |server: &usize| it.granted & (1 << server) != 0 && it.slots[*server] == slot;
            (0..SERVERS_MAX).filter(has).count()
        })
    }

    /// Whether another client was ever given a key of this resource. For a semaphore, two clients may be in
    /// each other's way without a refusal by any server.
    pub(crate) fn has_rival(&self, client: usize, resource: usize) -> bool {
        self.tokens
            .iter()
            .any(|it| it.client != client && share(it.resource, resource) && it.granted != 0)
    }

    /// Whether a server still had a key of this client and resource at this time. The release may have been on its way
    /// over another manager's connection. For a semaphore, such a key can be in the way without a refusal.
    pub(crate) fn lingers(&self, client: usize, resource: usize, at: i64) -> bool {
        self.tokens
            .iter()
            .any(|it| it.client == client && share(it.resource, resource) && it.was_anywhere(at))
    }

    /// Whether a server has had a key of another client since then. Whoever waits is told that, also if it asks only for a
    /// place in line.
    pub(crate) fn was_in_the_way(&self, client: usize, resource: usize, since: i64) -> bool {
        let is_it = |it: &Token| it.client != client && share(it.resource, resource);
        self.tokens.iter().any(|it| is_it(it) && it.was_anywhere_since(since))
    }

    /// Whether a server refused an attempt of this client since then.
    pub(crate) fn was_refused(&self, client: usize, resource: usize, since: i64) -> bool {
        let is_it = |it: &Token| {
            (it.client, it.resource) == (client, resource)
                && it.asked & !it.granted != 0
                && it.was_asked_since(since)
        };
        self.tokens.iter().any(is_it)
    }

    /// Whether this is a token of this client that no lock uses any more: of a failed attempt, or of a lock
    /// that the client has released. A release is worth sending for one TTL. If messages were held up for
    /// longer than that in total, the release may have come too late. The same applies to a release of a
    /// manager other than the one that took the lock, if that manager is used only so late: it does not
    /// know what is on its way over the other manager's connection.
    pub(crate) fn is_spent(&self, tag: u64, client: usize, (held_up, now): (i64, i64)) -> bool {
        let token = self.tokens.iter().rfind(|it| it.tag == tag);
        let is_it = |it: &Token| it.client == client && it.ttl_ms > held_up / MS && !it.is_stray;
        let Some(token) = token.filter(|it| is_it(it)) else { return false };
        let Some(hold) = self.holds.iter().rfind(|it| it.tag == tag) else { return true };
        let is_late = hold.ended.is_some_and(|it| now >= it + token.ttl_ms * MS);
        hold.releases > 0 && !(token.is_shared() && is_late)
    }

    /// All tokens of the client for which [`Self::is_spent`] holds.
    pub(crate) fn spent(&self, client: usize, times: (i64, i64)) -> impl Iterator<Item = u64> {
        self.tokens.iter().map(|it| it.tag).filter(move |it| self.is_spent(*it, client, times))
    }

    /// Whether a server that has set the token was never told to delete it.
    pub(crate) fn is_forgotten(&self, tag: u64) -> bool {
        self.tokens
            .iter()
            .any(|it| it.tag == tag && it.granted & !it.released != 0 && !it.is_shared())
    }

    pub(crate) fn hold(&mut self, tag: u64) -> Option<&mut HeldLock> {
        self.holds.iter_mut().rfind(|it| it.tag == tag)
    }

    /// Whether a lock is, or was, kept.
    pub(crate) fn is_kept(&self, tag: u64) -> bool {
        self.holds.iter().any(|it| it.tag == tag && it.is_kept)
    }

    /// The client is gone, so it holds nothing.
    pub(crate) fn end_all(&mut self, client: usize, now: i64) {
        for hold in self.holds.iter_mut().filter(|it| it.client == client) {
            hold.ended.get_or_insert(now);
        }
    }
}

/// A client that takes all resources also takes the permit of one resource away.
#[test]
fn a_holder_of_all_resources_rivals_each() {
    let mut records = Records::default();
    let sender = Sender { client: 1, manager: 0, connection: 0 };
    let mut token = Token::new(1, sender, b"a");
    (token.resource, token.granted) = (ALL, 1);
    records.tokens.push(token);
    assert!(records.has_rival(0, 0) && records.has_rival(0, ALL));
    assert!(!records.has_rival(1, 0), "nobody is his own rival");
}
