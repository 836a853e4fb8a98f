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
