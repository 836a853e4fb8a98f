//! The scripts that were sent with their text, and the hashes by which they are sent after that.

use std::cell::RefCell;

thread_local! {
    /// In the order in which they were first seen, whichever client sent them.
    static SCRIPTS: RefCell<Vec<Seen>> = const { RefCell::new(Vec::new()) };
}

struct Seen {
    text: &'static [u8],
    hash: String,
}

/// The numbers of the scripts that a server has been sent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cache(Vec<usize>);

/// The number of a script that is sent with its text.
fn number_of(text: &[u8]) -> usize {
    SCRIPTS.with_borrow_mut(|all| {
        all.iter().position(|it| it.text == text).unwrap_or_else(|| {
            let hash = redis::Script::new(&String::from_utf8_lossy(text)).get_hash().to_owned();
            // There are only as many as the library has.
            all.push(Seen { text: Box::leak(text.into()), hash });
            all.len() - 1
        })
    })
}

/// The number of the script that has this hash, and its text.
fn find(hash: &[u8]) -> Option<(usize, &'static [u8])> {
    SCRIPTS.with_borrow(|all| {
        let number = all.iter().position(|it| it.hash.as_bytes() == hash)?;
        Some((number, all[number].text))
    })
}

/// The text of the script that a client means, whether it is sent or named by its hash.
pub(crate) fn text_of<'a>(command: &[u8], word: &'a [u8]) -> Option<&'a [u8]> {
    match command {
        b"EVAL" => {
            number_of(word);
            Some(word)
        }
        b"EVALSHA" => find(word).map(|it| it.1),
        _ => None,
    }
}

impl Cache {
    /// The server is sent this script with its text.
    pub(crate) fn learn(&mut self, text: &[u8]) {
        let number = number_of(text);
        if !self.0.contains(&number) {
            self.0.push(number);
        }
    }

    /// The text of the script with this hash, if the server has it.
    pub(crate) fn text(&self, hash: &[u8]) -> Option<&'static [u8]> {
        find(hash).filter(|(number, _)| self.0.contains(number)).map(|it| it.1)
    }

    /// `SCRIPT FLUSH`, or a restart.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

/// Replaces the hash of a script with its text.
pub(crate) fn with_text(words: &mut [Vec<u8>]) {
    let [name, word, ..] = words else { return };
    if let Some(text) = text_of(name, word) {
        (*name, *word) = (b"EVAL".to_vec(), text.to_vec());
    }
}
