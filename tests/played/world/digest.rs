//! Fingerprints of a play. If a change of the library is meant to change nothing, they stay the same:
//! `schedules/golden.rs`.

use std::fmt;

/// What the clients did, and what their callers were told. Each includes the time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Digest {
    /// Connections, and the bytes that were sent over them.
    pub(crate) actions: Fingerprint,
    /// The results of calls, and events, with their words.
    pub(crate) answers: Fingerprint,
}

/// A hash that is the same on each machine and with each compiler. It need not resist anybody.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fingerprint(u64);

impl Fingerprint {
    /// Something happened at this time: the numbers and the bytes tell what.
    pub(crate) fn add(&mut self, now: i64, numbers: &[u64], bytes: &[u8]) {
        self.mix(now.cast_unsigned());
        numbers.iter().for_each(|it| self.mix(*it));
        self.mix(bytes.len() as u64);
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.mix(u64::from_le_bytes(word));
        }
    }

    pub(crate) fn join(&mut self, other: Self) {
        self.mix(other.0);
    }

    fn mix(&mut self, word: u64) {
        // The fractional part of the golden ratio: an odd number whose bits are spread.
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}
