//! Which servers may vouch for a lock, by what each has said of its key.
//!
//! A lock that a majority lost must not come back. Otherwise servers would vouch for it although another client
//! held it in between. Therefore not every server that has the key counts. A server is *sound* while it is
//! known to have had the key ever since the lock was taken. Only sound servers vote when a lock is extended or
//! confirmed. A server that says that the key is gone is no longer sound. It may be sent the key again (a
//! *repair*). Once it has the key, it is a *candidate*. A candidate becomes sound by a round of sound servers
//! that began after the candidate was heard, and that succeeded. Such a round shows that no other client can
//! have had a quorum.
//!
//! A lock may be used through several managers. Each manager has its own connections, and a connection is read
//! only while its manager is used. Therefore answers are heard in any order, and some are heard very late. Each
//! answer comes with the number of its request. The acquire is number 0. Rounds and repairs are counted from 1
//! in the order in which they begin.
//!
//! `tests/pure/standing` goes through everything that can happen to three servers.

/// What a server has said of the key, or what was found out from its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Word {
    /// It carried out the acquire. `in_time` says whether it is known to have done so in time (see
    /// [`Soundness::hear`]).
    Granted { in_time: bool },
    /// It did not carry out an acquire or a repair, and never will.
    NotSet,
    /// It carried out a repair.
    Repaired,
    /// It has not answered an acquire or a repair. From now on it will not carry it out, but it may have done so.
    Ended,
    /// It has the key with our token. `in_time` says whether it is known to have had it in time.
    Has { in_time: bool },
    /// It has no such key.
    Absent,
    /// The key belongs to another client.
    Foreign,
}

/// What is known of the servers of one lock. Sets have one bit for each server, in the order of the manager
/// that took the lock.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Soundness {
    sound: u64,
    candidates: u64,
    /// The acquire may have been carried out there, but nothing that was heard so far tells when.
    unproven: u64,
    /// An acquire or a repair was sent there and was not answered, so it may still be carried out at any time.
    /// No other one is sent meanwhile, so at most one is ever under way.
    unheard: u64,
    /// The servers that said that the key is gone. They may be given it again.
    absent: u64,
    /// The last repair that each server was sent. Few servers are sent any.
    repairs: Vec<Repair>,
    /// The rounds that are under way, each with the servers that were candidates when it began.
    rounds: Vec<RepairRound>,
    /// The number of the last round or repair.
    last_number: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Repair {
    server: usize,
    number: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct RepairRound {
    number: u32,
    candidates: u64,
}

impl Soundness {
    /// The standings of a lock that is about to be asked for on this many servers.
    pub fn new(servers: usize) -> Self {
        let all = if servers < 64 { (1 << servers) - 1 } else { u64::MAX };
        Self {
            sound: 0,
            candidates: 0,
            unproven: all,
            unheard: all,
            absent: 0,
            repairs: Vec::new(),
            rounds: Vec::new(),
            last_number: 0,
        }
    }

    /// Notes that the lock was taken. `granted` are the servers that had granted it when that was decided.
    /// `sent` are the servers to which something had been sent.
    pub fn take(&mut self, granted: u64, sent: u64) {
        self.unproven &= sent & !granted;
        self.unheard &= sent & !granted;
        self.sound |= granted;
    }

    /// Notes that a server has answered the request of this number. Perhaps no caller waits for that answer any
    /// more.
    ///
    /// `in_time` is what is known to have happened within the reply timeout of the acquire. A grant that is
    /// carried out later may follow another client's lock.
    pub fn hear(&mut self, server: usize, number: u32, word: Word) {
        let bit = 1 << server;
        let setter = self.last_setter(server);
        let is_stale = match word {
            // The result of that request is known already.
            Word::Granted { .. } | Word::Repaired | Word::NotSet | Word::Ended => {
                number != setter || self.unheard & bit == 0
            }
            // The server was asked before the key was sent to it again. The answer says nothing of the key that
            // it has now.
            Word::Has { .. } | Word::Absent | Word::Foreign => number < setter,
        };
        if is_stale {
            return;
        }
        match word {
            Word::Granted { in_time } => {
                self.unheard &= !bit;
                self.note_key(bit, in_time);
            }
            Word::Has { in_time } => {
                // Any request that was under way to set the key was carried out.
                self.unheard &= !bit;
                self.note_key(bit, in_time);
                // An answer that is read after its round has ended may have been given long before, so it
                // disproves nothing. A later question may still prove it. The same holds for a takeover, which
                // comes before all rounds.
                if self.rounds.iter().any(|round| round.number == number) {
                    self.unproven &= !bit;
                }
            }
            Word::Repaired => {
                self.unheard &= !bit;
                self.note_key(bit, false);
            }
            Word::NotSet => {
                self.unheard &= !bit;
                self.lose(bit);
            }
            // The answer to the next question tells what it has left.
            Word::Ended => self.unheard &= !bit,
            Word::Absent => {
                self.lose(bit);
                self.absent |= bit;
            }
            Word::Foreign => {
                self.lose(bit);
                self.absent &= !bit;
            }
        }
    }

    /// The number of the last acquire or repair that this server was sent.
    fn last_setter(&self, server: usize) -> u32 {
        self.repairs.iter().find(|it| it.server == server).map_or(0, |it| it.number)
    }

    fn note_key(&mut self, bit: u64, in_time: bool) {
        self.absent &= !bit;
        if in_time && self.unproven & bit != 0 {
            self.sound |= bit;
            self.unproven &= !bit;
            self.candidates &= !bit;
        } else if self.sound & bit == 0 {
            self.candidates |= bit;
        }
    }

    fn lose(&mut self, bit: u64) {
        self.sound &= !bit;
        self.candidates &= !bit;
        self.unproven &= !bit;
        for round in &mut self.rounds {
            round.candidates &= !bit;
        }
    }

    /// Whether this server's word that it has the key is a vote.
    pub fn is_sound(&self, server: usize) -> bool {
        self.sound & (1 << server) != 0
    }

    /// How many servers may still vouch for the lock: those that are sound, and those that may turn out to be.
    /// If they are no quorum, the lock is lost for good.
    pub fn voters(&self) -> u32 {
        (self.sound | self.unproven).count_ones()
    }

    /// Begins a round of asking the servers. Returns its number.
    pub fn begin_round(&mut self) -> u32 {
        let number = self.next_number();
        self.rounds.push(RepairRound { number, candidates: self.candidates });
        number
    }

    fn next_number(&mut self) -> u32 {
        self.last_number = self.last_number.wrapping_add(1);
        self.last_number
    }

    /// Ends this round as failed.
    pub fn fail_round(&mut self, number: u32) {
        self.rounds.retain(|round| round.number != number);
    }

    /// Ends this round as passed: a quorum of these servers, each sound, said in time that it has the key. The
    /// servers that were candidates when the round began become sound. If some voters were heard meanwhile to
    /// have lost the key and the others are no quorum, returns false and changes no server's standing.
    pub fn pass_round(&mut self, number: u32, voters: u64, quorum: u32) -> bool {
        let round = self.rounds.iter().position(|round| round.number == number);
        let Some(round) = round.map(|place| self.rounds.swap_remove(place)) else { return false };
        if (voters & self.sound).count_ones() < quorum {
            return false;
        }
        let admitted = round.candidates & self.candidates;
        self.sound |= admitted;
        self.candidates &= !admitted;
        self.unproven &= !admitted;
        true
    }

    /// The servers that must be given the key again after a round that succeeded. They must be sent a repair of
    /// this number now. [`Self::withdraw_repairs`] takes it back. Returns none while another round is under
    /// way.
    pub fn begin_repairs(&mut self) -> (u32, u64) {
        let servers = self.absent & !self.unheard;
        if servers == 0 || !self.rounds.is_empty() {
            return (0, 0);
        }
        self.absent &= !servers;
        self.unheard |= servers;
        let number = self.next_number();
        self.repairs.retain(|it| servers & (1 << it.server) == 0);
        let repaired = (0..64).filter(|server| servers & (1 << server) != 0);
        self.repairs.extend(repaired.map(|server| Repair { server, number }));
        (number, servers)
    }

    /// Takes the repair back for these servers, because it was not sent to them.
    pub fn withdraw_repairs(&mut self, servers: u64) {
        self.unheard &= !servers;
        self.absent |= servers;
    }
}

#[cfg(test)]
mod tests;
