//! What goes along with the first request to join a wait queue on the server: a subscription to the channel
//! that wakes us.

use std::mem;
use std::sync::Arc;

use redis::Value;

use super::Queue;
use crate::command::waking::{subscribe, subscribed};
use crate::command::{Answer, Request};
use crate::failure::Failure;
use crate::token::Token;
use crate::transport::entries::Entry;
use crate::transport::reply::ProtocolError;
use crate::transport::subscription::Subscription;

impl Queue {
    /// Why the server sends no push messages, if that is known.
    pub(in crate::transport) fn unheard(&self) -> Option<Failure> {
        match &self.subscription {
            Subscription::Refused(why) => Some(why.clone()),
            Subscription::None | Subscription::To(_) => None,
        }
    }

    /// The token of our channel, if we have subscribed to it.
    pub(in crate::transport) fn channel(&self) -> Option<Token> {
        match &self.subscription {
            Subscription::To(token) => Some(*token),
            Subscription::None | Subscription::Refused(_) => None,
        }
    }

    /// Subscribes, if the request needs that and this connection has not subscribed yet. Returns whether it
    /// subscribes.
    pub(super) fn subscribe(&mut self, request: &Request, outbox: &mut Vec<u8>) -> bool {
        if !request.needs_pushes() || self.subscription != Subscription::None {
            return false;
        }
        outbox.extend_from_slice(&subscribe(request.token()));
        self.subscription = Subscription::To(*request.token());
        true
    }

    /// The server's reply to the subscription.
    pub(super) fn note_subscription(&mut self, reply: &Value) -> Result<(), ProtocolError> {
        if let Err(why) = subscribed(reply).ok_or(ProtocolError::Unwanted)? {
            self.subscription = Subscription::Refused(why);
        }
        Ok(())
    }

    /// A release was answered, and the reply may report a waiter. If it does and the release did not wake the
    /// waiter, a request to wake it is queued now.
    pub(super) fn note_waiters(
        &mut self,
        entry: &Entry,
        waiters: Option<&Value>,
        answer: Answer,
    ) -> Answer {
        if !entry.request.wakes() {
            return answer;
        }
        let is_waited_for = entry.looks && matches!(waiters, Some(Value::Int(1..)));
        self.expects_waiters = is_waited_for || answer == Answer::Woke;
        if !is_waited_for || answer != Answer::Done {
            return answer;
        }
        let late = Arc::new(entry.request.wake_late());
        self.unsent.push_back(Entry::new(late, None, entry.since, None));
        Answer::Woke
    }

    /// The connection is gone, and so is its subscription.
    pub(super) fn forget_subscription(&mut self) {
        drop(mem::take(&mut self.subscription));
        self.expects_waiters = false;
    }
}
