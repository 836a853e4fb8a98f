//! Three servers, a holder, and a rival.

use redlock::protocol::quorum::soundness::{Soundness, Word};

const SERVERS: usize = 3;
const QUORUM: u32 = 2;
const THIRD: usize = 2;
const FIRST_TWO: u64 = 0b011;

/// The maximum number of requests in flight to a server, and of replies in flight from it.
const ROOM: usize = 2;

/// The number of managers through which the holder uses the lock.
const MANAGERS: u8 = 2;

#[derive(Debug)]
pub(crate) struct Start {
    pub(crate) rounds: u8,
    pub(crate) losses: u8,
    /// How many processes of servers end. The next one has the data.
    pub(crate) ends: u8,
    /// The number of managers through which the holder sends requests from now on.
    pub(crate) managers: u8,
    pub(crate) third: Third,
}

/// The third server's state with respect to the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Third {
    /// It has the key, like the other two.
    HasIt,
    /// The acquire is still on its way to this server.
    IsAsked,
    /// It has lost the key. After a round of the other servers, a repair is on its way to it.
    IsRepaired,
    /// It was repaired and admitted although the acquire is still on its way to it over a lost connection. That is a
    /// fault. It has lost the key since.
    IsRepairedTooEarly,
    /// The same as `IsRepaired`, with unread answers on the other manager's connection. They answer the acquire, and a round
    /// that began before the server lost the key.
    IsRepairedAndHeardLate,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct World {
    servers: [Server; SERVERS],
    standings: Soundness,
    round: Option<Round>,
    rounds_left: u8,
    losses_left: u8,
    ends_left: u8,
    managers: u8,
    rival: Rival,
    was_admitted: bool,
    pub(crate) is_wrong: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Server {
    key: Key,
    /// The holder has two managers, each with a connection of its own. A request or reply on one connection may
    /// overtake one on the other.
    requests: Vec<Request>,
    replies: Vec<Reply>,
    /// Requests from lost connections. The server may still execute them, but its answers are lost.
    ghosts: Vec<Request>,
    /// The last of the requests that may set the key and whose answers were lost, and its manager.
    unanswered: Option<(u32, u8)>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Key {
    #[default]
    None,
    Ours,
    Theirs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Request {
    what: What,
    number: u32,
    /// The manager whose connection it uses.
    manager: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum What {
    Acquire,
    Repair,
    /// Belongs to the current round if `is_current`, otherwise to an earlier one.
    Extend {
        is_current: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Reply {
    word: Word,
    is_vote: bool,
    number: u32,
    manager: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Round {
    number: u32,
    voters: u64,
    /// Whether the rival had already held the lock when the round began.
    is_too_late: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Rival {
    Waits,
    Holds,
    HasHeld,
}

impl World {
    /// The first two servers have the lock, and the holder knows that.
    pub(crate) fn new(start: &Start) -> Self {
        const ALL: u64 = 0b111;
        let mut servers: [Server; SERVERS] = Default::default();
        let mut standings = Soundness::new(SERVERS);
        servers[0].key = Key::Ours;
        servers[1].key = Key::Ours;
        if start.third == Third::IsAsked {
            servers[THIRD].requests.push(Request { what: What::Acquire, number: 0, manager: 0 });
            standings.take(FIRST_TWO, ALL);
        } else {
            servers[THIRD].key = Key::Ours;
            standings.take(ALL, ALL);
        }
        let third = &mut servers[THIRD];
        match start.third {
            Third::HasIt | Third::IsAsked | Third::IsRepaired => {}
            Third::IsRepairedTooEarly => {
                standings = Soundness::new(SERVERS);
                standings.take(FIRST_TWO, ALL);
                standings.hear(THIRD, 0, Word::Ended);
                let number = repair_third(&mut standings);
                standings.hear(THIRD, number, Word::Repaired);
                let round = standings.begin_round();
                assert!(standings.pass_round(round, FIRST_TWO, QUORUM));
                third.key = Key::None;
                third.ghosts.push(Request { what: What::Acquire, number: 0, manager: 0 });
            }
            Third::IsRepairedAndHeardLate => {
                standings = Soundness::new(SERVERS);
                standings.take(FIRST_TWO, ALL);
                let round = standings.begin_round();
                // The server has answered both managers. Only one of them has read its answers.
                let (has, granted) =
                    (Word::Has { in_time: false }, Word::Granted { in_time: false });
                standings.hear(THIRD, round, has);
                standings.fail_round(round);
                for (number, word) in [(0, granted), (round, has)] {
                    third.replies.push(Reply { word, is_vote: false, number, manager: 1 });
                }
            }
        }
        if matches!(start.third, Third::IsRepaired | Third::IsRepairedAndHeardLate) {
            third.key = Key::None;
            let number = repair_third(&mut standings);
            third.requests.push(Request { what: What::Repair, number, manager: 0 });
        }
        Self {
            servers,
            standings,
            round: None,
            rounds_left: start.rounds,
            losses_left: start.losses,
            ends_left: start.ends,
            managers: start.managers,
            rival: Rival::Waits,
            was_admitted: false,
            is_wrong: false,
        }
    }

    pub(crate) fn rival_has_had_it(&self) -> bool {
        self.rival == Rival::HasHeld
    }

    /// Whether a server that was not sound ever became sound.
    pub(crate) fn was_admitted(&self) -> bool {
        self.was_admitted
    }

    /// Passes each possible next state to `tell`.
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
            // The rival releases the lock, or the keys that it has set.
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
            for manager in 0..self.managers {
                if self.rounds_left > 0 {
                    tell(self.with_round(manager));
                }
                let mut next = self.clone();
                if next.repair(manager) {
                    tell(next);
                }
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
        for manager in 0..MANAGERS {
            let request = server.requests.iter().position(|it| it.manager == manager);
            if let Some(at) = request.filter(|_| server.replies.len() < ROOM) {
                change(&|_, server| {
                    let request = server.requests.remove(at);
                    let reply = server.carry_out(request);
                    server.replies.push(reply);
                });
            }
            let is_used = |of: u8| of == manager;
            if request.is_some() || server.replies.iter().any(|it| is_used(it.manager)) {
                change(&|_, server| server.lose_connection(manager));
            }
        }
        if self.ends_left > 0 {
            change(&|world, server| {
                world.ends_left -= 1;
                (0..MANAGERS).for_each(|manager| server.lose_connection(manager));
                server.end();
            });
        }
        for ghost in 0..server.ghosts.len() {
            change(&|_, server| {
                let request = server.ghosts.remove(ghost);
                server.carry_out(request);
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
        for manager in 0..MANAGERS {
            let first = server.replies.iter().position(|it| it.manager == manager);
            if let Some(first) = first {
                let mut next = self.clone();
                let reply = next.servers[place].replies.remove(first);
                next.hear(place, reply);
                tell(next);
            }
        }
    }

    fn hear(&mut self, place: usize, reply: Reply) {
        let bit = 1 << place;
        self.standings.hear(place, reply.number, reply.word);
        let Some(round) = &mut self.round else { return };
        if reply.is_vote && self.standings.is_sound(place) {
            round.voters |= bit;
        }
        if round.voters.count_ones() < QUORUM {
            return;
        }
        let (number, voters, is_too_late) = (round.number, round.voters, round.is_too_late);
        let sound = |it: &Soundness| (0..SERVERS).filter(|&place| it.is_sound(place)).count();
        let before = sound(&self.standings);
        if self.standings.pass_round(number, voters, QUORUM) {
            self.is_wrong |= is_too_late;
        }
        self.was_admitted |= sound(&self.standings) > before;
        self.end_round();
    }

    fn with_round(&self, manager: u8) -> Self {
        let mut next = self.clone();
        next.rounds_left -= 1;
        let number = next.standings.begin_round();
        let is_too_late = self.rival != Rival::Waits;
        next.round = Some(Round { number, voters: 0, is_too_late });
        for server in &mut next.servers {
            if server.requests.len() < ROOM {
                server.requests.push(Request {
                    what: What::Extend { is_current: true },
                    number,
                    manager,
                });
            }
        }
        next
    }

    fn end_round(&mut self) {
        self.round = None;
        for server in &mut self.servers {
            for request in &mut server.requests {
                if let What::Extend { is_current } = &mut request.what {
                    *is_current = false;
                }
            }
            for reply in &mut server.replies {
                reply.is_vote = false;
            }
        }
    }

    fn repair(&mut self, manager: u8) -> bool {
        let (number, servers) = self.standings.begin_repairs();
        for (place, server) in self.servers.iter_mut().enumerate() {
            if servers & (1 << place) == 0 {
                continue;
            }
            if server.requests.len() < ROOM {
                server.requests.push(Request { what: What::Repair, number, manager });
            } else {
                self.standings.withdraw_repairs(1 << place);
            }
        }
        servers != 0
    }
}

/// A round of the other servers, in which the third one says that it lacks the key. Then it is sent a repair of this
/// number.
fn repair_third(standings: &mut Soundness) -> u32 {
    let round = standings.begin_round();
    standings.hear(THIRD, round, Word::Absent);
    assert!(standings.pass_round(round, FIRST_TWO, QUORUM));
    let (number, repaired) = standings.begin_repairs();
    assert_eq!(repaired, 1 << THIRD);
    number
}

impl Server {
    fn lose_connection(&mut self, manager: u8) {
        let lost: Vec<_> = self.requests.extract_if(.., |it| it.manager == manager).collect();
        self.ghosts.extend(lost.iter().filter(|it| it.sets_the_key()));
        self.ghosts.sort_by_key(|it| it.number);
        let answers = self.replies.extract_if(.., |it| it.manager == manager);
        let unread: Vec<_> = answers.filter(Reply::answers_a_setter).collect();
        let unanswered = lost.iter().filter(|it| it.sets_the_key()).map(|it| it.number);
        let last = unanswered.chain(unread.iter().map(|it| it.number)).max();
        self.unanswered = self.unanswered.max(last.map(|number| (number, manager)));
    }

    /// The manager whose request was not answered hears that another process has taken the place of this one.
    fn end(&mut self) {
        self.ghosts.clear();
        let ended = self.unanswered.take().map(|(number, manager)| Reply {
            word: Word::Ended,
            is_vote: false,
            number,
            manager,
        });
        self.replies.extend(ended);
    }

    fn carry_out(&mut self, request: Request) -> Reply {
        let Request { number, manager, .. } = request;
        let said = |word| Reply { word, is_vote: false, number, manager };
        match (request.what, self.key) {
            (What::Acquire, Key::None) => {
                self.key = Key::Ours;
                said(Word::Granted { in_time: false })
            }
            (What::Repair, Key::None) => {
                self.key = Key::Ours;
                said(Word::Repaired)
            }
            (What::Acquire | What::Repair, _) => said(Word::NotSet),
            (What::Extend { is_current }, Key::Ours) => {
                Reply { is_vote: is_current, ..said(Word::Has { in_time: false }) }
            }
            (What::Extend { .. }, Key::None) => said(Word::Absent),
            (What::Extend { .. }, Key::Theirs) => said(Word::Foreign),
        }
    }
}

impl Reply {
    fn answers_a_setter(&self) -> bool {
        matches!(self.word, Word::Granted { .. } | Word::Repaired | Word::NotSet | Word::Ended)
    }
}

impl Request {
    fn sets_the_key(self) -> bool {
        matches!(self.what, What::Acquire | What::Repair)
    }
}
