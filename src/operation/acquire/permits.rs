//! A permit of a semaphore. If different servers gave an attempt different slots, the attempt moves to one of
//! them.

use std::sync::Arc;

use super::moves::MOVES_MAX;
use super::{Acquire, Stage};
use crate::command::{Request, Verb, Witness};
use crate::held_lock::{Granted, HeldLock};
use crate::operation::question::{Found, Question};
use crate::operation::{Actions, Limits, reply_ms};
use crate::server_set::ServerSet;

impl Acquire {
    /// Ends an attempt to take a permit, or goes on with a move. Returns the question if the attempt has
    /// failed.
    ///
    /// The token and the start of the validity stay the same, because every answer that counts was asked for
    /// after that start.
    pub(super) fn conclude_slots(
        &mut self,
        hold: &Arc<HeldLock>,
        question: Box<Question>,
        actions: &mut dyn Actions,
    ) -> Option<Box<Question>> {
        let is_valid = actions.now() < hold.deadline();
        match question.slot() {
            Found::Had(slot, voters) if is_valid => {
                self.take_slot(hold, slot, voters, &question, actions);
            }
            Found::MayMove(slot) if is_valid && self.moves.count < MOVES_MAX => {
                self.move_to(hold, slot, &question, actions);
            }
            _ => return Some(question),
        }
        None
    }

    /// Asks the servers for this slot that have answered the last request. A server that has given us another
    /// slot releases that slot if it can give us this one.
    fn move_to(
        &mut self,
        hold: &Arc<HeldLock>,
        slot: u16,
        question: &Question,
        actions: &mut dyn Actions,
    ) {
        self.moves.count += 1;
        let servers = self.moves.next(question, actions.roster().len());
        let (target, ttl_ms) = (hold.target().clone(), self.wanted.ttl_ms);
        let of = target.kind.permits().unwrap_or(1);
        let request = Request::new(Verb::Move, target, *hold.token(), ttl_ms)
            .with_slot(slot)
            .to(servers)
            .before(Arc::clone(hold) as Arc<dyn Witness>);
        let (since, until) = (actions.now(), hold.deadline().min(self.cut));
        let reply_ms = reply_ms(actions, ttl_ms);
        let question = Question::permit(Arc::clone(hold), of, actions.roster().len());
        self.stage = Stage::Asking(Box::new(question));
        actions.ask(request, Limits { since, until, reply_ms });
    }

    /// The slot is taken, by the answers of these servers. Other slots that other servers may have given us are
    /// released.
    fn take_slot(
        &mut self,
        hold: &Arc<HeldLock>,
        slot: u16,
        voters: ServerSet,
        question: &Question,
        actions: &mut dyn Actions,
    ) {
        let (sent, given) = (self.moves.sent, question.slots_given());
        hold.take_slot(slot, &Granted { voters, sent, given: &given }, actions.now());
        let has_it = given.iter().filter(|it| it.1 == Some(slot)).map(|it| it.0).collect();
        let rest = sent.minus(has_it).minus(voters);
        if !rest.is_empty() {
            let (target, ttl_ms) = (hold.target().clone(), hold.longest_ttl_ms());
            let verb = match actions.settings().has_waking() {
                true => Verb::ReleaseRestAndWake,
                false => Verb::ReleaseRest,
            };
            let release = Request::new(verb, target, *hold.token(), ttl_ms);
            actions.tell(release.with_slot(slot).to(rest));
        }
        self.succeed(Arc::clone(hold), question, actions);
    }
}
