//! A descriptor that is readable when one of many others is ready, or at a given moment: epoll and a timer.

#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) use self::linux::ReadinessDescriptor;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) use self::none::ReadinessDescriptor;

#[cfg(any(target_os = "linux", target_os = "android"))]
mod linux {
    use std::io;
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
    use std::ptr;

    use crate::protocol::moment::Moment;
    use crate::system::clock::CLOCK;
    use crate::system::socket::above_stdio;

    #[derive(Debug)]
    pub(crate) struct ReadinessDescriptor {
        epoll: OwnedFd,
        timer: OwnedFd,
    }

    impl ReadinessDescriptor {
        pub(crate) fn new() -> io::Result<Self> {
            // SAFETY: the call takes a number, and touches no memory.
            let epoll = owned(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
            let flags = libc::TFD_CLOEXEC | libc::TFD_NONBLOCK;
            // SAFETY: as above.
            let timer = owned(unsafe { libc::timerfd_create(CLOCK, flags) })?;
            let descriptor = Self { epoll, timer };
            descriptor.control(libc::EPOLL_CTL_ADD, descriptor.timer.as_raw_fd(), false)?;
            Ok(descriptor)
        }

        pub(crate) fn fd(&self) -> RawFd {
            self.epoll.as_raw_fd()
        }

        /// Makes the descriptor readable at this moment and later, until another moment is set.
        pub(crate) fn set_timer(&self, due: Moment) {
            const NANOS: i64 = 1_000_000_000;
            // 0 would disarm the timer.
            let nanos = if due == Moment::NEVER { 0 } else { due.as_nanos().max(1) };
            #[allow(clippy::useless_conversion, clippy::unnecessary_cast)]
            let it_value = libc::timespec {
                tv_sec: (nanos / NANOS) as libc::time_t,
                tv_nsec: (nanos % NANOS) as libc::c_long,
            };
            let it_interval = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            let time = libc::itimerspec { it_interval, it_value };
            // SAFETY: the descriptor is a timer's, `time` is valid, and the old value is not asked for. The
            // call cannot fail.
            unsafe {
                let timer = self.timer.as_raw_fd();
                libc::timerfd_settime(timer, libc::TFD_TIMER_ABSTIME, &time, ptr::null_mut());
            }
        }

        /// Returns whether the system had room for one more.
        pub(crate) fn add(&self, fd: RawFd, for_writing: bool) -> bool {
            self.control(libc::EPOLL_CTL_ADD, fd, for_writing).is_ok()
        }

        /// Returns whether the change was made.
        pub(crate) fn change(&self, fd: RawFd, for_writing: bool) -> bool {
            self.control(libc::EPOLL_CTL_MOD, fd, for_writing).is_ok()
        }

        /// A closed descriptor is already forgotten. Its number may belong to another one, which is not known here.
        pub(crate) fn forget(&self, fd: RawFd) {
            let _ = self.control(libc::EPOLL_CTL_DEL, fd, false);
        }

        fn control(&self, operation: libc::c_int, fd: RawFd, for_writing: bool) -> io::Result<()> {
            let events = if for_writing { libc::EPOLLIN | libc::EPOLLOUT } else { libc::EPOLLIN };
            let mut event = libc::epoll_event { events: events.cast_unsigned(), u64: 0 };
            // SAFETY: the event may be read during the call, and the kernel checks both descriptors.
            match unsafe { libc::epoll_ctl(self.fd(), operation, fd, &mut event) } {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            }
        }
    }

    /// Takes ownership of a descriptor that a system call has made.
    fn owned(fd: RawFd) -> io::Result<OwnedFd> {
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was made just now, and no other code owns it.
        above_stdio(unsafe { OwnedFd::from_raw_fd(fd) })
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod none {
    use std::io;
    use std::os::fd::RawFd;

    use crate::protocol::moment::Moment;

    /// This system has no such descriptor.
    #[derive(Debug)]
    pub(crate) enum ReadinessDescriptor {}

    impl ReadinessDescriptor {
        pub(crate) fn new() -> io::Result<Self> {
            Err(io::ErrorKind::Unsupported.into())
        }

        pub(crate) fn fd(&self) -> RawFd {
            match *self {}
        }

        pub(crate) fn set_timer(&self, _due: Moment) {}

        pub(crate) fn add(&self, _fd: RawFd, _for_writing: bool) -> bool {
            match *self {}
        }

        pub(crate) fn change(&self, _fd: RawFd, _for_writing: bool) -> bool {
            match *self {}
        }

        pub(crate) fn forget(&self, _fd: RawFd) {}
    }
}
