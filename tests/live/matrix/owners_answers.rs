//! Nodes that answer what no node should, or what one should not say for ever.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use redlock::ffi::status::RedLockStatus::{REDLOCK_OK, REDLOCK_UNREACHABLE};

use crate::owners::RESOURCE;
use crate::support::usage::{self, DEADLINE, TTL, everything_works, in_time, make_brief};
use crate::support::{Fake, Lease, Manager, Server, wait_until};

const ID: &str = "0123456789abcdef0123456789abcdef01234567";

/// The whole line of a node that has all slots, and does not know where it is. So it is where it was asked.
const ALL: &str =
    "0123456789abcdef0123456789abcdef01234567 :1@2 myself,master - 0 1 1 connected 0-16383";

fn bulk(text: &str) -> String {
    format!("${}\r\n{text}", text.len())
}

/// A node that has all slots, at this place.
fn at(place: &str) -> String {
    format!("{ID} {place} myself,master - 0 1 1 connected 0-16383\n")
}

/// A node that gives this answer when it is asked for its map, and this one to all that is about keys.
fn node(map: String, of_keys: impl Fn() -> String + Send + Sync + 'static) -> Fake {
    Fake::obeying(move |command, _| match command {
        "CLUSTER" => Some(map.clone()),
        "SET" | "GETRANGE" | "EVAL" | "EVALSHA" | "PTTL" => Some(of_keys()),
        _ => None,
    })
}

fn manager(node: &Fake) -> Manager {
    Manager::of_urls(&[format!("redis-cluster://{}?tag=a", node.address())])
}

/// A fault ends soon, and is named without being quoted.
#[test]
fn o11_an_answer_that_is_no_map_is_refused() {
    let nonsense = "protocol error: unexpected reply";
    let too_large = "reply too large";
    let unknown = "it knows no owner of the slot";
    let other = |place: &str| {
        let mine = ALL.replace(" 0-16383", "");
        bulk(&format!(
            "{mine}\n{} {place} master - 0 1 2 connected 0-16383\n",
            ID.replace('0', "f")
        ))
    };
    let several_mb = format!("{ALL}{}\n", " 7".repeat(2_000_000));
    let answers = [
        ("s3same".to_owned(), nonsense),
        (String::new(), nonsense),
        ("+OK".to_owned(), nonsense),
        (":1".to_owned(), nonsense),
        ("$-1".to_owned(), nonsense),
        ("*2\r\n:1\r\n:2".to_owned(), nonsense),
        ("*1\r\n".repeat(20) + ":1", too_large),
        ("*16384\r\n:1".to_owned(), too_large),
        ("$999999999".to_owned(), too_large),
        (bulk(&several_mb), too_large),
        (bulk(""), nonsense),
        (bulk("s3same"), nonsense),
        (bulk(&ALL.replace(" connected 0-16383", "")), nonsense),
        (bulk(&ALL.replacen(ID, "s3same", 1)), nonsense),
        (bulk(&ALL.replace("myself,", "")), nonsense),
        (bulk(&ALL.replace("0-16383", "0-100 16000-16383")), unknown),
        (bulk(&ALL.replace("0-16383", "[15495-<-s3same]")), unknown),
        (other(":0@0"), unknown),
        (other(":6379@1"), unknown),
        (other("?:6379@1"), nonsense),
        (other("s3same!:6379@1"), nonsense),
        (other("127.0.0.1:1@1"), "1 of 2 cluster nodes needed name the same owner"),
        (bulk(&at("s3same:6379@1")), "the host name has no address"),
        (bulk(&at("127.0.0.1:1@1")), "127.0.0.1:1: connection refused"),
        (format!("$500\r\n{ALL}"), "timed out after"),
        ("-ERR s3same".to_owned(), "replied with an error"),
        ("-CLUSTERDOWN s3same".to_owned(), "CLUSTERDOWN: the cluster is down"),
        ("-MOVED 1 s3same!:1".to_owned(), "MOVED"),
    ];
    for (answer, words) in answers {
        let beginning: String = answer.chars().take(60).collect();
        println!("{beginning}");
        let node = node(answer, || "+OK".to_owned());
        let manager = manager(&node);
        make_brief(&manager);
        in_time(DEADLINE, || await_words(&manager, words));
    }
}

/// The words of a call that cannot succeed, once they contain this.
#[track_caller]
fn await_words(manager: &Manager, words: &str) {
    usage::await_words(manager, RESOURCE, &[words], Some("s3same"));
}

/// A node that says more and more is not listened to for long.
#[test]
fn o11_an_answer_without_an_end_is_not_kept() {
    let sent = Arc::new(AtomicU64::new(0));
    let node = Fake::start({
        let sent = Arc::clone(&sent);
        move |guest| {
            guest.read()?;
            guest.write(b"+")?;
            loop {
                guest.write(&[b'x'; 4096])?;
                sent.fetch_add(4096, Ordering::SeqCst);
            }
        }
    });
    let manager = manager(&node);
    make_brief(&manager);
    await_words(&manager, "reply too large");
    // The node has an error for each connection by now. What was sent waited in sockets for the most part.
    let connections = u64::try_from(node.connections()).expect("few");
    assert!(sent.load(Ordering::SeqCst) < connections * (16 << 20));
}

/// The node is asked at one place, and its keys are at another one: on a real server.
#[test]
fn o11_each_form_of_a_place_is_understood() {
    let server = Server::start();
    server.be_in_use_for("{a}", TTL, " e1");
    let port = server.port();
    let each_slot: String = (0..16_384).map(|slot| format!(" {slot}")).collect();
    let forms = [
        at(&format!("127.0.0.1:{port}@1")),
        at(&format!("127.0.0.1:{port}@1,")),
        at(&format!("127.0.0.1:{port}@1,no-such-host.invalid")),
        at(&format!("127.0.0.1:{port}@1,,shard-id={ID}")),
        at(&format!("127.0.0.1:{port}@1,?,shard-id={ID}")),
        at(&format!("::1:{port}@1")),
        at(&format!("localhost:{port}@1")),
        at(&format!("127.0.0.1:{port}@1")).replace(" 0-16383", &each_slot),
        at(&format!("127.0.0.1:{port}@1")).replace(" 0-16383", &format!(" 0-16383 [15495->-{ID}]")),
        // Nodes that are not known to all, or not known where they are, are none.
        at(&format!("127.0.0.1:{port}@1"))
            + &format!("{} 127.0.0.1:1@2 handshake - 0 0 0 connected\n", ID.replace('0', "e"))
            + &format!("{} :0@0 slave,noaddr {ID} 0 0 0 connected\n", ID.replace('0', "f")),
    ];
    for map in forms {
        let beginning: String = map.chars().take(100).collect();
        println!("{beginning}");
        let node = node(bulk(&map), || "-MOVED 15495 127.0.0.1:1".to_owned());
        let manager = manager(&node);
        assert_eq!(manager.connect(20_000), REDLOCK_OK, "{}", manager.message());
        everything_works(&manager, RESOURCE);
    }
}

/// How often a node was asked for its map.
fn questions(node: &Fake) -> usize {
    String::from_utf8_lossy(&node.received()).matches("NODES").count()
}

/// What a node says that has the slot by its map, and not by its answers. `circle` is the place of another one that does the
/// same.
fn redirections(circle: &str) -> Vec<(String, &'static str)> {
    let elsewhere = "the slot of the tag is at another node, or on its way there";
    let said = [
        (format!("-MOVED 15495 {circle}"), elsewhere),
        ("-MOVED 15495 :1".to_owned(), elsewhere),
        ("-MOVED 15495 ?".to_owned(), elsewhere),
        ("-MOVED 99999 s3same!:99999999".to_owned(), elsewhere),
        ("-MOVED".to_owned(), elsewhere),
        (format!("-ASK 15495 {circle}"), elsewhere),
        ("-TRYAGAIN s3same".to_owned(), elsewhere),
        ("-CLUSTERDOWN s3same".to_owned(), "CLUSTERDOWN: the cluster is down"),
    ];
    said.into()
}

/// So many searches are waited for. A few may begin at once.
const SEARCHES: usize = 15;
const AT_ONCE: usize = 3;
const APART: Duration = Duration::from_millis(100);

/// Each of two nodes has the slot by its map, and names the other one when it is asked for a key. Somebody tries to lock all
/// the time.
#[test]
fn o12_a_circle_of_nodes_is_searched_ten_times_a_second_at_most() {
    let circle = node(bulk(ALL), || "-MOVED 15495 127.0.0.1:1".to_owned());
    thread::scope(|scope| {
        for (answer, words) in redirections(&circle.address()) {
            scope.spawn(move || is_searched_with_patience(answer, words));
        }
    });
    assert_eq!(circle.connections(), 0, "a redirection was followed");
}

fn is_searched_with_patience(answer: String, words: &str) {
    let moves = !answer.contains("CLUSTERDOWN");
    let node = node(bulk(ALL), move || answer.clone());
    let manager = manager(&node);
    make_brief(&manager);
    let (began, lease) = (Instant::now(), Lease::new());
    await_words(&manager, words);
    wait_until("it has searched", || {
        let status = manager.try_lock(RESOURCE, 3_000, 0, &lease);
        assert_eq!(status, REDLOCK_UNREACHABLE, "{}", lease.message());
        !moves || questions(&node) >= SEARCHES
    });
    // One connection is for the questions. Each search makes one to the owner.
    let seen = questions(&node).max(node.connections() - 1);
    let took = began.elapsed();
    let most = AT_ONCE + usize::try_from(took.as_millis() / APART.as_millis()).expect("few");
    assert!(seen <= most, "{words}: {seen} searches within {took:?}");
}
