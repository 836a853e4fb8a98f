//! Arguments of C calls: mostly such as make sense, but any at all.

use std::ffi::CString;

use crate::choices::Choices;
use crate::urls::SECRET;

impl Choices<'_> {
    /// The name of a lock, or NULL.
    pub(crate) fn resource(&mut self) -> Option<CString> {
        let bytes = match self.byte() {
            0..=63 => b"r".to_vec(),
            64..=127 => b"q".to_vec(),
            128 => return None,
            129 => Vec::new(),
            130 => vec![b'x'; 65_536],
            131 => vec![b'x'; 65_537],
            _ => self.text_bytes(),
        };
        Some(CString::new(bytes).expect("no NUL"))
    }

    /// Any bytes but NUL. The byte 1 stands for a password.
    pub(crate) fn text_bytes(&mut self) -> Vec<u8> {
        let bytes = self.bytes().iter().filter(|&&it| it != 0);
        bytes
            .flat_map(|it| if *it == 1 { SECRET.as_bytes() } else { std::slice::from_ref(it) })
            .copied()
            .collect()
    }

    pub(crate) fn ttl_ms(&mut self) -> i64 {
        match self.byte() {
            0..=127 => 10_000,
            128..=200 => 1_000,
            _ => self.long(),
        }
    }

    pub(crate) fn int(&mut self) -> i32 {
        let small = i32::from(self.byte());
        match small {
            250 => i32::MAX,
            251 => i32::MIN,
            252.. => self.long() as i32,
            _ => small - 3,
        }
    }

    pub(crate) fn long(&mut self) -> i64 {
        let small = i64::from(self.byte());
        match small {
            240 => i64::MAX,
            241 => i64::MIN,
            242 => 315_360_000_000,
            243 => 315_360_000_001,
            244 => 86_400_000,
            245.. => self.eight(),
            0..=120 => small - 3,
            _ => small * 100,
        }
    }
}
