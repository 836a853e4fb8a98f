//! A real server and a simulated one, which are sent the same commands.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::replies::{code, is_whole, is_wrapped, number, numbers, parts, triple};
use crate::protocol::command::fence::KEY as FENCE;
use crate::protocol::command::{acquire_with_token, several};
use crate::support::product::product;
use crate::support::{Server, wait_until};
use crate::world::dice::Dice;
use crate::world::store::{Dialect, Refusal, Session, Store, tag};

/// The key of the note that a server has about its memory, and the time of day of the simulated server, in
/// milliseconds: long ago.
pub(super) const NOTE: &str = "redlock:guard";

const PLAYED_MS: i64 = 1_000_000_000_000;

/// By how many milliseconds the clocks may differ in addition.
const GRAIN_MS: i64 = 3;

/// The channel of the waiting client that is connected, and the number of its connection.
pub(super) const THERE: &str = "there";

const LISTENER: usize = 1;

pub(super) struct Pair {
    real: TcpStream,
    /// The connection that listens to the channel.
    listener: TcpStream,
    pub(super) store: Store,
    session: Session,
    began: Instant,
    pub(super) refusal: Option<Refusal>,
    pub(super) ttls: i64,
    /// The duration of the longest exchange. The real server may have set a key that much later.
    slowest_ms: i64,
}

impl Pair {
    pub(super) fn new(server: &Server, password: Option<&'static str>) -> Self {
        let real = TcpStream::connect(server.address()).expect("it is up");
        real.set_read_timeout(Some(Duration::from_secs(20))).expect("it can be set");
        let mut store = Store::new(Dialect::Plain, -1, password);
        store.channels.listeners.push((tag(THERE.as_bytes()), LISTENER));
        let (session, began) = (Session::default(), Instant::now());
        let listener = listen(server, password);
        let (refusal, ttls, slowest_ms) = (None, 0, 0);
        let mut pair = Self { real, listener, store, session, began, refusal, ttls, slowest_ms };
        if password.is_some() {
            for words in [&["PING"][..], &["AUTH", "wrong"], &["GET", "a"], &["AUTH", "p"]] {
                pair.compare(words);
            }
        }
        pair.store.dialect = pair.dialect();
        pair
    }

    fn dialect(&mut self) -> Dialect {
        let mut knows = |name| {
            let said = self.ask(&[name]);
            String::from_utf8_lossy(&said).contains("wrong number")
        };
        match (knows("DELEX"), knows("DELIFEQ")) {
            (true, _) => Dialect::Delex,
            (_, true) => Dialect::Delifeq,
            _ => Dialect::Plain,
        }
    }

    /// Gives both servers this note, or none, and sends them this command. Checks that their replies and
    /// their resulting notes are the same, if the times that their clocks show are considered equal.
    pub(super) fn compare_notes(&mut self, note: &str, words: &[&str]) {
        self.set_note(note);
        let (mut real, mut played) = (Vec::new(), Vec::new());
        for words in [words, &["GETRANGE", NOTE, "0", "255"]] {
            real.extend(self.ask(words));
            let bytes: Vec<&[u8]> = words.iter().map(|it| it.as_bytes()).collect();
            self.store.execute(&mut self.session, &bytes, PLAYED_MS, &mut played);
        }
        // No other text has so many digits without being the name of a process.
        let without_clock = |said: &[u8]| -> Vec<String> {
            let said = String::from_utf8_lossy(said).into_owned();
            let words = said.split(['\r', '\n', ' ', ':']).filter(|it| !it.starts_with('$'));
            words.map(|it| shown(it).unwrap_or(it).to_owned()).collect()
        };
        let (real, played) = (without_clock(&real), without_clock(&played));
        assert_eq!(real, played, "{note:?} {words:?}: what is real, and what is played");
    }

    fn set_note(&mut self, note: &str) {
        let memory = self.store.memory.as_mut().expect("it tells of its memory");
        memory.note = (!note.is_empty()).then(|| note.as_bytes().into());
        match note {
            "" => self.ask(&["DEL", NOTE]),
            _ => self.ask(&["SET", NOTE, note]),
        };
    }

    /// The same for a script about fencing tokens. When it was seen that numbers were lost may differ.
    pub(super) fn compare_numbers(&mut self, note: &str, words: &[&str]) {
        self.set_note(note);
        let (real, mut played) = (self.ask(words), Vec::new());
        let bytes: Vec<&[u8]> = words.iter().map(|it| it.as_bytes()).collect();
        self.store.execute(&mut self.session, &bytes, PLAYED_MS, &mut played);
        let without_ago = |reply: &[u8]| match (parts(reply), number(reply)) {
            (parts, None) if parts[0] == "-2" => parts[..1].to_vec(),
            (parts, None) if parts[0] == "0" && parts.len() > 4 => parts[..2].to_vec(),
            (parts, None) if parts[0] == "2" && parts.len() > 4 => parts[..3].to_vec(),
            (parts, None) => parts,
            (_, Some(number)) => vec![number.to_string()],
        };
        let (real, played) = (without_ago(&real), without_ago(&played));
        assert_eq!(real, played, "{note:?} {words:?}: what is real, and what is played");
    }

    /// Both servers lose the numbers of fencing tokens.
    pub(super) fn forget_numbers(&mut self) {
        self.ask(&["DEL", FENCE]);
        self.store.fences.clear();
    }

    /// Both servers note when it was seen that their numbers are lost.
    pub(super) fn see_numbers_lost(&mut self, ms: &str) {
        self.ask(&["HSET", FENCE, "seen", ms]);
        let key = (self.session.database, Box::from(&b"seen"[..]));
        self.store.fences.insert(key, ms.as_bytes().into());
    }

    /// Checks that messages go to the connection that listens, and name the key. Returns the number of
    /// messages.
    pub(super) fn told(&mut self) -> usize {
        let said = std::mem::take(&mut self.store.channels.said);
        let count = said.len();
        for (connection, push) in said {
            assert_eq!(connection, LISTENER);
            let told = self.hear();
            let is_same = push.strip_prefix(b">").zip(told.strip_prefix(b"*"));
            assert!(is_same.is_some_and(|it| it.0 == it.1), "{:?}", String::from_utf8_lossy(&told));
        }
        count
    }

    /// The message that the listener receives from the real server.
    pub(super) fn hear(&mut self) -> Vec<u8> {
        let (mut told, mut byte) = (Vec::new(), [0]);
        while !told.ends_with(b"\r\n") || told.windows(2).filter(|it| it == b"\r\n").count() < 7 {
            self.listener.read_exact(&mut byte).expect("it is told");
            told.push(byte[0]);
        }
        told
    }

    /// No two TTLs are so close to each other that a delay could reverse their order.
    pub(super) fn ttl(&mut self, dice: &mut Dice) -> String {
        self.ttls += 60_000;
        (if dice.once_in(2) { 100_000_000 + self.ttls } else { 100_000_000 - self.ttls })
            .to_string()
    }

    /// Makes both refuse in the same way.
    pub(super) fn refuse(&mut self, refusal: Option<Refusal>) {
        for (this, on, off) in [
            (Refusal::Oom, "CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0"),
            (Refusal::ReadOnly, "REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE"),
            (Refusal::NoPerm, "ACL SETUSER default -set", "ACL SETUSER default +set"),
            (Refusal::NoPermLook, "ACL SETUSER default -pttl", "ACL SETUSER default +pttl"),
        ] {
            let (was, is) = (self.refusal == Some(this), refusal == Some(this));
            if was != is {
                let command = if is { on } else { off };
                let said = self.ask(&command.split(' ').collect::<Vec<_>>());
                assert!(said.starts_with(b"+OK"), "{command}: {}", String::from_utf8_lossy(&said));
            }
        }
        (self.refusal, self.store.refusal) = (refusal, refusal);
    }

    /// Waits until a key has expired on the real server, and waits equally long on the other.
    pub(super) fn let_expire(&mut self, key: &str) {
        self.compare(&["PEXPIRE", key, "1"]);
        let since = Instant::now();
        wait_until("the key expires", || {
            let said = self.ask(&["GET", key]);
            since.elapsed() > Duration::from_millis(5) && said == b"$-1\r\n"
        });
        self.compare(&["GETRANGE", key, "0", "127"]);
    }

    pub(super) fn compare(&mut self, words: &[&str]) {
        let before = self.now_ms();
        let real = self.ask(words);
        self.slowest_ms = self.slowest_ms.max(self.now_ms() - before);
        let mut played = Vec::new();
        let bytes: Vec<&[u8]> = words.iter().map(|it| it.as_bytes()).collect();
        self.store.execute(&mut self.session, &bytes, before, &mut played);
        let is_time = words[0] == "PTTL";
        let is_near = |real: i64, played: i64| {
            real.min(played) >= 0 && (played - real).abs() <= self.slowest_ms + GRAIN_MS
        };
        let is_same = match (number(&real), number(&played)) {
            (Some(real), Some(played)) if is_time => real == played || is_near(real, played),
            (None, None) if triple(&real).is_some() => {
                let (real, played) = (triple(&real), triple(&played));
                real.zip(played).is_some_and(|(real, played)| {
                    let is_left = real.1 == played.1 || is_near(real.1, played.1);
                    (real.0, real.2) == (played.0, played.2) && is_left
                })
            }
            (None, None) if real.starts_with(b"*") && numbers(&real).is_empty() => {
                let (real, played) = (parts(&real), parts(&played));
                let is_same = |it: (&String, &String)| match (it.0.parse(), it.1.parse()) {
                    // Numbers of slots are less than any time.
                    (Ok(real @ 1_000_i64..), Ok(played)) => is_near(real, played),
                    _ => it.0 == it.1,
                };
                real.len() == played.len() && real.iter().zip(&played).all(is_same)
            }
            (None, None) if real.starts_with(b"*") => {
                let (real, played) = (numbers(&real), numbers(&played));
                let is_drawn = words[1] == acquire_with_token::SCRIPT && real.first() == Some(&-5);
                // The second is a time. If two keys end at about the same time, either can be the last one.
                // The time shows that it is one of these.
                let is_one_of_two = [several::fence::SCRIPT, several::acquire::SCRIPT]
                    .contains(&words[1])
                    && real.iter().chain(&played).all(|it| *it > 0);
                let is_alike = |place: usize| {
                    let (real, played) = (real[place], played[place]);
                    real == played
                        || place == 1 && !is_drawn && is_near(real, played)
                        || place == 0 && is_one_of_two
                };
                let is_array = !real.is_empty() && real.len() == played.len();
                is_array && (0..real.len()).all(is_alike)
            }
            // The server decides how a refusal is worded. The library uses only its first word.
            _ if real.starts_with(b"-") && (self.refusal.is_some() || product().is_before_7()) => {
                code(&real) == code(&played) || is_wrapped(&real, code(&played))
            }
            _ => real == played,
        };
        let (real, played) = (String::from_utf8_lossy(&real), String::from_utf8_lossy(&played));
        let refusal = self.refusal;
        assert!(is_same, "{words:?} ({refusal:?}): {real:?} is real, and {played:?} is played");
    }

    fn now_ms(&self) -> i64 {
        self.began.elapsed().as_millis() as i64
    }

    /// The reply of the real server, unchanged.
    pub(super) fn ask(&mut self, words: &[&str]) -> Vec<u8> {
        let mut request = format!("*{}\r\n", words.len());
        for word in words {
            request.push_str(&format!("${}\r\n{word}\r\n", word.len()));
        }
        self.real.write_all(request.as_bytes()).expect("it listens");
        let (mut reply, mut room) = (Vec::new(), [0; 4096]);
        while !is_whole(&reply) {
            let read = self.real.read(&mut room).expect("it answers");
            assert!(read > 0, "it has closed the connection");
            reply.extend_from_slice(&room[..read]);
        }
        reply
    }
}

/// A connection that listens to the channel.
fn listen(server: &Server, password: Option<&str>) -> TcpStream {
    let mut listener = TcpStream::connect(server.address()).expect("it is up");
    listener.set_read_timeout(Some(Duration::from_secs(20))).expect("it can be set");
    let log_in = password.map_or(String::new(), |it| format!("AUTH {it}\r\n"));
    let request = format!("{log_in}SUBSCRIBE {THERE}\r\n");
    listener.write_all(request.as_bytes()).expect("it listens");
    let (mut said, mut byte) = (Vec::new(), [0]);
    while !said.ends_with(b":1\r\n") {
        listener.read_exact(&mut byte).expect("it answers");
        said.push(byte[0]);
    }
    listener
}

/// Whether a number is the time of a clock, or that time negated.
fn shown(word: &str) -> Option<&'static str> {
    let ms: i64 = word.parse().ok().filter(|_| word.len() < 20)?;
    match ms {
        PLAYED_MS.. => Some("now"),
        _ if ms <= -PLAYED_MS => Some("-now"),
        _ => None,
    }
}
