//! What may happen in an exploration, and the mistakes that can be built into the rules.

use crate::state::{ARBITERS, Epoch};

/// All times are in ticks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    /// How long a voter keeps the lock for a client.
    pub(crate) ttl: u8,
    /// How long a client holds the lock, from sending the request.
    pub(crate) hold: u8,
    /// How long before a request the arbiters may be asked at the earliest.
    pub(crate) lead: u8,
    /// How old its note must be when an owner votes.
    pub(crate) wait: u8,
    /// The last epoch to which an owner is promoted.
    pub(crate) last: Epoch,
    /// Whether each clock may be wrong by a tick, once: that of a client behind, that of a server ahead.
    pub(crate) has_drift: bool,
    /// Whether a client needs two of three voters. The other two are servers that nobody watches.
    pub(crate) has_plain_voters: bool,
    pub(crate) mistake: Option<Mistake>,
}

/// A rule that is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mistake {
    /// Nobody asks an arbiter. An owner votes as soon as its note is old enough.
    NoLease,
    NoteWithoutAMajority,
    NoteWithoutEpoch,
    /// A promoted owner counts as a server that is new, and votes at once.
    PromotedOwnerIsNew,
    /// A promoted owner has the note of the other one. It may be its own note, which was copied there and back.
    CopiedNoteIsBelieved,
    /// An answer names the owner alone. So the note cannot bear an epoch, either.
    AnswerWithoutEpoch,
    OneArbiterIsEnough,
    /// The first arbiter is the owner, whoever that is. It names itself.
    OwnerIsItsOwnArbiter,
    /// An arbiter names an earlier owner again.
    ArbiterForgets,
    /// The age of a majority counts from the last answer, and not from the question.
    AgeFromTheAnswer,
    OwnerVotesATickTooSoon,
}

impl Start {
    pub(crate) fn makes(&self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake)
    }

    /// How many arbiters must name the same owner and epoch.
    pub(crate) fn majority(&self) -> u32 {
        if self.makes(Mistake::OneArbiterIsEnough) { 1 } else { ARBITERS as u32 / 2 + 1 }
    }

    /// The age of a note from which an owner votes.
    pub(crate) fn age_of_vote(&self) -> u8 {
        self.wait - u8::from(self.makes(Mistake::OwnerVotesATickTooSoon))
    }

    pub(crate) fn notes_have_epochs(&self) -> bool {
        !self.makes(Mistake::NoteWithoutEpoch) && !self.makes(Mistake::AnswerWithoutEpoch)
    }

    /// Whether nothing depends on which arbiter is which. Otherwise the first one is special.
    pub(crate) fn has_equal_arbiters(&self) -> bool {
        !self.makes(Mistake::OwnerIsItsOwnArbiter)
    }
}
