use std::iter;
use std::net::{SocketAddr, TcpListener};

use super::*;

/// Some tests need sockets of this machine, and the library is also compiled for a simulated world.
const IS_PLAYED: bool = matches!(env!("CARGO_CRATE_NAME").as_bytes(), b"played" | b"hostile");

const NOW: Moment = Moment::from_nanos(1_000_000_000_000);

fn link_to(host: &str) -> Connector {
    link_at(host, 1)
}

fn link_at(host: &str, port: i32) -> Connector {
    let endpoint = Endpoint::parse(host, port).unwrap();
    let server_registry = Arc::new(ServerRegistry::new(1, Arc::default()));
    Connector::new((0, server_registry, Arc::default()), endpoint, Arc::default(), Arc::default())
}

fn connector() -> Connector {
    link_to("127.0.0.1")
}

fn fail(connector: &mut Connector) -> Option<Change> {
    connector.break_off("closed".to_owned(), NOW)
}

#[test]
fn unsent_bytes_do_not_reach_the_next_connection() {
    let mut connector = connector();
    connector.outbox.extend(b"the rest of a request");
    fail(&mut connector);
    assert!(connector.outbox.is_empty());
}

#[test]
fn addresses_of_a_name_share_the_connect_time() {
    let mut connector = link_to("name");
    let addresses = [1, 2, 3].map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
    let lookup = connector.name_to_look_up(NOW).expect("a name");
    assert!(connector.handle_addresses(&lookup, Ok(addresses.to_vec()), NOW, NOW).is_none());
    assert_eq!(connector.connect_share_ms(), connector.policy.connect_ms() / 3);
}

/// Nobody lacks it so far.
#[test]
fn a_lost_server_has_its_name_looked_up() {
    let mut connector = link_to("name");
    let addresses = || Ok(vec![SocketAddr::from(([127, 0, 0, 1], 1))]);
    let lookup = connector.name_of_lost_to_look_up(NOW).expect("its addresses are not known");
    assert!(connector.handle_addresses(&lookup, addresses(), NOW, NOW).is_none());
    assert_eq!(connector.look_up_of_lost_at(), Moment::NEVER);
    let lost_at = NOW.plus_ms(60_000);
    connector.break_off("closed".to_owned(), lost_at);
    connector.break_off("refused".to_owned(), lost_at.plus_ms(500));
    let due = lost_at.plus_ms(2_000);
    assert_eq!(connector.look_up_of_lost_at(), due);
    assert!(connector.name_of_lost_to_look_up(due.plus_ms(-1)).is_none());
    let lookup = connector.name_of_lost_to_look_up(due).expect("it may have moved");
    assert_eq!((&*lookup.name, lookup.port, lookup.sentinel), ("name", 1, None));
    assert_eq!(connector.look_up_of_lost_at(), Moment::NEVER, "that is under way");
    connector.handle_addresses(&lookup, addresses(), due, due);
    assert!(connector.look_up_of_lost_at() > due);
    connector.come_up(Capabilities::default(), Guard::default(), due);
    assert_eq!(connector.look_up_of_lost_at(), Moment::NEVER, "it is up");
    assert_eq!(link_to("127.0.0.1").look_up_of_lost_at(), Moment::NEVER);
}

/// The Sentinels may have moved, too.
#[test]
fn a_lost_server_has_its_sentinels_looked_up() {
    let mut connector = link_at("redis-sentinel://one,127.0.0.1,two/master", 0);
    let look_up = |connector: &mut Connector, at| {
        let names: Vec<_> = iter::from_fn(|| connector.name_of_lost_to_look_up(at)).collect();
        for lookup in &names {
            let addresses = vec![SocketAddr::from(([127, 0, 0, 1], 1))];
            connector.handle_addresses(lookup, Ok(addresses), at, at);
        }
        names.into_iter().map(|it| (it.name, it.sentinel)).collect::<Vec<_>>()
    };
    let sentinels = [("one".to_owned(), Some(0)), ("two".to_owned(), Some(2))];
    assert_eq!(look_up(&mut connector, NOW), sentinels);
    let lost_at = NOW.plus_ms(60_000);
    connector.break_off("closed".to_owned(), lost_at);
    let due = lost_at.plus_ms(2_000);
    assert_eq!(connector.look_up_of_lost_at(), due);
    assert_eq!(look_up(&mut connector, due.plus_ms(-1)), []);
    assert_eq!(look_up(&mut connector, due), sentinels);
}

#[test]
fn a_needed_server_is_retried_after_a_gap() {
    let mut connector = connector();
    connector.tried_at = Some(NOW);
    // Enough failures to make the pause long.
    (0..9).for_each(|_| drop(fail(&mut connector)));
    let gap = NOW.plus_ms(RETRY_GAP_MS);
    connector.hurry(NOW.plus_ms(RETRY_GAP_MS - 1));
    assert!(connector.next_due() > gap);
    connector.hurry(gap);
    assert_eq!(connector.next_due(), gap);
}

/// What a server says of itself that is a new one, up to its role, and then of its memory, which it has not.
const FIRST: &str =
    "-ERR unknown command 'X'\r\n-ERR unknown command 'X'\r\n-ERR unknown command 'X'\r\n+PONG\r\n";
const LAST: &str = "-NOPERM no\r\n-NOPERM no\r\n-NOPERM no\r\n-ERR unknown command 'X'\r\n\
                    *2\r\n$4\r\n1000\r\n$1\r\n0\r\n$0\r\n\r\n";

fn process(letter: char) -> String {
    let (id, role) = (RunId::sample(letter), "$11\r\nrole:master\r\n");
    format!("{FIRST}$47\r\nrun_id:{}\r\n{role}", id.as_str())
}

/// The same with this note, of a server with a log that is always synced if it has its end "a".
fn process_with(letter: char, note: &str) -> String {
    let logged =
        "-NOPERM no\r\n$13\r\naof_enabled:1\r\n*2\r\n$11\r\nappendfsync\r\n$6\r\nalways\r\n";
    let last = LAST.replace("$0\r\n\r\n", &format!("${}\r\n{note}\r\n", note.len()));
    let (unknown, known) = ("-NOPERM no\r\n".repeat(3), note.ends_with(" a"));
    process(letter) + &if known { last.replace(&unknown, logged) } else { last }
}

/// Connects, and reads these replies, which are not all.
fn shake_hands(connector: &mut Connector, replies: &str) {
    assert!(end_shaking_hands(connector, replies).is_none());
}

/// Connects, and reads these replies.
fn end_shaking_hands(connector: &mut Connector, replies: &str) -> Option<Change> {
    shake_hands_for(connector, replies, Requirements { is_guarded: true, is_waking: false })
}

fn shake_hands_for(
    connector: &mut Connector,
    replies: &str,
    requirements: Requirements,
) -> Option<Change> {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let socket = Socket::to_address(address, &connector.inherited[0]).expect("a socket");
    let handshake = Box::new(Handshake::new(None, 0, b"", requirements));
    let wire = Wire::Plain(socket);
    connector.state = State::Handshake { wire, since: NOW, asked_at: NOW, handshake, begun: None };
    connector.inbox.put(replies.as_bytes());
    connector.read_handshake(NOW)
}

/// The server was restarted before its role was known, or before it was marked.
#[test]
fn what_a_lost_handshake_has_said_is_known() {
    if IS_PLAYED {
        return;
    }
    for (again, verdict) in [('a', Some(Verdict::Fresh)), ('b', Some(Verdict::Lost))] {
        let mut connector = connector();
        shake_hands(&mut connector, &process('a'));
        fail(&mut connector);
        shake_hands(&mut connector, &process(again));
        fail(&mut connector);
        connector.server_registry.note(0, Seen::Missing);
        assert_eq!(connector.server_registry.verdict(0, NOW), verdict);
    }
}

/// It is a replica, or it is to be marked and does not answer that.
#[test]
fn what_a_lost_handshake_has_said_of_the_longest_ttl_is_known() {
    if IS_PLAYED {
        return;
    }
    let note = format!("1 {} 1 -1 60000 0000000000000007", RunId::sample('b').as_str());
    let primary = process_with('a', &note);
    let replica = primary.replace("$11\r\nrole:master", "$10\r\nrole:slave");
    let longest_ms = |connector: &Connector| connector.server_registry.rules().longest_ms();
    let mut connector = connector();
    shake_hands(&mut connector, &primary);
    fail(&mut connector);
    assert_eq!(longest_ms(&connector), 60_000);
    let mut connector = link_to("127.0.0.1");
    let refused = end_shaking_hands(&mut connector, &replica);
    assert!(matches!(refused, Some(Change::Failed { .. })));
    assert_eq!(longest_ms(&connector), 60_000);
}

/// A question is open still when the connection is lost. Then the server shows an older note, or a note again.
#[test]
fn what_a_lost_handshake_has_said_of_the_memory_is_known() {
    if IS_PLAYED {
        return;
    }
    let requirements = Requirements { is_guarded: true, is_waking: true };
    let note = |generation: i64| {
        format!("1 {} {generation} -1 0 0000000000000007", RunId::sample('a').as_str())
    };
    for (first, told) in [("", note(3)), (&*note(2), String::new()), (&note(2), "bad".to_owned())] {
        let mut connector = connector();
        if !first.is_empty() {
            end_shaking_hands(&mut connector, &process_with('a', first)).expect("it is connected");
            fail(&mut connector);
        }
        shake_hands_for(&mut connector, &process_with('a', &told), requirements);
        fail(&mut connector);
        // It is not connected, because it is to be marked.
        shake_hands(&mut connector, &process_with('a', &note(2)));
    }
    // It is a replica. The note is that of its primary.
    let (mut connector, of_primary) = (connector(), process_with('b', &note(3)));
    let of_replica = of_primary.replace("$11\r\nrole:master", "$10\r\nrole:slave");
    let refused = shake_hands_for(&mut connector, &of_replica, requirements);
    assert!(matches!(refused, Some(Change::Failed { .. })));
    assert_eq!(connector.lasting.memories.lost_at(), None);
}

/// A server with a log has the note of another process, as after a restart. Or its note is dated in the future. But this
/// manager has just heard another server in its place.
#[test]
fn a_note_that_is_rewritten_may_be_that_of_another_server() {
    if IS_PLAYED {
        return;
    }
    let note = |letter, generation, since: &str, life: u8| {
        format!("1 {} {generation} {since} 0 {life:016} a", RunId::sample(letter).as_str())
    };
    for (process, since) in [('c', "-1"), ('b', "-9999999")] {
        let mut connector = connector();
        let first = end_shaking_hands(&mut connector, &process_with('a', &note('a', 1, "-1", 7)));
        assert!(first.is_some(), "it is connected");
        fail(&mut connector);
        shake_hands(&mut connector, &process_with(process, &note('b', 1, since, 8)));
        let rewritten = process_with(process, &note(process, 2, "-1", 8));
        fail(&mut connector);
        let again = end_shaking_hands(&mut connector, &rewritten);
        let Some(Change::Up(up)) = again else { panic!("it is not connected") };
        assert!(
            up.guard.doubt(None, NOW, connector.server_registry.rules()).is_some(),
            "{process}"
        );
    }
}

/// This manager has heard another process, and then a new one without a note. Before it can mark that one, another client
/// takes it for a new server.
#[test]
fn a_server_that_others_take_for_a_new_one_has_lost_what_is_known() {
    if IS_PLAYED {
        return;
    }
    let note = |letter, life: u8| format!("1 {} 1 -1 0 {life:016}", RunId::sample(letter).as_str());
    for is_restarted in [false, true] {
        let mut connector = connector();
        connector.server_registry = Arc::new(ServerRegistry::new(2, Arc::default()));
        if is_restarted {
            end_shaking_hands(&mut connector, &process_with('a', &note('a', 7)));
            fail(&mut connector);
        }
        shake_hands(&mut connector, &process_with('b', ""));
        fail(&mut connector);
        let up = end_shaking_hands(&mut connector, &process_with('b', &note('b', 8)));
        let Some(Change::Up(up)) = up else { panic!("it is not connected") };
        let doubt = up.guard.doubt(None, NOW, connector.server_registry.rules());
        assert_eq!(doubt.is_some(), is_restarted);
    }
}

/// It is to be marked: it has no note (and the other servers are not known yet), no valid one, or that of another process.
#[test]
fn the_clock_of_a_server_without_a_note_is_kept() {
    if IS_PLAYED {
        return;
    }
    let other = format!("1 {} 1 -1 0 0000000000000007", RunId::sample('b').as_str());
    for note in ["", "damaged", &other] {
        let mut connector = connector();
        connector.server_registry = Arc::new(ServerRegistry::new(2, Arc::default()));
        shake_hands(&mut connector, &process_with('a', note));
        assert!(connector.lasting.clock.shown_ms(NOW).is_some(), "{note}");
    }
}

/// Another master was looked for meanwhile, and the setting was changed.
#[test]
fn a_connection_that_is_taken_back_leads_to_its_own_master() {
    if IS_PLAYED {
        return;
    }
    let owner = |epoch: u16| {
        let place = Address::of("127.0.0.1", 7000 + epoch).expect("a place");
        Owner { place, epoch: epoch.into() }
    };
    for needs_majority in [true, false] {
        let mut connector = link_at("redis-sentinel://127.0.0.1/master", 0);
        shake_hands(&mut connector, "");
        connector.come_up(Capabilities::default(), Guard::default(), NOW);
        connector.have_master(Some(owner(1)));
        connector.needs_majority = needs_majority;
        let stream = connector.set_aside(NOW).expect("it is up");
        connector.have_master(Some(owner(2)));
        connector.needs_majority = !needs_majority;
        connector.take_back(stream, NOW);
        assert_eq!(connector.master, Some(owner(1)));
        assert_eq!(connector.addresses.current().map(|it| it.port()), Some(7001));
        assert_eq!(connector.owner().is_some(), needs_majority);
    }
}
