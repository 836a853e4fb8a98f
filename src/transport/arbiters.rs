//! The Sentinels of a master: one connection to each, over which all are asked at once which server is the master.
//!
//! A Sentinel is asked when the master is looked for, and while locks are taken: about once a second, in parallel with
//! the requests to the master. A manager that is idle asks nothing. A connection stays open between the questions, and
//! nobody polls it then. Sentinels that the URL does not name are asked, too, if others know them: a majority of *all*
//! Sentinels decides.

mod words;

use std::mem;
use std::net::SocketAddr;
use std::sync::Arc;

use super::interest::Interest;
use super::security::Security;
use super::wire::Wire;
use crate::protocol::command::arbiter::ArbiterQuery;
use crate::protocol::command::handshake::Credentials;
use crate::protocol::command::heard::{ClusterMap, Heard, Location, OwnerReport};
use crate::protocol::command::identity::RunId;
use crate::protocol::conn::addresses::Addresses;
use crate::protocol::conn::inbox::{Inbox, Received};
use crate::protocol::conn::why::error_words;
use crate::protocol::electors::Electors;
use crate::protocol::failure::Failure;
use crate::protocol::moment::Moment;
use crate::protocol::quorum::ownership::{self, LEAD_MS, OwnerLease, Ownership, Support, Word};
use crate::protocol::servers::address::Address;
use crate::protocol::servers::electorate::Electorate;
use crate::system::socket::{InheritedDescriptor, Socket};

/// While locks are taken, the Sentinels are asked again after this time. It is a little less than [`LEAD_MS`], so that
/// a request that is sent next finds an answer that is young enough.
const AGAIN_MS: i64 = LEAD_MS * 9 / 10;

/// The minimum time between two looks at what Sentinels say that are being asked. There may be many requests meanwhile.
const LOOK_MS: i64 = 1;

/// The master, and the epoch in which it became that.
pub(super) type Owner = ownership::Owner<Address>;

/// Which server is the master, or why nobody says so.
pub(super) type Found = Result<Owner, String>;

/// Whether a server is the master.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// A majority has named it, and was asked recently enough.
    Confirmed,
    /// The Sentinels have not all answered.
    Unknown,
    /// Too few have named it.
    Unconfirmed(Support),
}

pub(super) struct Arbiters {
    shared: Shared,
    all: Vec<Arbiter>,
    ownership: Ownership<Address, RunId>,
    /// What follows from that.
    lease: Option<OwnerLease<Address>>,
    looked_at: Moment,
    /// Whether a Sentinel was asked since that was last wanted to know.
    has_asked: bool,
    /// Where the descriptors are shown to a forked child, for as many Sentinels as are ever asked.
    inherited: Vec<InheritedDescriptor>,
    /// Sentinels that were last asked before this time are asked again.
    wanted_since: Moment,
    /// How long each may take.
    within_ms: i64,
    /// If the master is looked for: since when, and until when.
    search: Option<(Moment, Moment)>,
    /// When the master was last looked for.
    searched_at: Moment,
    /// Whether a majority must name the master. Otherwise one Sentinel is enough.
    needs_majority: bool,
    /// The master that was named last, and was of no use.
    useless: Option<Address>,
}

/// What all connections to Sentinels have in common.
struct Shared {
    electorate: Electorate,
    /// The login on the nodes of a cluster.
    login: Option<Credentials>,
    access: Arc<Security>,
    has_tls: bool,
}

/// One Sentinel.
struct Arbiter {
    place: Address,
    addresses: Addresses,
    inherited: InheritedDescriptor,
    link: Link,
    inbox: Inbox,
    outbox: Vec<u8>,
    /// How many of its addresses were tried since it was last asked.
    tried: usize,
    /// When it was last asked, and until when it may take.
    asked_at: Moment,
    until: Moment,
    /// Why it has not answered.
    why: String,
    /// Whether it has answered nothing since it failed last.
    has_failed: bool,
}

enum Link {
    Down,
    Connecting(Socket),
    Up(Wire, ArbiterQuery),
}

impl Arbiters {
    pub(super) fn new(electorate: &Electorate, has_tls: bool, access: &Arc<Security>) -> Self {
        let start = Moment::from_nanos(0);
        let new = || InheritedDescriptor::new();
        let inherited: Vec<_> = (0..electorate.count_max()).map(|_| new()).collect();
        let listed = electorate.places().iter().zip(&inherited);
        let all: Vec<_> = listed.map(|(place, shown)| Arbiter::new(place, shown)).collect();
        Self {
            ownership: Ownership::new(all.len()),
            shared: Shared {
                electorate: electorate.clone(),
                login: None,
                access: Arc::clone(access),
                has_tls,
            },
            all,
            lease: None,
            looked_at: start,
            has_asked: false,
            inherited,
            wanted_since: start,
            within_ms: 0,
            search: None,
            searched_at: start,
            needs_majority: true,
            useless: None,
        }
    }

    pub(super) fn inherited(&self) -> impl Iterator<Item = InheritedDescriptor> {
        self.inherited.clone().into_iter()
    }

    /// Forgets the sockets that [`InheritedDescriptor::close_inherited`] has closed.
    pub(super) fn forget_sockets(&mut self) {
        for arbiter in &mut self.all {
            match mem::replace(&mut arbiter.link, Link::Down) {
                Link::Down => {}
                Link::Connecting(socket) => socket.forget(),
                Link::Up(wire, _) => wire.forget(),
            }
        }
    }

    /// Looks for the master, within `within_ms`. A majority must name it, or one Sentinel.
    pub(super) fn begin(
        &mut self,
        login: Option<Credentials>,
        needs_majority: bool,
        within_ms: i64,
        now: Moment,
    ) {
        self.shared.login = login;
        self.needs_majority = needs_majority;
        (self.search, self.searched_at) = (Some((now, now.plus_ms(within_ms))), now);
        (self.wanted_since, self.within_ms) = (now, within_ms);
        self.ask(now);
    }

    /// Goes on with asking. Returns the result of the search once.
    pub(super) fn advance(&mut self, now: Moment) -> Option<Found> {
        self.ask(now);
        let (since, until) = self.search?;
        let is_over = now >= until || !self.all.iter().any(Arbiter::is_pending);
        let found = match self.found(since, is_over) {
            Some(owner) => Ok(owner),
            None if is_over => Err(self.why_unknown(since)),
            None => return None,
        };
        self.search = None;
        Some(found)
    }

    /// When [`Self::advance`] must be called if nothing happens before.
    pub(super) fn next_due(&self) -> Moment {
        self.search.map_or(Moment::NEVER, |(_, until)| until)
    }

    /// What to poll for.
    pub(super) fn interests(&self) -> impl Iterator<Item = Interest> + Clone {
        self.all.iter().filter_map(Arbiter::interest)
    }

    /// The master is in use. Asks again if it is time. Returns whether another server has taken its place.
    pub(super) fn follow(&mut self, master: &Owner, within_ms: i64, now: Moment) -> bool {
        if now.ms_since(self.wanted_since) >= AGAIN_MS {
            (self.wanted_since, self.within_ms) = (now, within_ms);
        } else if now.ms_since(self.looked_at) < LOOK_MS {
            return false;
        }
        self.ask(now);
        self.has_left(master)
    }

    /// Reads what has been said to a question that is under way. Returns whether another server has taken the place of
    /// this master.
    pub(super) fn hear_news(&mut self, master: &Owner, now: Moment) -> bool {
        self.ask(now);
        self.has_left(master)
    }

    /// Whether this server is the master, for the answer to a request that was sent at this time. If that is not known,
    /// the Sentinels are asked, unless they are being asked.
    pub(super) fn standing(&mut self, master: &Owner, sent_at: Moment, now: Moment) -> Standing {
        let since = sent_at.plus_ms(-LEAD_MS);
        if self.lease.as_ref().is_some_and(|it| it.owner == *master && it.asked_at >= since) {
            return Standing::Confirmed;
        }
        if self.wanted_since < since {
            self.wanted_since = now;
            self.ask(now);
        }
        let may_say = |it: &Arbiter| it.is_pending() || it.asked_at < since;
        match self.all.iter().any(may_say) {
            true => Standing::Unknown,
            false => Standing::Unconfirmed(self.support(sent_at)),
        }
    }

    /// How many Sentinels have named the same master, for the answer to a request that was sent at this time.
    pub(super) fn support(&self, sent_at: Moment) -> Support {
        self.ownership.support_since(sent_at.plus_ms(-LEAD_MS))
    }

    /// Whether a Sentinel was asked since the last call, so that its socket must be polled.
    pub(super) fn take_asked(&mut self) -> bool {
        mem::take(&mut self.has_asked)
    }

    /// The master that was found was of no use. If one Sentinel is enough, another one may know better.
    pub(super) fn distrust(&mut self, master: Option<&Address>) {
        self.useless = master.cloned();
    }

    /// Asks the Sentinels that are to be asked, and reads what they say.
    fn ask(&mut self, now: Moment) {
        self.looked_at = now;
        let mut which = 0;
        // There may be more of them meanwhile.
        while let Some(arbiter) = self.all.get_mut(which) {
            if !arbiter.is_pending() && arbiter.asked_at < self.wanted_since {
                arbiter.ask(self.within_ms, now);
                self.has_asked = true;
            }
            for heard in arbiter.advance(&self.shared, now) {
                self.hear(which, heard);
                self.lease = self.ownership.lease();
            }
            // What it was asked before may not be enough.
            let arbiter = &mut self.all[which];
            if !arbiter.is_pending() && arbiter.asked_at < self.wanted_since {
                arbiter.ask(self.within_ms, now);
                self.has_asked = true;
            }
            which += 1;
        }
    }

    fn hear(&mut self, which: usize, heard: Heard) {
        match heard {
            Heard::Identity(id) => self.ownership.identify(which, id),
            Heard::Others(others) => self.meet(&others),
            Heard::Map(map) => self.hear_map(which, map),
            Heard::Owner(report) if !report.is_moving => self.hear_owner(which, report),
            Heard::Owner(_) => ": a failover is in progress".clone_into(&mut self.all[which].why),
            Heard::Nothing | Heard::Refused(_) => {}
        }
    }

    fn hear_owner(&mut self, which: usize, report: OwnerReport) {
        let OwnerReport { at, epoch, others, asked_at, .. } = report;
        match place_of(&at) {
            Some(place) => {
                let owner = Owner { place, epoch };
                self.ownership.hear(which, Word { owner, others, asked_at });
            }
            None => self.all[which].fail(words::of_failure(&Failure::ProtocolError)),
        }
    }

    /// A node tells of the whole cluster. A node that does not know where it is itself is where it was asked.
    fn hear_map(&mut self, which: usize, map: ClusterMap) {
        self.ownership.identify(which, map.id);
        let others = map.others.iter().map(|(id, at)| (Some(*id), at));
        self.meet_all(others);
        match map.owner {
            Some(report) if report.at.0.is_empty() => {
                let owner = Owner { place: self.all[which].place.clone(), epoch: report.epoch };
                let (others, asked_at) = (report.others, report.asked_at);
                self.ownership.hear(which, Word { owner, others, asked_at });
            }
            Some(report) => self.hear_owner(which, report),
            None => ": it knows no owner of the slot".clone_into(&mut self.all[which].why),
        }
    }

    /// A Sentinel knows these others. If they are more than the program has named, they are asked, too.
    fn meet(&mut self, others: &[Location]) {
        if others.len() >= self.listed() {
            self.meet_all(others.iter().map(|at| (None, at)));
        }
    }

    /// These others are asked, too. One that is reached under another name need not be asked twice. One that is not reached
    /// may be elsewhere now. Addresses come and go for as long as this process lasts, so each new one takes the place of one
    /// that is gone.
    fn meet_all<'a>(&mut self, others: impl Iterator<Item = (Option<RunId>, &'a Location)>) {
        let others: Vec<_> = others.filter_map(|(id, at)| Some((id, place_of(at)?))).collect();
        for (id, place) in &others {
            let is_asked = self.all.iter().any(|it| it.place == *place);
            if is_asked || id.is_some_and(|it| self.is_reached(it)) {
                continue;
            }
            let is_named = |it: &Arbiter| others.iter().any(|(_, place)| it.place == *place);
            let mut later = self.all.iter().enumerate().skip(self.listed());
            let gone = later.find(|(_, it)| it.has_failed && !is_named(it)).map(|(which, _)| which);
            let which = gone.unwrap_or(self.all.len());
            let Some(shown) = self.inherited.get(which) else { return };
            let new = Arbiter::new(place, shown);
            match self.all.get_mut(which) {
                Some(it) => {
                    *it = new;
                    self.ownership.replace(which);
                }
                None => {
                    self.all.push(new);
                    self.ownership.add();
                }
            }
        }
    }

    fn is_reached(&self, id: RunId) -> bool {
        let mut all = self.all.iter().enumerate();
        all.any(|(which, it)| !it.has_failed && self.ownership.is(which, id))
    }

    /// How many the program has named. They are the first ones.
    fn listed(&self) -> usize {
        self.shared.electorate.places().len()
    }

    /// The master, as far as those say it who were asked at this time or later. If one of them is enough, the one that
    /// names the greatest epoch counts. A master that was of no use, or that had a successor by what was said before, is
    /// tried once all have answered.
    fn found(&self, since: Moment, is_over: bool) -> Option<Owner> {
        if self.needs_majority {
            let lease = self.lease.as_ref().filter(|it| it.asked_at >= since);
            return Some(lease?.owner.clone());
        }
        let greatest = self.words().map(|it| it.owner.epoch).max();
        let is_useless = |owner: &Owner| self.useless.as_ref() == Some(&owner.place);
        let young = self.words().filter(|it| it.asked_at >= since).map(|it| &it.owner);
        let best = young.max_by_key(|it| (!is_useless(it), it.epoch))?;
        let is_sure = !is_useless(best) && Some(best.epoch) >= greatest;
        (is_over || is_sure).then(|| best.clone())
    }

    /// What each Sentinel has said last.
    fn words(&self) -> impl Iterator<Item = &Word<Address>> {
        (0..self.all.len()).filter_map(|which| self.ownership.word(which))
    }

    /// Whether this server is the master no more.
    fn has_left(&self, master: &Owner) -> bool {
        let is_successor = |it: &Owner| it != master && it.epoch >= master.epoch;
        match self.needs_majority {
            true => self.lease.as_ref().is_some_and(|it| is_successor(&it.owner)),
            // A Sentinel that has not answered since the search has no say.
            false => self
                .words()
                .any(|it| it.owner.epoch > master.epoch && it.asked_at >= self.searched_at),
        }
    }

    /// Why the master is not known.
    fn why_unknown(&self, since: Moment) -> String {
        let name = self.shared.electorate.voter();
        let Support { named, needed, .. } = self.ownership.support_since(since);
        let what = match (self.shared.electorate.kind(), named) {
            (Electors::Sentinels, 0) => format!("no Sentinel knows the address of master {name}"),
            (Electors::Sentinels, _) => {
                format!("{named} of {needed} Sentinels needed name the same master {name}")
            }
            (Electors::Nodes, 0) => format!("no cluster node knows the owner of {name}"),
            (Electors::Nodes, _) => {
                format!("{named} of {needed} cluster nodes needed name the same owner of {name}")
            }
        };
        let silent =
            self.all.iter().enumerate().filter(|(which, _)| {
                self.ownership.word(*which).is_none_or(|it| it.asked_at < since)
            });
        let whys: Vec<String> = silent.map(|(_, it)| it.words()).collect();
        match whys.is_empty() {
            true => what,
            false => format!("{what}: {}", whys.join(", ")),
        }
    }
}

/// The names of Sentinels, which the caller looks up.
impl Arbiters {
    /// Whether no Sentinel's address is known.
    pub(super) fn is_nameless(&self) -> bool {
        self.all.iter().all(|it| it.addresses.is_empty())
    }

    pub(super) fn is_looked_up(&self) -> bool {
        self.all.iter().any(|it| it.addresses.is_looked_up())
    }

    /// The next name of a Sentinel whose addresses begin a look-up, and the index of that Sentinel.
    pub(super) fn name_where(
        &mut self,
        mut begin: impl FnMut(&mut Addresses) -> bool,
    ) -> Option<(usize, String, u16)> {
        let mut all = self.all.iter_mut().enumerate();
        all.find_map(|(which, it)| match &it.place {
            Address::Name(name, port) if begin(&mut it.addresses) => {
                Some((which, name.clone(), *port))
            }
            _ => None,
        })
    }

    /// When to look up the name of a Sentinel although others may answer, because the master has been down since
    /// then.
    pub(super) fn look_up_of_lost_at(&self, down_since: Moment) -> Moment {
        let named = self.all.iter().filter(|it| matches!(it.place, Address::Name(..)));
        let due = named.map(|it| it.addresses.look_up_of_lost_at(down_since));
        due.fold(Moment::NEVER, Moment::min)
    }

    /// The result of a look-up. Returns whether the addresses have changed.
    pub(super) fn end_look_up(
        &mut self,
        which: usize,
        found: Option<Vec<SocketAddr>>,
        began: Moment,
        now: Moment,
    ) -> bool {
        let arbiter = self.all.get_mut(which);
        arbiter.is_some_and(|it| it.addresses.end_look_up(found, began, now))
    }
}

impl Arbiter {
    fn new(place: &Address, inherited: &InheritedDescriptor) -> Self {
        let start = Moment::from_nanos(0);
        Self {
            place: place.clone(),
            addresses: Addresses::of(place),
            inherited: inherited.clone(),
            link: Link::Down,
            inbox: Inbox::default(),
            outbox: Vec::new(),
            tried: 0,
            asked_at: start,
            until: start,
            why: ": not tried yet".to_owned(),
            has_failed: false,
        }
    }

    /// Whether it has still to say something.
    fn is_pending(&self) -> bool {
        match &self.link {
            Link::Down => false,
            Link::Connecting(_) => true,
            Link::Up(_, query) => query.is_owed(),
        }
    }

    fn interest(&self) -> Option<Interest> {
        match &self.link {
            Link::Down => None,
            Link::Connecting(socket) => Some(Interest::of(socket, true)),
            Link::Up(wire, query) => {
                let is_waiting = !self.outbox.is_empty() && !wire.is_shaking_hands();
                let interest = Interest::of(wire.socket(), is_waiting || wire.has_unsent());
                query.is_owed().then_some(interest)
            }
        }
    }

    /// Asks which server is the master, over a new connection if there is none.
    fn ask(&mut self, within_ms: i64, now: Moment) {
        (self.asked_at, self.until, self.tried) = (now, now.plus_ms(within_ms), 0);
        match &mut self.link {
            Link::Up(_, query) => query.ask(now, &mut self.outbox),
            _ => self.connect(),
        }
        self.why = match self.addresses.is_empty() {
            true => ": cannot resolve the host name".to_owned(),
            false => format!(": timed out after {within_ms} ms"),
        };
        // Sent in parallel with the requests to the master.
        self.send();
    }

    /// Connects to the next of its addresses, if there is one that was not tried.
    fn connect(&mut self) {
        while let Some(address) = self.addresses.iter().nth(self.tried) {
            self.tried += 1;
            match Socket::to_address(address, &self.inherited) {
                Ok(socket) => return self.link = Link::Connecting(socket),
                Err(error) => self.why = format!(": {}", error_words(&error)),
            }
        }
    }

    fn send(&mut self) {
        if let Link::Up(wire, query) = &mut self.link
            && let Err(error) = wire.send_from(&mut self.outbox)
        {
            let why = words::of_breaking(wire, query, &error);
            self.break_off(why);
        }
    }

    /// Goes on. Returns what it has said.
    fn advance(&mut self, shared: &Shared, now: Moment) -> Vec<Heard> {
        let mut all = Vec::new();
        while self.is_pending() {
            let is_going_on = match &self.link {
                Link::Connecting(_) => self.greet(shared, now),
                _ => self.hear(&mut all),
            };
            if is_going_on {
                continue;
            }
            if now < self.until || !self.is_pending() {
                break;
            }
            let why = self.too_late();
            self.fail(why);
        }
        all
    }

    /// Sends the first questions, if the connection is up. Returns whether something has changed.
    fn greet(&mut self, shared: &Shared, now: Moment) -> bool {
        let Link::Connecting(socket) = &self.link else { return false };
        if !socket.is_writable() {
            return false;
        }
        if let Err(error) = socket.connected() {
            self.break_off(format!(": {}", error_words(&error)));
            return true;
        }
        let Link::Connecting(socket) = mem::replace(&mut self.link, Link::Down) else {
            return false;
        };
        let wire = match shared.has_tls {
            false => Wire::Plain(socket),
            true => match shared.access.tls().begin(&self.place, socket) {
                Ok(session) => Wire::Tls(Box::new(session)),
                Err(why) => {
                    self.break_off(format!(": {why}"));
                    return true;
                }
            },
        };
        self.inbox.clear();
        self.outbox.clear();
        let Shared { electorate, login, has_tls, .. } = shared;
        let mut query = electorate.query(*has_tls, login.as_ref(), &mut self.outbox);
        query.ask(now, &mut self.outbox);
        self.link = Link::Up(wire, query);
        true
    }

    /// Reads what it answers. Returns whether something has changed.
    fn hear(&mut self, all: &mut Vec<Heard>) -> bool {
        let Link::Up(wire, query) = &mut self.link else { return false };
        let received =
            wire.send_from(&mut self.outbox).and_then(|()| wire.receive_into(&mut self.inbox));
        let received = match received {
            Ok(received) => received,
            Err(error) => {
                let why = words::of_breaking(wire, query, &error);
                self.break_off(why);
                return true;
            }
        };
        loop {
            match self.inbox.next() {
                Ok(None) => return received != Received::Nothing,
                Ok(Some(reply)) => match query.handle_reply(&reply) {
                    Heard::Refused(failure) => {
                        self.fail(words::of_failure(&failure));
                        return true;
                    }
                    heard => {
                        self.has_failed = false;
                        all.push(heard);
                    }
                },
                Err(protocol_error) => {
                    self.fail(format!(": {protocol_error}"));
                    return true;
                }
            }
        }
    }

    /// The connection is of no use. Another address may be. So may a new connection to the same one, if this one was
    /// there before the question, because the Sentinel may have been restarted: then no address was tried yet.
    fn break_off(&mut self, why: String) {
        self.fail(why);
        self.connect();
    }

    /// It does not say what it was asked for.
    fn fail(&mut self, why: String) {
        self.link = Link::Down;
        (self.why, self.has_failed) = (why, true);
        self.inbox.clear();
        self.outbox.clear();
    }

    fn too_late(&self) -> String {
        let perhaps = match &self.link {
            Link::Up(wire, query) => words::of_silence(wire, query),
            _ => String::new(),
        };
        format!(": timed out after {} ms{perhaps}", self.until.ms_since(self.asked_at))
    }

    /// Why it has not said which server is the master.
    fn words(&self) -> String {
        format!("{}{}", self.place, self.why)
    }
}

/// Makes sure that what a Sentinel says is a name or an address.
fn place_of((host, port): &Location) -> Option<Address> {
    Address::of(host, *port).ok()
}

#[cfg(test)]
mod tests;
