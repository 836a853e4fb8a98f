//! The log lines about one server. Each event has a line, but events of one kind have at most one line per
//! second, however often they happen. The omitted lines are counted.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::protocol::command::{Answer, Kind};
use crate::protocol::failure::Failure;
use crate::protocol::log_line::{Level, LogLine};
use crate::protocol::moment::Moment;

/// The minimum time between two lines about events of one kind.
const APART_MS: i64 = 1_000;

/// What happened to a server. Equal events are of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Connected,
    NotConnected,
    Lost,
    /// The server lost its memory, and has no vote for now.
    Forgot,
    /// A loss of the server's memory is not noticed.
    Unguarded,
    /// What the server grants does not outlive its process any more.
    LogsLess,
    /// The server has lost the numbers of its fencing tokens, or has them again.
    Numbers,
    /// The server's clock was set.
    ClockSet,
    /// The server owes an answer for so long that a second connection is opened.
    Overdue,
    /// The second connection is up.
    Replaced,
    AnswersAgain,
    /// The server answers a kind of request with an error.
    Refuses,
    WorksAgain,
}

pub(crate) struct EventLog {
    server: String,
    /// The error in the server's answer to the last request of each kind, if it was an error.
    refused: BTreeMap<Kind, Failure>,
    told: Vec<Logged>,
    /// Counts the events.
    clock: u64,
    /// The number of omitted lines that were not reported yet.
    left_out: usize,
}

/// A kind of event that was logged.
struct Logged {
    event: Event,
    /// Which error the server answers, as a number; 0 for other events, and for errors that are not known. Not a part of
    /// `Event`: a comparison of enums with data reads bytes that were never set, which memory checkers report.
    error: u64,
    at: Moment,
    /// How many of its lines were omitted since then, the last of them, and when that was, as a value of the
    /// event counter.
    left_out: usize,
    last: LogLine,
    clock: u64,
}

impl EventLog {
    pub(crate) fn new(server: String) -> Self {
        Self { server, refused: BTreeMap::new(), told: Vec::new(), clock: 0, left_out: 0 }
    }

    /// Logs when the server begins or stops answering a kind of request with an error. A success with another
    /// kind of request says nothing about that, because a replica refuses no questions.
    #[inline]
    pub(crate) fn note_answer(
        &mut self,
        kind: Kind,
        answer: &Answer,
        now: Moment,
        lines: &mut Vec<LogLine>,
    ) {
        if matches!(answer, Answer::Failed(_)) || !self.refused.is_empty() {
            self.note_refusal(kind, answer, now, lines);
        }
    }

    fn note_refusal(&mut self, kind: Kind, answer: &Answer, now: Moment, lines: &mut Vec<LogLine>) {
        match answer {
            // Logged when the connection begins.
            Answer::Failed(failure) if failure.is_of_memory() => {}
            Answer::Failed(failure) if self.refused.get(&kind) == Some(failure) => {}
            Answer::Failed(failure) => {
                let is_known = self.refused.values().any(|known| known == failure);
                self.refused.insert(kind, failure.clone());
                if !is_known {
                    let line = (Level::Warning, failure.to_string());
                    let error = failure.refusal().map_or(0, |it| number_of(&it.to_string()));
                    self.say_of((Event::Refuses, error), line, now, lines);
                }
            }
            _ => {
                let Some(failure) = self.refused.remove(&kind) else { return };
                if !failure.is_of_the_kind() {
                    self.refused.retain(|_, it| *it != failure);
                }
                let words = match self.refused.first_key_value() {
                    Some((other, failure)) => {
                        format!("{kind} works again, {other} does not: {failure}")
                    }
                    None => "works again".to_owned(),
                };
                self.say(Event::WorksAgain, (Level::Info, words), now, lines);
            }
        }
    }

    /// Logs a line, unless a line of the same kind was logged less than a second ago. `line` does not contain
    /// the server's name.
    pub(crate) fn say(
        &mut self,
        event: Event,
        line: LogLine,
        now: Moment,
        lines: &mut Vec<LogLine>,
    ) {
        self.say_of((event, 0), line, now, lines);
    }

    fn say_of(
        &mut self,
        (event, error): (Event, u64),
        line: LogLine,
        now: Moment,
        lines: &mut Vec<LogLine>,
    ) {
        self.clock += 1;
        let clock = self.clock;
        let (level, words) = line;
        let place =
            self.told.iter().position(|it| it.event == event && it.error == error).unwrap_or_else(
                || {
                    let (at, last) = (Moment::from_nanos(i64::MIN), (level, String::new()));
                    self.told.push(Logged { event, error, at, left_out: 0, last, clock });
                    self.told.len() - 1
                },
            );
        let told = &mut self.told[place];
        told.clock = clock;
        if now.ms_since(told.at) < APART_MS {
            told.left_out += 1;
            told.last = (level, words);
            self.left_out += 1;
            return;
        }
        told.at = now;
        let left_out = std::mem::take(&mut told.left_out);
        self.left_out -= left_out;
        // Omitted lines about other kinds of events came before this one.
        self.catch_up(now, lines);
        lines.push((level, format!("{}: {words}{}", self.server, more(left_out, false))));
    }

    /// Logs the omitted lines, as soon as the last line of the same kind is a second old. They come in the
    /// order in which the events last happened, so the last line shows the current state. Called often.
    #[inline]
    pub(crate) fn catch_up(&mut self, now: Moment, lines: &mut Vec<LogLine>) {
        if self.left_out > 0 {
            self.log_what_was_left_out(now, lines);
        }
    }

    fn log_what_was_left_out(&mut self, now: Moment, lines: &mut Vec<LogLine>) {
        let is_due = |told: &&mut Logged| told.left_out > 0 && now.ms_since(told.at) >= APART_MS;
        let mut due: Vec<&mut Logged> = self.told.iter_mut().filter(is_due).collect();
        due.sort_unstable_by_key(|told| told.clock);
        for told in due {
            told.at = now;
            let left_out = std::mem::take(&mut told.left_out);
            self.left_out -= left_out;
            let more = more(left_out - 1, told.clock < self.clock);
            let words = std::mem::take(&mut told.last.1);
            lines.push((told.last.0, format!("{}: {words}{more}", self.server)));
        }
    }
}

/// The same number for the same words.
fn number_of(words: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    words.hash(&mut hasher);
    hasher.finish()
}

/// The words for so many omitted lines, and whether another event has happened since.
fn more(left_out: usize, is_past: bool) -> String {
    let mut words = String::new();
    let late = if is_past { ", logged late" } else { "" };
    let _ = match left_out {
        0 if is_past => write!(words, " (logged late)"),
        0 => Ok(()),
        _ => write!(words, " (and {left_out} more like it{late})"),
    };
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::refusal::Refusal;

    const NOW: Moment = Moment::from_nanos(1_000_000_000_000);
    use crate::protocol::refusal::Lacks;

    const OOM: Refusal = Refusal::OutOfMemory;
    const NOPERM: Refusal =
        Refusal::NoPermission { lacks: Lacks::Command("set"), in_script: false };

    /// The log lines about one server, with simulated time.
    struct Played {
        event_log: EventLog,
        now: Moment,
        lines: Vec<LogLine>,
    }

    impl Played {
        fn new() -> Self {
            Self { event_log: EventLog::new("s".to_owned()), now: NOW, lines: Vec::new() }
        }

        fn refuses(&mut self, kind: Kind, error: Refusal) {
            let answer = Answer::Failed(Failure::Refused(error));
            self.event_log.note_answer(kind, &answer, self.now, &mut self.lines);
        }

        fn does(&mut self, kind: Kind) {
            self.event_log.note_answer(kind, &Answer::Done, self.now, &mut self.lines);
        }

        /// Lets so much time pass and then checks the server.
        fn after_ms(&mut self, ms: i64) {
            self.now = self.now.plus_ms(ms);
            self.event_log.catch_up(self.now, &mut self.lines);
        }

        fn told(&mut self) -> Vec<String> {
            self.lines.drain(..).map(|it| it.1).collect()
        }
    }

    #[test]
    fn a_success_says_nothing_about_other_request_kinds() {
        let mut played = Played::new();
        for _ in 0..10_000 {
            played.does(Kind::Acquiring);
            played.does(Kind::Inspecting);
            played.refuses(Kind::Releasing, NOPERM);
            played.after_ms(1);
        }
        // Another kind of request is refused with the same error, too. That is not reported.
        played.refuses(Kind::Extending, NOPERM);
        assert_eq!(played.told(), [format!("s: {NOPERM}")]);
        played.does(Kind::Releasing);
        let still = format!("s: releasing locks works again, extending locks does not: {NOPERM}");
        assert_eq!(played.told(), [still]);
        played.after_ms(1_000);
        played.does(Kind::Extending);
        assert_eq!(played.told(), ["s: works again"]);
    }

    /// An error that concerns the whole server, and not a command or key, ends for all kinds of requests at
    /// once.
    #[test]
    fn a_server_wide_error_ends_for_all_request_kinds() {
        let mut played = Played::new();
        played.refuses(Kind::Acquiring, OOM);
        played.refuses(Kind::Extending, OOM);
        played.does(Kind::Releasing);
        played.does(Kind::Acquiring);
        assert_eq!(played.told(), [&*format!("s: {OOM}"), "s: works again"]);
        played.does(Kind::Extending);
        assert!(played.told().is_empty());
    }

    #[test]
    fn alternating_errors_are_one_line_each_per_second() {
        let (mut played, other) = (Played::new(), Refusal::Busy);
        let (mut told, mut counted) = (Vec::new(), 0);
        for nth in 0..10_000 {
            played.refuses(Kind::Acquiring, if nth % 2 == 0 { OOM } else { other });
            played.after_ms(1);
        }
        played.after_ms(1_000);
        for line in played.told() {
            let count = line.split("(and ").nth(1).and_then(|it| it.split(' ').next());
            counted += 1 + count.map_or(0, |it| it.parse::<usize>().unwrap());
            told.push(line);
        }
        assert!((18..=24).contains(&told.len()), "{told:#?}");
        assert_eq!(counted, 10_000, "each is told or counted: {told:#?}");
        assert_eq!(told[..2], [format!("s: {OOM}"), format!("s: {other}")]);
        assert!(told[2].starts_with(&format!("s: {OOM} (and 49")), "{told:#?}");
        assert!(told.last().unwrap().starts_with(&format!("s: {other} (and ")), "{told:#?}");
        assert!(played.event_log.told.len() == 2 && played.event_log.left_out == 0);
    }

    #[test]
    fn the_last_line_has_the_current_state() {
        let mut played = Played::new();
        for _ in 0..3 {
            played.refuses(Kind::Acquiring, OOM);
            played.does(Kind::Acquiring);
        }
        assert_eq!(played.told().len(), 2);
        played.after_ms(999);
        assert!(played.told().is_empty());
        played.after_ms(1);
        let late = [
            format!("s: {OOM} (and 1 more like it, logged late)"),
            "s: works again (and 1 more like it)".to_owned(),
        ];
        assert_eq!(played.told(), late);
        played.after_ms(10_000);
        assert!(played.told().is_empty());
        // One line is omitted, and then another event happens.
        played.refuses(Kind::Acquiring, OOM);
        played.refuses(Kind::Acquiring, NOPERM);
        played.refuses(Kind::Acquiring, OOM);
        played.does(Kind::Acquiring);
        assert_eq!(
            played.told(),
            [format!("s: {OOM}"), format!("s: {NOPERM}"), "s: works again".into()]
        );
        played.after_ms(1_000);
        assert_eq!(played.told(), [format!("s: {OOM} (logged late)")]);
    }

    #[test]
    fn a_flapping_connection_is_logged_once_a_second() {
        let mut played = Played::new();
        for nth in 0..1_000 {
            let lost = (Level::Warning, format!("connection lost: after {nth} ms"));
            played.event_log.say(Event::Lost, lost, played.now, &mut played.lines);
            let again = (Level::Info, "connected again".to_owned());
            played.event_log.say(Event::Connected, again, played.now, &mut played.lines);
            played.after_ms(10);
        }
        let told = played.told();
        assert!((18..=22).contains(&told.len()), "{told:#?}");
    }
}
