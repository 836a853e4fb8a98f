//! Reports events on standard error: standard output belongs to the program that is run.

use serde_json::Value;

use crate::cli::Common;
use crate::output;

/// Which reports the user wants.
#[derive(Clone, Copy)]
pub(crate) struct Report {
    json: bool,
    verbose: bool,
}

impl Report {
    pub(crate) fn new(common: &Common) -> Self {
        Self { json: common.json, verbose: common.verbose }
    }

    /// Reports an event: in words with --verbose, and always as JSON with --json.
    pub(crate) fn tell(self, words: &str, event: &Value) {
        if self.json {
            output::tell(event);
        } else if self.verbose {
            output::tell_words(words);
        }
    }

    /// Reports an event that the user must not miss, also without --verbose.
    pub(crate) fn warn(self, words: &str, event: &Value) {
        Self { verbose: true, ..self }.tell(words, event);
    }
}
