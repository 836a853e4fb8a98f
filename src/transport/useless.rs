//! Why a connection is given up after something was received over it.

use std::fmt;

use super::guard::Forgotten;
use super::reply::Nonsense;

/// Why a connection is of no use any more, after what was received over it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Useless {
    Nonsense(Nonsense),
    Forgotten(Forgotten),
    /// The server is now a replica, and Sentinels know the master.
    Demoted,
}

impl From<Nonsense> for Useless {
    fn from(nonsense: Nonsense) -> Self {
        Self::Nonsense(nonsense)
    }
}

impl From<Forgotten> for Useless {
    fn from(forgotten: Forgotten) -> Self {
        Self::Forgotten(forgotten)
    }
}

impl fmt::Display for Useless {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nonsense(it) => it.fmt(f),
            Self::Forgotten(it) => it.fmt(f),
            Self::Demoted => f.write_str("it is a replica by now"),
        }
    }
}
