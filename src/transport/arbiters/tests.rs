//! A client and Sentinels that say what a test wants, at the times that the test gives. No clock is read.

use std::cell::RefCell;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use super::*;
use crate::protocol::command::{Answer, Verb};
use crate::protocol::conn::guard::Rules;
use crate::protocol::conn::queue::samples::{TICKET, request};
use crate::protocol::conn::server_registry::ServerRegistry;
use crate::protocol::electors::Electors;
use crate::protocol::policy::Policy;
use crate::protocol::servers::endpoint::Endpoint;
use crate::protocol::servers::sentinels::Sentinels;
use crate::system::clock;
use crate::system::socket::{poll, watch};
use crate::transport::server::{Effects, Server};

const WITHIN_MS: i64 = 700;

/// These tests need sockets of this machine, and the library is also compiled for a simulated world.
const IS_PLAYED: bool = matches!(env!("CARGO_CRATE_NAME").as_bytes(), b"played" | b"hostile");

fn at(ms: i64) -> Moment {
    Moment::from_nanos(1_000_000_000_000).plus_ms(ms)
}

fn owner(port: u16, epoch: u64) -> Owner {
    Owner { place: Address::of("127.0.0.1", port).expect("a place"), epoch }
}

fn fields(all: &[(&str, &str)]) -> String {
    let bulk = |text: &str| format!("${}\r\n{text}\r\n", text.len());
    let words: String = all.iter().map(|(name, value)| bulk(name) + &bulk(value)).collect();
    format!("*{}\r\n{words}", 2 * all.len())
}

/// The answer to `SENTINEL MASTER`.
fn master(port: u16, epoch: u64, others: usize, flags: &str) -> String {
    fields(&[
        ("ip", "127.0.0.1"),
        ("port", &port.to_string()),
        ("flags", flags),
        ("config-epoch", &epoch.to_string()),
        ("num-other-sentinels", &others.to_string()),
    ])
}

/// A client, and Sentinels.
struct Play {
    arbiters: Arbiters,
    sentinels: Vec<TcpListener>,
}

/// The connection to a Sentinel, as that Sentinel sees it.
struct Sentinel(TcpStream);

impl Play {
    /// The URL names so many of so many Sentinels.
    fn new(listed: usize, of: usize) -> Self {
        let bind = |_| TcpListener::bind("127.0.0.1:0").expect("a port");
        let sentinels: Vec<_> = (0..of).map(bind).collect();
        let address = |it: &TcpListener| it.local_addr().expect("an address").to_string();
        let hosts: Vec<_> = sentinels[..listed].iter().map(address).collect();
        let (parsed, _) = Sentinels::parse(&format!("{}/m", hosts.join(","))).expect("a URL");
        let arbiters =
            Arbiters::new(&Electorate::Sentinels(Arc::new(parsed)), false, &Arc::default());
        Self { arbiters, sentinels }
    }

    /// Three Sentinels that have named this master at the beginning.
    fn agreed() -> (Self, Vec<Sentinel>) {
        let mut play = Self::new(3, 3);
        play.arbiters.begin(None, true, WITHIN_MS, at(0));
        let mut all = play.accept_all(at(0));
        all[..2].iter_mut().for_each(|it| it.say(&master(7, 1, 2, "master")));
        assert_eq!(play.found(at(0)), Ok(owner(7, 1)));
        all[2].say(&master(7, 1, 2, "master"));
        play.hear(at(0));
        (play, all)
    }

    fn accept_all(&mut self, now: Moment) -> Vec<Sentinel> {
        (0..self.sentinels.len()).map(|which| self.accept(which, now)).collect()
    }

    /// The connection that the client makes to this Sentinel, which says who it is.
    fn accept(&mut self, which: usize, now: Moment) -> Sentinel {
        let (stream, _) = self.sentinels[which].accept().expect("a connection");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("it can be set");
        let mut sentinel = Sentinel(stream);
        while !matches!(self.arbiters.all[which].link, Link::Up(..)) {
            self.wait();
            assert_eq!(self.arbiters.advance(now), None);
        }
        sentinel.hears("MASTER\r\n$1\r\nm\r\n");
        let id = RunId::sample(
            char::from_digit(u32::try_from(which).expect("few") + 1, 16).expect("a digit"),
        );
        sentinel.say(&format!("$47\r\nrun_id:{}\r\n*0\r\n", id.as_str()));
        sentinel
    }

    /// Waits until a socket of the client is ready.
    fn wait(&self) {
        let mut watched: Vec<_> =
            self.arbiters.interests().map(|it| watch(it.fd, it.for_writing)).collect();
        assert!(!watched.is_empty(), "nobody is asked");
        poll(&mut watched, at(20_000), at(0));
    }

    fn found(&mut self, now: Moment) -> Found {
        for _ in 0..100 {
            if let Some(found) = self.arbiters.advance(now) {
                return found;
            }
            self.wait();
        }
        panic!("it finds nothing");
    }

    /// Reads until all have answered.
    fn hear(&mut self, now: Moment) {
        while self.arbiters.all.iter().any(Arbiter::is_pending) {
            self.wait();
            assert_eq!(self.arbiters.advance(now), None);
        }
    }

    fn standing(&mut self, sent_ms: i64, now_ms: i64) -> Standing {
        self.arbiters.standing(&owner(7, 1), at(sent_ms), at(now_ms))
    }
}

impl Sentinel {
    fn say(&mut self, words: &str) {
        self.0.write_all(words.as_bytes()).expect("it is sent");
    }

    /// Reads until this has come.
    fn hears(&mut self, end: &str) {
        let (mut heard, mut byte) = (String::new(), [0]);
        while !heard.ends_with(end) {
            self.0.read_exact(&mut byte).expect("more is sent");
            heard.push(char::from(byte[0]));
        }
    }
}

/// All are asked at once, and two of three are enough.
#[test]
fn a_majority_that_agrees_finds_the_master() {
    if IS_PLAYED {
        return;
    }
    let (mut play, mut all) = Play::agreed();
    assert_eq!(play.standing(1_000, 1_000), Standing::Confirmed);
    // They are asked again over the same connections.
    assert!(!play.arbiters.follow(&owner(7, 1), WITHIN_MS, at(AGAIN_MS - 1)));
    assert_eq!(play.arbiters.interests().count(), 0);
    assert!(!play.arbiters.follow(&owner(7, 1), WITHIN_MS, at(AGAIN_MS)));
    assert_eq!(play.arbiters.interests().count(), 3);
    for it in &mut all {
        it.hears("MASTER\r\n$1\r\nm\r\n");
        it.say(&master(8, 2, 2, "master"));
    }
    play.hear(at(AGAIN_MS + 1));
    assert!(play.arbiters.follow(&owner(7, 1), WITHIN_MS, at(AGAIN_MS + 3)));
    assert!(!play.arbiters.follow(&owner(8, 2), WITHIN_MS, at(AGAIN_MS + 5)));
}

/// A search is for what the Sentinels say now.
#[test]
fn what_was_said_before_the_search_does_not_count() {
    if IS_PLAYED {
        return;
    }
    let (mut play, mut all) = Play::agreed();
    play.arbiters.begin(None, true, WITHIN_MS, at(5));
    assert_eq!(play.arbiters.advance(at(5)), None);
    all.iter_mut().for_each(|it| it.say(&master(8, 2, 2, "master")));
    assert_eq!(play.found(at(5)), Ok(owner(8, 2)));
}

/// The thread that polls may not have run for a while.
#[test]
fn an_answer_that_nobody_looked_for_is_in_time() {
    if IS_PLAYED {
        return;
    }
    let mut play = Play::new(3, 3);
    play.arbiters.begin(None, true, WITHIN_MS, at(0));
    let mut all = play.accept_all(at(0));
    all[..2].iter_mut().for_each(|it| it.say(&master(7, 1, 2, "master")));
    assert_eq!(play.arbiters.advance(at(WITHIN_MS)), Some(Ok(owner(7, 1))));
}

#[test]
fn a_sentinel_that_refuses_does_not_end_the_search() {
    if IS_PLAYED {
        return;
    }
    let mut play = Play::new(3, 3);
    play.arbiters.begin(None, true, WITHIN_MS, at(0));
    let mut all = play.accept_all(at(0));
    all[0].say("-ERR No such master with that name\r\n");
    while play.arbiters.interests().count() > 2 {
        play.wait();
        assert_eq!(play.arbiters.advance(at(0)), None);
    }
    all[1..].iter_mut().for_each(|it| it.say(&master(7, 1, 2, "master")));
    assert_eq!(play.found(at(0)), Ok(owner(7, 1)));
}

/// Where one Sentinel is enough, another one may know better.
#[test]
fn a_useless_master_is_not_named_again_at_once() {
    if IS_PLAYED {
        return;
    }
    let mut play = Play::new(2, 2);
    play.arbiters.begin(None, false, WITHIN_MS, at(0));
    let mut all = play.accept_all(at(0));
    all[0].say(&master(7, 1, 1, "master"));
    assert_eq!(play.found(at(0)), Ok(owner(7, 1)));
    all[1].say(&master(7, 1, 1, "master"));
    play.hear(at(0));
    play.arbiters.distrust(Some(&owner(7, 1).place));
    play.arbiters.begin(None, false, WITHIN_MS, at(5));
    all[0].say(&master(7, 1, 1, "master"));
    while play.arbiters.interests().count() > 1 {
        play.wait();
        assert_eq!(play.arbiters.advance(at(5)), None);
    }
    all[1].say(&master(8, 1, 1, "master"));
    assert_eq!(play.found(at(5)), Ok(owner(8, 1)));
}

/// One of two Sentinels has not heard of the failover, and answers first. Later the other one is gone.
#[test]
fn without_a_majority_a_master_that_had_a_successor_is_tried_last() {
    if IS_PLAYED {
        return;
    }
    let mut play = Play::new(2, 2);
    play.arbiters.begin(None, false, WITHIN_MS, at(0));
    let mut all = play.accept_all(at(0));
    all[1].say(&master(8, 2, 1, "master"));
    assert_eq!(play.found(at(0)), Ok(owner(8, 2)));
    play.arbiters.begin(None, false, WITHIN_MS, at(50));
    // It still owes the answer to the first question.
    all[0].say(&master(7, 1, 1, "master"));
    play.wait();
    assert_eq!(play.arbiters.advance(at(50)), None);
    all[0].hears("MASTER\r\n$1\r\nm\r\n");
    all[0].say(&master(7, 1, 1, "master"));
    while play.arbiters.all[0].is_pending() {
        play.wait();
        assert_eq!(play.arbiters.advance(at(50)), None, "the other one may still answer");
    }
    let over = at(50 + WITHIN_MS);
    assert_eq!(play.arbiters.advance(over), Some(Ok(owner(7, 1))));
    assert!(!play.arbiters.has_left(&owner(7, 1)), "that was said before");
}

#[test]
fn sentinels_that_do_not_agree_find_no_master() {
    if IS_PLAYED {
        return;
    }
    let mut play = Play::new(3, 3);
    play.arbiters.begin(None, true, WITHIN_MS, at(0));
    let mut all = play.accept_all(at(0));
    all[0].say(&master(7, 1, 2, "master"));
    all[1].say(&master(8, 2, 2, "master"));
    all[2].say(&master(8, 2, 2, "master,failover_in_progress"));
    let words = play.found(at(0)).expect_err("no majority");
    assert!(words.contains("1 of 2 Sentinels needed name the same master m"), "{words}");
    assert!(words.contains(": a failover is in progress"), "{words}");
    // The next search may do with one of them: the one that knows the later epoch.
    play.arbiters.begin(None, false, WITHIN_MS, at(5));
    for (it, port) in all.iter_mut().zip([7, 8, 7]) {
        it.hears("MASTER\r\n$1\r\nm\r\n");
        it.say(&master(port, u64::from(port), 2, "master"));
    }
    play.wait();
    assert!(play.found(at(5)).is_ok());
    play.hear(at(5));
    assert!(play.arbiters.has_left(&owner(7, 7)) && !play.arbiters.has_left(&owner(8, 8)));
}

#[test]
fn an_answer_that_is_too_old_is_asked_for_again() {
    if IS_PLAYED {
        return;
    }
    let (mut play, mut all) = Play::agreed();
    assert_eq!(play.standing(LEAD_MS, LEAD_MS), Standing::Confirmed);
    assert_eq!(play.standing(LEAD_MS + 1, LEAD_MS + 2), Standing::Unknown);
    for it in &mut all[1..] {
        it.hears("MASTER\r\n$1\r\nm\r\n");
        it.say(&master(7, 1, 2, "master"));
    }
    let now = at(LEAD_MS + 3);
    while play.standing(LEAD_MS + 1, LEAD_MS + 3) == Standing::Unknown {
        play.wait();
        play.arbiters.advance(now);
    }
    assert_eq!(play.standing(LEAD_MS + 1, LEAD_MS + 3), Standing::Confirmed);
    // The third one does not answer in time.
    assert_eq!(play.arbiters.interests().count(), 1);
    play.arbiters.advance(at(LEAD_MS + 2 + WITHIN_MS));
    assert_eq!(play.arbiters.interests().count(), 0);
}

#[test]
fn a_master_without_a_majority_is_not_confirmed() {
    if IS_PLAYED {
        return;
    }
    let (mut play, mut all) = Play::agreed();
    let sent_ms = LEAD_MS + 1;
    assert_eq!(play.standing(sent_ms, sent_ms), Standing::Unknown);
    all[0].hears("MASTER\r\n$1\r\nm\r\n");
    all[0].say(&master(7, 1, 2, "master"));
    // The others are gone, and cannot be reached again.
    play.sentinels.clear();
    all.truncate(1);
    let support = Support { named: 1, needed: 2, of: 3 };
    while play.standing(sent_ms, sent_ms + 5) == Standing::Unknown {
        play.wait();
        play.arbiters.advance(at(sent_ms + 5));
    }
    assert_eq!(play.standing(sent_ms, sent_ms + 5), Standing::Unconfirmed(support));
}

/// The URL names one of three. A majority of all is needed.
#[test]
fn sentinels_that_others_know_are_asked_too() {
    if IS_PLAYED {
        return;
    }
    let mut play = Play::new(1, 3);
    play.arbiters.begin(None, true, WITHIN_MS, at(0));
    let (stream, _) = play.sentinels[0].accept().expect("a connection");
    let mut first = Sentinel(stream);
    let known = play.sentinels[1..].iter().map(|it| {
        let port = it.local_addr().expect("an address").port().to_string();
        fields(&[("ip", "127.0.0.1"), ("port", &port)])
    });
    let known: String = known.collect();
    let id = RunId::sample('1');
    first.say(&format!("$47\r\nrun_id:{}\r\n*2\r\n{known}", id.as_str()));
    first.say(&master(7, 1, 2, "master"));
    while play.arbiters.all.len() < 3 {
        play.wait();
        assert_eq!(play.arbiters.advance(at(0)), None);
    }
    play.arbiters.advance(at(0));
    let mut second = play.accept(1, at(0));
    second.say(&master(7, 1, 2, "master"));
    assert_eq!(play.found(at(0)), Ok(owner(7, 1)));
}

/// It was there before the question, so the Sentinel may have been restarted.
#[test]
fn a_lost_connection_is_made_anew() {
    if IS_PLAYED {
        return;
    }
    let (mut play, all) = Play::agreed();
    drop(all);
    assert!(!play.arbiters.follow(&owner(7, 1), WITHIN_MS, at(AGAIN_MS)));
    let accepted = |it: &TcpListener| it.accept().expect("a connection");
    for _ in 0..20 {
        play.arbiters.advance(at(AGAIN_MS));
    }
    let again: Vec<_> = play.sentinels.iter().map(accepted).collect();
    assert_eq!(again.len(), 3);
    // One that closes each connection is not asked without end.
    drop(again);
    play.hear(at(AGAIN_MS));
    assert!(matches!(
        play.standing(AGAIN_MS + LEAD_MS, AGAIN_MS + LEAD_MS),
        Standing::Unconfirmed(_) | Standing::Unknown
    ));
}

/// Where one Sentinel is enough, the master is kept while none can be reached.
#[test]
fn a_master_is_kept_while_no_sentinel_answers() {
    if IS_PLAYED {
        return;
    }
    let mut play = Play::new(1, 1);
    play.arbiters.begin(None, false, WITHIN_MS, at(0));
    let mut all = play.accept_all(at(0));
    all[0].say(&master(7, 1, 0, "master"));
    assert_eq!(play.found(at(0)), Ok(owner(7, 1)));
    (play.sentinels, all) = (Vec::new(), Vec::new());
    for ms in [AGAIN_MS, 2 * AGAIN_MS, 3 * AGAIN_MS] {
        assert!(!play.arbiters.follow(&owner(7, 1), WITHIN_MS, at(ms)));
        play.hear(at(ms));
        assert!(!play.arbiters.hear_news(&owner(7, 1), at(ms)));
    }
    assert!(all.is_empty() && matches!(play.arbiters.all[0].link, Link::Down));
}

#[test]
fn what_says_that_a_lock_is_held_is_a_claim() {
    let token = request(Verb::Inspect).token().as_bytes().to_vec();
    let found = |value| Answer::Found { value, left_ms: 5 };
    for (verb, answer, is_claim) in [
        (Verb::Acquire, Answer::Done, true),
        (Verb::Acquire, Answer::Foreign { left_ms: Some(5) }, false),
        (Verb::AcquireFenced, Answer::Granted { number: 5 }, true),
        (Verb::Extend, Answer::Extended { left_ms: 5 }, true),
        (Verb::Extend, Answer::Absent, false),
        (Verb::Inspect, found(token), true),
        (Verb::Inspect, found(b"another's".to_vec()), false),
        (Verb::Inspect, Answer::Absent, false),
        (Verb::Release, Answer::Done, false),
    ] {
        assert_eq!(request(verb).claims(&answer), is_claim, "{verb:?} {answer:?}");
    }
}

/// A client, one Sentinel, and the master, which is what a test wants it to be.
struct House {
    server: Server,
    effects: Effects,
    sentinel: Sentinel,
    master: Option<Sentinel>,
    port: u16,
    epoch: u64,
    _sentinels: TcpListener,
    _masters: TcpListener,
}

/// What each master says first: what it cannot do, and who it is, and nothing about its configuration.
const WORDS: &str = "-ERR unknown command 'X'\r\n-ERR unknown command 'X'\r\n\
     -ERR unknown command 'X'\r\n+PONG\r\n\
     $47\r\nrun_id:a000000000000000000000000000000000000000\r\n$11\r\nrole:master\r\n\
     -NOPERM no\r\n-NOPERM no\r\n-NOPERM no\r\n-ERR unknown command 'X'\r\n";

/// The end of that: nobody may ask for its memory.
const BLIND: &str = "-NOPERM no\r\n-NOPERM no\r\n-ERR unknown command 'HELLO'\r\n";

impl House {
    /// The master became that in this epoch, and has said all this. The Sentinel was asked at that time.
    fn new(epoch: u64, said: &str, asked_at: Moment) -> Self {
        let [sentinels, masters] =
            [0, 1].map(|_| TcpListener::bind("127.0.0.1:0").expect("a port"));
        let port = |it: &TcpListener| it.local_addr().expect("an address").port();
        let url = format!("redis-sentinel://127.0.0.1:{}/m", port(&sentinels));
        let endpoint = Endpoint::parse(&url, 0).expect("a URL");
        let registry = Arc::new(ServerRegistry::new(1, Arc::default()));
        let mut server = Server::new(0, endpoint, Arc::default(), Arc::default(), registry);
        let mut effects = Effects::default();
        server.hurry(asked_at, &mut effects);
        let accept = |it: &TcpListener| Sentinel(it.accept().expect("a connection").0);
        let mut sentinel = accept(&sentinels);
        let id = RunId::sample('1');
        sentinel.say(&format!("$47\r\nrun_id:{}\r\n*0\r\n", id.as_str()));
        sentinel.say(&master(port(&masters), epoch, 0, "master"));
        let mut house = Self {
            server,
            effects,
            sentinel,
            master: None,
            port: port(&masters),
            epoch,
            _sentinels: sentinels,
            _masters: masters,
        };
        house.go_on_until(asked_at, |it| it.server.interest().is_some());
        let mut master = accept(&house._masters);
        master.say(said);
        house.master = Some(master);
        house
    }

    /// A master that has granted a lock. The last answer of the Sentinel was too old for that.
    fn asked_too_late() -> Self {
        let long_ago = clock::now().plus_ms(-20_000);
        let mut house = Self::new(1, &format!("{WORDS}{BLIND}"), long_ago);
        house.go_on_until(long_ago, |it| it.server.snapshot(long_ago, 0).is_connected);
        let Self { server, effects, .. } = &mut house;
        let now = clock::now();
        server.ask(&request(Verb::Acquire), TICKET, 5_000, now, effects);
        server.handle_ready(now, effects);
        let master = house.master.as_mut().expect("it is there");
        master.hears("PTTL\r\n$1\r\nr\r\n");
        master.say("+OK\r\n:10000\r\n");
        // To connect took much longer, as far as the server knows.
        house.go_on_until(clock::now(), |it| it.server.round_trip_us() < Some(15_000_000));
        assert!(house.effects.deliveries.is_empty());
        house
    }

    fn go_on_until(&mut self, now: Moment, is_done: impl Fn(&Self) -> bool) {
        for _ in 0..1_000 {
            if is_done(self) {
                return;
            }
            let own = self.server.interest();
            let all = own.into_iter().chain(self.server.interests_beside());
            let mut watched: Vec<_> = all.map(|it| watch(it.fd, it.for_writing)).collect();
            poll(&mut watched, at(20), at(0));
            self.server.handle_ready_beside(now, &mut self.effects);
            self.server.handle_ready(now, &mut self.effects);
        }
        panic!("nothing more happens");
    }

    /// The one answer that the call gets, and whether its request was sent.
    fn delivered(&mut self) -> (Answer, bool) {
        self.go_on_until(clock::now(), |it| !it.effects.deliveries.is_empty());
        let delivery = self.effects.deliveries.pop().expect("there is one");
        assert!(delivery.ticket == TICKET && self.effects.deliveries.is_empty());
        (delivery.answer, delivery.sent)
    }
}

#[test]
fn an_answer_is_held_back_until_the_sentinels_have_answered() {
    if IS_PLAYED {
        return;
    }
    for is_confirmed in [true, false] {
        let mut house = House::asked_too_late();
        assert!(house.server.sent_at(TICKET).is_some());
        let words = match is_confirmed {
            true => master(house.port, house.epoch, 0, "master"),
            false => "-ERR No such master with that name\r\n".to_owned(),
        };
        house.sentinel.say(&words);
        let unconfirmed =
            Failure::Unconfirmed { by: Electors::Sentinels, named: 0, needed: 1, of: 1 };
        let expected = if is_confirmed { Answer::Done } else { Answer::Failed(unconfirmed) };
        assert_eq!(house.delivered(), (expected, true));
        assert_eq!(house.server.snapshot(clock::now(), 0).has_vote, is_confirmed);
    }
}

/// It has no vote until the Sentinels confirm it again. The thread that polls is told of their sockets.
#[test]
fn a_master_has_its_vote_back_once_it_is_confirmed() {
    if IS_PLAYED {
        return;
    }
    let mut house = House::asked_too_late();
    let here = master(house.port, house.epoch, 0, "master");
    house.sentinel.say(&master(house.port, house.epoch, 2, "master"));
    let unconfirmed = Failure::Unconfirmed { by: Electors::Sentinels, named: 1, needed: 2, of: 3 };
    assert_eq!(house.delivered().0, Answer::Failed(unconfirmed));
    assert!(!house.server.snapshot(clock::now(), 0).has_vote);
    let later = clock::now().plus_ms(2_000);
    house.effects.changed = false;
    let House { server, effects, .. } = &mut house;
    server.ask(&request(Verb::Acquire), TICKET, 5_000, later, effects);
    assert!(house.effects.changed, "the Sentinel is asked again");
    house.server.handle_ready(later, &mut house.effects);
    house.sentinel.hears("MASTER\r\n$1\r\nm\r\n");
    house.sentinel.say(&here);
    let granted = house.master.as_mut().expect("it is there");
    granted.hears("PTTL\r\n$1\r\nr\r\n");
    granted.say("+OK\r\n:10000\r\n");
    assert_eq!(house.delivered().0, Answer::Done);
    assert!(house.server.snapshot(clock::now(), 0).has_vote);
}

/// Its name has two, and nobody listens at the first one.
#[test]
fn each_address_of_a_sentinel_is_tried() {
    if IS_PLAYED {
        return;
    }
    let bind = |_| TcpListener::bind("127.0.0.1:0").expect("a port");
    let [gone, here] = [0, 1].map(bind);
    let addresses = [&gone, &here].map(|it| it.local_addr().expect("an address"));
    drop(gone);
    let (parsed, _) = Sentinels::parse("name:1/m").expect("a URL");
    let mut arbiters =
        Arbiters::new(&Electorate::Sentinels(Arc::new(parsed)), false, &Arc::default());
    assert!(arbiters.name_where(|it| it.begin_look_up(at(0))).is_some());
    assert!(arbiters.end_look_up(0, Some(addresses.to_vec()), at(0), at(0)));
    let mut play = Play { arbiters, sentinels: vec![here] };
    play.arbiters.begin(None, true, WITHIN_MS, at(0));
    while !matches!(play.arbiters.all[0].link, Link::Up(..)) {
        play.wait();
        assert_eq!(play.arbiters.advance(at(0)), None);
    }
    let mut sentinel = play.accept(0, at(0));
    sentinel.say(&master(7, 1, 0, "master"));
    assert_eq!(play.found(at(0)), Ok(owner(7, 1)));
}

#[test]
fn an_answer_that_is_held_back_is_lost_with_its_connection() {
    if IS_PLAYED {
        return;
    }
    let mut house = House::asked_too_late();
    house.master = None;
    let (answer, is_sent) = house.delivered();
    assert!(is_sent && matches!(answer, Answer::Failed(Failure::Lost(_))), "{answer:?}");
}

#[test]
fn an_answer_that_nobody_waits_for_is_not_held_back() {
    if IS_PLAYED {
        return;
    }
    let mut house = House::asked_too_late();
    let abandoned = house.server.abandon(TICKET, clock::now(), &mut house.effects);
    assert!(abandoned.is_some() && house.server.sent_at(TICKET).is_none());
    house.sentinel.say(&master(house.port, house.epoch, 0, "master"));
    house.go_on_until(clock::now(), |it| it.server.interests_beside().next().is_none());
    assert!(house.effects.deliveries.is_empty());
}

/// The master has answered. It is the Sentinel that has not.
#[test]
fn an_answer_that_is_held_back_for_too_long_does_not_count() {
    if IS_PLAYED {
        return;
    }
    let mut house = House::asked_too_late();
    let House { server, effects, .. } = &mut house;
    let (_, failure) = server.give_up_held(TICKET, clock::now(), effects).expect("it is held back");
    assert_eq!(
        failure,
        Failure::Unconfirmed { by: Electors::Sentinels, named: 0, needed: 1, of: 1 }
    );
    assert!(
        server.sent_at(TICKET).is_none()
            && server.give_up_held(TICKET, clock::now(), effects).is_none()
    );
    assert!(!server.snapshot(clock::now(), 0).has_vote);
}

/// Its successors are empty because they have not received what it had.
#[test]
fn only_a_first_master_may_be_new() {
    if IS_PLAYED {
        return;
    }
    let empty = "*2\r\n$4\r\n1000\r\n$1\r\n0\r\n$0\r\n\r\n-ERR unknown command 'HELLO'\r\n";
    for (epoch, since) in [(0, "$5\r\nfresh\r\n"), (1, "$3\r\nnow\r\n")] {
        let mut house = House::new(epoch, &format!("{WORDS}{empty}"), clock::now());
        let master = house.master.take().expect("it is there");
        master.0.set_nonblocking(true).expect("it can be set");
        let heard = RefCell::new((master.0, Vec::new()));
        house.go_on_until(clock::now(), |_| {
            let (stream, heard) = &mut *heard.borrow_mut();
            let _ = stream.read_to_end(heard);
            String::from_utf8_lossy(heard).contains(since)
        });
    }
}

/// Its predecessor, which may not know that it was deposed, may have granted a lock a little later.
#[test]
fn a_successor_waits_longer() {
    if IS_PLAYED {
        return;
    }
    let note = format!("1 a{} 1 1000000 0 00000000000000ff e1", "0".repeat(39));
    let borne = format!(
        "*2\r\n$4\r\n1000\r\n$1\r\n0\r\n${}\r\n{note}\r\n-ERR unknown command 'HELLO'\r\n",
        note.len()
    );
    let before = clock::now();
    let mut house = House::new(1, &format!("{WORDS}{borne}"), before);
    house.go_on_until(clock::now(), |it| it.server.snapshot(clock::now(), 0).is_connected);
    let rules = Rules::default();
    let after = |from: Moment, ms| house.server.snapshot(from.plus_ms(ms), 0).has_vote;
    assert!(!after(before, rules.wait_ms(0) + rules.lead_ms(LEAD_MS) - 2));
    assert!(after(clock::now(), rules.wait_ms(0) + rules.lead_ms(LEAD_MS) + 2));
}

/// One Sentinel is enough, and the other one answers when the master is being connected to, or cannot be. An answer that
/// nobody reads would keep the thread that polls awake.
#[test]
fn a_sentinel_that_answers_late_is_read() {
    if IS_PLAYED {
        return;
    }
    for is_reachable in [true, false] {
        let bind = |_| TcpListener::bind("127.0.0.1:0").expect("a port");
        let [one, other, masters] = [0, 1, 2].map(bind);
        let port = |it: &TcpListener| it.local_addr().expect("an address").port();
        let (hosts, place) = ([port(&one), port(&other)], port(&masters));
        let _masters = is_reachable.then_some(masters);
        let url = format!("redis-sentinel://127.0.0.1:{},127.0.0.1:{}/m", hosts[0], hosts[1]);
        let policy = Arc::<Policy>::default();
        policy.set_failover_guard(false);
        let registry = Arc::new(ServerRegistry::new(1, Arc::default()));
        let endpoint = Endpoint::parse(&url, 0).expect("a URL");
        let mut server = Server::new(0, endpoint, policy, Arc::default(), registry);
        let (mut effects, now) = (Effects::default(), clock::now());
        server.hurry(now, &mut effects);
        let accept = |it: &TcpListener| Sentinel(it.accept().expect("a connection").0);
        let mut sentinels = [accept(&one), accept(&other)];
        let mut go_on = |is_done: &dyn Fn(&Server) -> bool| {
            for _ in 0..100 {
                if is_done(&server) {
                    return;
                }
                let all = server.interest().into_iter().chain(server.interests_beside());
                let mut watched: Vec<_> = all.map(|it| watch(it.fd, it.for_writing)).collect();
                poll(&mut watched, at(20), at(0));
                server.handle_ready_beside(now, &mut effects);
                server.handle_ready(now, &mut effects);
            }
            panic!("nothing more happens");
        };
        let words = format!("$0\r\n\r\n*0\r\n{}", master(place, 0, 1, "master"));
        sentinels[0].say(&words);
        go_on(&|it| it.interests_beside().count() == 1);
        go_on(&|it| it.interest().is_some() == is_reachable);
        sentinels[1].say(&words);
        go_on(&|it| it.interests_beside().count() == 0);
    }
}

fn meet(arbiters: &mut Arbiters, others: &[(Option<RunId>, u16)]) {
    let others = others.iter().map(|(id, port)| (*id, ("127.0.0.1".to_owned(), *port)));
    let others: Vec<_> = others.collect();
    arbiters.meet_all(others.iter().map(|(id, at)| (*id, at)));
}

fn ports(arbiters: &Arbiters) -> Vec<u16> {
    let port = |it: &Arbiter| it.addresses.current().map_or(0, |it| it.port());
    arbiters.all.iter().skip(1).map(port).collect()
}

/// A process may outlive many machines.
#[test]
fn a_new_place_takes_that_of_one_that_is_gone() {
    let it = &mut Play::new(1, 1).arbiters;
    for round in 1..100 {
        meet(it, &[(None, round), (None, 1_000 + round)]);
        assert_eq!(ports(it), [round, 1_000 + round]);
        it.all.iter_mut().for_each(|it| it.fail(String::new()));
    }
    // One that is named still may come back, and one that answers stays.
    meet(it, &[(None, 99), (None, 7)]);
    assert_eq!(ports(it), [99, 7]);
    it.all[1].has_failed = false;
    meet(it, &[(None, 8)]);
    assert_eq!(ports(it), [99, 7, 8]);
    let many: Vec<_> = (2_000..3_000).map(|port| (None, port)).collect();
    meet(it, &many);
    assert_eq!(it.all.len(), it.inherited.len());
}

#[test]
fn one_that_is_reached_is_not_asked_under_another_name() {
    let it = &mut Play::new(1, 1).arbiters;
    let id = Some(RunId::sample('a'));
    it.ownership.identify(0, id);
    meet(it, &[(id, 1)]);
    assert!(ports(it).is_empty());
    it.all[0].fail(String::new());
    meet(it, &[(id, 1)]);
    assert_eq!(ports(it), [1]);
}
