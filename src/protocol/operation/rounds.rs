//! What the calls share that ask the servers: a quorum of connections first, if there is none, then one question after
//! another.

use std::sync::Arc;

use super::connect::{ConnectQuorum, Progress};
use super::round::Round;
use super::{Actions, Event, Miss, Operation, Urgency, cancelled};
use crate::protocol::moment::Moment;
use crate::protocol::stats::Account;

/// How far a call has come. Neither of both: it has not begun, or no server is asked.
#[derive(Default)]
pub(super) struct Rounds {
    connecting: Option<Box<ConnectQuorum>>,
    asking: Option<Round>,
}

/// What comes next.
pub(super) enum Step {
    Begin,
    Wait,
    Ask,
    /// There is no quorum of connections.
    Unconnected(Miss),
    /// The question is over ([`Rounds::take_round`]).
    Conclude,
}

impl Rounds {
    /// Connects to a quorum if there is none. Nothing is waited for after `limit`. Returns whether the servers can be
    /// asked at once about a lock of this TTL.
    pub(super) fn connect(
        &mut self,
        limit: Moment,
        ttl_ms: i64,
        actions: &mut dyn Actions,
    ) -> bool {
        let quorum = ConnectQuorum::if_needed(limit, ttl_ms, actions);
        (self.connecting, self.asking) = (quorum, None);
        self.connecting.is_none()
    }

    /// The servers are being asked.
    pub(super) fn ask(&mut self, round: Round) {
        (self.connecting, self.asking) = (None, Some(round));
    }

    pub(super) fn handle(&mut self, event: Event, actions: &mut dyn Actions) -> Step {
        let Some(mut quorum) = self.connecting.take() else {
            return if self.is_asking() { Step::Conclude } else { Step::Begin };
        };
        match quorum.handle(event, actions) {
            Progress::Pending => {
                self.connecting = Some(quorum);
                Step::Wait
            }
            Progress::Connected => Step::Ask,
            Progress::Failed(miss) => Step::Unconnected(miss),
        }
    }

    /// The question that is over.
    pub(super) fn take_round(&mut self) -> Option<Round> {
        self.asking.take()
    }

    pub(super) fn is_connecting(&self) -> bool {
        self.connecting.is_some()
    }

    pub(super) fn is_asking(&self) -> bool {
        self.asking.is_some()
    }

    /// The question that is open.
    pub(super) fn round(&mut self) -> Option<&mut Round> {
        match &mut self.connecting {
            Some(quorum) => quorum.round(),
            None => self.asking.as_mut(),
        }
    }
}

/// A call that asks the servers, and does nothing else.
pub(super) trait Inquiry: Send {
    fn rounds(&mut self) -> &mut Rounds;

    /// The call begins, or begins again: until when it waits for connections, and the TTL of the lock that it is about.
    /// None: it has ended.
    fn begin(&mut self, actions: &mut dyn Actions) -> Option<(Moment, i64)>;

    /// Asks the servers. Returns the round that hears their answers.
    fn ask(&mut self, actions: &mut dyn Actions) -> Round;

    /// The answers are there, or no more are waited for.
    fn conclude(&mut self, round: Round, actions: &mut dyn Actions) -> Continuation;

    /// There is no quorum of connections, and no server was asked.
    fn conclude_unconnected(&mut self, miss: &Miss, actions: &mut dyn Actions) -> Continuation {
        miss.end(actions);
        Continuation::Over
    }

    /// Ends at once.
    fn cancel(&mut self, actions: &mut dyn Actions) {
        actions.end(Err(cancelled()));
    }

    fn urgency(&self) -> Urgency {
        Urgency::Holds
    }

    fn account(&self) -> Account {
        Account::default()
    }

    fn resource(&self) -> &Arc<[u8]>;
}

/// How a call goes on.
pub(super) enum Continuation {
    /// It has ended.
    Over,
    Ask,
    Begin,
}

impl<I: Inquiry> Operation for I {
    fn handle(&mut self, event: Event, actions: &mut dyn Actions) {
        if let Event::Cancelled { .. } = event {
            return self.cancel(actions);
        }
        let next = match self.rounds().handle(event, actions) {
            Step::Wait => return,
            Step::Begin => Continuation::Begin,
            Step::Ask => Continuation::Ask,
            Step::Unconnected(miss) => self.conclude_unconnected(&miss, actions),
            Step::Conclude => match self.rounds().take_round() {
                Some(round) => self.conclude(round, actions),
                None => Continuation::Over,
            },
        };
        go_on(self, next, actions);
    }

    fn urgency(&self) -> Urgency {
        Inquiry::urgency(self)
    }

    fn account(&self) -> Account {
        Inquiry::account(self)
    }

    fn resource(&self) -> Option<&Arc<[u8]>> {
        Some(Inquiry::resource(self))
    }

    fn round(&mut self) -> Option<&mut Round> {
        self.rounds().round()
    }
}

fn go_on(inquiry: &mut impl Inquiry, next: Continuation, actions: &mut dyn Actions) {
    let may_ask = match next {
        Continuation::Over => false,
        Continuation::Ask => true,
        Continuation::Begin => match inquiry.begin(actions) {
            None => false,
            Some((limit, ttl_ms)) => inquiry.rounds().connect(limit, ttl_ms, actions),
        },
    };
    if may_ask {
        let round = inquiry.ask(actions);
        inquiry.rounds().ask(round);
    }
}
