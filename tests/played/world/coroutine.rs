//! A caller of the library that can be stopped during a call, and continued later. It has a stack of its
//! own on the thread that plays the world. A switch between callers needs no thread of the system, so a
//! schedule with dozens of them is played in a fraction of a millisecond.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::mem::{self, ManuallyDrop};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use corosensei::stack::DefaultStack;
use corosensei::{CoroutineResult, Yielder};

/// More than any call needs, even without optimization. Untouched memory costs nothing.
const STACK_BYTES: usize = 512 * 1024;

type Body = Box<dyn FnOnce()>;
type End = Result<(), Box<dyn Any + Send>>;
type Inner = corosensei::Coroutine<(), (), End, DefaultStack>;

pub(crate) struct Coroutine {
    /// Taken out when it is dropped.
    inner: ManuallyDrop<Inner>,
}

thread_local! {
    /// The running coroutine pauses through this.
    static CURRENT: Cell<*const Yielder<(), ()>> = const { Cell::new(ptr::null()) };
    static SPARE: RefCell<Vec<DefaultStack>> = const { RefCell::new(Vec::new()) };
}

impl Coroutine {
    /// A coroutine that has not begun yet.
    pub(crate) fn new(body: impl FnOnce() + 'static) -> Self {
        Self::of(Box::new(body))
    }

    /// A coroutine whose body may borrow data that does not live for ever.
    ///
    /// # Safety
    ///
    /// Before the borrowed data ends, the coroutine has ended, or nobody will resume it.
    pub(crate) unsafe fn borrowing<'a>(body: impl FnOnce() + 'a) -> Self {
        let body: Box<dyn FnOnce() + 'a> = Box::new(body);
        // SAFETY: only the lifetime changes, and the caller ensures that it is correct.
        Self::of(unsafe { mem::transmute::<Box<dyn FnOnce() + 'a>, Body>(body) })
    }

    fn of(body: Body) -> Self {
        let spare = SPARE.with_borrow_mut(Vec::pop);
        let new = || DefaultStack::new(STACK_BYTES).expect("memory for a stack");
        let inner = Inner::with_stack(spare.unwrap_or_else(new), move |yielder, ()| {
            CURRENT.set(yielder);
            catch_unwind(AssertUnwindSafe(body))
        });
        Self { inner: ManuallyDrop::new(inner) }
    }

    /// Resumes the coroutine until it pauses or ends. Returns its result, if it has ended.
    pub(crate) fn resume(&mut self) -> Option<End> {
        let result = self.inner.resume(());
        CURRENT.set(ptr::null());
        match result {
            CoroutineResult::Yield(()) => None,
            CoroutineResult::Return(end) => Some(end),
        }
    }
}

/// The stack of a coroutine that has ended, or that nobody will resume, is used for another one. Its
/// contents are forgotten, as when a process is killed: nothing is dropped.
impl Drop for Coroutine {
    fn drop(&mut self) {
        // SAFETY: nobody uses it after this.
        let mut inner = unsafe { ManuallyDrop::take(&mut self.inner) };
        if inner.started() && !inner.done() {
            // SAFETY: nothing refers to the contents of the stack, because shared data is on the heap.
            unsafe { inner.force_reset() };
        }
        if inner.done() {
            SPARE.with_borrow_mut(|spare| spare.push(inner.into_stack()));
        }
    }
}

/// Stops the running coroutine until it is resumed.
pub(crate) fn pause() {
    let current = CURRENT.get();
    assert!(!current.is_null(), "only a coroutine can pause");
    // SAFETY: this is the yielder of the running coroutine, which `resume` keeps alive.
    unsafe { &*current }.suspend(());
    CURRENT.set(current);
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;

    #[test]
    fn coroutines_take_turns() {
        let heard = Rc::<RefCell<Vec<u32>>>::default();
        let new = |number: u32| {
            let heard = Rc::clone(&heard);
            Coroutine::new(move || {
                for round in 0..3 {
                    heard.borrow_mut().push(10 * number + round);
                    pause();
                }
            })
        };
        let mut both = [new(1), new(2)];
        for _ in 0..3 {
            assert!(both.iter_mut().all(|it| it.resume().is_none()));
        }
        assert!(both.iter_mut().all(|it| matches!(it.resume(), Some(Ok(())))));
        assert_eq!(*heard.borrow(), [10, 20, 11, 21, 12, 22]);
    }

    #[test]
    fn a_panic_ends_only_its_coroutine() {
        let mut one = Coroutine::new(|| std::panic::resume_unwind(Box::new("no")));
        assert!(matches!(one.resume(), Some(Err(_))));
    }
}
