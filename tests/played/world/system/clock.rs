//! The clock of the running client.

use crate::protocol::moment::Moment;
use crate::world::{self, turns};

/// The current time by that clock. The client may be kept from running before it looks, and after that.
pub(crate) fn now() -> Moment {
    turns::step();
    turns::look();
    let shown = world::with(|world| world.clock_of_current());
    turns::step();
    Moment::from_nanos(shown)
}

/// The time of day on the client's machine, in microseconds; it may be wrong by hours. The servers' clocks
/// begin at 0.
pub(crate) fn wall_us() -> i64 {
    world::with(|world| world.wall_us_of_current())
}
