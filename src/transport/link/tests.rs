mod memory;

use std::iter;
use std::net::SocketAddr;

use super::*;

const NOW: Moment = Moment::from_nanos(1_000_000_000_000);

fn link_to(host: &str) -> Link {
    link_at(host, 1)
}

fn link_at(host: &str, port: i32) -> Link {
    let endpoint = Endpoint::parse(host, port).unwrap();
    let server_registry = Arc::new(ServerRegistry::new(1, Arc::default()));
    Link::new((0, server_registry, Arc::default()), endpoint, Arc::default(), Arc::default())
}

fn link() -> Link {
    link_to("127.0.0.1")
}

fn fail(link: &mut Link) -> Option<Change> {
    link.break_off("closed".to_owned(), NOW)
}

#[test]
fn unsent_bytes_do_not_reach_the_next_connection() {
    let mut link = link();
    link.outbox.extend(b"the rest of a request");
    fail(&mut link);
    assert!(link.outbox.is_empty());
}

#[test]
fn addresses_of_a_name_share_the_connect_time() {
    let mut link = link_to("name");
    let addresses = [1, 2, 3].map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
    let lookup = link.name_to_look_up(NOW).expect("a name");
    assert!(link.handle_addresses(&lookup, Ok(addresses.to_vec()), NOW, NOW).is_none());
    assert_eq!(link.connect_share_ms(), link.timeouts.connect_ms() / 3);
}

/// Nobody lacks it so far.
#[test]
fn a_lost_server_has_its_name_looked_up() {
    let mut link = link_to("name");
    let addresses = || Ok(vec![SocketAddr::from(([127, 0, 0, 1], 1))]);
    let lookup = link.name_of_lost_to_look_up(NOW).expect("its addresses are not known");
    assert!(link.handle_addresses(&lookup, addresses(), NOW, NOW).is_none());
    assert_eq!(link.look_up_of_lost_at(), Moment::NEVER);
    let lost_at = NOW.plus_ms(60_000);
    link.break_off("closed".to_owned(), lost_at);
    link.break_off("refused".to_owned(), lost_at.plus_ms(500));
    let due = lost_at.plus_ms(2_000);
    assert_eq!(link.look_up_of_lost_at(), due);
    assert!(link.name_of_lost_to_look_up(due.plus_ms(-1)).is_none());
    let lookup = link.name_of_lost_to_look_up(due).expect("it may have moved");
    assert_eq!((&*lookup.name, lookup.port, lookup.sentinel), ("name", 1, None));
    assert_eq!(link.look_up_of_lost_at(), Moment::NEVER, "that is under way");
    link.handle_addresses(&lookup, addresses(), due, due);
    assert!(link.look_up_of_lost_at() > due);
    link.come_up(Capabilities::default(), Guard::default(), due);
    assert_eq!(link.look_up_of_lost_at(), Moment::NEVER, "it is up");
    assert_eq!(link_to("127.0.0.1").look_up_of_lost_at(), Moment::NEVER);
}

/// The Sentinels may have moved, too.
#[test]
fn a_lost_server_has_its_sentinels_looked_up() {
    let mut link = link_at("redis-sentinel://one,127.0.0.1,two/master", 0);
    let look_up = |link: &mut Link, at| {
        let names: Vec<_> = iter::from_fn(|| link.name_of_lost_to_look_up(at)).collect();
        for lookup in &names {
            let addresses = vec![SocketAddr::from(([127, 0, 0, 1], 1))];
            link.handle_addresses(lookup, Ok(addresses), at, at);
        }
        names.into_iter().map(|it| (it.name, it.sentinel)).collect::<Vec<_>>()
    };
    let sentinels = [("one".to_owned(), Some(0)), ("two".to_owned(), Some(2))];
    assert_eq!(look_up(&mut link, NOW), sentinels);
    let lost_at = NOW.plus_ms(60_000);
    link.break_off("closed".to_owned(), lost_at);
    let due = lost_at.plus_ms(2_000);
    assert_eq!(link.look_up_of_lost_at(), due);
    assert_eq!(look_up(&mut link, due.plus_ms(-1)), []);
    assert_eq!(look_up(&mut link, due), sentinels);
}

#[test]
fn a_needed_server_is_retried_after_a_gap() {
    let mut link = link();
    link.tried_at = Some(NOW);
    // Enough failures to make the pause long.
    (0..9).for_each(|_| drop(fail(&mut link)));
    let gap = NOW.plus_ms(RETRY_GAP_MS);
    link.hurry(NOW.plus_ms(RETRY_GAP_MS - 1));
    assert!(link.next_due() > gap);
    link.hurry(gap);
    assert_eq!(link.next_due(), gap);
}
