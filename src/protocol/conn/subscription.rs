//! Whether a server forwards messages that are published to our channel.

use crate::protocol::failure::Failure;
use crate::protocol::token::Token;

/// Whether the server forwards messages that are published to our channel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Subscription {
    /// We have not subscribed.
    #[default]
    None,
    /// The server does, or was asked to, for the channel of this token.
    To(Token),
    /// The server does not, for this reason.
    Refused(Failure),
}
