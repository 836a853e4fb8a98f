//! Whether a server tells us what is published to our channel.

use crate::failure::Failure;
use crate::token::Token;

/// Whether the server tells us what is published to our channel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Subscription {
    /// We have not asked.
    #[default]
    None,
    /// It does, or was asked to, for the channel of this token.
    To(Token),
    /// It does not, for this reason.
    Refused(Failure),
}
