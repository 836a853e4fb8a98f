//! Which servers may vouch for a lock, by what each has said of its key.
//!
//! A lock that a majority lost must not come back, or it would be vouched for although somebody else had
//! it in between. So not every server that has the key counts. A server is *sound* while it is known to
//! have had the key since the lock was taken; only sound servers vote when a lock is extended or
//! confirmed. One that says that the key is gone is sound no more. It may be sent the key again (a
//! *repair*), and is a *candidate* once it has it: a candidate becomes sound by a round of sound servers
//! that began after it was heard, and succeeded, for that shows that nobody else can have had a quorum.
//!
//! `tests/pure/standing` goes through all that can happen to three servers.

/// What a server has said of the key, or what was found out of that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Word {
    /// It carried out the acquire, and is known to have done so in time (see [`Standings::hear`]) or
    /// not.
    Granted { in_time: bool },
    /// It did not carry out an acquire or a repair, and never will.
    NotSet,
    /// It carried out a repair.
    Repaired,
    /// It has the key with our token, and is known to have had it in time, or not.
    Has { in_time: bool },
    /// It has no such key.
    Absent,
    /// The key is somebody else's.
    Foreign,
}

/// What is known of the servers of one lock. Sets have one bit a server, in the order of the manager
/// that took the lock.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Standings {
    sound: u64,
    candidates: u64,
    /// The acquire may have been carried out there, and nothing was heard yet that tells when.
    unproven: u64,
    /// An acquire or a repair was sent there and was not answered: it may be carried out at any time
    /// still. No other is sent meanwhile, so at most one is ever under way.
    unheard: u64,
    /// Those that said that the key is gone, and may be given it again.
    absent: u64,
    /// The rounds that are under way, each with those that were candidates when it began.
    rounds: Vec<Round>,
    last_round: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Round {
    number: u32,
    candidates: u64,
}

impl Standings {
    /// Those of a lock that is about to be asked for on so many servers.
    pub fn new(servers: usize) -> Self {
        let all = if servers < 64 { (1 << servers) - 1 } else { u64::MAX };
        Self {
            sound: 0,
            candidates: 0,
            unproven: all,
            unheard: all,
            absent: 0,
            rounds: Vec::new(),
            last_round: 0,
        }
    }

    /// The lock was had: these servers had granted it when that was decided, and to these something
    /// had been sent.
    pub fn take(&mut self, granted: u64, sent: u64) {
        self.unproven &= sent & !granted;
        self.unheard &= sent & !granted;
        self.sound |= granted;
    }

    /// A server has said something; perhaps nobody waited for it any more.
    ///
    /// `in_time` is what is known to have happened within the reply timeout of the acquire. A grant that is
    /// carried out later may follow upon somebody else's lock.
    pub fn hear(&mut self, server: usize, word: Word) {
        let bit = 1 << server;
        match word {
            Word::Granted { in_time } => {
                self.unheard &= !bit;
                self.note_key(bit, in_time);
            }
            Word::Has { in_time } => {
                // Whatever was under way to set it was carried out.
                self.unheard &= !bit;
                self.note_key(bit, in_time);
                self.unproven &= !bit;
            }
            Word::Repaired => {
                self.unheard &= !bit;
                self.note_key(bit, false);
            }
            Word::NotSet => {
                self.unheard &= !bit;
                self.lose(bit);
            }
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

    /// How many servers may yet vouch for the lock: those that are sound, and those that may turn out to
    /// be. If they are no quorum, the lock is lost for good.
    pub fn voters(&self) -> u32 {
        (self.sound | self.unproven).count_ones()
    }

    /// A round of asking them begins. Returns its number.
    pub fn begin_round(&mut self) -> u32 {
        self.last_round = self.last_round.wrapping_add(1);
        let round = Round { number: self.last_round, candidates: self.candidates };
        self.rounds.push(round);
        self.last_round
    }

    /// That round failed.
    pub fn fail_round(&mut self, number: u32) {
        self.rounds.retain(|round| round.number != number);
    }

    /// In that round a quorum of these servers, each sound, said in time that it has the key: those
    /// that were candidates when it began are sound now. Returns false, and changes nothing, if they are no
    /// quorum any more, since some have been heard meanwhile to have lost it.
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

    /// The servers that are to be given the key again, after a round that succeeded: they have to be sent
    /// a repair now, which [`Self::withdraw_repairs`] takes back. None while another round is under way.
    pub fn begin_repairs(&mut self) -> u64 {
        if !self.rounds.is_empty() {
            return 0;
        }
        let servers = self.absent & !self.unheard;
        self.absent &= !servers;
        self.unheard |= servers;
        servers
    }

    /// To these servers the repair was not sent.
    pub fn withdraw_repairs(&mut self, servers: u64) {
        self.unheard &= !servers;
        self.absent |= servers;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A lock that the first two of three servers granted, and nothing was heard of the third.
    fn taken() -> Standings {
        let mut standings = Standings::new(3);
        standings.take(0b011, 0b111);
        standings
    }

    fn sound(standings: &Standings) -> Vec<usize> {
        (0..3).filter(|&server| standings.is_sound(server)).collect()
    }

    fn pass(standings: &mut Standings, voters: u64) -> bool {
        let round = standings.begin_round();
        standings.pass_round(round, voters, 2)
    }

    #[test]
    fn those_that_granted_are_sound_and_so_is_one_that_is_known_to_have_granted_in_time() {
        let mut standings = taken();
        assert_eq!((sound(&standings), standings.voters()), (vec![0, 1], 3));
        for word in [Word::Granted { in_time: true }, Word::Has { in_time: true }] {
            let mut standings = standings.clone();
            standings.hear(2, word);
            assert_eq!(sound(&standings), [0, 1, 2]);
        }
        standings.hear(2, Word::Granted { in_time: false });
        assert_eq!((sound(&standings), standings.voters()), (vec![0, 1], 3));
        // How long it has the key still tells when it granted it.
        standings.hear(2, Word::Has { in_time: true });
        assert_eq!(sound(&standings), [0, 1, 2]);
    }

    #[test]
    fn a_server_that_was_not_asked_or_refused_cannot_vouch() {
        let mut standings = Standings::new(3);
        standings.hear(1, Word::NotSet);
        standings.take(0b001, 0b011);
        assert_eq!((sound(&standings), standings.voters()), (vec![0], 1));
    }

    #[test]
    fn a_late_grant_counts_after_a_round_that_began_when_it_was_heard() {
        let mut standings = taken();
        let round = standings.begin_round();
        standings.hear(2, Word::Granted { in_time: false });
        assert!(standings.pass_round(round, 0b011, 2));
        assert_eq!(sound(&standings), [0, 1]);
        assert!(pass(&mut standings, 0b011));
        assert_eq!(sound(&standings), [0, 1, 2]);
    }

    #[test]
    fn who_lost_the_key_is_repaired_and_counts_after_the_next_round() {
        let mut standings = taken();
        let round = standings.begin_round();
        standings.hear(2, Word::Has { in_time: true });
        standings.hear(0, Word::Absent);
        assert_eq!(standings.begin_repairs(), 0, "a round is under way");
        assert!(standings.pass_round(round, 0b110, 2));
        assert_eq!(standings.begin_repairs(), 0b001);
        assert_eq!(standings.begin_repairs(), 0, "one at a time");
        standings.hear(0, Word::Absent);
        assert_eq!(standings.begin_repairs(), 0, "the first may be carried out still");
        standings.hear(0, Word::Repaired);
        assert_eq!(sound(&standings), [1, 2]);
        assert!(pass(&mut standings, 0b110));
        assert_eq!(sound(&standings), [0, 1, 2]);
    }

    #[test]
    fn a_repair_that_was_not_sent_is_due_again() {
        let mut standings = taken();
        standings.hear(0, Word::Absent);
        assert_eq!(standings.begin_repairs(), 0b001);
        standings.withdraw_repairs(0b001);
        assert_eq!(standings.begin_repairs(), 0b001);
        standings.hear(0, Word::NotSet);
        assert_eq!(standings.begin_repairs(), 0, "somebody else's");
    }

    #[test]
    fn a_vote_is_none_once_its_server_is_heard_to_have_lost_the_key() {
        let mut standings = taken();
        let round = standings.begin_round();
        standings.hear(1, Word::Absent);
        assert!(!standings.pass_round(round, 0b011, 2));
        let round = standings.begin_round();
        standings.fail_round(round);
        assert!(!standings.pass_round(round, 0b011, 2));
    }

    #[test]
    fn a_candidate_that_loses_the_key_again_is_none() {
        let mut standings = taken();
        standings.hear(2, Word::Granted { in_time: false });
        let round = standings.begin_round();
        standings.hear(2, Word::Absent);
        // It has it again; but that was heard after the round had begun.
        standings.hear(2, Word::Has { in_time: true });
        assert!(standings.pass_round(round, 0b011, 2));
        assert_eq!(sound(&standings), [0, 1]);
    }
}
