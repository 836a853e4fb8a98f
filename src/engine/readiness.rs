//! One descriptor for a program that waits in an event loop of its own. It is readable whenever there is
//! work to do or an event to take.

use std::io;
use std::os::fd::RawFd;

use crate::protocol::moment::Moment;
use crate::system::readiness::ReadinessDescriptor;
use crate::transport::interest::Interest;

/// How often to look if a socket cannot be watched.
const BLIND_MS: i64 = 5;

pub(super) struct Readiness {
    descriptor: ReadinessDescriptor,
    /// The sockets that are watched. A closed socket is no longer watched, and another one may have its
    /// descriptor number.
    watched: Vec<Interest>,
    /// Kept for its memory.
    wanted: Vec<Interest>,
    /// The system had no room to watch one of the sockets.
    is_incomplete: bool,
    /// When the descriptor becomes readable even if no socket is.
    pub(super) due: Moment,
}

impl Readiness {
    pub(super) fn new() -> io::Result<Self> {
        let descriptor = ReadinessDescriptor::new()?;
        Ok(Self {
            descriptor,
            watched: Vec::new(),
            wanted: Vec::new(),
            is_incomplete: false,
            due: Moment::NEVER,
        })
    }

    pub(super) fn fd(&self) -> RawFd {
        self.descriptor.fd()
    }

    /// Makes the descriptor readable at `due`; `now` may be slightly in the past. An earlier moment stays
    /// set: a caller that then finds nothing to do sets it again, and most timeouts never happen.
    pub(super) fn set_due(&mut self, due: Moment, now: Moment) {
        let due = if self.is_incomplete { due.min(now.plus_ms(BLIND_MS)) } else { due };
        if due < self.due || self.due <= now {
            if due != self.due {
                self.descriptor.set_timer(due);
            }
            self.due = due;
        }
    }

    /// A thread drives: it does what is due, and sends what is to be sent. So the descriptor is not readable for that
    /// until it is set anew. What servers have sent is read before long.
    pub(super) fn rest(&mut self, now: Moment) {
        for watched in self.watched.iter_mut().filter(|it| it.for_writing) {
            // If the socket is closed, it is watched no more.
            self.descriptor.change(watched.fd, false);
            watched.for_writing = false;
        }
        if self.due <= now {
            self.due = Moment::NEVER;
            self.descriptor.set_timer(self.due);
        }
    }

    /// Watches these sockets from now on, and no others.
    pub(super) fn watch(&mut self, wanted: impl Iterator<Item = Interest> + Clone) {
        let mut watched = self.watched.iter();
        if wanted.clone().all(|it| watched.next() == Some(&it)) && watched.next().is_none() {
            return;
        }
        self.wanted.clear();
        self.wanted.extend(wanted);
        for old in &self.watched {
            if !self.wanted.iter().any(|new| new.socket == old.socket) {
                self.descriptor.forget(old.fd);
            }
        }
        let wanted = self.wanted.len();
        let Self { descriptor, watched, .. } = self;
        // A socket that could not be watched is tried again with the next call.
        self.wanted.retain(|new| match watched.iter().find(|old| old.socket == new.socket) {
            None => descriptor.add(new.fd, new.for_writing),
            Some(old) if old.for_writing != new.for_writing => {
                let is_changed = descriptor.change(new.fd, new.for_writing);
                if !is_changed {
                    descriptor.forget(new.fd);
                }
                is_changed
            }
            Some(_) => true,
        });
        self.is_incomplete = self.wanted.len() < wanted;
        std::mem::swap(&mut self.watched, &mut self.wanted);
    }
}

/// These tests run only where there is such a descriptor: on Linux, and in no simulated world.
#[cfg(test)]
mod tests {
    use std::io::{PipeReader, PipeWriter, Write, pipe};
    use std::os::fd::AsRawFd;

    use super::*;
    use crate::system::socket;

    fn at(ms: i64) -> Moment {
        Moment::from_nanos(0).plus_ms(ms)
    }

    #[test]
    fn the_earliest_moment_counts() {
        let Ok(mut readiness) = Readiness::new() else { return };
        let mut due = |due_ms, now_ms| {
            readiness.set_due(at(due_ms), at(now_ms));
            readiness.due
        };
        assert_eq!(due(100, 0), at(100));
        assert_eq!(due(200, 99), at(100));
        assert_eq!(due(50, 0), at(50));
        assert_eq!(due(200, 50), at(200));
        // If not all sockets are watched, the descriptor becomes readable now and then.
        readiness.is_incomplete = true;
        readiness.set_due(at(199), at(100));
        assert_eq!(readiness.due, at(100 + BLIND_MS));
    }

    #[test]
    fn the_descriptor_is_ready_at_its_moment() {
        let Ok(mut readiness) = Readiness::new() else { return };
        readiness.set_due(at(1), at(0));
        // This moment was soon after the machine was started.
        let mut watched = [socket::watch(readiness.fd(), false)];
        socket::poll(&mut watched, at(10_000), at(0));
        assert_ne!(watched[0].revents, 0);
        readiness.set_due(Moment::NEVER, at(1));
        assert!(!is_ready(&mut readiness, &[]));
    }

    /// A pipe with bytes to read, and with room for more.
    fn ends() -> (PipeReader, PipeWriter) {
        let (reader, mut writer) = pipe().unwrap();
        writer.write_all(b"x").unwrap();
        (reader, writer)
    }

    fn interest(end: &impl AsRawFd, for_writing: bool) -> Interest {
        let fd = end.as_raw_fd();
        Interest { fd, for_writing, socket: fd.cast_unsigned().into() }
    }

    /// Whether the descriptor is readable when these sockets are watched.
    fn is_ready(readiness: &mut Readiness, wanted: &[Interest]) -> bool {
        readiness.watch(wanted.iter().copied());
        let mut watched = [socket::watch(readiness.fd(), false)];
        socket::poll(&mut watched, at(0), at(0));
        watched[0].revents != 0
    }

    #[test]
    fn the_descriptor_is_ready_with_a_watched_socket() {
        let Ok(mut readiness) = Readiness::new() else { return };
        let (reader, writer) = ends();
        let (reads, writes) = (interest(&reader, false), interest(&writer, true));
        let waits = Interest { for_writing: false, ..writes };
        for (wanted, ready) in [
            (&[][..], false),
            (&[waits], false),
            (&[writes], true),
            (&[writes], true),
            (&[waits], false),
            (&[reads, waits], true),
            (&[waits], false),
            (&[waits, writes][1..], true),
            (&[reads, writes], true),
            (&[reads], true),
            (&[], false),
        ] {
            assert_eq!(is_ready(&mut readiness, wanted), ready, "{wanted:?}");
            assert_eq!(readiness.watched, wanted);
            assert!(!readiness.is_incomplete);
        }
    }

    #[test]
    fn a_failed_watch_is_retried() {
        let Ok(mut readiness) = Readiness::new() else { return };
        let (reader, _writer) = ends();
        let reads = interest(&reader, false);
        let none = Interest { fd: -1, for_writing: false, socket: 0 };
        assert!(is_ready(&mut readiness, &[none, reads]));
        assert!(readiness.is_incomplete);
        assert_eq!(readiness.watched, [reads]);
        assert!(is_ready(&mut readiness, &[Interest { fd: reader.as_raw_fd(), ..reads }]));
        // The same holds for a socket whose watch cannot be changed.
        let gone = Interest { fd: -1, for_writing: true, ..reads };
        readiness.watch([gone].into_iter());
        assert!(readiness.is_incomplete && readiness.watched.is_empty());
    }
}
