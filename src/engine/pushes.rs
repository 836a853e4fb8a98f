//! What servers tell by themselves, and who is told of it.

use std::sync::Arc;

use super::Engine;
use crate::command::{Request, Verb};
use crate::moment::Moment;
use crate::operation::{Event, QUESTION_TTL_MS};
use crate::server_set::ServerSet;
use crate::token::Token;
use crate::transport::server::Pushed;

impl Engine {
    /// Whether servers have said something that was not brought to anybody.
    pub(super) fn has_news(&self) -> bool {
        !self.state.effects.deliveries.is_empty() || !self.state.effects.pushes.is_empty()
    }

    /// A server has told that a resource is free.
    pub(super) fn hear_push(&mut self, Pushed { server, resource, .. }: Pushed, now: Moment) {
        let slots = &self.state.slots;
        let is_asked = |place: usize| {
            let question = slots.get(place).and_then(|slot| slot.as_ref()?.question.as_ref());
            question.is_some_and(|open| open.pending.contains(server))
        };
        let heard = self.state.wait_queues.pushed(&resource, server, is_asked, now);
        // It may be due now, and whoever waits for the sockets does not know it.
        self.state.effects.changed |= !heard.tell.is_empty();
        let told = heard.tell.into_iter().map(|ticket| (ticket, Event::Pushed { server }));
        self.state.turns.extend(told);
        if heard.pass_on {
            self.pass_on(resource, server, now);
        }
    }

    /// Nobody of this manager waits for it: the next in line is told.
    fn pass_on(&mut self, resource: Vec<u8>, server: usize, now: Moment) {
        // Under the name of a channel that nobody has: a place that something else of ours has there stays.
        let (to, resource) = (ServerSet::default().with(server), Arc::<[u8]>::from(resource));
        let request = Request::new(Verb::Leave, resource, Token::NOBODYS, QUESTION_TTL_MS);
        let effects = &mut self.state.effects;
        self.state.servers[server].tell(&Arc::new(request.to(to)), now, effects);
    }
}
