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
        }
    }

    /// The log line about a change to this state.
    pub(super) fn line(self) -> (Level, String) {
        match self {
            Self::Known => (Level::Info, "its fencing tokens are restored".to_owned()),
            _ => (Level::Warning, self.caveat().to_owned()),
        }
    }
}
