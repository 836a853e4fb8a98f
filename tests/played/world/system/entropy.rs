//! The dice of the running client.

use crate::protocol::error::Error;
use crate::protocol::token::{Entropy, Token};
use crate::schedules::plants::Plant;
use crate::world;
use crate::world::store::tag;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SystemEntropy;

impl Entropy for SystemEntropy {
    /// No caller is stopped here, because the library draws while it holds mutexes that are not simulated.
    fn fill(&self, bytes: &mut [u8]) -> Result<(), Error> {
        let plant = world::with(|world| world.schedule.plant);
        if plant == Some(Plant::Panics) {
            panic!("there is no randomness, as broken as can be");
        }
        if plant == Some(Plant::RepeatsBytes) {
            bytes.fill(7);
            return Ok(());
        }
        let rigged = world::with(|world| world.rigged()).filter(|_| bytes.len() == 8);
        if let Some(number) = rigged {
            bytes.copy_from_slice(&number.to_ne_bytes());
            return Ok(());
        }
        world::with(|world| {
            let dice = world.dice_of_current();
            for chunk in bytes.chunks_mut(8) {
                chunk.copy_from_slice(&dice.roll().to_ne_bytes()[..chunk.len()]);
            }
            if let Ok(bytes) = <[u8; 20]>::try_from(&*bytes) {
                let token = Token::from_random(bytes);
                world.records.note_drawn(tag(token.as_bytes()));
            }
        });
        Ok(())
    }
}
