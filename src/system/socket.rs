//! Sockets that never block, and waiting for many of them at once.

use std::io::{self, ErrorKind, Read, Write};
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::time::Duration;

use socket2::{Domain, SockAddr, Type};

use crate::protocol::moment::Moment;

/// If data is not acknowledged for this long, the connection breaks. A server that is only frozen is not
/// affected: its kernel acknowledges.
#[cfg(any(target_os = "linux", target_os = "android"))]
const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(10);

/// A descriptor that a forked child can find and close, no matter which mutex is taken.
///
/// The number alone is not enough: the child may have closed the descriptor, and the number may now belong to
/// another one. So the socket's inode is kept with it. The number is set to -1 before the descriptor is closed.
#[derive(Clone, Debug)]
pub(crate) struct InheritedDescriptor(Arc<Identity>);

#[derive(Debug)]
struct Identity {
    fd: AtomicI32,
    inode: AtomicU64,
}

impl InheritedDescriptor {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Identity { fd: AtomicI32::new(-1), inode: AtomicU64::new(0) }))
    }

    fn show(&self, fd: RawFd) -> Shown {
        self.0.inode.store(inode(fd).unwrap_or(0), Ordering::Release);
        self.0.fd.store(fd, Ordering::Release);
        Shown(self.clone())
    }

    fn hide(&self) -> RawFd {
        self.0.fd.swap(-1, Ordering::AcqRel)
    }

    /// Closes the descriptor in a forked child. No byte is sent, and the parent's connection stays as it is.
    pub(crate) fn close_inherited(&self) {
        let known = self.0.inode.load(Ordering::Acquire);
        let fd = self.hide();
        if fd >= 0 && inode(fd) == Some(known) {
            // SAFETY: the descriptor is open, and is the same socket as when the process was forked. Its former
            // owner is a copy in memory that never closes it here. After `hide`, no other code closes it either.
            drop(unsafe { OwnedFd::from_raw_fd(fd) });
        }
    }
}

/// The number that distinguishes a socket from all others that are open.
fn inode(fd: RawFd) -> Option<u64> {
    let mut status = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the pointer is to memory for a stat, and any number is allowed as a descriptor.
    let done = unsafe { libc::fstat(fd, status.as_mut_ptr()) };
    // SAFETY: fstat has filled in the memory, as its result says.
    #[allow(clippy::unnecessary_cast)]
    (done == 0).then(|| unsafe { status.assume_init() }.st_ino as u64)
}

/// The same socket with a number above those of the standard streams. A program that has closed these
/// streams, as daemons do, may still write to them, and its output would go to a server as commands.
pub(crate) fn above_stdio<T: From<OwnedFd> + Into<OwnedFd>>(socket: T) -> io::Result<T> {
    let fd: OwnedFd = socket.into();
    if fd.as_raw_fd() > libc::STDERR_FILENO {
        return Ok(fd.into());
    }
    // The standard library never uses such a number for a copy.
    let copy = fd.try_clone()?;
    debug_assert!(copy.as_raw_fd() > libc::STDERR_FILENO);
    Ok(copy.into())
}

/// Hides the descriptor again when this value is dropped.
#[derive(Debug)]
struct Shown(InheritedDescriptor);

impl Drop for Shown {
    fn drop(&mut self) {
        self.0.hide();
    }
}

/// How many numbers have been given to sockets so far.
static NUMBERS: AtomicU64 = AtomicU64::new(0);

/// A stream socket that never blocks.
#[derive(Debug)]
pub(crate) struct Socket {
    // In this order: a descriptor must be hidden before it is closed.
    _shown: Shown,
    socket: socket2::Socket,
    number: u64,
}

impl Socket {
    /// Begins to connect to an address. The socket is writable when connecting has ended.
    pub(crate) fn to_address(
        address: SocketAddr,
        inherited: &InheritedDescriptor,
    ) -> io::Result<Self> {
        let socket = Self::new(Domain::for_address(address), inherited)?;
        // Requests are short, and a thread waits for the answer, so a request must not wait for more data.
        // A connection that breaks on the way must be detected even while nothing is sent.
        socket.socket.set_tcp_nodelay(true)?;
        socket.socket.set_keepalive(true)?;
        #[cfg(any(target_os = "linux", target_os = "android"))]
        socket.socket.set_tcp_user_timeout(Some(UNACKNOWLEDGED_MAX))?;
        socket.connect(&address.into())?;
        Ok(socket)
    }

    /// Connects to a unix socket.
    pub(crate) fn to_path(path: &Path, inherited: &InheritedDescriptor) -> io::Result<Self> {
        let address = SockAddr::unix(path)?;
        let socket = Self::new(Domain::UNIX, inherited)?;
        socket.connect(&address)?;
        Ok(socket)
    }

    fn new(domain: Domain, inherited: &InheritedDescriptor) -> io::Result<Self> {
        let socket = above_stdio(socket2::Socket::new(domain, Type::STREAM, None)?)?;
        socket.set_nonblocking(true)?;
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        Ok(Self { _shown: inherited.show(socket.as_raw_fd()), socket, number })
    }

    fn connect(&self, address: &SockAddr) -> io::Result<()> {
        match self.socket.connect(address) {
            Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => Ok(()),
            // After an interruption by a signal, connecting goes on in the background.
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(()),
            outcome => outcome,
        }
    }

    /// How connecting ended. Call this once the socket is writable.
    pub(crate) fn connected(&self) -> io::Result<()> {
        self.socket.take_error()?.map_or(Ok(()), Err)
    }

    /// Whether the socket is writable now.
    pub(crate) fn is_writable(&self) -> bool {
        let mut watched = [watch(self.fd(), true)];
        poll_for(&mut watched, 0) > 0
    }

    /// Sends as many bytes as fit; `Ok(0)` if none fit.
    pub(crate) fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        #[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
        const FLAGS: i32 = libc::MSG_NOSIGNAL;
        #[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
        const FLAGS: i32 = 0;
        without_interruption(|| self.socket.send_with_flags(bytes, FLAGS))
            .map(|sent| sent.unwrap_or(0))
    }

    /// Receives the available bytes into `room`. `None` if there are none; 0 at the end of the stream.
    pub(crate) fn receive(&self, room: &mut [u8]) -> io::Result<Option<usize>> {
        without_interruption(|| (&self.socket).read(room))
    }

    pub(crate) fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Distinguishes this socket from all others that ever had its descriptor.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Forgets a descriptor that [`InheritedDescriptor::close_inherited`] has closed.
    pub(crate) fn forget(self) {
        let _ = self.socket.into_raw_fd();
    }
}

/// Wakes the thread that waits in [`poll`].
#[derive(Debug)]
pub(crate) struct Waker {
    // In this order, as in Socket.
    shown: [Shown; 2],
    reader: UnixStream,
    writer: UnixStream,
}

impl Waker {
    pub(crate) fn new() -> io::Result<Self> {
        let (reader, writer) = UnixStream::pair()?;
        let (reader, writer) = (above_stdio(reader)?, above_stdio(writer)?);
        reader.set_nonblocking(true)?;
        writer.set_nonblocking(true)?;
        let show = |stream: &UnixStream| InheritedDescriptor::new().show(stream.as_raw_fd());
        Ok(Self { shown: [show(&reader), show(&writer)], reader, writer })
    }

    pub(crate) fn inherited(&self) -> impl Iterator<Item = InheritedDescriptor> {
        self.shown.iter().map(|shown| shown.0.clone())
    }

    /// Makes the descriptor readable. If it cannot take another byte, it is already readable.
    pub(crate) fn wake(&self) {
        let _ = without_interruption(|| (&self.writer).write(&[0]));
    }

    /// Makes the descriptor unreadable again.
    pub(crate) fn clear(&self) {
        let mut bytes = [0; 64];
        while let Ok(Some(1..)) = without_interruption(|| (&self.reader).read(&mut bytes)) {}
    }

    pub(crate) fn fd(&self) -> RawFd {
        self.reader.as_raw_fd()
    }

    /// Forgets descriptors that [`InheritedDescriptor::close_inherited`] has closed.
    pub(crate) fn forget(self) {
        let _ = (self.reader.into_raw_fd(), self.writer.into_raw_fd());
    }
}

/// A descriptor to wait for, and the result of the wait.
pub(crate) type Watched = libc::pollfd;

pub(crate) fn watch(fd: RawFd, for_writing: bool) -> Watched {
    let events = if for_writing { libc::POLLIN | libc::POLLOUT } else { libc::POLLIN };
    libc::pollfd { fd, events, revents: 0 }
}

/// Waits until one of the descriptors is ready, `until` is reached, or a signal came. The caller must read the
/// clock again in any case. `now` may be slightly in the past. [`Moment::NEVER`] is waited for in steps.
pub(crate) fn poll(watched: &mut [Watched], until: Moment, now: Moment) {
    const STEP_NS: i64 = 60_000_000_000;
    if poll_for(watched, (until - now).clamp(0, STEP_NS)) < 0 {
        if io::Error::last_os_error().kind() == ErrorKind::Interrupted {
            watched.iter_mut().for_each(|descriptor| descriptor.revents = 0);
        } else {
            // There is no memory, or there are more descriptors than RLIMIT_NOFILE. A process may lower
            // that limit to prevent that more are opened. So each descriptor is tried now and then, without
            // using a whole processor.
            poll_for(&mut [], 1_000_000);
            watched.iter_mut().for_each(|descriptor| descriptor.revents = descriptor.events);
        }
    }
}

/// If a lock changes hands often, pauses are shorter than a millisecond.
#[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
fn poll_for(watched: &mut [Watched], left_ns: i64) -> libc::c_int {
    #[allow(clippy::useless_conversion, clippy::unnecessary_cast)]
    let left = libc::timespec {
        tv_sec: (left_ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (left_ns % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: the pointer and the length are those of a slice of pollfd that belongs to this call alone,
    // the time is valid, and the signal mask stays as it is.
    unsafe {
        let count = watched.len() as libc::nfds_t;
        libc::ppoll(watched.as_mut_ptr(), count, &left, std::ptr::null())
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
fn poll_for(watched: &mut [Watched], left_ns: i64) -> libc::c_int {
    // Rounded up, because a wakeup that comes too early needs one more wakeup for nothing.
    #[allow(clippy::cast_possible_truncation)]
    let left_ms = ((left_ns + 999_999) / 1_000_000) as libc::c_int;
    // SAFETY: as for `ppoll` above.
    unsafe { libc::poll(watched.as_mut_ptr(), watched.len() as libc::nfds_t, left_ms) }
}

/// Repeats a call when a signal interrupts it. `None` if it would block.
fn without_interruption<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<Option<T>> {
    loop {
        match call() {
            Ok(value) => return Ok(Some(value)),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(error),
        }
    }
}
