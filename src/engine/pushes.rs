//! What servers tell by themselves, and who is told of it.

use std::sync::Arc;

use super::Engine;
use crate::command::{Request, Verb};
use crate::moment::Moment;
use crate::operation::{Event, QUESTION_TTL_MS};
use crate::server_set::ServerSet;
use crate::transport::server::Pushed;
use crate::wait_queue::Heard;

impl Engine {
    /// Whether servers have said something that was not brought to anybody.
    pub(super) fn has_news(&self) -> bool {
        !self.state.effects.deliveries.is_empty() || !self.state.effects.pushes.is_empty()
    }

    /// A server has told that a resource is free.
    pub(super) fn hear_push(&mut self, Pushed { server, resource, .. }: Pushed, now: Moment) {
        let asker = self.state.wait_queues.asker(&resource);
        let slot = asker.and_then(|place| self.state.slots.get(place)?.as_ref());
        let open = slot.and_then(|slot| slot.question.as_ref());
        let is_asked = open.is_some_and(|open| open.pending.contains(server));
        match self.state.wait_queues.pushed(&resource, server, is_asked, now) {
            Heard::Tell(ticket) => {
                self.state.turns.push_back((ticket, Event::Pushed { server }));
                // It may be due now, and whoever waits for the sockets does not know it.
                self.state.effects.changed = true;
            }
            Heard::PassOn => self.pass_on(resource, server, now),
            Heard::Nothing => {}
        }
    }

    /// Nobody of this manager waits for it: the next in line is told.
    fn pass_on(&mut self, resource: Vec<u8>, server: usize, now: Moment) {
        // Without a channel nothing can have come over it.
        let Ok(channel) = self.state.channel() else { return };
        let to = ServerSet::default().with(server);
        let request =
            Request::new(Verb::Leave, Arc::<[u8]>::from(resource), channel, QUESTION_TTL_MS);
        let effects = &mut self.state.effects;
        self.state.servers[server].tell(&Arc::new(request.to(to)), now, effects);
    }
}
