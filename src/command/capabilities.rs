//! What a server can do that others cannot.

/// Which commands a server has: found out once per connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Capabilities {
    pub(super) delete: Delete,
    /// Whether it has `PEXPIRETIME` (Redis 7.0), and is to be asked for the time that its clock shows.
    pub(super) expiry_time: bool,
    /// Whether an acquire leaves out to ask when the key ends: that matters to nobody but whoever is refused.
    pub(super) leaves_out_end: bool,
    /// Whether who releases wakes who waits.
    pub(super) wakes: bool,
    /// Whether somebody may be waiting, as far as the last release has shown.
    pub(super) expects_waiters: bool,
    /// Whether the server tells us things by itself (RESP3).
    pub(super) pushes: bool,
    /// Whether it has `MSETEX` (Redis 8.4, Valkey 9.1).
    pub(super) sets_several: bool,
}

impl Capabilities {
    /// Whether the server tells us things by itself.
    pub(crate) fn has_pushes(self) -> bool {
        self.pushes
    }

    /// The same, after the server has refused a request in the form that they lead to: without what has led to it, and with
    /// all else.
    pub(super) fn after_refusal(self, expects_waiters: bool, form: fn(Self) -> usize) -> Self {
        let form = |capabilities: Self| form(capabilities.expecting(expects_waiters));
        let without = [
            self.without_waking(),
            Self { delete: Delete::Script, ..self },
            Self { expiry_time: false, ..self },
            Self { sets_several: false, ..self },
        ];
        without.into_iter().find(|&it| form(it) != form(self)).unwrap_or(self)
    }

    /// The same, where who releases wakes nobody.
    pub(super) fn without_waking(self) -> Self {
        Self { wakes: false, ..self }
    }

    /// The same, where somebody may be waiting, or nobody seems to.
    pub(crate) fn expecting(self, expects_waiters: bool) -> Self {
        Self { expects_waiters, ..self }
    }

    /// Whether who releases wakes who waits in the same script. Where the server has a command of its own to delete a
    /// key, that is used as long as nobody seems to wait: it takes half the time.
    pub(super) fn releases_by_script(self) -> bool {
        self.wakes && (self.expects_waiters || self.delete == Delete::Script)
    }

    /// The same, for an acquire that is likely to be granted.
    pub(crate) fn without_end(self) -> Self {
        Self { leaves_out_end: true, ..self }
    }

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
    pub(crate) const PLAIN: Self = Self {
        delete: Delete::Script,
        expiry_time: false,
        leaves_out_end: false,
        sets_several: false,
        wakes: false,
        expects_waiters: false,
        pushes: false,
    };

    /// Those of a Valkey that is new enough.
    pub(crate) const DELIFEQ: Self = Self { delete: Delete::Delifeq, ..Self::PLAIN };

    /// Those of a Redis that is new enough.
    pub(crate) const DELEX: Self = Self { delete: Delete::Delex, ..Self::PLAIN };

    /// Those of a Redis 7.0 whose clock is looked at.
    pub(crate) const EXPIRY_TIME: Self = Self { expiry_time: true, ..Self::PLAIN };

    /// Those of a Redis 6.0, where waiters are woken.
    pub(crate) const WAKING: Self = Self { wakes: true, pushes: true, ..Self::PLAIN };

    /// The same of a Valkey that is new enough.
    pub(crate) const WAKING_DELIFEQ: Self = Self { delete: Delete::Delifeq, ..Self::WAKING };
    /// Those of a server that has MSETEX.
    pub(crate) const MSETEX: Self = Self { sets_several: true, ..Self::PLAIN };
}
