//! Restoring the numbers of servers that have lost them, so that they draw fencing tokens again. All servers are read,
//! and each server that has lost its numbers is told how far the others had got.

use std::sync::Arc;

use super::round::Round;
use super::{Actions, Ended, Event, Limits, Operation, QUESTION_TTL_MS, reply_ms};
use crate::protocol::command::{Answer, Fences, NotedMemory, Request, Restored, Verb, fence};
use crate::protocol::moment::Moment;
use crate::protocol::quorum::restoration::Base;
use crate::protocol::server_set::ServerSet;
use crate::protocol::token::Token;

/// Restores what it can. It reports nothing: the next acquire finds out what has changed.
#[derive(Default)]
pub(crate) struct Restore {
    round: Option<Box<Round>>,
    /// The memories whose numbers were read, by the servers, and the losses of those numbers. A server that loses its
    /// memory or its numbers meanwhile does not take what is written for the earlier ones.
    losses: Vec<(usize, NotedMemory, i64)>,
}

impl Restore {
    fn ask(&mut self, actions: &mut dyn Actions) {
        let (since, reply_ms) = (actions.now(), reply_ms(actions, QUESTION_TTL_MS));
        self.round = Some(Box::new(Round::fences(actions.roster().len())));
        actions.ask(request(Verb::ReadFences), Limits { since, until: Moment::NEVER, reply_ms });
    }

    fn write(&self, actions: &mut dyn Actions) {
        let Some(round) = &self.round else { return };
        for &(server, memory, seen_ms) in &self.losses {
            let Some(Base { number, needs_clock, is_by_clock }) = round.restored(server) else {
                continue;
            };
            let clock_us = if needs_clock { actions.wall_us() } else { 0 };
            let restored = Restored { memory, seen_ms, base: number, clock_us, is_by_clock };
            let request = request(Verb::RestoreFences).with_restored(restored);
            actions.tell(request.to(ServerSet::default().with(server)));
        }
    }
}

impl Operation for Restore {
    fn handle(&mut self, event: Event, actions: &mut dyn Actions) {
        match event {
            Event::Started => return self.ask(actions),
            Event::Closed { .. } => self.write(actions),
            _ => {}
        }
        actions.end(Ok(Ended::Stopped));
    }

    fn hear(&mut self, server: usize, answer: Answer, now: Moment) -> bool {
        if let &Answer::Fences(Fences { memory: Some(memory), seen_ms, .. }) = &answer {
            self.losses.push((server, memory, seen_ms));
        }
        self.round().is_some_and(|round| round.hear(server, answer, now))
    }

    fn round(&mut self) -> Option<&mut Round> {
        self.round.as_deref_mut()
    }
}

/// A request that is about no lock.
fn request(verb: Verb) -> Request {
    Request::new(verb, Arc::from(fence::KEY.as_bytes()), Token::NOBODYS, 0)
}
