//! Histories in files. A case has the logs of all its processes in one text:
//!
//! ```text
//! # What this is about.
//! # expect: rule: and the words that follow, in a bad one
//! [NAME]
//! the log of NAME
//! ```
//!
//! A line that ends with a backslash is torn there. A line `repeat COUNT STEP` repeats the previous line COUNT
//! times. Each copy's time is STEP nanoseconds later.

use std::fs;
use std::path::Path;

use crate::history::File;

pub(crate) struct Case {
    pub(crate) name: String,
    /// The words that the checker must report for this case.
    pub(crate) expected: Option<String>,
    pub(crate) files: Vec<File>,
}

impl Case {
    /// The cases in a directory of `tests/pure/histories`.
    pub(crate) fn all(directory: &str) -> Vec<Self> {
        let root =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pure/histories").join(directory);
        let entries = fs::read_dir(&root).expect("there are cases");
        let mut paths: Vec<_> = entries.map(|it| it.expect("an entry").path()).collect();
        paths.sort();
        paths.iter().map(|path| Self::read(path)).collect()
    }

    fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).expect("it can be read");
        let name = path.file_name().expect("it has a name").to_string_lossy().into_owned();
        let mut case = Self { name, expected: None, files: Vec::new() };
        for line in text.lines() {
            if let Some(words) = line.strip_prefix('#') {
                let expected = words.trim().strip_prefix("expect: ");
                case.expected = expected.map(str::to_owned).or(case.expected);
            } else if let Some(process) = line.strip_prefix('[') {
                let process = process.trim_end_matches(']').to_owned();
                case.files.push(File { process, bytes: Vec::new() });
            } else {
                let file = case.files.last_mut().expect("a line stands in a log");
                add(&mut file.bytes, line);
            }
        }
        case
    }
}

fn add(log: &mut Vec<u8>, line: &str) {
    if let Some(torn) = line.strip_suffix('\\') {
        log.extend(torn.as_bytes());
    } else if let Some(counts) = line.strip_prefix("repeat ") {
        let mut counts = counts.split(' ').map(|it| it.replace('_', "").parse::<i64>());
        let mut next = || counts.next().expect("a number").expect("a number");
        let (count, step) = (next(), next());
        let text = String::from_utf8_lossy(log).into_owned();
        let last = text.lines().next_back().expect("a line before");
        let (time, rest) = last.split_once(' ').expect("a time");
        let time: i64 = time.replace('_', "").parse().expect("a time");
        for number in 1..=count {
            log.extend(format!("{} {rest}\n", time + number * step).as_bytes());
        }
    } else {
        log.extend(line.as_bytes());
        log.push(b'\n');
    }
}
