//! The random value that identifies the holder of a lock.

use std::fmt;

use crate::protocol::error::Error;

/// The number of random bytes of a token, as the Redlock page demands.
const BYTES: usize = 20;

/// A source of random bytes: the system's in real use, a seeded one in a simulation.
pub trait Entropy {
    /// Fills `bytes`, or fails if the source gives no bytes.
    fn fill(&self, bytes: &mut [u8]) -> Result<(), Error>;
}

/// 20 random bytes as 40 upper-case hexadecimal digits. Its `Debug` output shows none of them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token([u8; 2 * BYTES]);

impl Token {
    /// The token for a request from a client that has no token. No lock and no channel has this token.
    pub(crate) const NOBODYS: Self = Self([b'0'; 2 * BYTES]);

    /// Draws a new token.
    pub fn draw(entropy: &impl Entropy) -> Result<Self, Error> {
        let mut bytes = [0; BYTES];
        entropy.fill(&mut bytes)?;
        Ok(Self::from_random(bytes))
    }

    /// The token made of these bytes.
    pub fn from_random(bytes: [u8; BYTES]) -> Self {
        const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
        let mut digits = [0; 2 * BYTES];
        for (pair, byte) in digits.chunks_exact_mut(2).zip(bytes) {
            pair[0] = DIGITS[usize::from(byte >> 4)];
            pair[1] = DIGITS[usize::from(byte & 15)];
        }
        Self(digits)
    }

    /// The token with these digits, if they are valid digits of a token.
    pub fn from_digits(digits: &[u8]) -> Option<Self> {
        let is_digit = |it: &u8| matches!(it, b'0'..=b'9' | b'A'..=b'F');
        digits.iter().all(is_digit).then(|| digits.try_into().ok().map(Self)).flatten()
    }

    /// The digits.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    /// A number below `of`. All numbers are about equally frequent.
    pub(crate) fn share_of(&self, of: u16) -> u16 {
        let digits = self.as_str().get(..8).unwrap_or_default();
        let number = u32::from_str_radix(digits, 16).unwrap_or_default();
        u16::try_from(number % u32::from(of.max(1))).unwrap_or_default()
    }

    /// The digits.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// A random number, for a pause.
pub(crate) fn random(entropy: &impl Entropy) -> Result<u64, Error> {
    let mut bytes = [0; 8];
    entropy.fill(&mut bytes)?;
    Ok(u64::from_ne_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::error::Status;
    use crate::system::entropy::SystemEntropy;

    #[test]
    fn a_token_has_40_upper_case_hex_digits() {
        let mut bytes = [0; BYTES];
        bytes[0] = 0xA5;
        bytes[19] = 0x0F;
        assert_eq!(Token::from_random(bytes).as_str(), "A50000000000000000000000000000000000000F");
    }

    #[test]
    fn a_token_is_read_only_from_valid_digits() {
        let token = Token::from_random([0x5F; BYTES]);
        assert_eq!(Token::from_digits(token.as_bytes()), Some(token));
        let digits = token.as_str();
        for bad in [
            &digits[1..],
            &format!("{digits}0"),
            &digits.to_lowercase(),
            &digits.replacen('5', "G", 1),
        ] {
            assert_eq!(Token::from_digits(bad.as_bytes()), None);
        }
    }

    #[test]
    fn each_drawn_token_is_different() {
        let first = Token::draw(&SystemEntropy).unwrap();
        assert_ne!(first, Token::draw(&SystemEntropy).unwrap());
    }

    /// A source that gives nothing but ones, or nothing at all.
    struct Source(Result<u8, Status>);

    impl Entropy for Source {
        fn fill(&self, bytes: &mut [u8]) -> Result<(), Error> {
            bytes.fill(self.0.map_err(|it| Error::new(it, "no"))?);
            Ok(())
        }
    }

    #[test]
    fn all_digits_of_a_token_are_random() {
        assert_eq!(Token::draw(&Source(Ok(0xFF))).unwrap().as_str(), "F".repeat(40));
        assert_eq!(random(&Source(Ok(0xFF))).unwrap(), u64::MAX);
    }

    #[test]
    fn without_randomness_there_is_no_token() {
        let none = Source(Err(Status::Internal));
        assert_eq!(Token::draw(&none).unwrap_err().status(), Status::Internal);
        assert_eq!(random(&none).unwrap_err().status(), Status::Internal);
    }

    #[test]
    fn debug_output_keeps_the_secret() {
        let token = Token::draw(&SystemEntropy).unwrap();
        assert!(!format!("{token:?}").contains(&token.as_str()[..6]));
    }
}
