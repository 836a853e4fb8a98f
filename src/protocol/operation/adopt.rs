//! Taking over a lock that its holder has given away: the servers are asked whether it is there.

use std::sync::Arc;

use super::round::{Confirmation, Round};
use super::rounds::{Continuation, Inquiry, Rounds};
use super::{Actions, Ended, Limits, reply_ms};
use crate::protocol::command::{ReplyObserver, Request, Verb};
use crate::protocol::error::Status;
use crate::protocol::lock::{Asked, Lock};
use crate::protocol::lock_ticket::LockTicket;
use crate::protocol::moment::Moment;
use crate::protocol::policy::Policy;
use crate::protocol::quorum::tally::Outcome;
use crate::protocol::quorum::validity::TTL_MAX_MS;
use crate::protocol::server_set::ServerSet;
use crate::protocol::stats::{Account, Kind};

/// Takes over a lock.
pub(crate) struct Adopt {
    ticket: LockTicket,
    /// The lock, from when the servers are asked.
    lock: Option<Arc<Lock>>,
    rounds: Rounds,
}

impl Adopt {
    pub(crate) fn new(ticket: LockTicket) -> Self {
        Self { ticket, lock: None, rounds: Rounds::default() }
    }
}

impl Inquiry for Adopt {
    fn rounds(&mut self) -> &mut Rounds {
        &mut self.rounds
    }

    fn begin(&mut self, _: &mut dyn Actions) -> Option<(Moment, i64)> {
        Some((Moment::NEVER, self.ticket.ttl_ms))
    }

    fn ask(&mut self, actions: &mut dyn Actions) -> Round {
        let LockTicket { target, ttl_ms, fencing_token, token } = &self.ticket;
        let (since, drift) = (actions.now(), actions.policy().drift());
        let reply_ms = reply_ms(actions, *ttl_ms);
        // A server that says within this time that it has the lock counts as if it had said so at once, as with
        // an acquire.
        let window_ms = reply_ms.max(Policy::default_reply_ms(*ttl_ms));
        let asked = Asked { at: since, ttl_ms: *ttl_ms, window_ms, drift };
        let roster = actions.roster().clone();
        let confirmation = Confirmation::new(*token, drift, since, 1);
        let round = Round::adopt(confirmation, roster.len());
        let lock = Arc::new(Lock::new(target.clone(), *token, asked, roster));
        lock.set_fencing_token(*fencing_token);
        let request = Request::new(Verb::Inspect, target.clone(), *token, *ttl_ms)
            .before(Arc::clone(&lock) as Arc<dyn ReplyObserver>);
        self.lock = Some(lock);
        actions.ask(request, Limits { since, until: Moment::NEVER, reply_ms });
        round
    }

    fn conclude(&mut self, round: Round, actions: &mut dyn Actions) -> Continuation {
        let (now, roster) = (actions.now(), actions.roster());
        // A lock without an end is valid for as long as any lock can be.
        let left_ms = round.confirmed_ms(now).min(TTL_MAX_MS);
        let result = match (round.outcome(), self.lock.take()) {
            (Outcome::Reached, Some(lock)) if left_ms > 0 => {
                let all = ServerSet::first(roster.len());
                lock.adopt(round.voters(), all, now.plus_ms(left_ms));
                Ok(Ended::Acquired { lock, absent: round.absent(roster), keeper: None })
            }
            (Outcome::Unreachable, _) => Err(round.error(Status::Unreachable, roster)),
            _ => Err(round.error(Status::Lost, roster)),
        };
        actions.end(result);
        Continuation::Over
    }

    fn account(&self) -> Account {
        Account { kind: Kind::Adopt, ..Account::default() }
    }

    fn resource(&self) -> &Arc<[u8]> {
        &self.ticket.target.resource
    }
}
