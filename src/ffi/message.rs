//! Messages that C may read at any time.

use std::collections::BTreeSet;
use std::ffi::{CStr, CString, c_char};
use std::sync::Arc;

use crate::fork::ForkMutex;

/// The maximum size of a message in bytes, including its NUL.
const CAPACITY: usize = 4096;

/// The maximum size in bytes of the different messages that are kept for one manager, and the maximum once
/// times are left out of new messages. Most messages differ because of their times.
const KEPT_MAX: usize = 1024 * 1024;
const KEPT_WITHOUT_TIMES_MAX: usize = 2 * KEPT_MAX;

/// The approximate overhead of a kept message, in bytes.
const OVERHEAD: usize = 64;

/// The message when there is no room for more different messages.
static NO_ROOM: &CStr =
    c"the manager keeps too many different messages: use RedLock_CopyErrorMessage";

/// The message of a manager. Threads share a manager, so one thread may read the message while another call
/// sets a new one, and the manager cannot know how long a pointer is used. A message that was handed out is
/// therefore never changed, and stays until the manager is freed. Equal messages are kept once. Messages that
/// nobody asked for are not kept.
#[derive(Default)]
pub(super) struct Message {
    state: ForkMutex<State>,
}

#[derive(Default)]
struct State {
    words: CString,
    /// All messages that were handed out. `Arc`, because the set may move its elements while a thread reads
    /// the text.
    kept: BTreeSet<Arc<CStr>>,
    bytes: usize,
}

impl Message {
    pub(super) fn set(&self, words: &str) {
        // A child that was forked while its parent used the message does without it.
        let Ok(mut state) = self.state.lock() else { return };
        state.words = c_string(cut(words));
    }

    /// Returns a copy of the current message.
    pub(super) fn words(&self) -> CString {
        let in_use =
            |_| c"the message is lost: the parent process was using it when it forked".to_owned();
        self.state.lock().map_or_else(in_use, |state| state.words.clone())
    }

    /// Returns the current message. The pointer is valid for as long as the manager lives.
    pub(super) fn as_ptr(&self) -> *const c_char {
        match self.state.lock() {
            Ok(mut state) => state.hand_out(),
            Err(_) => {
                c"the message is lost: the parent process was using it when it forked".as_ptr()
            }
        }
    }
}

impl State {
    fn hand_out(&mut self) -> *const c_char {
        let words = std::mem::take(&mut self.words);
        let kept = self.keep(&words, KEPT_MAX).or_else(|| {
            let words = c_string(&without_times(&words.to_string_lossy()));
            self.keep(&words, KEPT_WITHOUT_TIMES_MAX)
        });
        self.words = words;
        kept.unwrap_or(NO_ROOM.as_ptr())
    }

    /// Returns the kept copy of the message, or None if it is not kept and there is no room for it.
    fn keep(&mut self, words: &CStr, bytes_max: usize) -> Option<*const c_char> {
        if words.is_empty() {
            return Some(c"".as_ptr());
        }
        if let Some(kept) = self.kept.get(words) {
            return Some(kept.as_ptr());
        }
        let bytes = self.bytes + words.count_bytes() + OVERHEAD;
        if bytes > bytes_max {
            return None;
        }
        let kept: Arc<CStr> = words.into();
        let pointer = kept.as_ptr();
        self.bytes = bytes;
        self.kept.insert(kept);
        Some(pointer)
    }
}

/// Returns as much of the message as fits, in whole characters.
fn cut(words: &str) -> &str {
    let words = without_nul(words);
    let fits = words.char_indices().map(|(at, it)| at + it.len_utf8());
    let length = fits.take_while(|&end| end < CAPACITY).last().unwrap_or(0);
    &words[..length]
}

/// Turns "timed out after 51 ms" into "timed out after some ms".
fn without_times(words: &str) -> String {
    let mut rest = words.split(' ').peekable();
    let mut coarse = Vec::new();
    while let Some(word) = rest.next() {
        let is_time = rest.peek().is_some_and(|next| next.starts_with("ms"));
        let number = word.trim_start_matches(|letter: char| !letter.is_ascii_digit());
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        match is_time && is_number {
            true => coarse.push(word.replace(number, "some")),
            false => coarse.push(word.to_owned()),
        }
    }
    coarse.join(" ")
}

/// Returns `words` as a C string. Messages contain no NUL. If one did, the string would end there.
pub(super) fn c_string(words: &str) -> CString {
    CString::new(without_nul(words)).unwrap_or_default()
}

fn without_nul(words: &str) -> &str {
    words.split('\0').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Message {
        /// Returns what C reads now, and its address.
        fn said(&self) -> (*const c_char, String) {
            let pointer = self.as_ptr();
            (pointer, self.read(pointer))
        }

        fn read(&self, pointer: *const c_char) -> String {
            let state = self.state.lock().unwrap();
            let mut texts = state.kept.iter().map(|it| &**it).chain([NO_ROOM]);
            let text = texts.find(|it| it.as_ptr() == pointer).unwrap_or_default();
            text.to_str().expect("whole characters").to_owned()
        }
    }

    fn kept(words: &str) -> String {
        let message = Message::default();
        message.set("the words before");
        message.set(words);
        message.said().1
    }

    #[test]
    fn a_long_message_is_cut_and_ends_with_a_nul() {
        for fits in ["", "some words", &"x".repeat(CAPACITY - 1)] {
            assert_eq!(kept(fits), fits);
        }
        for length in [CAPACITY, CAPACITY + 1, 2 * CAPACITY] {
            assert_eq!(kept(&"x".repeat(length)), "x".repeat(CAPACITY - 1));
        }
        // No character is cut in two.
        assert_eq!(kept(&"\u{e9}".repeat(CAPACITY)).len(), CAPACITY - 2);
        assert_eq!(kept("up to here\0and no further"), "up to here");
    }

    #[test]
    fn a_returned_message_never_changes() {
        let message = Message::default();
        let mut seen = Vec::new();
        for number in 0..1_000 {
            let words = format!("the words of call {}", number % 100);
            message.set(&words);
            seen.push((message.as_ptr(), words));
            message.set("");
            assert_eq!(message.said().1, "");
        }
        assert!(seen.iter().all(|(pointer, words)| message.read(*pointer) == *words));
        assert_eq!(seen[7].0, seen[107].0, "equal words are kept once");
        assert_eq!(message.state.lock().unwrap().kept.len(), 100);
    }

    #[test]
    fn unread_messages_are_not_kept() {
        let message = Message::default();
        (0..1_000).for_each(|it| message.set(&format!("the words of call {it}")));
        assert!(message.state.lock().unwrap().kept.is_empty());
    }

    #[test]
    fn kept_messages_are_bounded_and_lose_times_first() {
        let message = Message::default();
        let long = "x".repeat(3_000);
        let timed = |number: usize| format!("{long}: timed out after {number} ms");
        let say = |words: &str| {
            message.set(words);
            message.said()
        };
        let (first, _) = say(&timed(0));
        let many = KEPT_MAX / long.len() + 1;
        (0..many).for_each(|it| drop(say(&timed(it))));
        assert_eq!(say(&timed(many)).1, format!("{long}: timed out after some ms"));
        for number in 0..many {
            let words = format!("{long}: number {number}");
            let (_, said) = say(&words);
            assert!(said == words || said == NO_ROOM.to_str().unwrap(), "{said}");
        }
        assert_eq!(say(&format!("{long} and else")).1, NO_ROOM.to_str().unwrap());
        assert_eq!(say(&timed(0)), (first, timed(0)), "what is there is said still");
        assert!(message.state.lock().unwrap().bytes <= KEPT_WITHOUT_TIMES_MAX);
    }

    #[test]
    fn only_times_are_left_out() {
        let words =
            "2 of 5 servers, h:6379 held by another client (18211 ms left), timed out after 50 ms";
        let coarse =
            "2 of 5 servers, h:6379 held by another client (some ms left), timed out after some ms";
        assert_eq!(without_times(words), coarse);
        assert_eq!(without_times("count is -5, but"), "count is -5, but");
    }
}
