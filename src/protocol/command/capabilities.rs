//! What some servers can do and others cannot.

/// Which commands a server has. Determined once per connection. It is passed on for each request, and aligned so that it
/// is copied in one piece.
#[repr(align(8))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Capabilities {
    pub(super) delete: Delete,
    /// Whether it has `PEXPIRETIME` (Redis 7.0), and must be asked for the time on its clock.
    pub(super) expiry_time: bool,
    /// Whether an acquire does not ask when the key ends. Only a refused caller needs to know that.
    pub(super) leaves_out_end: bool,
    /// Whether a release wakes waiters.
    pub(super) wakes: bool,
    /// Whether there may be waiters, judging by the last release.
    pub(super) expects_waiters: bool,
    /// Whether the server sends push messages (RESP3).
    pub(super) pushes: bool,
    /// Whether it has `MSETEX` (Redis 8.4, Valkey 9.1).
    pub(super) sets_several: bool,
}

impl Capabilities {
    /// Whether the server sends push messages.
    pub(crate) fn has_pushes(self) -> bool {
        self.pushes
    }

    /// The capabilities after the server has refused a request in the form that they lead to. Only the
    /// capability that has led to it is removed.
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

    /// The same, but a release wakes nobody.
    pub(super) fn without_waking(self) -> Self {
        Self { wakes: false, ..self }
    }

    /// The same, with or without expected waiters.
    pub(crate) fn expecting(self, expects_waiters: bool) -> Self {
        Self { expects_waiters, ..self }
    }

    /// Whether a release wakes the waiters in the same script. If the server has a command of its own to
    /// delete a key, that command is used as long as nobody seems to wait. It takes half the time.
    pub(super) fn releases_by_script(self) -> bool {
        self.wakes && (self.expects_waiters || self.delete == Delete::Script)
    }

    /// The same, for an acquire that is likely to be granted.
    pub(crate) fn without_end(self) -> Self {
        Self { leaves_out_end: true, ..self }
    }

    /// The same, for a server whose clock is not checked.
    pub(crate) fn without_clock(self) -> Self {
        Self { expiry_time: false, ..self }
    }
}

/// How to delete a key that has a certain value.
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
    /// The capabilities of every server.
    pub(crate) const PLAIN: Self = Self {
        delete: Delete::Script,
        expiry_time: false,
        leaves_out_end: false,
        sets_several: false,
        wakes: false,
        expects_waiters: false,
        pushes: false,
    };

    /// The capabilities of a new enough Valkey.
    pub(crate) const DELIFEQ: Self = Self { delete: Delete::Delifeq, ..Self::PLAIN };

    /// The capabilities of a new enough Redis.
    pub(crate) const DELEX: Self = Self { delete: Delete::Delex, ..Self::PLAIN };

    /// The capabilities of a Redis 7.0 whose clock is checked.
    pub(crate) const EXPIRY_TIME: Self = Self { expiry_time: true, ..Self::PLAIN };

    /// The capabilities of a Redis 6.0, with wake-ups.
    pub(crate) const WAKING: Self = Self { wakes: true, pushes: true, ..Self::PLAIN };

    /// The same of a new enough Valkey.
    pub(crate) const WAKING_DELIFEQ: Self = Self { delete: Delete::Delifeq, ..Self::WAKING };
    /// The capabilities of a server that has `MSETEX`.
    pub(crate) const MSETEX: Self = Self { sets_several: true, ..Self::PLAIN };
}
