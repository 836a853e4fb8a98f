//! The cases in which two clients may hold one lock although the guard is on: what `docs/guard.md` says that
//! the guard does not see. Each is one function, beside the sentence of that page. Nothing else is excused.
//!
//! A manager takes a lock from another client if servers that granted that lock have lost it, and grant it
//! again. It must not count such a server if it could know of one of the losses. What it could know is what
//! it was told in replies that it has read, also those behind requests that were refused.

use std::{mem, str};

use crate::schedules::promises::Promise;
use crate::schedules::records::{HeldLock, SERVERS_MAX};
use crate::schedules::schedule::Life;
use crate::world::clocks::MS;
use crate::world::commands::NOTE;
use crate::world::store::Deed;
use crate::world::{START, World};

/// A server that shows so often that it is a primary cannot have been a replica in between. As in
/// `src/protocol/conn/guard.rs`.
const ROLE: i64 = 50 * MS;

/// How long after its first use a server may be taken for a new one: two seconds, and the time in which a
/// client connects.
const FIRST_USE: i64 = 2_500 * MS;

/// What does not hold where a server changes its life: keys come back with data that is brought back, and
/// calls wait for servers that must wait until their votes count.
pub(crate) const WAIVED: [Promise; 5] = [
    Promise::LostStaysLost,
    Promise::FailedIsReleased,
    Promise::LockAgain,
    Promise::TrueUnreachable,
    Promise::NotForgotten,
];

/// What a note says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Memo {
    process: String,
    pub(crate) generation: i64,
    life: String,
    longest_ms: i64,
    is_logged: bool,
    /// How often clients had written the server's note.
    writes: i64,
}

/// Something that a client was told of a server's memory.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    /// When the server told it.
    at: i64,
    what: Topic,
}

#[derive(Clone, Debug)]
enum Topic {
    Note(Option<Memo>),
    /// Whether it was promoted.
    Role,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The clock was set forward.
    Step,
    /// The data was lost, all of it or a part.
    Emptied,
    /// Other data took its place.
    Live(Life),
}

/// A server may have lost locks.
#[derive(Clone, Debug)]
pub(crate) struct Loss {
    at: i64,
    cause: Cause,
    before: Option<Memo>,
    after: Option<Memo>,
    /// Whether the data counts as that of the process that has it: it is its own, or the process is durable
    /// and so is the data.
    may_pass: bool,
    /// For a demotion: when the server was promoted again.
    over_at: i64,
    /// When it forgot its promotion.
    forgot_at: i64,
    /// When it was restarted after that. Its new process shows nothing of what it was before.
    restarted_at: i64,
}

/// A server has lost a lock of one client, and grants it to another.
struct Doubt<'a> {
    world: &'a World,
    loss: &'a Loss,
    client: usize,
    manager: usize,
    server: usize,
    granted_at: i64,
    /// The TTL that the second client asked for.
    ttl_ms: i64,
    /// When the second client was told that it holds the lock.
    told_at: i64,
}

/// The name of a hole, whether it is one, and the words of `docs/guard.md`.
type Hole = (&'static str, fn(&Doubt<'_>) -> bool, &'static str);

const HOLES: [Hole; 14] = [
    (
        "a rewritten note",
        |it| it.is_of_rewritten_note(),
        "If such clients rewrite the older note as often as the later one was, nobody can tell.",
    ),
    (
        "an older note",
        |it| it.is_of_older_note(),
        "Managers that have seen a later note do not believe it. A client that has never seen one cannot know, until such a manager has told the server.",
    ),
    (
        "the same note",
        |it| it.is_of_same_note(),
        "A dataset with the *same* note as the lost one is not seen by anybody.",
    ),
    (
        "a dataset for a moment",
        |it| it.is_of_dataset_for_a_moment(),
        "A lock is granted in one dataset, and another one takes its place before the next command reads the note.",
    ),
    (
        "a promotion that was forgotten",
        |it| it.is_of_forgotten_promotion(),
        "A copy of a primary is promoted, and forgets that (`repl-backlog-ttl`, one hour by default) before any client has looked at it.",
    ),
    (
        "a replica for a moment",
        |it| it.is_of_moment(),
        "A primary that becomes a replica, gets the other server's data and is promoted again within 50 ms between two locks of a client is not seen by that client.",
    ),
    (
        "a request on its way",
        |it| it.is_on_its_way(),
        "Nor is one whose whole change happens while a request of that client is on its way.",
    ),
    (
        "an old log",
        |it| it.is_of_old_log(),
        "`CONFIG SET appendonly no`, a lock, and a restart with the old log or an old dump, while no client connects in between.",
    ),
    (
        "a durable copy",
        |it| it.is_of_copy(),
        "So does a durable copy that is started as a primary: it looks like the primary that it copied.",
    ),
    (
        "first use",
        |it| it.is_of_first_use(),
        "Servers are flushed within seconds of their first use, or become replicas of empty servers and are restarted.",
    ),
    (
        "the longest TTL",
        |it| it.is_of_longest_ttl(),
        "So many servers lose their locks and the note of the longest TTL that no server which a client can reach has that note.",
    ),
    (
        "a step that nobody saw",
        |it| it.is_of_unseen_step(),
        "**A clock that was set forward before a client first connected**, or by less than a round trip.",
    ),
    (
        "a loss that looks old",
        |it| it.is_of_loss_that_looks_old(),
        "Nor does a client that connects later see that a server lost its memory while its clock was behind, or before the clock was set forward.",
    ),
    (
        "a clock forward and back",
        |it| it.is_of_clock_forward_and_back(),
        "If the clock is ahead for half a second while the client is idle, keys expire, and nothing shows it afterwards.",
    ),
];

impl Memo {
    fn parse(text: &[u8], writes: i64) -> Option<Self> {
        let words: Vec<&str> = str::from_utf8(text).ok()?.split(' ').collect();
        let [_, process, generation, _, longest_ms, life, more @ ..] = &words[..] else {
            return None;
        };
        Some(Self {
            process: (*process).to_owned(),
            generation: generation.parse().ok()?,
            life: (*life).to_owned(),
            longest_ms: longest_ms.parse().ok()?,
            is_logged: more.contains(&"a"),
            writes,
        })
    }

    /// Whether a manager that has seen this one must not believe the other one.
    fn is_later_than(&self, other: &Self) -> bool {
        let is_about_it = self.process == other.process || self.life == other.life;
        let is_another = self.generation == other.generation && self.life != other.life;
        is_about_it && (self.generation > other.generation || is_another)
    }

    /// Whether the two say the same, perhaps of different processes.
    fn is_same_as(&self, other: &Self) -> bool {
        let text = (self.generation, self.longest_ms, &self.life);
        text == (other.generation, other.longest_ms, &other.life)
    }
}

impl Doubt<'_> {
    /// What the manager was told by this server.
    fn told(&self) -> impl Iterator<Item = &Told> {
        let whose = (self.client, self.manager, self.server);
        self.world.known.get(&whose).into_iter().flatten()
    }

    /// The note that was read behind the grant, if it is that of the data that came with the loss: nobody has
    /// marked the server since.
    fn unmarked(&self) -> Option<(&Memo, &Memo)> {
        let after = self.loss.after.as_ref().filter(|_| self.loss.may_pass)?;
        let behind = self.told().find_map(|it| match &it.what {
            Topic::Note(memo) if it.at >= self.granted_at => Some(memo.as_ref()),
            _ => None,
        });
        behind.flatten().filter(|it| it.life == after.life).map(|it| (after, it))
    }

    /// The notes that the manager was told before the loss.
    fn known(&self) -> impl Iterator<Item = &Memo> {
        self.told().filter(|it| it.at < self.loss.at).filter_map(|it| match &it.what {
            Topic::Note(memo) => memo.as_ref(),
            Topic::Role => None,
        })
    }

    /// Whether this manager may believe the note after the loss: it has never seen a later one.
    fn is_plausible(&self) -> bool {
        self.unmarked().is_some_and(|(after, _)| !self.known().any(|it| it.is_later_than(after)))
    }

    /// Clients that did not know better have rewritten the older note. It is later now than what the manager
    /// knows, or the same.
    fn is_of_rewritten_note(&self) -> bool {
        let is_rewritten = |(after, behind): (&Memo, &Memo)| {
            let passes = |it: &Memo| !it.is_later_than(behind);
            let is_other = |it: &Memo| it.generation == behind.generation && !it.is_same_as(behind);
            let written = behind.writes - after.writes;
            let is_written = written > 0 && behind.generation == after.generation + written;
            is_written && self.known().all(|it| passes(it) && !is_other(it))
        };
        matches!(self.loss.cause, Cause::Live(_)) && self.unmarked().is_some_and(is_rewritten)
    }

    /// Whether the data was replaced while nobody changed the server's role.
    fn is_of_brought_back(&self) -> bool {
        matches!(self.loss.cause, Cause::Live(Life::Swap | Life::RestartOld))
    }

    fn is_of_same_note(&self) -> bool {
        let is_same = self.loss.before.as_ref().zip(self.loss.after.as_ref());
        let is_same = is_same.is_some_and(|(before, after)| before.is_same_as(after));
        self.is_of_brought_back() && is_same && self.is_plausible()
    }

    fn is_of_older_note(&self) -> bool {
        self.is_of_brought_back() && self.is_plausible()
    }

    /// The note that was read behind the grant is that of other data, which came after the grant.
    fn is_of_dataset_for_a_moment(&self) -> bool {
        let behind =
            self.told().find(|it| matches!(it.what, Topic::Note(_)) && it.at >= self.granted_at);
        let Some(Told { at: read_at, what: Topic::Note(Some(memo)) }) = behind else {
            return false;
        };
        let losses = self.world.servers[self.server].losses.iter();
        let since = losses.filter(|it| (self.granted_at + 1..=*read_at).contains(&it.at));
        let mut came = since.filter(|it| it.may_pass && matches!(it.cause, Cause::Live(_)));
        let is_its = |it: &Memo| it.life == memo.life;
        came.next_back().and_then(|it| it.after.as_ref()).is_some_and(is_its)
            && !self.known().any(|it| it.is_later_than(memo))
    }

    fn is_of_replica(&self) -> bool {
        matches!(self.loss.cause, Cause::Live(Life::Demote { .. } | Life::Promote { .. }))
    }

    /// When the manager first saw the server's role after the loss. It may have been a replica then.
    fn looked_at(&self) -> i64 {
        let is_look = |it: &&Told| matches!(it.what, Topic::Role) && it.at >= self.loss.at;
        self.told().find(is_look).map_or(self.granted_at, |it| it.at)
    }

    fn is_of_forgotten_promotion(&self) -> bool {
        self.is_of_replica() && self.loss.forgot_at <= self.looked_at() && self.is_plausible()
    }

    fn is_of_demotion(&self) -> bool {
        matches!(self.loss.cause, Cause::Live(Life::Demote { .. })) && self.is_plausible()
    }

    fn is_of_moment(&self) -> bool {
        self.is_of_demotion() && self.loss.over_at - self.loss.at <= ROLE
    }

    /// Some acquire of the manager was written before the server was promoted again, and carried out after that.
    fn is_on_its_way(&self) -> bool {
        let over_at = self.loss.over_at;
        let is_one = self.world.records.tokens.iter().any(|it| {
            (it.client, it.taken_by()) == (self.client, self.manager)
                && self.written_at(it.offered_at[self.server]) < over_at
                && it.asked_on(self.server) >= over_at
        });
        self.is_of_demotion() && is_one
    }

    /// When a request was written that was sent at this time: the client may have been stopped in between.
    fn written_at(&self, sent_at: i64) -> i64 {
        let stops = &self.world.clients[self.client].stops;
        let stopped = stops.iter().find(|(_, until)| (*until..*until + MS).contains(&sent_at));
        stopped.map_or(sent_at, |(from, _)| *from)
    }

    fn is_of_old_log(&self) -> bool {
        self.loss.cause == Cause::Live(Life::RestartLog) && self.is_plausible()
    }

    fn is_of_copy(&self) -> bool {
        self.loss.cause == Cause::Live(Life::StartCopy) && self.is_plausible()
    }

    fn is_of_first_use(&self) -> bool {
        let lives = self.world.schedule.lives;
        let is_bare = matches!(
            self.loss.cause,
            Cause::Emptied | Cause::Live(Life::Swap | Life::RestartOld | Life::StartCopy)
        );
        // Without the restart, it shows that it was a replica, also after it has forgotten its promotion.
        let is_restarted = self.is_of_replica() && self.loss.restarted_at <= self.looked_at();
        let is_one = (is_bare || is_restarted) && self.loss.after.is_none();
        let used_at = self.world.used_at.unwrap_or(START);
        let is_soon = self.loss.at < used_at + FIRST_USE;
        lives.is_some_and(|it| it.are_new) && is_one && is_soon
    }

    /// The manager has waited for as long as the longest TTL that it was told of, or uses, and for three
    /// seconds at least.
    fn is_of_longest_ttl(&self) -> bool {
        let known = self.world.known.iter();
        let known = known.filter(|(whose, _)| (whose.0, whose.1) == (self.client, self.manager));
        let told = known.flat_map(|it| it.1).filter(|it| it.at <= self.granted_at);
        let told = told.filter_map(|it| match &it.what {
            Topic::Note(Some(memo)) => Some(memo.longest_ms),
            _ => None,
        });
        let longest_ms = told.max().unwrap_or(0).max(self.ttl_ms).max(3_000);
        let has_waited = self.loss.at + longest_ms * MS <= self.granted_at;
        has_waited && longest_ms < self.world.schedule.longest_ttl_ms()
    }

    /// No two readings of this manager show the step (`watch.rs`).
    fn is_of_unseen_step(&self) -> bool {
        let whose = (self.client, self.manager, self.server);
        let seen = self.world.watches.get(&whose).map_or(&[][..], |it| it.seen());
        let is_seen = seen.iter().any(|at| (self.loss.at..=self.told_at).contains(at));
        self.loss.cause == Cause::Step && !is_seen
    }

    /// The clock was set forward after the loss and before the manager first heard the server: the note shows
    /// a time that seems to be long ago.
    fn is_of_loss_that_looks_old(&self) -> bool {
        let clock = &self.world.servers[self.server].clock;
        let first = self.told().next().map_or(self.granted_at, |it| it.at);
        let is_forward = clock.was_set_forward_within(self.loss.at, first);
        self.loss.cause != Cause::Step && is_forward
    }

    fn is_of_clock_forward_and_back(&self) -> bool {
        let clock = &self.world.servers[self.server].clock;
        let is_back = clock.was_set_back_within(self.loss.at, self.granted_at);
        self.is_of_unseen_step() && is_back
    }

    /// The name of the hole that this is, if any.
    fn hole(&self) -> Option<&'static str> {
        HOLES.iter().rev().find(|(_, is_it, _)| is_it(self)).map(|it| it.0)
    }
}

/// Whether other data took the place of what this loss had left, before the manager was told anything of that.
fn is_hidden(loss: &Loss, losses: &[&Loss], told: &[Told]) -> bool {
    let is_told = |until: i64| told.iter().any(|it| (loss.at..=until).contains(&it.at));
    let mut later = losses.iter().filter(|it| it.at > loss.at);
    later.any(|it| matches!(it.cause, Cause::Live(_)) && !is_told(it.at))
}

impl World {
    pub(crate) fn note_of(&self, server: usize) -> Option<Memo> {
        let memory = self.servers[server].store.memory.as_ref()?;
        Memo::parse(memory.note.as_ref()?, memory.writes)
    }

    /// Something has happened to a server's data. Its note was this one before.
    pub(crate) fn note_loss(&mut self, server: usize, cause: Cause, before: Option<Memo>) {
        let (at, after) = (self.now, self.note_of(server));
        let Some(memory) = &self.servers[server].store.memory else { return };
        let may_pass = after.as_ref().is_some_and(|it| self.may_pass(server, it));
        let forgot_at = if memory.past.promotion.is_none() { at } else { i64::MAX };
        let restarted_at = i64::MAX;
        let loss =
            Loss { at, cause, before, after, may_pass, over_at: at, forgot_at, restarted_at };
        self.servers[server].losses.push(loss);
    }

    /// Whether this note counts as that of the process that has it.
    fn may_pass(&self, server: usize, it: &Memo) -> bool {
        let Some(memory) = &self.servers[server].store.memory else { return false };
        let is_durable = memory.past.is_logged && memory.past.promotion.is_none();
        it.process == memory.run_id() || it.is_logged && is_durable
    }

    /// The server was a replica, and is promoted again.
    pub(crate) fn note_promoted(&mut self, server: usize, shows: bool) {
        let is_it = |it: &&mut Loss| matches!(it.cause, Cause::Live(Life::Demote { .. }));
        if let Some(loss) = self.servers[server].losses.iter_mut().rfind(is_it) {
            (loss.over_at, loss.forgot_at) = (self.now, i64::MAX);
        }
        if !shows {
            // It has forgotten earlier promotions, too.
            self.note_promotion_forgotten(server);
        }
    }

    pub(crate) fn note_promotion_forgotten(&mut self, server: usize) {
        let mut losses = mem::take(&mut self.servers[server].losses);
        for loss in losses.iter_mut().filter(|it| it.forgot_at > self.now) {
            loss.forgot_at = self.now;
            loss.may_pass |= loss.after.as_ref().is_some_and(|it| self.may_pass(server, it));
        }
        self.servers[server].losses = losses;
    }

    pub(crate) fn note_restarted(&mut self, server: usize) {
        for loss in &mut self.servers[server].losses {
            loss.restarted_at = loss.restarted_at.min(self.now);
        }
    }

    /// A server has answered. What it tells of its memory ends after `end` bytes of what it sends now.
    pub(crate) fn note_told(
        &mut self,
        connection: usize,
        words: &[&[u8]],
        (reply, end): (&[u8], usize),
    ) {
        use crate::protocol::command::guard::MARK;
        use crate::protocol::command::identity::PROMOTION;

        if self.schedule.lives.is_none() || reply.first() == Some(&b'-') {
            return;
        }
        let server = self.connections[connection].server;
        let what = match words {
            [b"GETRANGE", name, ..] if **name == *NOTE => Topic::Note(self.note_of(server)),
            [b"EVAL", text, ..] if **text == *MARK.as_bytes() => Topic::Note(self.note_of(server)),
            [b"EVAL", text, ..] if **text == *PROMOTION.as_bytes() => Topic::Role,
            [b"INFO", b"replication"] => Topic::Role,
            _ => return,
        };
        let at = self.now;
        if matches!(words, [b"EVAL", ..]) && matches!(what, Topic::Note(_)) {
            self.used_at.get_or_insert(at);
        }
        let it = &mut self.connections[connection];
        let end = it.sent_back() + end;
        it.sight.told.push_back((end, Told { at, what }));
    }

    /// The client has read more bytes.
    pub(crate) fn note_heard(&mut self, connection: usize) {
        let it = &mut self.connections[connection];
        let whose = (it.client, it.manager, it.server);
        while let Some(told) = it.sight.next_told() {
            self.known.entry(whose).or_default().push(told);
        }
    }

    /// An attempt was carried out. Notes when the client had it to send.
    pub(crate) fn note_offered(&mut self, connection: usize, deed: &Deed<'_>) {
        let (Deed::Acquire { value, .. } | Deed::Move { value, .. }) = *deed else { return };
        let it = &self.connections[connection];
        let (server, offered_at) = (it.server, it.sight.sent_at());
        if let (Some(token), Some(at)) =
            (self.records.find(crate::world::store::tag(value)), offered_at)
        {
            token.offered_at[server] = at;
        }
    }

    /// If two clients hold one lock for what the guard cannot see: the name of the hole.
    pub(crate) fn excuse(&self, one: &HeldLock, two: &HeldLock) -> Option<&'static str> {
        // Either may have been granted first; servers can have granted them in different orders.
        self.excuse_of(one, two).or_else(|| self.excuse_of(two, one))
    }

    /// The hole through which `second` has its quorum beside `first`. The servers that may vote for it are
    /// those that have not lost the lock of `first`, and those that have lost it through a hole. Without the
    /// latter, it has no quorum.
    fn excuse_of(&self, first: &HeldLock, second: &HeldLock) -> Option<&'static str> {
        let (had, came) = (self.records.look(first.tag)?, self.records.look(second.tag)?);
        let (mut sound, mut holes) = (0, Vec::new());
        for server in 0..SERVERS_MAX {
            // Another slot of a semaphore is no vote.
            let granted_at = came.granted_on(server, second.slot, second.from);
            let Some(granted_at) = granted_at else { continue };
            match had.missing_since(server, first.slot, granted_at) {
                None => sound += 1,
                Some(since) => holes.extend(self.hole(server, (since, granted_at), second)),
            }
        }
        let quorum = self.clients[second.client].quorum();
        let is_excused = sound < quorum && sound + holes.len() >= quorum;
        holes.first().copied().filter(|_| is_excused)
    }

    /// The hole through which a server lost a lock between these times, if the manager could know of none of
    /// its losses.
    fn hole(
        &self,
        server: usize,
        (since, granted_at): (i64, i64),
        second: &HeldLock,
    ) -> Option<&'static str> {
        let token = self.records.look(second.tag)?;
        let (manager, ttl_ms) = (token.taken_by(), token.ttl_ms());
        let losses = self.servers[server].losses.iter();
        let losses: Vec<_> = losses.filter(|it| since < it.at && it.at <= granted_at).collect();
        let (client, told_at) = (second.client, second.from);
        let told = self.known.get(&(client, manager, server)).map_or(&[][..], Vec::as_slice);
        let seen = losses.iter().filter(|it| !is_hidden(it, &losses, told));
        let doubts = seen.map(|loss| {
            let whose =
                Doubt { world: self, loss, client, manager, server, granted_at, ttl_ms, told_at };
            whose.hole()
        });
        doubts.collect::<Option<Vec<_>>>()?.first().copied()
    }
}

/// The page says of each of them that two clients may hold one lock.
#[test]
fn each_hole_is_in_the_manual() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/guard.md"))
        .expect("docs/guard.md");
    let (_, page) = page.split_once("## What the guard does not see").expect("the section");
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    for (name, _, words) in HOLES {
        assert!(page.contains(words), "{name}: docs/guard.md is to say: {words}");
    }
}

#[test]
fn a_loss_is_hidden_if_new_data_came_before_any_news() {
    let loss = |at, cause| {
        let (before, after) = (None, None);
        let (may_pass, over_at, forgot_at, restarted_at) = (false, at, at, i64::MAX);
        Loss { at, cause, before, after, may_pass, over_at, forgot_at, restarted_at }
    };
    let told = |at| [Told { at, what: Topic::Role }];
    let (flush, swap) = (loss(10, Cause::Emptied), loss(20, Cause::Live(Life::Swap)));
    let both = [&flush, &swap];
    assert!(is_hidden(&flush, &both, &[]) && !is_hidden(&swap, &both, &[]));
    assert!(is_hidden(&flush, &both, &told(9)) && is_hidden(&flush, &both, &told(21)));
    assert!(!is_hidden(&flush, &both, &told(10)) && !is_hidden(&flush, &both, &told(20)));
    // What is left of a first loss is lost by a second one, and nothing takes its place.
    let again = loss(20, Cause::Emptied);
    assert!(!is_hidden(&flush, &[&flush, &again], &[]));
}
