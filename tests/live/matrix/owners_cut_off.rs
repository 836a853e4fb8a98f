//! Owners of slots that another node has replaced, and that do not know that.

use redlock::ffi::status::RedLockStatus::REDLOCK_OK;

use crate::deposed::{
    self, HELD, TTL, await_lock_of, changes_hands, goes_on, grants_in_vain, keep,
};
use crate::support::island;
use crate::support::nodes::Nodes;
use crate::support::sentinels::is_replica;
use crate::support::{Manager, wait_until};

/// A voter whose slot the first node has.
fn voter(nodes: &Nodes) -> String {
    nodes.used_tag_at(0, TTL)
}

#[test]
fn o08_a_paused_owner_grants_nothing_beside_its_successor() {
    let nodes = Nodes::start(3, true);
    let urls = [nodes.url(&voter(&nodes))];
    nodes.be_brief();
    let managers = [0, 1].map(|_| Manager::of_urls(&urls));
    deposed::is_paused_beyond_the_election(&nodes.servers[0], &managers);
}

#[test]
fn o08_an_owner_is_cut_off_with_a_client_in_a_network_of_its_own() {
    island::run_apart("owners_cut_off::o08_inside_cut_off_with_a_client");
}

/// The client has a user of its own, who may use the other nodes no more.
#[test]
#[ignore = "it needs a network of its own"]
fn o08_inside_cut_off_with_a_client() {
    const LOGIN: &str = "inside:s3same-0pen@";
    island::prepare();
    let nodes = Nodes::start_with(3, true, island::node);
    let tag = voter(&nodes);
    let [old, others @ ..] = &nodes.servers[..] else { panic!("no node") };
    for server in &nodes.servers {
        server.must(&["ACL", "SETUSER", "inside", "on", ">s3same-0pen", "~*", "&*", "+@all"]);
    }
    nodes.be_brief_but(old);
    let url = nodes.url(&tag);
    let inside = Manager::of_urls(&[url.replace("://", &format!("://{LOGIN}"))]);
    let outside = Manager::of_urls(&[url]);
    let may = |word: &str| {
        others.iter().for_each(|it| _ = it.must(&["ACL", "SETUSER", "inside", word]));
    };
    let only_itself = "1 of 6 cluster nodes name the same owner of the slot";
    grants_in_vain(old, [&inside, &outside], only_itself, || {
        may("off");
        others.iter().for_each(|it| _ = it.must(&["CLIENT", "KILL", "USER", "inside"]));
        island::cut_off_node(old, &nodes.buses());
    });
    may("on");
    await_lock_of(&inside, &format!("tag {tag} ({})", nodes.replica_of(0).address()));
    island::heal_node(old, &nodes.buses());
}

#[test]
fn o08_a_client_reaches_both_owners_in_a_network_of_its_own() {
    island::run_apart("owners_cut_off::o08_inside_between_the_two");
}

/// The clients leave the old owner, which has not heard of anything. Its replica had the lock, so it is kept there.
#[test]
#[ignore = "it needs a network of its own"]
fn o08_inside_between_the_two() {
    island::prepare();
    let nodes = Nodes::start_with(3, true, island::node);
    let tag = voter(&nodes);
    let (old, new) = (&nodes.servers[0], nodes.replica_of(0));
    nodes.be_brief_but(old);
    let urls = [nodes.url(&tag)];
    let (holder, rival) = (Manager::of_urls(&urls), Manager::of_urls(&urls));
    assert_eq!(rival.connect(20_000), REDLOCK_OK, "{}", rival.message());
    let held = keep(&holder);
    new.must(&["READONLY"]);
    wait_until("the replica has it", || new.exists(&format!("{{{tag}}}{HELD}")));
    island::cut_off_node(old, &nodes.buses());
    goes_on((&holder, &held), &rival, || {
        let first = &rival.servers()[0];
        first.votes && first.name == format!("tag {tag} ({})", new.address())
    });
    assert!(!is_replica(old), "it was told");
    island::heal_node(old, &nodes.buses());
    goes_on((&holder, &held), &rival, || is_replica(old));
    changes_hands((&holder, &held), &rival);
}
