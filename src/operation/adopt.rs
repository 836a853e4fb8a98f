//! Taking over a lock that its holder has given away: the servers are asked whether it is there.

use std::mem;
use std::sync::Arc;

use super::connect::{ConnectQuorum, Progress};
use super::round::{Confirmation, Round};
use super::{Actions, Ended, Event, Limits, Operation, Urgency, cancelled, reply_ms};
use crate::command::{ReplyObserver, Request, Verb};
use crate::error::Status;
use crate::lock::{Asked, Lock};
use crate::lock_ticket::LockTicket;
use crate::moment::Moment;
use crate::quorum::tally::Outcome;
use crate::quorum::validity::TTL_MAX_MS;
use crate::server_set::ServerSet;
use crate::stats::{Account, Kind};
use crate::transport::timeouts::Timeouts;

/// Takes over a lock.
pub(crate) struct Adopt {
    ticket: LockTicket,
    stage: Stage,
}

enum Stage {
    Submitted,
    Connecting(Box<ConnectQuorum>),
    Asking(Arc<Lock>, Box<Round>),
}

impl Adopt {
    pub(crate) fn new(ticket: LockTicket) -> Self {
        Self { ticket, stage: Stage::Submitted }
    }

    fn begin(&mut self, actions: &mut dyn Actions) {
        match ConnectQuorum::if_needed(Moment::NEVER, self.ticket.ttl_ms, actions) {
            Some(quorum) => self.stage = Stage::Connecting(quorum),
            None => self.ask(actions),
        }
    }

    fn ask(&mut self, actions: &mut dyn Actions) {
        let LockTicket { target, ttl_ms, fencing_token, token } = &self.ticket;
        let (since, drift) = (actions.now(), actions.settings().drift());
        let reply_ms = reply_ms(actions, *ttl_ms);
        // A server that says within this time that it has the lock counts as if it had said so at once, as with
        // an acquire.
        let window_ms = reply_ms.max(Timeouts::default_reply_ms(*ttl_ms));
        let asked = Asked { at: since, ttl_ms: *ttl_ms, window_ms, drift };
        let roster = actions.roster().clone();
        let confirmation = Confirmation::new(*token, drift, since, 1);
        let round = Round::adopt(confirmation, roster.len());
        let lock = Arc::new(Lock::new(target.clone(), *token, asked, roster));
        lock.set_fencing_token(*fencing_token);
        let request = Request::new(Verb::Inspect, target.clone(), *token, *ttl_ms)
            .before(Arc::clone(&lock) as Arc<dyn ReplyObserver>);
        self.stage = Stage::Asking(lock, Box::new(round));
        actions.ask(request, Limits { since, until: Moment::NEVER, reply_ms });
    }

    fn conclude(lock: Arc<Lock>, round: &Round, actions: &mut dyn Actions) {
        let (now, roster) = (actions.now(), actions.roster());
        // A lock without an end is valid for as long as any lock can be.
        let left_ms = round.confirmed_ms(now).min(TTL_MAX_MS);
        let status = match round.outcome() {
            Outcome::Reached if left_ms > 0 => {
                let all = ServerSet::first(roster.len());
                lock.adopt(round.voters(), all, now.plus_ms(left_ms));
                let absent = round.absent(roster);
                return actions.end(Ok(Ended::Acquired { lock, absent, keeper: None }));
            }
            Outcome::Unreachable => Status::Unreachable,
            Outcome::Reached | Outcome::Refused | Outcome::TooLate => Status::Lost,
        };
        let error = round.error(status, roster);
        actions.end(Err(error));
    }
}

impl Operation for Adopt {
    fn handle(&mut self, event: Event, actions: &mut dyn Actions) {
        let stage = mem::replace(&mut self.stage, Stage::Submitted);
        if let Event::Cancelled { .. } = event {
            // A question changes nothing, so the ticket is as good as before.
            return actions.end(Err(cancelled()));
        }
        match stage {
            Stage::Submitted => self.begin(actions),
            Stage::Connecting(mut quorum) => match quorum.handle(event, actions) {
                Progress::Pending => self.stage = Stage::Connecting(quorum),
                Progress::Connected => self.ask(actions),
                Progress::Failed(miss) => miss.end(actions),
            },
            Stage::Asking(lock, round) => Self::conclude(lock, &round, actions),
        }
    }

    fn urgency(&self) -> Urgency {
        Urgency::Holds
    }

    fn account(&self) -> Account {
        Account { kind: Kind::Adopt, ..Account::default() }
    }

    fn resource(&self) -> Option<&Arc<[u8]>> {
        Some(&self.ticket.target.resource)
    }

    fn round(&mut self) -> Option<&mut Round> {
        match &mut self.stage {
            Stage::Submitted => None,
            Stage::Connecting(quorum) => quorum.round(),
            Stage::Asking(_, round) => Some(round),
        }
    }
}
