//! A clock that advances when a caller waits.

use crate::protocol::moment::Moment;
use crate::world;

pub(crate) fn now() -> Moment {
    world::now()
}

pub(crate) fn wall_us() -> i64 {
    now().as_nanos() / 1_000
}
