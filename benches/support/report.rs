//! The text around the table, and the output of the report.

use std::fmt::Write;
use std::fs;

use super::Outcome;
use super::command::{self, Overhead};
use super::compile::target_directory;
use super::contenders::Who;
use super::event_rows;
use super::footprint::{Calls, Idle, InFlight};
use super::instructions::Instructions;
use super::kept::{Deaths, Kept};
use super::kind_rows;
use super::machine;
use super::picture;
use super::plan::Plan;
use super::results::{BUSY, Results};
use super::rows;
use super::table::{Goals, Table};
use super::waiters::Waiters;
use super::waiting::Waiting;
use super::waking_rows;

/// The text above the table in docs/BENCH.md.
const INTRODUCTION: &str = include_str!("../introduction.md");

/// The part of the plan that the picture shows.
const PICTURED: &str = "5-servers";

pub(crate) struct Measured {
    pub(crate) results: Results,
    pub(crate) instructions: Option<Instructions>,
    pub(crate) calls: Option<Calls>,
    pub(crate) idle: Vec<Idle>,
    pub(crate) in_flight: Option<InFlight>,
    pub(crate) kept: Option<Kept>,
    pub(crate) deaths: Option<Deaths>,
    pub(crate) waiters: Vec<Waiters>,
    pub(crate) waiting: Option<Waiting>,
    pub(crate) command: Option<Overhead>,
}

/// Prints the table, draws the picture, and writes both to a file if the user asked for that.
pub(crate) fn publish(plan: &Plan, measured: &Measured) -> Outcome<()> {
    let text = text(plan, measured);
    println!("{text}");
    let svg = picture::draw(&measured.results);
    if plan.wants(PICTURED) {
        let path = target_directory()?.join("bench").join("latency.svg");
        fs::write(&path, &svg)?;
        println!("The distributions: {}", path.display());
    }
    if let Some(file) = &plan.write {
        let beside = file.with_extension("svg");
        let name = beside.file_name().unwrap_or_default().to_string_lossy().into_owned();
        fs::write(&beside, svg)?;
        fs::write(file, INTRODUCTION.replace("{picture}", &name) + "\n" + &text)?;
        println!("Written: {}, {}", file.display(), beside.display());
    }
    Ok(())
}

fn text(plan: &Plan, measured: &Measured) -> String {
    let results = &measured.results;
    let mut columns = results.contenders();
    columns.insert(Who::Ours);
    columns.extend(measured.calls.iter().flat_map(|calls| &calls.by).map(|it| it.0));
    let counted = measured.instructions.iter().flat_map(|it| &it.all).flat_map(|it| &it.1);
    columns.extend(counted.map(|it| it.0));
    let mut table = Table::new(columns.into_iter().collect());
    rows::one_thread(&mut table, results);
    rows::many_threads(&mut table, results);
    event_rows::submitted(&mut table, results);
    kind_rows::kinds(&mut table, results);
    waking_rows::contention(&mut table, results);
    waking_rows::woken(&mut table, results);
    waking_rows::waiting(&mut table, measured.waiting.as_ref());
    rows::faults(&mut table, results);
    rows::network(&mut table, results);
    rows::instructions(&mut table, measured.instructions.as_ref());
    rows::footprint(&mut table, measured.calls.as_ref(), &measured.idle);
    event_rows::single(&mut table, measured);
    command::row(&mut table, measured.command.as_ref());
    rows::correctness(&mut table, results);
    rows::fewer_servers(&mut table, results);
    let (mut text, goals) = table.finish();
    text.push('\n');
    circumstances(&mut text, plan, results, &goals);
    text
}

// Writing to a string does not fail.
fn circumstances(text: &mut String, plan: &Plan, results: &Results, goals: &Goals) {
    let _ = writeln!(text, "- Goals: {} met, {} missed", goals.met, goals.missed.len());
    for missed in &goals.missed {
        let _ = writeln!(text, "  - missed: {missed}");
    }
    let _ = writeln!(text, "{}", machine::description());
    let form = if plan.short { " --short" } else { "" };
    let kept = format!(" --kept {}", plan.kept.as_secs());
    let only = plan.only.as_ref().map_or_else(String::new, |it| format!(" --only {it}"));
    let _ = writeln!(text, "- Command: `cargo bench --bench lock --{form}{kept}{only}`");
    let _ = writeln!(text, "- {}", disturbance(results));
    for (who, why) in results.absent() {
        let _ = writeln!(text, "- Missing: {}: {why}", who.name());
    }
    for why in results.failures() {
        let _ = writeln!(text, "- Failed: {why}");
    }
}

/// Helps the reader to judge the figures: on a busy machine, the slowest hundredth is not caused by the library.
fn disturbance(results: &Results) -> String {
    let shares = results.disturbances();
    let most = shares.iter().copied().fold(0.0, f64::max);
    let disturbed = shares.iter().filter(|&&it| it > BUSY).count();
    format!(
        "Other programs used up to {:.0} % of the machine meanwhile, and more than {:.0} % in \
         {disturbed} of {} runs of ours and of the floor",
        most * 100.0,
        BUSY * 100.0,
        shares.len(),
    )
}
