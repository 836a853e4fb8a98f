//! The ends of operations that no thread waited for, until somebody takes them.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use crate::engine::call_handle::CallHandle;
use crate::protocol::operation::{End, Payload};

/// The end of an operation that no thread waited for.
pub(crate) struct Notice {
    /// The payload that was given when the operation began.
    pub(crate) payload: Payload,
    pub(crate) end: End,
    /// The call of the operation, if it can be cancelled or waited for.
    pub(crate) call: Option<Arc<CallHandle>>,
}

/// The notices that nobody has taken.
pub(super) struct Notices {
    /// The notices that become events, in the order in which the operations ended. A caller that waits for one call
    /// takes its notice out of the middle, and leaves a gap.
    queue: VecDeque<Option<Notice>>,
    /// The number of the first one. Numbers begin with 1.
    first: u64,
    /// How many are in the queue without the gaps.
    count: usize,
    /// The notices that are kept for callers that wait for their calls, by the address of the call.
    kept: HashMap<usize, Notice>,
}

impl Notices {
    pub(super) fn new() -> Self {
        Self { queue: VecDeque::new(), first: 1, count: 0, kept: HashMap::new() }
    }

    pub(super) fn push(&mut self, notice: Notice) {
        match &notice.call {
            Some(call) if call.is_without_event() => {
                self.kept.insert(address(call), notice);
            }
            call => {
                let number = self.first + self.queue.len() as u64;
                call.iter().for_each(|call| call.set_notice(number));
                self.queue.push_back(Some(notice));
                self.count += 1;
            }
        }
    }

    /// Takes the next notice that becomes an event.
    pub(super) fn next(&mut self) -> Option<Notice> {
        while let Some(notice) = self.queue.pop_front() {
            self.first += 1;
            if let Some(notice) = notice {
                self.note_taken(&notice);
                return Some(notice);
            }
        }
        None
    }

    /// Takes the notice of this call.
    pub(super) fn take(&mut self, call: &Arc<CallHandle>) -> Option<Notice> {
        if let Some(notice) = self.kept.remove(&address(call)) {
            return Some(notice);
        }
        let place = usize::try_from(call.notice().checked_sub(self.first)?).ok()?;
        let is_its =
            |notice: &mut Notice| notice.call.as_ref().is_some_and(|it| Arc::ptr_eq(it, call));
        let notice = self.queue.get_mut(place)?.take_if(is_its)?;
        self.note_taken(&notice);
        Some(notice)
    }

    /// Takes any notice that is kept for a caller, because no caller will come.
    pub(super) fn next_kept(&mut self) -> Option<Notice> {
        let address = *self.kept.keys().next()?;
        self.kept.remove(&address)
    }

    /// Whether nothing is there that becomes an event.
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn note_taken(&mut self, notice: &Notice) {
        self.count -= 1;
        notice.call.iter().for_each(|call| call.set_notice(0));
    }
}

/// The call stays at this address for as long as its notice is here.
fn address(call: &Arc<CallHandle>) -> usize {
    Arc::as_ptr(call).addr()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::operation::Ended;

    fn push(notices: &mut Notices, payload: usize) -> Arc<CallHandle> {
        let call = Arc::new(CallHandle::default());
        push_of(notices, payload, &call);
        call
    }

    fn push_of(notices: &mut Notices, payload: usize, call: &Arc<CallHandle>) {
        let (payload, call) = (Box::new(payload), Some(Arc::clone(call)));
        notices.push(Notice { payload, end: Ok(Ended::Stopped), call });
    }

    fn payload(notice: Option<Notice>) -> Option<usize> {
        notice?.payload.downcast().ok().map(|it| *it)
    }

    #[test]
    fn each_notice_is_taken_once() {
        let mut notices = Notices::new();
        let calls: Vec<_> = (0..4).map(|it| push(&mut notices, it)).collect();
        assert_eq!(payload(notices.take(&calls[1])), Some(1));
        assert_eq!(payload(notices.take(&calls[1])), None);
        assert_eq!(payload(notices.next()), Some(0));
        assert!(!notices.is_empty(), "two are left");
        assert_eq!(payload(notices.take(&calls[0])), None);
        assert_eq!(payload(notices.take(&calls[3])), Some(3));
        assert_eq!(payload(notices.next()), Some(2));
        assert!(notices.is_empty() && notices.next().is_none());
        // Numbers go on, also behind gaps.
        let last = push(&mut notices, 4);
        assert!(!notices.is_empty());
        assert_eq!(payload(notices.take(&calls[2])), None);
        assert_eq!(payload(notices.take(&last)), Some(4));
        assert!(notices.is_empty() && notices.next().is_none());
    }

    #[test]
    fn a_notice_kept_for_its_caller_is_no_event() {
        let mut notices = Notices::new();
        let call = Arc::new(CallHandle::default());
        call.set_without_event(true);
        push_of(&mut notices, 7, &call);
        assert!(notices.is_empty() && notices.next().is_none());
        assert_eq!(payload(notices.take(&call)), Some(7));
        assert_eq!(payload(notices.take(&call)), None);
        push_of(&mut notices, 8, &call);
        assert_eq!(payload(notices.next_kept()), Some(8));
        assert!(notices.next_kept().is_none());
    }
}
