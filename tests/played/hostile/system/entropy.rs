//! Random bytes, the same in each run.

use crate::protocol::error::Error;
use crate::protocol::token::Entropy;
use crate::world;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SystemEntropy;

impl Entropy for SystemEntropy {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), Error> {
        world::with(|world| bytes.iter_mut().for_each(|it| *it = world.roll()));
        Ok(())
    }
}
