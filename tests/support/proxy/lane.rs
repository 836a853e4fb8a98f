//! One direction of a connection: the data that was read and is not forwarded yet.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

type Alter = Box<dyn FnMut(Vec<u8>) -> Vec<u8> + Send>;

/// The rules for data in one direction.
pub(super) struct Rules {
    /// The minimum and the maximum.
    pub(super) delay: (Duration, Duration),
    pub(super) is_stalled: bool,
    /// The number of bytes after which it is stalled.
    pub(super) stall_after: Option<u64>,
    /// How much is forwarded at once, and how long nothing is forwarded after that.
    pub(super) piece: usize,
    pub(super) pause: Duration,
    pub(super) gather: Duration,
    /// The number of bytes after which the connection ends, and whether the receiver sees only an orderly
    /// end.
    pub(super) reset_after: Option<u64>,
    pub(super) ends_gently: bool,
    /// How many bytes each connection may carry before it is reset.
    pub(super) reset_each_after: Option<u64>,
    pub(super) alter: Option<Alter>,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            delay: (Duration::ZERO, Duration::ZERO),
            is_stalled: false,
            stall_after: None,
            piece: usize::MAX,
            pause: Duration::ZERO,
            gather: Duration::ZERO,
            reset_after: None,
            ends_gently: false,
            reset_each_after: None,
            alter: None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Fine,
    /// The connection must be reset.
    Broken,
}

#[derive(Default)]
pub(super) struct Lane {
    /// Each with the time when it must be forwarded.
    waiting: VecDeque<(Instant, Vec<u8>)>,
    paused_until: Option<Instant>,
    /// The number of pieces so far, as a source of variety.
    count: u32,
    /// How many bytes were read, and how many were forwarded.
    pub(super) read: u64,
    pub(super) handed_on: u64,
    /// Whether the sender sends no more, and whether that is because it reset the connection.
    pub(super) has_ended: bool,
    was_reset: bool,
    /// Whether the receiver was told that no more data comes.
    pub(super) is_shut: bool,
    /// Whether the receiver's socket accepts no more for now.
    pub(super) is_full: bool,
}

impl Lane {
    /// Reads all available data.
    pub(super) fn fill(&mut self, mut from: &TcpStream, rules: &mut Rules, now: Instant) {
        let mut bytes = [0; 64 * 1024];
        while !self.has_ended {
            match from.read(&mut bytes) {
                Ok(0) => self.has_ended = true,
                Ok(count) => {
                    self.read += count as u64;
                    let piece = bytes[..count].to_vec();
                    let piece = match &mut rules.alter {
                        Some(alter) => alter(piece),
                        None => piece,
                    };
                    self.queue(piece, rules, now);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // Data that was sent before is forwarded first.
                Err(_) => (self.has_ended, self.was_reset) = (true, true),
            }
        }
    }

    /// Writes all data that is due.
    pub(super) fn drain(&mut self, mut to: &TcpStream, rules: &mut Rules, now: Instant) -> Step {
        self.is_full = false;
        while self.next_due(rules).is_some_and(|it| it <= now) {
            let Some((_, bytes)) = self.waiting.front_mut() else { break };
            let left = [rules.reset_after, rules.stall_after].into_iter().flatten().min();
            let left = left.map_or(usize::MAX, |it| it as usize);
            let share =
                rules.reset_each_after.map_or(u64::MAX, |it| it.saturating_sub(self.handed_on));
            let wanted = bytes.len().min(rules.piece).min(left).min(share as usize);
            let written = if self.is_shut { Ok(wanted) } else { to.write(&bytes[..wanted]) };
            match written {
                Ok(written) => {
                    bytes.drain(..written);
                    if bytes.is_empty() {
                        self.waiting.pop_front();
                    }
                    self.paused_until = Some(now + rules.pause);
                    self.handed_on += written as u64;
                    if rules.reset_each_after.is_some_and(|it| it <= self.handed_on) {
                        return Step::Broken;
                    }
                    if is_used_up(&mut rules.stall_after, written) {
                        rules.is_stalled = true;
                    }
                    if is_used_up(&mut rules.reset_after, written) {
                        if !rules.ends_gently {
                            return Step::Broken;
                        }
                        self.is_shut = true;
                        let _ = to.shutdown(Shutdown::Write);
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.is_full = true;
                    return Step::Fine;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // The other direction detects how the receiver ended.
                Err(_) => self.is_shut = true,
            }
        }
        if self.has_ended && self.waiting.is_empty() && !self.is_shut && !rules.is_stalled {
            if self.was_reset {
                return Step::Broken;
            }
            self.is_shut = true;
            let _ = to.shutdown(Shutdown::Write);
        }
        Step::Fine
    }

    /// When there is data to forward.
    pub(super) fn next_due(&self, rules: &Rules) -> Option<Instant> {
        let (due, _) = self.waiting.front().filter(|_| !rules.is_stalled && !self.is_full)?;
        Some(self.paused_until.map_or(*due, |it| it.max(*due)))
    }

    /// Whether there is data that was not forwarded yet.
    pub(super) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Adds bytes to be forwarded at this time.
    pub(super) fn push(&mut self, bytes: Vec<u8>, due: Instant) {
        if !bytes.is_empty() {
            self.waiting.push_back((due, bytes));
        }
    }

    pub(super) fn drop_all(&mut self) {
        self.waiting.clear();
    }

    fn queue(&mut self, piece: Vec<u8>, rules: &Rules, now: Instant) {
        let last = self.waiting.back_mut();
        if let Some((_, last)) = last.filter(|_| !rules.gather.is_zero()) {
            last.extend(piece);
            return;
        }
        let (least, most) = rules.delay;
        self.count = self.count.wrapping_add(1);
        // Any value between the two, and the same in each run.
        let share = self.count.wrapping_mul(0x9E37_79B9) >> 24;
        let delay = least + most.saturating_sub(least) * share / 255;
        self.push(piece, now + delay.max(rules.gather));
    }
}

/// Counts the carried bytes. Returns whether the limit is used up. In that case the limit is removed.
fn is_used_up(left: &mut Option<u64>, carried: usize) -> bool {
    *left = left.map(|it| it.saturating_sub(carried as u64));
    left.take_if(|it| *it == 0).is_some()
}
