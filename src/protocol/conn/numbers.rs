//! Whether a server has the numbers that it draws as fencing tokens.

use std::borrow::Cow;

use crate::protocol::log_line::Level;
use crate::protocol::refusal::Refusal;

/// The state of a server's numbers, as its last answer about them shows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Numbers {
    #[default]
    Known,
    Lost,
    /// Restored by the clock, because too few servers could be read.
    ByClock,
    /// Something else is in their place.
    Damaged,
    /// This user may not use them.
    Forbidden(Refusal),
}

impl Numbers {
    /// What to report about the server.
    pub(crate) fn caveat(self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::Known => "",
            Self::Lost => {
                "no vote for locks with fencing tokens: the fencing counters are lost and not restored yet"
            }
            Self::ByClock => {
                "the fencing counters were lost and restarted from the clock, because too few other servers could be read"
            }
            Self::Damaged => {
                "no vote for locks with fencing tokens: key redlock:fence holds something else: delete the key"
            }
            Self::Forbidden(refusal) => {
                return Cow::Owned(format!(
                    "no fencing tokens: the user needs +eval +time +hmget +hset +hdel +hgetall ~redlock:fence ({refusal})"
                ));
            }
        })
    }

    /// The log line about a change to this state.
    pub(crate) fn line(self) -> (Level, String) {
        match self {
            Self::Known => (Level::Info, "fencing tokens are available again".to_owned()),
            _ => (Level::Warning, self.caveat().into_owned()),
        }
    }
}
