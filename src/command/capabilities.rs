//! What a server can do that others cannot.

/// Which commands a server has: found out once per connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Capabilities {
    pub(super) delete: Delete,
    /// Whether it has `PEXPIRETIME` (Redis 7.0), and is to be asked for the time that its clock shows.
    pub(super) expiry_time: bool,
    /// Whether it has `MSETEX` (Redis 8.4, Valkey 9.1).
    pub(super) sets_several: bool,
}

impl Capabilities {
    /// The same, of a server whose clock is not looked at.
    pub(crate) fn without_clock(self) -> Self {
        Self { expiry_time: false, ..self }
    }
}

/// How a key is deleted that has a certain value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Delete {
    /// A script: every server since 2.6.
    #[default]
    Script,
    /// `DELEX key IFEQ value`: Redis 8.4.
    Delex,
    /// `DELIFEQ key value`: Valkey 9.0.
    Delifeq,
}

#[cfg(test)]
impl Capabilities {
    /// Those of every server.
    pub(crate) const PLAIN: Self =
        Self { delete: Delete::Script, expiry_time: false, sets_several: false };

    /// Those of a Valkey that is new enough.
    pub(crate) const DELIFEQ: Self = Self { delete: Delete::Delifeq, ..Self::PLAIN };

    /// Those of a Redis that is new enough.
    pub(crate) const DELEX: Self = Self { delete: Delete::Delex, ..Self::PLAIN };

    /// Those of a Redis 7.0 whose clock is looked at.
    pub(crate) const EXPIRY_TIME: Self = Self { expiry_time: true, ..Self::PLAIN };

    /// Those of a server that has MSETEX.
    pub(crate) const MSETEX: Self = Self { sets_several: true, ..Self::PLAIN };
}
