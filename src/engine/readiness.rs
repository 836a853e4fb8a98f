//! One descriptor for a program that waits in a loop of its own: it is readable whenever there is something to
//! do or to tell.

use std::io;
use std::os::fd::RawFd;

use crate::moment::Moment;
use crate::system::readiness::ReadinessDescriptor;
use crate::transport::interest::Interest;

/// How often to look where a socket cannot be watched.
const BLIND_MS: i64 = 5;

pub(super) struct Readiness {
    descriptor: ReadinessDescriptor,
    /// What it is watching. A closed socket is watched no more, and another may have its number.
    watched: Vec<Interest>,
    /// Kept for its memory.
    wanted: Vec<Interest>,
    /// The system had no room for one of them.
    is_incomplete: bool,
    /// When it is readable although no socket is.
    due: Moment,
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

    /// It is to be readable at this moment; `now` may have been a moment ago. Where it would be earlier, that
    /// stays: whoever looks in vain sets it anew, and most timeouts never come true.
    pub(super) fn set_due(&mut self, due: Moment, now: Moment) {
        let due = if self.is_incomplete { due.min(now.plus_ms(BLIND_MS)) } else { due };
        if due < self.due || self.due <= now {
            if due != self.due {
                self.descriptor.set_timer(due);
            }
            self.due = due;
        }
    }

    /// These sockets are watched from now on, and no others.
    pub(super) fn watch(&mut self, wanted: impl Iterator<Item = Interest> + Clone) {
        if wanted.clone().eq(self.watched.iter().copied()) {
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
        // What could not be watched is tried again with the next call.
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
