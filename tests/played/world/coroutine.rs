//! A caller of the library that can be stopped in the midst of a call, and goes on later: a stack of
//! its own, on the thread that plays the world. To change from one to another takes no system's
//! thread, so a schedule with dozens of them is played in a fraction of a millisecond.

use std::any::Any;
use std::cell::{Cell, RefCell, UnsafeCell};
use std::mem::{self, MaybeUninit};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use libc::ucontext_t;

/// More than any call needs, also where nothing is optimized. What is not touched costs nothing.
const STACK_BYTES: usize = 512 * 1024;

/// At the low end of each stack: to grow into it ends the process rather than something worse.
const GUARD_BYTES: usize = 64 * 1024;

type Body = Box<dyn FnOnce()>;

pub(crate) struct Coroutine {
    inner: Box<Inner>,
}

struct Inner {
    context: UnsafeCell<MaybeUninit<ucontext_t>>,
    stack: Option<Stack>,
    body: Cell<Option<Body>>,
    end: Cell<Option<Result<(), Box<dyn Any + Send>>>>,
}

thread_local! {
    /// Where to go back to, and who runs.
    static HOST: UnsafeCell<MaybeUninit<ucontext_t>> =
        const { UnsafeCell::new(MaybeUninit::uninit()) };
    static CURRENT: Cell<*const Inner> = const { Cell::new(ptr::null()) };
    static SPARE: RefCell<Vec<Stack>> = const { RefCell::new(Vec::new()) };
}

impl Coroutine {
    /// One that has not begun yet.
    pub(crate) fn new(body: impl FnOnce() + 'static) -> Self {
        Self::of(Box::new(body))
    }

    /// One whose body may borrow what does not live for ever.
    ///
    /// # Safety
    ///
    /// Before what it has borrowed ends, it has come to its end, or nobody will go on with it.
    pub(crate) unsafe fn borrowing<'a>(body: impl FnOnce() + 'a) -> Self {
        let body: Box<dyn FnOnce() + 'a> = Box::new(body);
        // SAFETY: only the lifetime is another, and the caller sees to that.
        Self::of(unsafe { mem::transmute::<Box<dyn FnOnce() + 'a>, Body>(body) })
    }

    fn of(body: Body) -> Self {
        let stack = SPARE.with_borrow_mut(Vec::pop).unwrap_or_else(Stack::new);
        let inner = Box::new(Inner {
            context: UnsafeCell::new(MaybeUninit::zeroed()),
            stack: Some(stack),
            body: Cell::new(Some(body)),
            end: Cell::new(None),
        });
        let context = inner.context.get().cast::<ucontext_t>();
        let (base, bytes) = inner.stack.as_ref().map_or((ptr::null_mut(), 0), Stack::room);
        // SAFETY: the context has room for one, and stays where it is as long as the box does. The
        // stack is memory of our own, and lives as long as the context; `enter` takes no arguments
        // and never returns.
        unsafe {
            libc::getcontext(context);
            (*context).uc_stack.ss_sp = base;
            (*context).uc_stack.ss_size = bytes;
            (*context).uc_link = ptr::null_mut();
            libc::makecontext(context, enter, 0);
        }
        Self { inner }
    }

    /// Goes on with it until it pauses or ends. Returns how it ended, if it has.
    pub(crate) fn resume(&mut self) -> Option<Result<(), Box<dyn Any + Send>>> {
        let host = HOST.with(UnsafeCell::get).cast::<ucontext_t>();
        CURRENT.set(&raw const *self.inner);
        // SAFETY: both are contexts of this thread: the one was made by `new` or saved by `pause`,
        // and the other is saved now. Nothing else uses either meanwhile.
        unsafe { libc::swapcontext(host, self.inner.context.get().cast()) };
        CURRENT.set(ptr::null());
        self.inner.end.take()
    }
}

/// The stack of one that has ended, or that nobody will go on with, is used for another.
impl Drop for Coroutine {
    fn drop(&mut self) {
        let stack = self.inner.stack.take();
        SPARE.with_borrow_mut(|spare| spare.extend(stack));
    }
}

/// Stops the one that runs, until it is resumed.
pub(crate) fn pause() {
    let current = CURRENT.get();
    assert!(!current.is_null(), "only a coroutine can pause");
    let host = HOST.with(UnsafeCell::get).cast::<ucontext_t>();
    // SAFETY: it is the one that `resume` goes on with at this moment, on this thread, so it is
    // alive, and `resume` has saved the context of the host.
    unsafe { libc::swapcontext((*current).context.get().cast(), host) };
}

extern "C" fn enter() {
    // SAFETY: `resume` has set it to the one that it begins, and keeps it alive.
    let me = unsafe { &*CURRENT.get() };
    if let Some(body) = me.body.take() {
        me.end.set(Some(catch_unwind(AssertUnwindSafe(body))));
    }
    loop {
        pause();
    }
}

struct Stack(*mut libc::c_void);

impl Stack {
    fn new() -> Self {
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE);
        let flags = flags | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: new memory is asked for, at no address in particular.
        let memory = unsafe { libc::mmap(ptr::null_mut(), STACK_BYTES, protection, flags, -1, 0) };
        assert_ne!(memory, libc::MAP_FAILED, "there is no memory for a stack");
        // SAFETY: it is the beginning of what was just mapped.
        let guarded = unsafe { libc::mprotect(memory, GUARD_BYTES, libc::PROT_NONE) };
        assert_eq!(guarded, 0, "the stack has no guard");
        Self(memory)
    }

    fn room(&self) -> (*mut libc::c_void, usize) {
        // SAFETY: the guard is a part of what was mapped.
        (unsafe { self.0.byte_add(GUARD_BYTES) }, STACK_BYTES - GUARD_BYTES)
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: `new` has mapped it with this length, and nobody runs on it any more.
        unsafe { libc::munmap(self.0, STACK_BYTES) };
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;

    #[test]
    fn they_take_turns() {
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
    fn a_panic_ends_one_and_no_more() {
        let mut one = Coroutine::new(|| std::panic::resume_unwind(Box::new("no")));
        assert!(matches!(one.resume(), Some(Err(_))));
    }
}
