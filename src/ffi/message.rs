//! Words that C may read at any time.

use std::ffi::{CString, c_char};
use std::sync::atomic::{AtomicU8, Ordering};

use crate::fork::ForkMutex;

/// The longest message, with its NUL.
const CAPACITY: usize = 4096;

/// The words of a manager. Threads share a manager, so one may read its words while another call
/// writes new ones: the bytes never move, the last one is always NUL, and a reader sees at worst a
/// mixture of both.
pub(super) struct Message {
    bytes: Box<[AtomicU8; CAPACITY]>,
    writing: ForkMutex<()>,
}

impl Message {
    pub(super) fn set(&self, words: &str) {
        // A child that was forked while its parent wrote goes without the words.
        let Ok(_writing) = self.writing.lock() else { return };
        let words = without_nul(words);
        let fits = words.char_indices().map(|(at, it)| at + it.len_utf8());
        let length = fits.take_while(|&end| end < CAPACITY).last().unwrap_or(0);
        for (slot, byte) in self.bytes.iter().zip(words[..length].bytes().chain([0])) {
            slot.store(byte, Ordering::Relaxed);
        }
    }

    pub(super) fn as_ptr(&self) -> *const c_char {
        self.bytes.as_ptr().cast()
    }
}

impl Default for Message {
    fn default() -> Self {
        let bytes = Box::new([const { AtomicU8::new(0) }; CAPACITY]);
        Self { bytes, writing: ForkMutex::new(()) }
    }
}

/// `words` as a C string. What we say never holds a NUL; if it did, it would end there.
pub(super) fn c_string(words: &str) -> CString {
    CString::new(without_nul(words)).unwrap_or_default()
}

fn without_nul(words: &str) -> &str {
    words.split('\0').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    use super::*;

    fn kept(words: &str) -> String {
        let message = Message::default();
        message.set("the words before");
        message.set(words);
        let bytes: Vec<u8> = message.bytes.iter().map(|it| it.load(Ordering::Relaxed)).collect();
        let words = CStr::from_bytes_until_nul(&bytes).expect("there is a NUL");
        words.to_str().expect("whole characters").to_owned()
    }

    #[test]
    fn words_that_are_too_long_are_cut_and_end_with_a_nul() {
        for fits in ["", "some words", &"x".repeat(CAPACITY - 1)] {
            assert_eq!(kept(fits), fits);
        }
        for length in [CAPACITY, CAPACITY + 1, 2 * CAPACITY] {
            assert_eq!(kept(&"x".repeat(length)), "x".repeat(CAPACITY - 1));
        }
        // No character is cut in two.
        assert_eq!(kept(&"\u{e9}".repeat(CAPACITY)).len(), CAPACITY - 2);
        assert_eq!(kept("up to here\0and no further"), "up to here");
    }
}
