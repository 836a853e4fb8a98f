//! A writer that waits for readers: it says so on the servers, again and again, and readers that come later wait for it.

use std::sync::Arc;

use crate::command::{Request, Verb, shared};
use crate::lock_kind::{LockKind, Target};
use crate::moment::Moment;
use crate::operation::question::Question;
use crate::operation::{Actions, QUESTION_TTL_MS};
use crate::server_set::ServerSet;
use crate::token::Token;

/// How often it says so: readers forget it after twice as long.
const AGAIN_MS: i64 = shared::INTENT_MS / 2;

/// What it takes to wait for readers. Most wait for none: so it takes no memory then.
#[derive(Default)]
pub(super) struct Patience(Option<Box<Waits>>);

#[derive(Default)]
struct Waits {
    /// Where readers are in the way, or may be, when that was last seen.
    for_readers_of: Vec<Arc<[u8]>>,
    /// Where it was said on the servers.
    told: Vec<Arc<[u8]>>,
    /// When it is to be said again, if nothing more is seen before that: what is told meanwhile is no reason.
    again_at: Option<Moment>,
}

impl Patience {
    /// Readers of this manager have it, or nobody.
    pub(super) fn note_here(&mut self, target: &Target, has_readers: bool) {
        let readers_of = has_readers.then(|| Arc::clone(&target.resource));
        self.wait_for(readers_of.into_iter().collect());
    }

    /// What the servers have said. Of several resources an attempt is told which are in the way, and not whether it is
    /// readers that have them; a look is told that, too.
    pub(super) fn note(&mut self, target: &Target, question: &Question) {
        match &target.kind {
            LockKind::Several(names) => {
                let which = question.readers_in_the_way();
                let is_one = |place: usize| which.checked_shr(place as u32).unwrap_or(0) & 1 != 0;
                let blocked = names.iter().enumerate().filter(|it| is_one(it.0));
                self.wait_for(blocked.map(|it| Arc::clone(it.1)).collect());
            }
            _ => self.note_here(target, question.has_readers()),
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

    /// It waits. Returns when it has to say so again.
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
            tell(Verb::Intend, resource, actions);
            if !told.contains(resource) {
                told.push(Arc::clone(resource));
            }
        }
        *again_at.insert(now.plus_ms(AGAIN_MS))
    }

    /// It has the lock: what it said is taken back. Others that wait say so again, if there are readers then.
    pub(super) fn end(&mut self, actions: &mut dyn Actions) {
        let told = self.0.take().map_or_else(Vec::new, |waits| waits.told);
        told.iter().for_each(|resource| tell(Verb::Recant, resource, actions));
    }
}

fn tell(verb: Verb, resource: &Arc<[u8]>, actions: &mut dyn Actions) {
    let all = ServerSet::first(actions.roster().len());
    let target = Target::from(Arc::clone(resource));
    actions.tell(Request::new(verb, target, Token::NOBODYS, QUESTION_TTL_MS).to(all));
}
