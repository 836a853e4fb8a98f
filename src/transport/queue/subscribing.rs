//! What goes along with the first request to stand in line: we subscribe to the channel over which we are told.

use std::mem;
use std::sync::Arc;

use redis::Value;

use super::Queue;
use crate::command::waking::{is_subscription, subscribe};
use crate::command::{Answer, Request, Verb};
use crate::failure::Failure;
use crate::token::Token;
use crate::transport::entries::Entry;
use crate::transport::reply::Nonsense;

/// Whether the server tells us what is published to our channel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Subscription {
    /// We have not asked.
    #[default]
    None,
    /// It does, or was asked to, for the channel of this token.
    To(Token),
    /// It does not, for this reason.
    Refused(Failure),
}

impl Queue {
    /// Whether it is known that the server tells us nothing by itself, and why.
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

    /// Subscribes, if that is needed and was not done on this connection. Returns whether it does.
    pub(super) fn subscribe(&mut self, request: &Request, outbox: &mut Vec<u8>) -> bool {
        if !request.needs_pushes() || self.subscription != Subscription::None {
            return false;
        }
        outbox.extend_from_slice(&subscribe(request.token()));
        self.subscription = Subscription::To(*request.token());
        true
    }

    /// This is what the server says to that.
    pub(super) fn note_subscription(&mut self, reply: &Value) -> Result<(), Nonsense> {
        match reply {
            Value::ServerError(error) => {
                let refused = Answer::refused(error);
                self.subscription = match refused {
                    Answer::Failed(why) => Subscription::Refused(why),
                    _ => Subscription::None,
                };
                Ok(())
            }
            confirmed if is_subscription(confirmed) => Ok(()),
            _ => Err(Nonsense::Unwanted),
        }
    }

    /// A release was answered, and perhaps whether anybody waits. If so, and it was not woken in the same go, it is now.
    pub(super) fn note_waiters(
        &mut self,
        entry: &Entry,
        waiters: Option<&Value>,
        answer: Answer,
    ) -> Answer {
        if entry.request.verb() != Verb::ReleaseAndWake {
            return answer;
        }
        let is_waited_for = entry.looks && waiters == Some(&Value::Int(1));
        self.expects_waiters = is_waited_for || answer == Answer::Woke;
        if !is_waited_for || answer != Answer::Done {
            return answer;
        }
        let late = Arc::new(entry.request.wake_late());
        self.unsent.push_back(Entry::new(late, None, entry.since, None));
        Answer::Woke
    }

    /// The connection is gone, and what it was subscribed to.
    pub(super) fn forget_subscription(&mut self) {
        drop(mem::take(&mut self.subscription));
        self.expects_waiters = false;
    }
}
