//! The name of a memory of a server, in its note and with its numbers.

/// The name of a memory. It is drawn at random when the memory begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryId([u8; 16]);

impl MemoryId {
    pub(crate) fn from_random(number: u64) -> Self {
        let mut digits = [0; 16];
        for (nth, digit) in (0..).zip(&mut digits) {
            *digit = b"0123456789abcdef"[(number >> (60 - 4 * nth) & 15) as usize];
        }
        Self(digits)
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        let digits: [u8; 16] = text.as_bytes().try_into().ok()?;
        digits.iter().all(u8::is_ascii_hexdigit).then_some(Self(digits))
    }

    /// 16 hexadecimal digits.
    pub fn as_str(&self) -> &str {
        str::from_utf8(&self.0).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_memory_id_is_16_hex_digits() {
        let name = MemoryId::from_random(0x0123_4567_89ab_cdef);
        assert_eq!(name.as_str(), "0123456789abcdef");
        assert_eq!(MemoryId::parse(name.as_str()), Some(name));
        assert_eq!(MemoryId::parse("0123456789abcdeg"), None);
    }
}
