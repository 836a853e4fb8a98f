//! The record of the interface: as lines for human readers, and in the form for libabigail.

use std::collections::BTreeSet;
use std::fs;

use crate::abigail;
use crate::compiler::root;

const LINES: &str = "abi/redlock.txt";
const HEAD: &str =
    "# What programs are built against, as `make abi-record` has recorded it. Not to be edited.";

/// The interface that was recorded last.
pub(crate) struct Record {
    pub(crate) lines: Vec<String>,
}

impl Record {
    pub(crate) fn read() -> Option<Self> {
        let text = fs::read_to_string(root().join(LINES)).ok()?;
        let lines = text.lines().filter(|it| !it.starts_with('#') && !it.is_empty());
        Some(Self { lines: lines.map(str::to_owned).collect() })
    }

    /// Records both forms, or neither.
    pub(crate) fn write(lines: &[String]) {
        let dump = abigail::dump();
        fs::create_dir_all(root().join("abi")).expect("it can be made");
        fs::write(root().join(LINES), format!("{HEAD}\n{}\n", lines.join("\n"))).expect("a file");
        fs::write(root().join(abigail::DUMP), dump).expect("a file");
        println!("the interface is recorded in {LINES} and {}", abigail::DUMP);
    }

    pub(crate) fn functions(&self) -> BTreeSet<String> {
        let functions = self.lines.iter().filter_map(|it| it.strip_prefix("function "));
        functions.filter_map(|it| Some(it.split_once(':')?.0.to_owned())).collect()
    }
}
