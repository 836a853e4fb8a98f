//! The clock of the client that runs.

use crate::moment::Moment;
use crate::world::{self, turns};

/// Now, by that clock. The client may be kept from running before it looks, and after it.
pub(crate) fn now() -> Moment {
    turns::step();
    turns::look();
    let shown = world::with(|world| world.clock_of_current());
    turns::step();
    Moment::from_nanos(shown)
}
