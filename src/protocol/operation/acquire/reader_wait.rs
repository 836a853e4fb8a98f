//! A writer that waits for readers. It announces its wait on the servers again and again, and readers that come
//! later wait for it.

use std::sync::Arc;

use crate::protocol::command::{Request, Verb, shared};
use crate::protocol::lock_kind::{LockKind, Target};
use crate::protocol::moment::Moment;
use crate::protocol::operation::round::Round;
use crate::protocol::operation::{Actions, QUESTION_TTL_MS};
use crate::protocol::server_set::ServerSet;
use crate::protocol::token::Token;

/// How often the writer announces its wait. Readers forget the announcement after twice this time.
const AGAIN_MS: i64 = shared::INTENT_MS / 2;

/// The state of a wait for readers. Most acquires wait for no readers, and then this takes no memory.
#[derive(Default)]
pub(super) struct ReaderWait(Option<Box<Waits>>);

#[derive(Default)]
struct Waits {
    /// The resources where readers are in the way, or may be, when that was last seen.
    for_readers_of: Vec<Arc<[u8]>>,
    /// The resources for which the wait was announced on the servers.
    told: Vec<Arc<[u8]>>,
    /// When to announce the wait again, if nothing more is seen before that. A message from a server in the
    /// meantime is no reason to do it earlier.
    again_at: Option<Moment>,
}

impl ReaderWait {
    /// Notes whether readers have the lock.
    pub(super) fn note_here(&mut self, target: &Target, has_readers: bool) {
        let readers_of = has_readers.then(|| Arc::clone(&target.resource));
        self.wait_for(readers_of.into_iter().collect());
    }

    /// Notes what the servers have said. For several resources, the answer to an attempt says which are in the
    /// way, but not whether readers hold them. The answer to a look says that, too.
    pub(super) fn note(&mut self, target: &Target, round: &Round) {
        match &target.kind {
            LockKind::Several(names) => {
                let which = round.readers_in_the_way();
                let is_one = |place: usize| which.checked_shr(place as u32).unwrap_or(0) & 1 != 0;
                let blocked = names.iter().enumerate().filter(|it| is_one(it.0));
                self.wait_for(blocked.map(|it| Arc::clone(it.1)).collect());
            }
            _ => self.note_here(target, round.has_readers()),
        }
    }

    fn wait_for(&mut self, readers_of: Vec<Arc<[u8]>>) {
        match &mut self.0 {
            None if readers_of.is_empty() => {}
            waits => {
                let waits = waits.get_or_insert_default();
                (waits.for_readers_of, waits.again_at) = (readers_of, None);
            }
        }
    }

    /// Announces the wait. Returns when the writer must announce it again.
    pub(super) fn tell(&mut self, target: &Target, actions: &mut dyn Actions) -> Moment {
        let Some(Waits { for_readers_of, told, again_at }) = self.0.as_deref_mut() else {
            return Moment::NEVER;
        };
        if for_readers_of.is_empty() || target.kind == LockKind::Shared {
            return Moment::NEVER;
        }
        let now = actions.now();
        if let Some(again_at) = again_at.filter(|it| now < *it) {
            return again_at;
        }
        for resource in for_readers_of {
            tell(Verb::AnnounceWriter, resource, actions);
            if !told.contains(resource) {
                told.push(Arc::clone(resource));
            }
        }
        *again_at.insert(now.plus_ms(AGAIN_MS))
    }

    /// The writer holds the lock, so its announcements are taken back. Other waiting writers announce their
    /// wait again, if there are readers then.
    pub(super) fn end(&mut self, actions: &mut dyn Actions) {
        let told = self.0.take().map_or_else(Vec::new, |waits| waits.told);
        told.iter().for_each(|resource| tell(Verb::WithdrawWriter, resource, actions));
    }
}

fn tell(verb: Verb, resource: &Arc<[u8]>, actions: &mut dyn Actions) {
    let all = ServerSet::first(actions.roster().len());
    let target = Target::from(Arc::clone(resource));
    actions.tell(Request::new(verb, target, Token::NOBODYS, QUESTION_TTL_MS).to(all));
}
