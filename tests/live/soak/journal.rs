//! The log of the process that drives the workers: what it did to them and to the servers, and when.

use std::fmt::Display;
use std::fs::File;
use std::io::Write;
use std::mem;
use std::path::Path;
use std::process;
use std::sync::Mutex;

const NAME: &str = "driver";

pub(crate) struct Journal {
    file: Mutex<File>,
}

impl Journal {
    pub(crate) fn new(directory: &Path) -> Self {
        let file = File::create_new(directory.join(NAME).with_extension("log"));
        let journal = Self { file: Mutex::new(file.expect("a file can be made")) };
        journal.say(format_args!("begin pid={}", process::id()));
        journal
    }

    pub(crate) fn say(&self, words: impl Display) {
        self.say_at(now(), words);
    }

    pub(crate) fn say_at(&self, time: i64, words: impl Display) {
        let line = format!("{time} {NAME}:0 {words}\n");
        let mut file = self.file.lock().expect("not poisoned");
        file.write_all(line.as_bytes()).expect("it can be written");
    }
}

/// `CLOCK_BOOTTIME` in nanoseconds, as the workers read it.
pub(crate) fn now() -> i64 {
    // SAFETY: all zeros is a value of this plain C structure.
    let mut time: libc::timespec = unsafe { mem::zeroed() };
    // SAFETY: `time` may be written to.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &raw mut time) };
    assert_eq!(result, 0, "there is such a clock");
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// The form of a token in logs: FNV-1a, as in worker/journal.c.
pub(crate) fn hash(token: &str) -> String {
    let step = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    format!("{:016x}", token.bytes().fold(0xcbf2_9ce4_8422_2325, step))
}
