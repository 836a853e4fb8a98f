//! The smallest executors: one that sleeps until it is woken, and one that drives the manager by its
//! descriptor.

use std::future::Future;
use std::os::fd::RawFd;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use redlock::Manager;

struct Unpark {
    thread: Thread,
    count: AtomicUsize,
}

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.thread.unpark();
    }
}

/// Runs a future to its end on this thread. Another thread drives.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let count = AtomicUsize::new(0);
    let waker = Waker::from(Arc::new(Unpark { thread: thread::current(), count }));
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return value;
        }
        thread::park_timeout(Duration::from_secs(60));
    }
}

/// The same, on a thread that waits for the descriptor and drives. It polls the future only when it was woken.
pub(crate) fn drive_on<T>(manager: &Manager, future: impl Future<Output = T>) -> T {
    let descriptor = manager.descriptor().expect("a descriptor");
    let woken = Arc::new(Unpark { thread: thread::current(), count: AtomicUsize::new(1) });
    let waker = Waker::from(Arc::clone(&woken));
    let mut future = pin!(future);
    loop {
        if woken.count.swap(0, Ordering::Relaxed) > 0
            && let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(&waker))
        {
            return value;
        }
        if woken.count.load(Ordering::Relaxed) == 0 {
            wait_for(descriptor);
        }
        manager.drive().expect("it drives");
    }
}

fn wait_for(descriptor: RawFd) {
    let mut poll = libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 };
    // SAFETY: one struct is given, and lives.
    let ready = unsafe { libc::poll(&raw mut poll, 1, 60_000) };
    assert_eq!(ready, 1, "the descriptor is never readable");
}

/// Polls it once.
pub(crate) fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    std::pin::Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}
