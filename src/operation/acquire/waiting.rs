//! What comes between two tries: a pause, or the wait for a turn.

use std::time::Duration;

use super::{Acquire, Plan, Stage};
use crate::error::{Error, Status};
use crate::lease::BrokenOff;
use crate::moment::Moment;
use crate::operation::{Actions, Failed, Miss};
use crate::quorum::backoff;
use crate::wait_queue::{STAND_BACK, TurnRequest, Wait};

/// The least value of the longest pause while servers cannot be reached. A server that refuses connections says
/// so at once, and a caller that allows no pause between refusals does not mean to burn a processor. Two
/// attempts to connect never come closer together than this anyway.
const DOWN_PAUSE: Duration = Duration::from_millis(20);

impl Acquire {
    /// What the next try asks of the wait queue.
    pub(super) fn turn(&self, now: Moment) -> TurnRequest {
        let (is_urgent, is_last) = match self.wanted.plan {
            Plan::Tries(count) => (true, self.tries + 1 >= count),
            Plan::Until(until) => {
                let is_last = until <= now.plus(STAND_BACK);
                (is_last, is_last)
            }
        };
        TurnRequest { is_urgent, is_last }
    }

    /// Waits before the next try, or fails if there is none.
    pub(super) fn miss(&mut self, miss: Miss, actions: &mut dyn Actions) {
        if matches!(&miss, Miss::Votes(_, question) if question.is_hopeless()) {
            return self.fail(miss.error(actions.roster()), None, actions);
        }
        match self.wait_after(&miss, actions) {
            Ok(Some(wait)) => self.wait(wait, Box::new(miss), actions),
            Ok(None) => self.fail(miss.error(actions.roster()), None, actions),
            Err(error) => self.fail(error, None, actions),
        }
    }

    /// What to wait for before the next try; nothing if there is none.
    fn wait_after(
        &mut self,
        miss: &Miss,
        actions: &mut dyn Actions,
    ) -> Result<Option<Wait>, Error> {
        let now = actions.now();
        match self.wanted.plan {
            Plan::Tries(count) if self.tries < count => {
                let random = actions.random()?;
                let until = now.plus(backoff::pause(actions.settings().retry_delay_ms(), random));
                Ok(Some(Wait { pause_until: until, until }))
            }
            Plan::Until(until) if now < until => {
                let pause_until = self.pause_until(miss, now, actions)?;
                Ok(Some(Wait { pause_until, until }))
            }
            _ => Ok(None),
        }
    }

    /// When the pause ends. A waiter that is not the head of the queue has no pauses, because it is told when
    /// it is its turn.
    fn pause_until(
        &mut self,
        miss: &Miss,
        now: Moment,
        actions: &mut dyn Actions,
    ) -> Result<Moment, Error> {
        let Miss::Votes(status, question) = miss else { return Ok(Moment::NEVER) };
        let settings = actions.settings();
        let refusal = question.refusal(settings.drift(), now);
        let longest = backoff::longest(settings.retry_delay_ms());
        let longest = match status {
            Status::Unreachable => longest.max(DOWN_PAUSE),
            _ => longest,
        };
        let random = actions.random()?;
        let number = self.number();
        if let Some(inherited) = actions.wait_queues().inherit(&self.wanted.target, number) {
            self.backoff = inherited;
        }
        Ok(self.backoff.next(&refusal, longest, random, now))
    }

    /// Waits until it is this caller's turn, or its time is up.
    pub(super) fn wait(&mut self, wait: Wait, miss: Box<Miss>, actions: &mut dyn Actions) {
        let wait = self.wait_to_be_told(wait, actions);
        let (number, ticket, now) = (self.number(), actions.ticket(), actions.now());
        let in_slice = Wait { until: wait.until.min(self.wanted.slice_end), ..wait };
        let (target, queues) = (&self.wanted.target, actions.wait_queues());
        let next = queues.step_aside(target, number, in_slice, now);
        let until = queues.wait(target, number, ticket, in_slice, now);
        next.into_iter().for_each(|waiter| actions.end_wait(waiter));
        self.leave_lines_behind(actions);
        let again_at = self.reader_wait.tell(target, actions);
        self.stage = Stage::Waiting(wait, miss);
        actions.wait_until(until.min(again_at));
    }

    pub(super) fn handle_time_out(
        &mut self,
        wait: Wait,
        miss: Box<Miss>,
        actions: &mut dyn Actions,
    ) {
        let (number, now) = (self.number(), actions.now());
        if actions.wait_queues().end_wait(&self.wanted.target, number, wait, now) {
            if let Plan::Tries(_) = self.wanted.plan
                && now < wait.until
            {
                // A turn that came early does not count as a try of the plan.
                self.tries -= 1;
            }
            return self.try_once(actions);
        }
        if now < self.wanted.slice_end {
            return self.wait(wait, miss, actions);
        }
        self.break_off(wait, &miss, now, actions);
    }

    /// The slice is over, but the wait is not.
    fn break_off(&mut self, wait: Wait, miss: &Miss, now: Moment, actions: &mut dyn Actions) {
        // A waiter without a pause of its own stood behind others. It may be the head when it is back.
        let pause_until = if wait.pause_until == Moment::NEVER { now } else { wait.pause_until };
        let (number, backoff) = (self.number(), self.backoff.clone());
        let queues = actions.wait_queues();
        queues.pass_on(&self.wanted.target, number, pause_until, backoff.clone());
        let error = miss.error(actions.roster());
        let (has_asked, words) = (self.has_asked, error.clone());
        let broken_off =
            BrokenOff { pause_until, backoff, has_asked, sliced_wait: None, error: words };
        self.fail(error, Some(Box::new(broken_off)), actions);
    }

    pub(super) fn fail(
        &mut self,
        error: Error,
        broken_off: Option<Box<BrokenOff>>,
        actions: &mut dyn Actions,
    ) {
        if broken_off.is_some() {
            let now = actions.now();
            let (target, number) = (&self.wanted.target, self.number());
            actions.wait_queues().keep_line(target, number, now);
        } else {
            self.leave_line(actions);
        }
        self.leave_queue(actions);
        actions.end(Err(Failed { error, broken_off }));
    }

    pub(super) fn leave_queue(&mut self, actions: &mut dyn Actions) {
        if let Some(number) = self.number.take() {
            let now = actions.now();
            let next = actions.wait_queues().leave(&self.wanted.target, number.get(), now);
            next.into_iter().for_each(|waiter| actions.end_wait(waiter));
        }
    }
}
