//! Waiting to be woken: a place in line on the servers, and what the servers tell waiters.
//!
//! After a refusal the head of the queue asks for a place in line. It tries again when a quorum of servers is
//! free for it, or a little after the first server is free. It also looks now and then whether it was
//! forgotten. All of this only decides when to try. The lock is taken in the same way as without it.

use super::{Acquire, Plan, Stage, last_try_end};
use crate::command::{Request, Verb};
use crate::error::Status;
use crate::lock_kind::Target;
use crate::moment::Moment;
use crate::operation::question::Question;
use crate::operation::{Actions, Limits, Miss, QUESTION_TTL_MS, reply_ms};
use crate::quorum::backoff::Refusal;
use crate::quorum::untold::Untold;
use crate::server_set::ServerSet;
use crate::wait_queue::{Left, Line, Place, Wait};

impl Acquire {
    /// Whether servers must wake the acquire: it waits, and no other waiter of this manager is before it.
    pub(super) fn may_stand_in_line(&self, actions: &mut dyn Actions) -> bool {
        matches!(self.wanted.plan, Plan::Until(until) if actions.now() < until)
            && actions.settings().has_waking()
            && actions.wait_queues().may_stand_in_line(&self.wanted.target, self.number())
    }

    /// Whether to look at the state on the servers instead of trying at once. It does if it stands in line, was told
    /// nothing and does not poll, or if another client was woken just now.
    pub(super) fn is_to_look(&self, actions: &mut dyn Actions) -> bool {
        if !self.may_stand_in_line(actions) {
            return false;
        }
        let (now, quorum) = (actions.now(), actions.roster().quorum() as usize);
        let (target, queues) = (&self.wanted.target, actions.wait_queues());
        let was_woken = !self.has_asked && queues.was_woken(target, now);
        let is_in_line = queues.line(target, self.number()).is_some_and(|line| {
            line.will_hear(quorum) && line.due(quorum) > now && !line.untold().is_to_try(now)
        });
        was_woken || is_in_line
    }

    /// Notes that a try to take the lock is about to begin.
    pub(super) fn note_attempt(&self, actions: &mut dyn Actions) {
        let asker = actions.ticket().place();
        if let Some(line) = actions.wait_queues().line(&self.wanted.target, self.number()) {
            line.begin_attempt(asker);
        }
    }

    /// Looks after a try that was refused. These servers had granted it, and it is released there.
    pub(super) fn look_after(
        &mut self,
        miss: Miss,
        returned: ServerSet,
        actions: &mut dyn Actions,
    ) {
        if let Some(line) = actions.wait_queues().line(&self.wanted.target, self.number()) {
            line.note_returned(returned);
        }
        self.look(Some(Box::new(miss)), actions);
    }

    /// After a try that was refused: waits for the next one if the acquire polls. Returns the miss if it must
    /// look first.
    pub(super) fn poll(&mut self, miss: Miss, actions: &mut dyn Actions) -> Option<Miss> {
        let (now, quorum) = (actions.now(), actions.roster().quorum() as usize);
        let (Miss::Votes(_, question), Plan::Until(until)) = (&miss, self.wanted.plan) else {
            return Some(miss);
        };
        let line = actions.wait_queues().line(&self.wanted.target, self.number());
        let is_to_try = |line: &mut Line| line.will_hear(quorum) && line.untold().is_to_try(now);
        if now >= until || !line.is_some_and(is_to_try) {
            return Some(miss);
        }
        let Ok(random) = actions.random() else { return Some(miss) };
        let refusal = question.refusal(actions.settings().drift(), now);
        self.wait_in_line(&refusal, (None, random), until, Box::new(miss), actions);
        None
    }

    /// Asks for a place in line, or whether the resource is free.
    pub(super) fn look(&mut self, miss: Option<Box<Miss>>, actions: &mut dyn Actions) {
        let channel = match actions.channel() {
            Ok(channel) => channel,
            Err(error) => return self.fail(error, None, actions),
        };
        let (asker, wall_us, since) = (actions.ticket().place(), actions.wall_us(), actions.now());
        let (target, servers) = (self.wanted.target.clone(), actions.roster().len());
        let line = actions.wait_queues().line(&target, self.number());
        let waiting_since = line.map_or(wall_us, |line| line.begin_look(asker, wall_us));
        let lines = actions.wait_queues().lines_of(self.number(), miss.is_some());
        let request = Request::new(Verb::Enrol, target, channel, QUESTION_TTL_MS).with_lines(lines);
        self.stage = Stage::Looking(Box::new(Question::line(since, servers)), miss);
        let (until, reply_ms) = (self.cut_at(since), reply_ms(actions, self.wanted.ttl_ms));
        actions.ask(request.waiting_since(waiting_since), Limits { since, until, reply_ms });
    }

    /// When a look that begins now is cut short.
    fn cut_at(&self, now: Moment) -> Moment {
        match self.wanted.plan {
            Plan::Until(until) => last_try_end(until, now),
            Plan::Tries(_) => Moment::NEVER,
        }
    }

    /// Evaluates what the servers said of the line. A byte was sent to these servers.
    pub(super) fn conclude_look(
        &mut self,
        question: Box<Question>,
        miss: Option<Box<Miss>>,
        sent: ServerSet,
        actions: &mut dyn Actions,
    ) {
        let (now, quorum) = (actions.now(), actions.roster().quorum() as usize);
        let refusal = question.refusal(actions.settings().drift(), now);
        let (places, number) = (question.places(), self.number());
        let is_taken = places.iter().any(|heard| heard.1 != Place::Free);
        let mut ranks: Vec<u32> = places.iter().filter_map(rank).collect();
        ranks.sort_unstable();
        let rank = ranks.get(ranks.len() / 2).copied().unwrap_or_default();
        let random = match actions.random() {
            Ok(random) => random,
            Err(error) => return self.fail(error, None, actions),
        };
        let queues = actions.wait_queues();
        let next =
            queues.refused(&self.wanted.target, (number, question.in_the_way()), is_taken, now);
        let line = queues.line(&self.wanted.target, number);
        let (will_hear, due) = line.map_or((false, Moment::NEVER), |line| {
            line.note(places, question.unheard_of(sent), (refusal.round_trip, random), now);
            if line.due(quorum) <= now {
                line.untold().note_free(now);
            }
            (line.will_hear(quorum), line.due(quorum))
        });
        next.into_iter().for_each(|waiter| actions.end_wait(waiter));
        self.reader_wait.note(&self.wanted.target, &question);
        let Plan::Until(until) = self.wanted.plan else { return self.try_once(actions) };
        let is_over = due <= now || now >= until;
        let miss = match (will_hear, miss) {
            _ if is_over => return self.try_once(actions),
            (true, _) => Box::new(Miss::Votes(Status::Taken, question)),
            // Too few servers will tell, so it asks as if there were no lines.
            (false, Some(miss)) => return self.miss(*miss, actions),
            (false, None) => return self.try_once(actions),
        };
        self.wait_in_line(&refusal, (Some(rank), random), until, miss, actions);
    }

    /// Waits until it is told, or for a pause. The rank is how many others were found to be before it, if it
    /// has looked.
    fn wait_in_line(
        &mut self,
        refusal: &Refusal,
        (rank, random): (Option<u32>, u64),
        until: Moment,
        miss: Box<Miss>,
        actions: &mut dyn Actions,
    ) {
        let (number, now) = (self.number(), actions.now());
        let mut nothing = Untold::default();
        let line = actions.wait_queues().line(&self.wanted.target, number);
        let untold = line.map_or(&mut nothing, Line::untold);
        let pause_until = self.backoff.fallback(refusal, (rank, untold), random, now);
        self.wait(Wait { pause_until, until }, miss, actions);
    }

    /// Notes a look that is cut short. A server to which a byte of the look was sent may have put the waiter in
    /// line, even if its answer was not heard.
    pub(super) fn note_cut_look(&self, sent: ServerSet, actions: &mut dyn Actions) {
        if let Some(line) = actions.wait_queues().line(&self.wanted.target, self.number()) {
            line.note_asked(sent);
        }
    }

    /// Ends the pause when a try is due by what the servers told, if that is earlier.
    pub(super) fn wait_to_be_told(&self, wait: Wait, actions: &mut dyn Actions) -> Wait {
        let (target, number, now) = (&self.wanted.target, self.number(), actions.now());
        let quorum = actions.roster().quorum() as usize;
        let queues = actions.wait_queues();
        if !queues.may_stand_in_line(target, number) {
            return wait;
        }
        let line = queues.line(target, number).filter(|line| line.is_listening());
        let Some(line) = line else { return wait };
        let due = if line.take_lost_place() { now } else { line.due(quorum) };
        actions.listen();
        Wait { pause_until: wait.pause_until.min(due), ..wait }
    }

    /// Leaves the line, because the acquire has left the queue or is about to. Otherwise servers would tell it
    /// in vain.
    pub(super) fn leave_line(&mut self, actions: &mut dyn Actions) {
        let left = actions.wait_queues().leave_line(&self.wanted.target, self.number());
        tell_of_leaving(left, actions);
    }

    /// For several resources: leaves the lines of those that are no longer in the way.
    pub(super) fn leave_lines_behind(&self, actions: &mut dyn Actions) {
        let left = actions.wait_queues().leave_lines_behind(&self.wanted.target, self.number());
        tell_of_leaving(left, actions);
    }
}

pub(super) fn tell_of_leaving(left: Vec<Left>, actions: &mut dyn Actions) {
    for left in left {
        let losers = actions.wait_queues().lose_places(&left);
        losers.into_iter().for_each(|waiter| actions.end_wait(waiter));
        let (target, servers): (Target, _) = left;
        if let Ok(channel) = actions.channel() {
            let request = Request::new(Verb::Leave, target, channel, QUESTION_TTL_MS);
            actions.tell(request.to(servers));
        }
    }
}

fn rank(heard: &(usize, Place)) -> Option<u32> {
    match heard.1 {
        Place::Free => None,
        Place::Behind(rank) => Some(rank),
    }
}
