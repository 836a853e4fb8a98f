//! Libraries of the tests that are loaded into a process before all others, and change its view of the
//! system. Their behaviour is set while the process runs, in a page of shared memory.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicI64, Ordering};
use std::{io, ptr};

use super::directory::Directory;
use super::program;

const WORDS: usize = 8;
const BYTES: usize = WORDS * size_of::<AtomicI64>();

/// The environment of a process that must load a shim.
pub(crate) type Environment = [(&'static str, String); 2];

/// Moves the clocks of a process.
pub(crate) struct Clocks(Shim);

impl Clocks {
    const WALL_STEP: usize = 0;
    const BOOT_STEP: usize = 1;
    const WALL_STANDS_AT: usize = 2;

    pub(crate) fn new() -> Self {
        Self(Shim::compile("clock_shim", "REDLOCK_TEST_CLOCK"))
    }

    pub(crate) fn environment(&self) -> Environment {
        self.0.environment()
    }

    /// The wall clock steps by this amount, backwards if it is negative.
    pub(crate) fn step_wall(&self, ms: i64) {
        self.0.words()[Self::WALL_STEP].fetch_add(ms * 1_000_000, Ordering::SeqCst);
    }

    /// The clock that counts the time since boot steps by this amount, as if the machine had slept.
    pub(crate) fn sleep(&self, ms: i64) {
        self.0.words()[Self::BOOT_STEP].fetch_add(ms * 1_000_000, Ordering::SeqCst);
    }

    /// The wall clock stands still from now on, at this many milliseconds since 1970.
    pub(crate) fn stop_wall_at(&self, ms: i64) {
        self.0.words()[Self::WALL_STANDS_AT].store(ms * 1_000_000, Ordering::SeqCst);
    }
}

/// Stops a process at a moment of a call.
pub(crate) struct Pauses(Shim);

impl Pauses {
    pub(crate) fn new() -> Self {
        Self(Shim::compile("pause_shim", "REDLOCK_TEST_PAUSE"))
    }

    pub(crate) fn environment(&self) -> Environment {
        self.0.environment()
    }

    /// From now on, the process must stop at the moment with this number.
    pub(crate) fn set(&self, moment: i64) {
        self.0.words()[0].store(moment, Ordering::SeqCst);
    }

    /// The process must not stop any more. Returns whether it had stopped.
    pub(crate) fn clear(&self) -> bool {
        self.0.words()[0].swap(0, Ordering::SeqCst) == 0
    }
}

/// Gives a process, and all its forked children, the same pid.
pub(crate) struct SamePid {
    directory: Directory,
    how: &'static str,
}

impl SamePid {
    pub(crate) fn new() -> Self {
        Self::of("page")
    }

    /// The system also has no page that is emptied in a child.
    pub(crate) fn without_page() -> Self {
        Self::of("no page")
    }

    fn of(how: &'static str) -> Self {
        let directory = Directory::new();
        program::compile("same_pid_shim", ["-shared", "-fPIC"], &directory.join("shim.so"));
        Self { directory, how }
    }

    pub(crate) fn environment(&self) -> Environment {
        let library = self.directory.join("shim.so");
        [("LD_PRELOAD", library), ("REDLOCK_TEST_SAME_PID", self.how.to_owned())]
    }
}

struct Shim {
    variable: &'static str,
    page: NonNull<[AtomicI64; WORDS]>,
    directory: Directory,
}

// SAFETY: the page is used only through atomic operations.
unsafe impl Send for Shim {}
// SAFETY: as above.
unsafe impl Sync for Shim {}

impl Shim {
    fn compile(name: &str, variable: &'static str) -> Self {
        let directory = Directory::new();
        program::compile(name, ["-shared", "-fPIC"], &directory.join("shim.so"));
        let mut options = File::options();
        let options = options.read(true).write(true).create_new(true);
        let file = options.open(directory.join("dial")).expect("a file can be made");
        file.set_len(BYTES as u64).expect("it can be made so long");
        Self { variable, page: map(&file).expect("it can be mapped"), directory }
    }

    fn environment(&self) -> Environment {
        let (library, dial) = (self.directory.join("shim.so"), self.directory.join("dial"));
        [("LD_PRELOAD", library), (self.variable, dial)]
    }

    fn words(&self) -> &[AtomicI64; WORDS] {
        // SAFETY: the page lives as long as this value, and any bits are a valid AtomicI64.
        unsafe { self.page.as_ref() }
    }
}

impl Drop for Shim {
    fn drop(&mut self) {
        // SAFETY: `map` mapped it with this length, and no reference outlives this value.
        unsafe { libc::munmap(self.page.as_ptr().cast(), BYTES) };
    }
}

fn map(file: &File) -> io::Result<NonNull<[AtomicI64; WORDS]>> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: new memory is requested, at no particular address; the file has this length.
    let page = unsafe {
        libc::mmap(ptr::null_mut(), BYTES, protection, libc::MAP_SHARED, file.as_raw_fd(), 0)
    };
    if page == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    Ok(NonNull::new(page.cast()).expect("a mapping is never at 0"))
}
