//! Which process, and which thread, this code runs in, without asking the system each time.
//!
//! Every call has to know whether the process was forked since the connections were made, and a lock
//! and its release ask that a dozen times; as many system calls would be half as many again as the
//! sockets need. So the answer is kept in a page that Linux empties in a forked child
//! (`MADV_WIPEONFORK`, since 4.14; madvise(2)).
//!
//! The answer is no pid: a child may have that of its parent, as the first process of a PID namespace
//! has, or of an ancestor that has ended. It is the number of a generation. [`GENERATIONS`] is ordinary
//! memory, which a child inherits, so who finds the page empty takes a number that none of its
//! ancestors had when they forked. Siblings may have the same, for neither has anything of the other's.
//! Nothing is asked of the system for it, so nothing can fail. A process that shares its memory with its
//! parent (vfork) has the same page, the same mutexes, and the same number.
//!
//! Where there is no such page, a handler of `pthread_atfork` counts the generations, and the pid is
//! asked for as well: it tells those apart that were made without the C library.

use std::process;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// Tells a process from its ancestors, whatever their pids. Never 0.
pub(crate) type Generation = u64;

/// The process that this code runs in.
#[inline]
pub(crate) fn this_process() -> Generation {
    match page() {
        Some(known) => look(known, draw),
        None => number(GENERATIONS.load(Ordering::Relaxed)),
    }
}

/// What the page has. Threads that find it empty at the same time agree on one number.
fn look(known: &AtomicU64, draw: impl FnOnce() -> Generation) -> Generation {
    match known.load(Ordering::Relaxed) {
        EMPTIED => {
            let drawn = draw();
            let race = known.compare_exchange(EMPTIED, drawn, Ordering::AcqRel, Ordering::Acquire);
            race.err().unwrap_or(drawn)
        }
        generation => generation,
    }
}

/// A number that no ancestor of this process had when it forked, nor any thread has drawn.
#[cold]
fn draw() -> Generation {
    number(GENERATIONS.fetch_add(1, Ordering::AcqRel).wrapping_add(1))
}

/// The pid is no 0, so neither is this.
fn number(generation: u32) -> Generation {
    u64::from(generation) << 32 | u64::from(process::id())
}

/// A number that no two threads have at the same time.
pub(crate) fn this_thread() -> usize {
    thread_local!(static PLACE: u8 = const { 0 });
    PLACE.with(|place| ptr::from_ref(place).addr())
}

/// What a page has that was emptied. No process has this number.
const EMPTIED: Generation = 0;

/// How many generations of processes have looked, from the first one to this; without a page, how many
/// forks lie between them.
static GENERATIONS: AtomicU32 = AtomicU32::new(0);

/// Null until the first look; then the page, or [`NO_PAGE`].
static PAGE: AtomicPtr<AtomicU64> = AtomicPtr::new(ptr::null_mut());

/// Stands for a page where the system has none. It is pointed to, and never read.
static NO_PAGE: AtomicU64 = AtomicU64::new(EMPTIED);

fn page() -> Option<&'static AtomicU64> {
    let known = PAGE.load(Ordering::Acquire);
    let page = if known.is_null() { first_page() } else { known };
    if ptr::eq(page, &NO_PAGE) {
        return None;
    }
    // SAFETY: it is not null, so it is one that `new_page` made and `give_back` was not called for:
    // mapped, aligned to a page and for ever.
    Some(unsafe { &*page })
}

/// What [`PAGE`] is from the first look on: threads that look at the same time agree on one page.
#[cold]
fn first_page() -> *mut AtomicU64 {
    let page = new_page().unwrap_or_else(no_page);
    match PAGE.compare_exchange(ptr::null_mut(), page, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => page,
        Err(theirs) => {
            give_back(page);
            theirs
        }
    }
}

/// Two threads may come here together: then each fork counts twice, which does no harm. Where the system
/// has no memory for a handler, the pid has to do.
fn no_page() -> *mut AtomicU64 {
    extern "C" fn count_fork() {
        GENERATIONS.fetch_add(1, Ordering::Relaxed);
    }
    // SAFETY: the handler may run in any child: it changes one number, and the library is never
    // unloaded (DESIGN.md).
    unsafe { libc::pthread_atfork(None, None, Some(count_fork)) };
    (&raw const NO_PAGE).cast_mut()
}

#[cfg(target_os = "linux")]
const PAGE_BYTES: usize = 4096;

/// The kernel takes the length for that of whole pages, however large they are.
#[cfg(target_os = "linux")]
fn new_page() -> Option<*mut AtomicU64> {
    /// No advice has this number. A system that takes it takes anything, and does nothing: emulators
    /// have been like that (BoringSSL's fork detection found it out in this way).
    const NO_ADVICE: libc::c_int = -1;
    let (protection, flags) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: new memory is asked for, at no address in particular.
    let page = unsafe { libc::mmap(ptr::null_mut(), PAGE_BYTES, protection, flags, -1, 0) };
    if page == libc::MAP_FAILED {
        return None;
    }
    // SAFETY: the page was just mapped, nobody else knows of it, and advice changes nothing in it.
    let advise = |advice| unsafe { libc::madvise(page, PAGE_BYTES, advice) } == 0;
    if !advise(NO_ADVICE) && advise(libc::MADV_WIPEONFORK) {
        return Some(page.cast());
    }
    give_back(page.cast());
    None
}

#[cfg(not(target_os = "linux"))]
fn new_page() -> Option<*mut AtomicU64> {
    None
}

/// Unmaps a page that nobody else has seen.
fn give_back(page: *mut AtomicU64) {
    #[cfg(target_os = "linux")]
    if !ptr::eq(page, &NO_PAGE) {
        // SAFETY: `new_page` mapped it, with this length, and no reference to it was made.
        unsafe { libc::munmap(page.cast(), PAGE_BYTES) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_the_same_at_each_look() {
        assert_eq!(this_process(), this_process());
        assert_ne!(this_process(), EMPTIED);
    }

    /// As in a child, and in a child of that, all with the same pid.
    #[test]
    fn an_emptied_page_gets_a_number_that_was_never_there() {
        let page = AtomicU64::new(EMPTIED);
        let mut seen = Vec::new();
        for _ in 0..3 {
            page.store(EMPTIED, Ordering::Relaxed);
            let generation = look(&page, draw);
            assert_eq!(look(&page, draw), generation);
            assert!(generation != EMPTIED && !seen.contains(&generation));
            seen.push(generation);
        }
    }

    #[test]
    fn threads_that_find_the_page_empty_agree() {
        let page = AtomicU64::new(EMPTIED);
        let meanwhile = || {
            look(&page, draw);
            draw()
        };
        assert_eq!(look(&page, meanwhile), look(&page, draw));
    }
}
