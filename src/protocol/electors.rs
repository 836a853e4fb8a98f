//! What those are called who say which server has the place of a voter.

/// Of which kind they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Electors {
    Sentinels,
    Nodes,
}

impl Electors {
    /// What they are called.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Sentinels => "Sentinels",
            Self::Nodes => "cluster nodes",
        }
    }

    /// The schemes of URLs that name them, without TLS and with it.
    pub(crate) fn schemes(self) -> [&'static str; 2] {
        match self {
            Self::Sentinels => ["redis-sentinel://", "rediss-sentinel://"],
            Self::Nodes => ["redis-cluster://", "rediss-cluster://"],
        }
    }

    /// What they name.
    pub(crate) fn office(self) -> &'static str {
        match self {
            Self::Sentinels => "master",
            Self::Nodes => "owner of the slot",
        }
    }
}
