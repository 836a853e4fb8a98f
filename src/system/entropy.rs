//! The only source of randomness.

use rand::TryRng;
use rand::rngs::SysRng;

use crate::protocol::error::{Error, Status};
use crate::protocol::token::Entropy;

/// The operating system's random source. It is asked every time: a generator in memory would give a forked
/// child the same tokens as its parent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SystemEntropy;

impl Entropy for SystemEntropy {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), Error> {
        SysRng.try_fill_bytes(bytes).map_err(|error| {
            Error::new(
                Status::Internal,
                format!("cannot get random bytes from the system: {error}"),
            )
        })
    }
}
