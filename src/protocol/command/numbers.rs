//! What a server knows of the numbers that it draws as fencing tokens, and what it is told of those of others.

use super::memory_id::MemoryId;

/// What a server knows of fencing tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fences {
    /// The greatest number that it has.
    pub greatest: i64,
    pub state: FencesState,
    /// When it was first seen that they were lost, in milliseconds of the server's clock. It names this loss.
    pub seen_ms: i64,
    /// The memory to which these numbers belong. Set when the answer is received.
    pub memory: Option<NotedMemory>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FencesState {
    /// It knows all numbers that it ever drew.
    Whole,
    /// Its numbers were restored by its clock alone.
    ByClock,
    /// It has lost its numbers, which was first seen so long ago.
    Lost { ago_ms: i64 },
    /// The same, and no lock exists any more that has a number of which it knew. If this has been so for a while, its
    /// clock may stand for servers that cannot be read.
    ToRestore { may_go_by_clock: bool },
}

/// A memory of a server, as its note names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotedMemory {
    pub life: MemoryId,
    pub generation: i64,
}

/// What is written to a server whose numbers are restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Restored {
    pub(crate) memory: NotedMemory,
    /// The loss that is over then: see [`Fences::seen_ms`].
    pub(crate) seen_ms: i64,
    /// No number up to this one is drawn any more.
    pub(crate) base: i64,
    /// If too little could be read: the time on the client's clock, in microseconds, because numbers are about
    /// that. Otherwise 0.
    pub(crate) clock_us: i64,
    /// Whether other servers must not be restored from this one.
    pub(crate) is_by_clock: bool,
}
