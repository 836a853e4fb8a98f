//! Three servers, a holder, and a rival.

use redlock::quorum::standing::{Standings, Word};

const SERVERS: usize = 3;
const QUORUM: u32 = 2;

/// How many requests, and how many replies, are on their way at most.
const ROOM: usize = 2;

#[derive(Debug)]
pub(crate) struct Start {
    pub(crate) rounds: u8,
    pub(crate) losses: u8,
    pub(crate) third: Third,
}

/// What the third server has to do with the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Third {
    /// It has it, like the others.
    HasIt,
    /// The acquire is on its way to it still.
    IsAsked,
    /// It has lost it, and the key is on its way to it again, after a round of the others.
    IsRepaired,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct World {
    servers: [Server; SERVERS],
    standings: Standings,
    round: Option<Round>,
    rounds_left: u8,
    losses_left: u8,
    rival: Rival,
    was_admitted: bool,
    pub(crate) is_wrong: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Server {
    key: Key,
    requests: Vec<Request>,
    replies: Vec<Reply>,
    /// Of connections that are lost: they may be carried out still, and nobody hears of it.
    ghosts: Vec<Request>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Key {
    #[default]
    None,
    Ours,
    Theirs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Request {
    Acquire,
    Repair,
    /// Of the round that is under way, or of one before.
    Extend {
        is_current: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Reply {
    word: Word,
    is_vote: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Round {
    number: u32,
    voters: u64,
    /// Whether the rival had had the lock when it began.
    is_too_late: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Rival {
    Waits,
    Holds,
    HasHeld,
}

impl World {
    /// The first two have the lock and are known to.
    pub(crate) fn new(start: &Start) -> Self {
        const THIRD: usize = 2;
        const FIRST_TWO: u64 = 0b011;
        const ALL: u64 = 0b111;
        let mut servers: [Server; SERVERS] = Default::default();
        let mut standings = Standings::new(SERVERS);
        servers[0].key = Key::Ours;
        servers[1].key = Key::Ours;
        if start.third == Third::IsAsked {
            servers[THIRD].requests.push(Request::Acquire);
            standings.take(FIRST_TWO, ALL);
        } else {
            servers[THIRD].key = Key::Ours;
            standings.take(ALL, ALL);
        }
        if start.third == Third::IsRepaired {
            servers[THIRD].key = Key::None;
            servers[THIRD].requests.push(Request::Repair);
            let round = standings.begin_round();
            standings.hear(THIRD, Word::Absent);
            assert!(standings.pass_round(round, FIRST_TWO, QUORUM));
            assert_eq!(standings.begin_repairs(), 1 << THIRD);
        }
        Self {
            servers,
            standings,
            round: None,
            rounds_left: start.rounds,
            losses_left: start.losses,
            rival: Rival::Waits,
            was_admitted: false,
            is_wrong: false,
        }
    }

    pub(crate) fn rival_has_had_it(&self) -> bool {
        self.rival == Rival::HasHeld
    }

    /// Whether a server ever became sound that was not.
    pub(crate) fn was_admitted(&self) -> bool {
        self.was_admitted
    }

    /// All that can happen next.
    pub(crate) fn each_next(&self, mut tell: impl FnMut(Self)) {
        for place in 0..SERVERS {
            self.each_of_server(place, &mut tell);
        }
        let theirs = self.servers.iter().filter(|server| server.key == Key::Theirs).count();
        if self.rival == Rival::Waits && theirs >= QUORUM as usize {
            let mut next = self.clone();
            next.rival = Rival::Holds;
            tell(next);
        }
        if theirs > 0 {
            // It releases the lock, or what it had of it.
            let mut next = self.clone();
            for server in next.servers.iter_mut().filter(|server| server.key == Key::Theirs) {
                server.key = Key::None;
            }
            if next.rival == Rival::Holds {
                next.rival = Rival::HasHeld;
            }
            tell(next);
        }
        if let Some(round) = &self.round {
            let mut next = self.clone();
            next.standings.fail_round(round.number);
            next.end_round();
            tell(next);
        } else {
            if self.rounds_left > 0 {
                tell(self.with_round());
            }
            let mut next = self.clone();
            if next.repair() {
                tell(next);
            }
        }
    }

    fn each_of_server(&self, place: usize, tell: &mut impl FnMut(Self)) {
        let server = &self.servers[place];
        let mut change = |change: &dyn Fn(&mut Self, &mut Server)| {
            let mut next = self.clone();
            let mut server = std::mem::take(&mut next.servers[place]);
            change(&mut next, &mut server);
            next.servers[place] = server;
            tell(next);
        };
        if !server.requests.is_empty() && server.replies.len() < ROOM {
            change(&|_, server| {
                let request = server.requests.remove(0);
                let reply = server.carry_out(request);
                server.replies.push(reply);
            });
        }
        for ghost in 0..server.ghosts.len() {
            change(&|_, server| {
                let request = server.ghosts.remove(ghost);
                server.carry_out(request);
            });
        }
        if !server.requests.is_empty() || !server.replies.is_empty() {
            change(&|_, server| {
                let lost = server.requests.drain(..).filter(|it| it.sets_the_key());
                server.ghosts.extend(lost);
                server.ghosts.sort_by_key(|it| *it == Request::Repair);
                server.replies.clear();
            });
        }
        if server.key == Key::Ours && self.losses_left > 0 {
            change(&|world, server| {
                world.losses_left -= 1;
                server.key = Key::None;
            });
        }
        if server.key == Key::None && self.rival == Rival::Waits {
            change(&|_, server| server.key = Key::Theirs);
        }
        if let Some(&reply) = server.replies.first() {
            let mut next = self.clone();
            next.servers[place].replies.remove(0);
            next.hear(place, reply);
            tell(next);
        }
    }

    fn hear(&mut self, place: usize, reply: Reply) {
        let bit = 1 << place;
        self.standings.hear(place, reply.word);
        let Some(round) = &mut self.round else { return };
        if reply.is_vote && self.standings.is_sound(place) {
            round.voters |= bit;
        }
        if round.voters.count_ones() < QUORUM {
            return;
        }
        let (number, voters, is_too_late) = (round.number, round.voters, round.is_too_late);
        let sound = |it: &Standings| (0..SERVERS).filter(|&place| it.is_sound(place)).count();
        let before = sound(&self.standings);
        if self.standings.pass_round(number, voters, QUORUM) {
            self.is_wrong |= is_too_late;
        }
        self.was_admitted |= sound(&self.standings) > before;
        self.end_round();
    }

    fn with_round(&self) -> Self {
        let mut next = self.clone();
        next.rounds_left -= 1;
        let number = next.standings.begin_round();
        let is_too_late = self.rival != Rival::Waits;
        next.round = Some(Round { number, voters: 0, is_too_late });
        for server in &mut next.servers {
            if server.requests.len() < ROOM {
                server.requests.push(Request::Extend { is_current: true });
            }
        }
        next
    }

    fn end_round(&mut self) {
        self.round = None;
        for server in &mut self.servers {
            for request in &mut server.requests {
                if let Request::Extend { is_current } = request {
                    *is_current = false;
                }
            }
            for reply in &mut server.replies {
                reply.is_vote = false;
            }
        }
    }

    fn repair(&mut self) -> bool {
        let servers = self.standings.begin_repairs();
        for (place, server) in self.servers.iter_mut().enumerate() {
            if servers & (1 << place) == 0 {
                continue;
            }
            if server.requests.len() < ROOM {
                server.requests.push(Request::Repair);
            } else {
                self.standings.withdraw_repairs(1 << place);
            }
        }
        servers != 0
    }
}

impl Server {
    fn carry_out(&mut self, request: Request) -> Reply {
        let said = |word| Reply { word, is_vote: false };
        match (request, self.key) {
            (Request::Acquire, Key::None) => {
                self.key = Key::Ours;
                said(Word::Granted { in_time: false })
            }
            (Request::Repair, Key::None) => {
                self.key = Key::Ours;
                said(Word::Repaired)
            }
            (Request::Acquire | Request::Repair, _) => said(Word::NotSet),
            (Request::Extend { is_current }, Key::Ours) => {
                Reply { word: Word::Has { in_time: false }, is_vote: is_current }
            }
            (Request::Extend { .. }, Key::None) => said(Word::Absent),
            (Request::Extend { .. }, Key::Theirs) => said(Word::Foreign),
        }
    }
}

impl Request {
    fn sets_the_key(self) -> bool {
        matches!(self, Self::Acquire | Self::Repair)
    }
}
