//! What was read of a server's memory along with acquires, beside the note itself.

pub(super) struct Reading {
    /// For how many of the requests that are settled next.
    pub(super) left: usize,
    /// Whether this user may not read it.
    pub(super) is_forbidden: bool,
}
