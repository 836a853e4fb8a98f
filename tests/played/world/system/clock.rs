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

/// What the client's machine shows, in microseconds: hours from the truth. The servers' clocks begin at nothing.
pub(crate) fn wall_us() -> i64 {
    world::with(|world| world.wall_us_of_current())
}
