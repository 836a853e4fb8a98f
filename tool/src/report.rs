//! What happens, told on standard error: standard output belongs to the program that is run.

use serde_json::Value;

use crate::cli::Common;
use crate::output;

/// Who is told.
#[derive(Clone, Copy)]
pub(crate) struct Report {
    json: bool,
    verbose: bool,
}

impl Report {
    pub(crate) fn new(common: &Common) -> Self {
        Self { json: common.json, verbose: common.verbose }
    }

    /// Tells what happened: in words with --verbose, and in any case as JSON with --json.
    pub(crate) fn tell(self, words: &str, event: &Value) {
        if self.json {
            output::tell(event);
        } else if self.verbose {
            output::tell_words(words);
        }
    }

    /// The same of what nobody should miss.
    pub(crate) fn warn(self, words: &str, event: &Value) {
        Self { verbose: true, ..self }.tell(words, event);
    }
}
