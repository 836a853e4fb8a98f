//! Which process, and which thread, this code runs in, without asking the system each time.
//!
//! Every call has to know whether the process was forked since the connections were made, and a lock
//! and its release ask that a dozen times; as many system calls would be half as many again as the
//! sockets need. So the answer is kept in a page that Linux empties in a forked child
//! (`MADV_WIPEONFORK`, since 4.14; madvise(2)). Where there is no such page, the system is asked.

use std::process;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// The process that this code runs in.
pub(crate) fn this_process() -> u32 {
    let Some(known) = page() else { return process::id() };
    match known.load(Ordering::Relaxed) {
        EMPTIED => {
            let id = process::id();
            known.store(id, Ordering::Relaxed);
            id
        }
        id => id,
    }
}

/// A number that no two threads have at the same time.
pub(crate) fn this_thread() -> usize {
    thread_local!(static PLACE: u8 = const { 0 });
    PLACE.with(|it| ptr::from_ref(it).addr())
}

/// What a page has that was emptied. No process has this number.
const EMPTIED: u32 = 0;

/// Null until the first look; then the page, or [`NO_PAGE`].
static PAGE: AtomicPtr<AtomicU32> = AtomicPtr::new(ptr::null_mut());

/// Stands for a page where the system has none. It is pointed to, and never read.
static NO_PAGE: AtomicU32 = AtomicU32::new(EMPTIED);

fn page() -> Option<&'static AtomicU32> {
    let mut page = PAGE.load(Ordering::Acquire);
    if page.is_null() {
        page = new_page().unwrap_or_else(no_page);
        let race =
            PAGE.compare_exchange(ptr::null_mut(), page, Ordering::AcqRel, Ordering::Acquire);
        if let Err(theirs) = race {
            give_back(page);
            page = theirs;
        }
    }
    if ptr::eq(page, &NO_PAGE) {
        return None;
    }
    // SAFETY: it is not null, so it is one that `new_page` made and `give_back` was not called for:
    // mapped, aligned to a page and for ever.
    Some(unsafe { &*page })
}

fn no_page() -> *mut AtomicU32 {
    (&raw const NO_PAGE).cast_mut()
}

#[cfg(target_os = "linux")]
const PAGE_BYTES: usize = 4096;

/// The kernel takes the length for that of whole pages, however large they are.
#[cfg(target_os = "linux")]
fn new_page() -> Option<*mut AtomicU32> {
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
fn new_page() -> Option<*mut AtomicU32> {
    None
}

/// Unmaps a page that nobody else has seen.
fn give_back(page: *mut AtomicU32) {
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
    fn it_is_what_the_system_says() {
        assert_eq!(this_process(), process::id());
        assert_eq!(this_process(), process::id());
    }

    #[test]
    fn an_emptied_page_is_filled_anew() {
        if let Some(known) = page() {
            known.store(EMPTIED, Ordering::Relaxed);
        }
        assert_eq!(this_process(), process::id());
    }
}
