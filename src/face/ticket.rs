//! The ticket of a lock that is handed over.

use std::fmt;

use crate::manager::call::Call;

/// Hands a lock over from one process to another. A ticket is printable ASCII without spaces.
/// [`super::Lease::detach`] makes it, and [`super::Manager::adopt`] uses it, once.
///
/// A ticket is as secret as a password: anybody who knows it can release the lock. Pass it by a pipe or by the
/// environment, never in the arguments of a program. `Debug` does not show it; [`Ticket::as_str`] does.
///
/// ```
/// let ticket = redlock::Ticket::from("what came by a pipe".to_owned());
/// assert_eq!(format!("{ticket:?}"), "Ticket(secret)");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Ticket(String);

impl Ticket {
    /// The text to hand over.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The call that takes over its lock.
    pub(super) fn call(&self) -> Call<'_> {
        Call::Adopt { ticket: self.0.as_bytes() }
    }
}

impl From<String> for Ticket {
    /// A text that is not a ticket is refused when it is used.
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ticket(secret)")
    }
}
