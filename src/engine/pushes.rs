//! Messages that servers push on their own, and the operations that receive them.

use std::sync::Arc;

use super::Engine;
use crate::command::{Request, Verb};
use crate::moment::Moment;
use crate::operation::{Event, QUESTION_TTL_MS};
use crate::server_set::ServerSet;
use crate::token::Token;
use crate::transport::server::Pushed;

impl Engine {
    /// Whether a server's answer or push has not been delivered yet.
    pub(super) fn has_news(&self) -> bool {
        !self.state.effects.deliveries.is_empty() || !self.state.effects.pushes.is_empty()
    }

    /// A server has pushed the message that a resource is free.
    pub(super) fn hear_push(&mut self, Pushed { server, resource, .. }: Pushed, now: Moment) {
        let slots = &self.state.slots;
        let is_asked = |place: usize| {
            let question = slots.get(place).and_then(|slot| slot.question.as_ref());
            question.is_some_and(|open| open.pending.contains(server))
        };
        let heard = self.state.wait_queues.pushed(&resource, server, is_asked, now);
        // The operation may be due now, and the thread that polls does not know that.
        self.state.effects.changed |= !heard.tell.is_empty();
        let told = heard.tell.into_iter().map(|ticket| (ticket, Event::Pushed { server }));
        self.state.turns.extend(told);
        if heard.pass_on {
            self.pass_on(resource, server, now);
        }
    }

    /// No operation of this manager waits for the resource: the server must tell the next waiter in line.
    fn pass_on(&mut self, resource: Vec<u8>, server: usize, now: Moment) {
        // The request names a channel that nobody has, so it removes no place that another operation of
        // ours has there.
        let (to, resource) = (ServerSet::default().with(server), Arc::<[u8]>::from(resource));
        let request = Request::new(Verb::Leave, resource, Token::NOBODYS, QUESTION_TTL_MS);
        let effects = &mut self.state.effects;
        self.state.servers[server].tell(&Arc::new(request.to(to)), now, effects);
    }
}
