//! What a lock is handed over by.

use std::fmt;

/// What a lock is handed over by, from one process to another: printable ASCII without spaces, made by
/// [`super::Lease::detach`] and used, once, by [`super::Manager::adopt`].
///
/// It is as secret as a password: who knows it can release the lock. Hand it over by a pipe or the environment,
/// never in the arguments of a program. `Debug` does not show it; [`Ticket::as_str`] does.
///
/// ```
/// let ticket = redlock::Ticket::from("what came by a pipe".to_owned());
/// assert_eq!(format!("{ticket:?}"), "Ticket(secret)");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Ticket(String);

impl Ticket {
    /// The text, to be handed over.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for Ticket {
    /// What is no ticket is refused when it is used.
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ticket(secret)")
    }
}
