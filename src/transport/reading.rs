//! What was read of a server's memory along with acquires, beside the note itself.

pub(super) struct Reading {
    /// How many of the requests that are settled next it counts for.
    pub(super) left: usize,
    /// Whether this user may not read the note.
    pub(super) is_forbidden: bool,
}
