//! Whether a server has the numbers that it draws as fencing tokens.

use crate::log::Level;

/// The state of a server's numbers, as its last answer about them shows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Numbers {
    #[default]
    Known,
    Lost,
    /// Restored by the clock, because too few servers could be read.
    ByClock,
    /// Something else is in their place.
    Damaged,
    /// This user may not use them.
    Forbidden,
}

impl Numbers {
    /// What to report about the server.
    pub(super) fn caveat(self) -> &'static str {
        match self {
            Self::Known => "",
            Self::Lost => {
                "no vote for locks with fencing tokens: it lost their numbers, and they are not restored yet"
            }
            Self::ByClock => {
                "its fencing tokens go by its clock: it lost their numbers, and too few servers could be read"
            }
            Self::Damaged => {
                "no vote for locks with fencing tokens: it has something else in its key redlock:fence: delete that key"
            }
            Self::Forbidden => {
                "no fencing tokens: it does not let this user have TIME, EVAL and the key redlock:fence"
            }
        }
    }

    /// The log line about a change to this state.
    pub(super) fn line(self) -> (Level, String) {
        match self {
            Self::Known => (Level::Info, "it draws fencing tokens again".to_owned()),
            _ => (Level::Warning, self.caveat().to_owned()),
        }
    }
}
