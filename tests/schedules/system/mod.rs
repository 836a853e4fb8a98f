//! The world as the library sees it, in place of `src/system`: the same calls, and all of it played.

pub(crate) mod clock;
pub(crate) mod entropy;
pub(crate) mod process;
pub(crate) mod socket;
pub(crate) mod sync;
