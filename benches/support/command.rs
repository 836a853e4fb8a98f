//! The cost of the command `redlock run`. The bench of `tool/` measures it; cargo builds and runs that bench.

use super::Outcome;
use super::compile::cargo;
use super::event_rows::own;
use super::figures::Figures;
use super::table::{Goal, Table, number};

pub(crate) struct Overhead(Figures);

pub(crate) fn measure(short: bool) -> Outcome<Overhead> {
    let rounds = if short { "50" } else { "300" };
    let mut command = cargo();
    command.args(["bench", "--quiet", "--profile", "tool", "--package", "redlock-cli"]);
    let output = command.args(["--bench", "overhead", "--", "--figures", rounds]).output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    // Cargo prints messages of its own before this line.
    let figures = said.lines().rfind(|line| line.contains("more_ms=")).unwrap_or_default();
    Figures::parse(figures).map(Overhead)
}

pub(crate) fn row(table: &mut Table, it: Option<&Overhead>) {
    let Some(Overhead(figures)) = it else { return };
    let more = figures.get("more_ms");
    let what =
        "`redlock run NAME -- true`, 3 servers: what it takes longer than `true`, median, in ms";
    own(table, what, &format!("{} ms", number(more)), more, Goal::AtMost(15.0));
}
