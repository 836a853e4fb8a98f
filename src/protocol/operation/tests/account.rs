//! What an operation says of itself, for code that counts calls and follows them.

use super::*;
use crate::protocol::keeper::Keeper;
use crate::protocol::lock_ticket::LockTicket;
use crate::protocol::operation::adopt::Adopt;
use crate::protocol::operation::detach::Detach;
use crate::protocol::operation::downgrade::Downgrade;
use crate::protocol::operation::inspect::Inspect;
use crate::protocol::operation::inspect_permits::InspectPermits;
use crate::protocol::operation::renew::Renew;
use crate::protocol::stats::Kind;

#[test]
fn each_call_is_counted_by_kind_with_its_resource() {
    let (play, view) = Play::holding();
    let permits = Target::new(Arc::from(&b"r"[..]), LockKind::Permit { of: 3 });
    let acquire =
        Acquire::new(play.wanted(Plan::Tries(1)), play.world.draw_token().expect("randomness"));
    let calls: [(Box<dyn Operation>, Kind); 10] = [
        (Box::new(acquire), Kind::Acquire),
        (Box::new(Extend::new(view.clone(), TTL)), Kind::Extend),
        (Box::new(Confirm::new(view.clone(), 1)), Kind::Confirm),
        (Box::new(Release::new(view.clone())), Kind::Release),
        (Box::new(Adopt::new(LockTicket::of(view.held_lock()))), Kind::Adopt),
        (Box::new(Inspect::new(b"r")), Kind::Inspect),
        (Box::new(Detach::new(view.clone())), Kind::Detach),
        (Box::new(InspectPermits::new(permits)), Kind::Inspect),
        (Box::new(Downgrade::new(view.clone())), Kind::Other),
        // The operation that keeps a lock is no call. Its extensions are counted one by one.
        (Box::new(Renew::new(view, Keeper::new().kept())), Kind::Other),
    ];
    for (operation, kind) in calls {
        assert_eq!(operation.account().kind, kind);
        assert_eq!(operation.resource().map(|it| &it[..]), Some(&b"r"[..]), "{kind:?}");
    }
}

#[test]
fn a_release_reports_the_start_of_the_hold() {
    let mut play = Play::of(3);
    play.at(7).acquire(Plan::Tries(1));
    play.at(9).hear(0, &[yes(0), yes(1)]);
    assert_eq!(Release::new(play.view()).account().held_since, Some(at(7)));
}
