//! A writer that waits for readers: it says so on the servers, again and again, and readers that come later wait for it.

use crate::command::{Request, Verb, shared};
use crate::lock_kind::{LockKind, Target};
use crate::moment::Moment;
use crate::operation::{Actions, QUESTION_TTL_MS};
use crate::server_set::ServerSet;
use crate::token::Token;

/// How often it says so: readers forget it after twice as long.
const AGAIN_MS: i64 = shared::INTENT_MS / 2;

/// What it takes to wait for readers.
#[derive(Default)]
pub(super) struct Patience {
    /// Whether readers were in the way when that was last seen.
    waits_for_readers: bool,
    /// Whether it was said on the servers.
    is_told: bool,
}

impl Patience {
    /// Whether readers are in the way.
    pub(super) fn note(&mut self, waits_for_readers: bool) {
        self.waits_for_readers = waits_for_readers;
    }

    /// It waits. Returns when it has to say so again.
    pub(super) fn tell(&mut self, target: &Target, actions: &mut dyn Actions) -> Moment {
        if !self.waits_for_readers || target.kind == LockKind::Shared {
            return Moment::NEVER;
        }
        self.is_told = true;
        tell(Verb::Intend, target, actions);
        actions.now().plus_ms(AGAIN_MS)
    }

    /// It has the lock: what it said is taken back. Others that wait say so again, if there are readers then.
    pub(super) fn end(&mut self, target: &Target, actions: &mut dyn Actions) {
        if self.is_told {
            tell(Verb::Recant, target, actions);
        }
    }
}

fn tell(verb: Verb, target: &Target, actions: &mut dyn Actions) {
    let all = ServerSet::first(actions.roster().len());
    let nobody = Token::from_random([0; 20]);
    actions.tell(Request::new(verb, target.clone(), nobody, QUESTION_TTL_MS).to(all));
}
