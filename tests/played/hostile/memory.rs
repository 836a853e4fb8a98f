//! The memory that the library allocates in a run.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, with counters.
struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

thread_local! {
    static IS_COUNTING: Cell<bool> = const { Cell::new(false) };
    static LARGEST: Cell<usize> = const { Cell::new(0) };
    /// How much more is in use than when the counting began.
    static IN_USE: Cell<i64> = const { Cell::new(0) };
}

// SAFETY: everything is passed on unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size(), 0);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(layout.size(), 0);
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(size, layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.realloc(place, layout, size) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        note(0, layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(place, layout) }
    }
}

fn note(size: usize, freed: usize) {
    // While a thread ends there is nothing to note.
    let _ = IS_COUNTING.try_with(|it| {
        if it.get() {
            let _ = LARGEST.try_with(|it| it.set(it.get().max(size)));
            let _ = IN_USE.try_with(|it| it.set(it.get() + size as i64 - freed as i64));
        }
    });
}

/// Runs `body`. Returns how much more memory is in use after it than before.
pub(crate) fn kept_by(body: impl FnOnce()) -> i64 {
    IN_USE.set(0);
    IS_COUNTING.set(true);
    body();
    IS_COUNTING.set(false);
    IN_USE.get()
}

/// Runs `body`. Returns the size of its largest single allocation.
pub(crate) fn largest_in(body: impl FnOnce()) -> usize {
    LARGEST.set(0);
    IS_COUNTING.set(true);
    body();
    IS_COUNTING.set(false);
    LARGEST.get()
}

/// Runs `body`, whose allocations are not those of the library.
pub(crate) fn uncounted<T>(body: impl FnOnce() -> T) -> T {
    let before = IS_COUNTING.replace(false);
    let result = body();
    IS_COUNTING.set(before);
    result
}
