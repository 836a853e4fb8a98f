//! Which process, and which thread, this code runs in, without asking the system each time.
//!
//! Every call must know whether the process was forked since the connections were made, and acquiring and releasing
//! a lock asks that a dozen times. A system call for each would add half as many calls as the sockets need. So the
//! answer is kept in a page that Linux empties in a forked child (`MADV_WIPEONFORK`, since 4.14; madvise(2)).
//!
//! The answer is not a pid. A child may have the same pid as its parent, which happens with the first
//! process of a PID namespace, or the pid of an ancestor that has ended. The answer is the number of a
//! generation. [`GENERATIONS`] is ordinary memory, which a child inherits. So a process that finds the page
//! empty takes a number that none of its ancestors had when they forked. Siblings may have the same number,
//! because neither inherits anything from the other. The only system call for a number is the one for the
//! pid, so nothing can fail. A process that shares its memory with its parent (vfork) has the same page,
//! the same mutexes, and the same number.
//!
//! If there is no such page, a handler of `pthread_atfork` counts the generations, and the pid is asked for
//! each time, too: it distinguishes processes that were made without the C library.

use std::process;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// Distinguishes a process from its ancestors, even if they have the same pid. Never 0.
pub(crate) type Generation = u64;

/// The process that this code runs in.
#[inline]
pub(crate) fn this_process() -> Generation {
    match page() {
        Some(known) => look(known, draw),
        None => number(GENERATIONS.load(Ordering::Relaxed)),
    }
}

/// The number in the page. Threads that find the page empty at the same time agree on one number.
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

/// A number that no ancestor of this process had when it forked, and that no thread has drawn.
#[cold]
fn draw() -> Generation {
    number(GENERATIONS.fetch_add(1, Ordering::AcqRel).wrapping_add(1))
}

/// The pid is never 0, so the number is never 0 either.
fn number(generation: u32) -> Generation {
    u64::from(generation) << 32 | u64::from(process::id())
}

/// A number that no two threads have at the same time.
pub(crate) fn this_thread() -> usize {
    thread_local!(static PLACE: u8 = const { 0 });
    PLACE.with(|place| ptr::from_ref(place).addr())
}

/// The content of an emptied page. No process has this number.
const EMPTIED: Generation = 0;

/// How many generations of processes have looked, from the first one to this one. Without a page: how many
/// forks lie between them.
static GENERATIONS: AtomicU32 = AtomicU32::new(0);

/// Null until the first look. After that, the page or [`NO_PAGE`].
static PAGE: AtomicPtr<AtomicU64> = AtomicPtr::new(ptr::null_mut());

/// Stands for the page if the system has none. Pointers to it are compared, but it is never read.
static NO_PAGE: AtomicU64 = AtomicU64::new(EMPTIED);

fn page() -> Option<&'static AtomicU64> {
    let known = PAGE.load(Ordering::Acquire);
    let page = if known.is_null() { first_page() } else { known };
    if ptr::eq(page, &NO_PAGE) {
        return None;
    }
    // SAFETY: the pointer is not null, so `new_page` made the page and `give_back` was not called for it:
    // the page is mapped, aligned to a page, and stays for ever.
    Some(unsafe { &*page })
}

/// The value of [`PAGE`] from the first look on. Threads that look at the same time agree on one page.
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

/// If two threads come here at the same time, each fork counts twice, which does no harm. If the system has
/// no memory for a handler, the pid alone must do.
fn no_page() -> *mut AtomicU64 {
    extern "C" fn count_fork() {
        GENERATIONS.fetch_add(1, Ordering::Relaxed);
    }
    // SAFETY: the handler may run in any child. It changes one number, and the library is never unloaded
    // (docs/internals/interface.md).
    unsafe { libc::pthread_atfork(None, None, Some(count_fork)) };
    (&raw const NO_PAGE).cast_mut()
}

#[cfg(target_os = "linux")]
const PAGE_BYTES: usize = 4096;

/// The kernel rounds the length up to whole pages, no matter how large they are.
#[cfg(target_os = "linux")]
fn new_page() -> Option<*mut AtomicU64> {
    /// No advice has this number. A system that accepts it accepts any number, and does nothing. Some
    /// emulators have behaved like that (BoringSSL's fork detection discovered it in this way).
    const NO_ADVICE: libc::c_int = -1;
    let (protection, flags) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: the call asks for new memory, at no particular address.
    let page = unsafe { libc::mmap(ptr::null_mut(), PAGE_BYTES, protection, flags, -1, 0) };
    if page == libc::MAP_FAILED {
        return None;
    }
    // SAFETY: the page was just mapped, no other code knows it, and the advice changes nothing in it.
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

/// Unmaps a page that no other thread has seen.
fn give_back(page: *mut AtomicU64) {
    #[cfg(target_os = "linux")]
    if !ptr::eq(page, &NO_PAGE) {
        // SAFETY: `new_page` mapped the page, with this length, and there is no reference to it.
        unsafe { libc::munmap(page.cast(), PAGE_BYTES) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_keeps_its_number() {
        assert_eq!(this_process(), this_process());
        assert_ne!(this_process(), EMPTIED);
    }

    /// As in a child, and in a child of that child, all with the same pid.
    #[test]
    fn a_forked_process_gets_a_new_number() {
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
    fn racing_threads_agree_on_the_process_number() {
        let page = AtomicU64::new(EMPTIED);
        let meanwhile = || {
            look(&page, draw);
            draw()
        };
        assert_eq!(look(&page, meanwhile), look(&page, draw));
    }
}
