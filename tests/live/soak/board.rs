//! The page that all workers have mapped: `struct board` of worker/actor.h. Here it is a file. Linux keeps the
//! file consistent with the mapping.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const CELL: u64 = 8;
const RESOURCES_MAX: u64 = 16;
const SLOTS_MAX: u64 = 200;
const COUNTERS: u64 = 1;
const SLOTS: u64 = COUNTERS + RESOURCES_MAX;
const CELLS: u64 = SLOTS + 2 * SLOTS_MAX;

/// `enum orders` of worker/actor.h.
#[derive(Clone, Copy)]
pub(crate) enum Orders {
    Rest = 1,
    End = 2,
}

pub(crate) struct Board {
    file: File,
    path: PathBuf,
}

impl Board {
    pub(crate) fn new(path: PathBuf) -> Self {
        let mut options = File::options();
        let file = options.read(true).write(true).create_new(true).open(&path);
        let file = file.expect("a file can be made");
        file.set_len(CELLS * CELL).expect("it can be made long enough");
        Self { file, path }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn order(&self, orders: Orders) {
        self.set(0, orders as u64);
    }

    pub(crate) fn counter(&self, resource: usize) -> u64 {
        self.get(COUNTERS + resource as u64)
    }

    /// How many threads are about to write a counter, and would write it whatever the time is.
    pub(crate) fn writing(&self, slot: usize) -> u64 {
        self.get(SLOTS + 2 * slot as u64)
    }

    pub(crate) fn resting(&self, slot: usize) -> u64 {
        self.get(SLOTS + 2 * slot as u64 + 1)
    }

    /// Resets the slot for the next worker.
    pub(crate) fn clear(&self, slot: usize) {
        self.set(SLOTS + 2 * slot as u64, 0);
        self.set(SLOTS + 2 * slot as u64 + 1, 0);
    }

    fn get(&self, cell: u64) -> u64 {
        let mut bytes = [0; CELL as usize];
        self.file.read_exact_at(&mut bytes, cell * CELL).expect("it can be read");
        u64::from_ne_bytes(bytes)
    }

    fn set(&self, cell: u64, value: u64) {
        self.file.write_all_at(&value.to_ne_bytes(), cell * CELL).expect("it can be written");
    }
}
