//! What the pages say is so: figures are those of docs/BENCH.md, and limits and defaults are those of the code.

mod code;
mod figures;

use std::fs;
use std::path::Path;

fn read(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap_or_else(|it| panic!("{name}: {it}"))
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
