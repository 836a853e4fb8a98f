//! Where one stands that wants several resources at once.

use crate::moment::Moment;

pub(super) struct Standing {
    pub(super) thread: Option<usize>,
    /// In which queues: a bit for each of the resources.
    pub(super) queues: u128,
    /// Since when others could have those that are free.
    pub(super) holds_up_since: Option<Moment>,
}

impl Standing {
    pub(super) fn new(thread: Option<usize>) -> Self {
        Self { thread, queues: 0, holds_up_since: None }
    }
}
