//! What may happen in an exploration, and the mistakes that can be built into the rules.

use crate::state::SERVERS;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    /// How many times a server loses something.
    pub(crate) losses: u8,
    /// How many notes are rewritten without a loss.
    pub(crate) rewrites: u8,
    pub(crate) forgets: Forgets,
    pub(crate) clocks: Clocks,
    /// Whether the restoring write of a second client may arrive late.
    pub(crate) has_late_writes: bool,
    /// Whether the others may be down when a server's numbers are restored.
    pub(crate) has_outages: bool,
    /// Whether the first server has lost its numbers before, and a client has sent what restores them.
    pub(crate) is_first_lost: bool,
    /// How many of the servers may lose something or have their notes rewritten.
    pub(crate) unreliable: usize,
    /// Whether the second client begins when the first one has its lock, or has given up. That is enough to find
    /// most mistakes.
    pub(crate) is_one_by_one: bool,
    pub(crate) mistake: Option<Mistake>,
}

/// The ways in which servers lose something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Forgets {
    /// A server comes back empty.
    All,
    /// The same; or older data comes back; or a copy that lags behind is promoted.
    AllOrNews,
    /// The same as in the first case, or somebody deletes the hash.
    AllOrHash,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clocks {
    /// Each clock is set at any time, forward and back. So each draw sees a clock of its own.
    AnySetAtWill,
    /// The clocks of all servers show the same, and those of the clients are wrong by a second at most.
    NeverSetBack,
    /// The clock of the first server is beyond what may be drawn. The others are right.
    OneBeyondTheLimit,
}

/// A rule that is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mistake {
    NothingIsRestored,
    ReadFromOneOther,
    UnfitServersAreRead,
    ServersByTheClockAreRead,
    OnlyTheFieldsAreRead,
    ReadWithinTheGuardTime,
    TooFewAreNotMarked,
    LateWriteIsNotBoundToTheNote,
    LateWriteIsNotBoundToTheLoss,
    DrawBeginsTheLife,
    OlderNoteIsBelieved,
    OlderNoteOfTheSameLifeIsBelieved,
    CopyIsBelieved,
    RewriteBeginsALife,
    RewriteMakesAnyHashFit,
    NoRaise,
    RaiseWithoutTheLock,
    NoLimit,
}

impl Start {
    pub(crate) fn makes(&self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake)
    }

    /// Whether nothing depends on which server is which.
    pub(crate) fn has_equal_servers(&self) -> bool {
        let is_any = self.clocks != Clocks::OneBeyondTheLimit && !self.is_first_lost;
        is_any && matches!(self.unreliable, 0 | SERVERS)
    }
}
