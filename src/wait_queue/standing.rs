//! Where one stands that wants several resources at once.

use super::line::Line;
use crate::moment::Moment;

pub(super) struct Standing {
    pub(super) thread: Option<usize>,
    /// In which queues: a bit for each of the resources.
    pub(super) queues: u128,
    /// Since when others could have those that are free.
    pub(super) holds_up_since: Option<Moment>,
    /// Its place on the servers: on each in the line of one of the resources.
    pub(super) line: Line,
    /// In whose lines it may stand: a bit for each of the resources.
    pub(super) lined: u128,
}

impl Standing {
    pub(super) fn new(thread: Option<usize>) -> Self {
        Self { thread, queues: 0, holds_up_since: None, line: Line::default(), lined: 0 }
    }
}
