//! The result in Markdown: one row for each figure, one column for each contender.

use std::fmt::Write;

use super::contenders::Who;

pub(crate) struct Table {
    columns: Vec<Who>,
    text: String,
    goals: Goals,
}

#[derive(Default)]
pub(crate) struct Goals {
    pub(crate) met: usize,
    pub(crate) missed: Vec<String>,
}

/// The goal for a figure, or for a ratio.
#[derive(Clone, Copy)]
pub(crate) enum Goal {
    None,
    AtMost(f64),
    AtLeast(f64),
    LessThan(f64),
}

impl Goal {
    fn text(self) -> String {
        match self {
            Self::None => String::new(),
            Self::AtMost(goal) => format!("≤ {}", trimmed(goal)),
            Self::AtLeast(goal) => format!("≥ {}", trimmed(goal)),
            Self::LessThan(goal) => format!("< {}", trimmed(goal)),
        }
    }

    /// NaN means that a figure was not measured. NaN meets no goal.
    fn is_met_by(self, value: f64) -> Option<bool> {
        match self {
            Self::None => None,
            Self::AtMost(goal) => Some(value <= goal),
            Self::AtLeast(goal) => Some(value >= goal),
            Self::LessThan(goal) => Some(value < goal),
        }
    }
}

impl Table {
    pub(crate) fn new(columns: Vec<Who>) -> Self {
        let mut table = Self { columns, text: String::new(), goals: Goals::default() };
        let names: Vec<&str> = table.columns.iter().map(|who| who.name()).collect();
        let heads = ["Figure"].into_iter().chain(names).chain(["Ratio", "Goal", "Met"]);
        let heads: Vec<String> = heads.map(str::to_owned).collect();
        table.line(&heads);
        table.line(&vec!["---".to_owned(); heads.len()]);
        table
    }

    /// The goal applies to `value`. `ratio` is its text in the table.
    pub(crate) fn row(
        &mut self,
        what: &str,
        cell: impl Fn(Who) -> String,
        (value, ratio): (f64, String),
        goal: Goal,
    ) {
        let verdict = match goal.is_met_by(value) {
            None => "",
            Some(true) => {
                self.goals.met += 1;
                "yes"
            }
            Some(false) => {
                self.goals.missed.push(what.to_owned());
                "**no**"
            }
        };
        let cells = self.columns.iter().map(|who| cell(*who));
        let ends = [ratio, goal.text(), verdict.to_owned()];
        let cells: Vec<String> = [what.to_owned()].into_iter().chain(cells).chain(ends).collect();
        self.line(&cells);
    }

    pub(crate) fn finish(self) -> (String, Goals) {
        (self.text, self.goals)
    }

    fn line(&mut self, cells: &[String]) {
        // Writing to a string does not fail.
        let _ = writeln!(self.text, "| {} |", cells.join(" | "));
    }
}

/// A number with its significant digits.
pub(crate) fn number(value: f64) -> String {
    match value.abs() {
        _ if value.is_nan() => String::new(),
        _ if value.is_infinite() => "∞".to_owned(),
        size if size >= 10_000.0 => thousands(value.round()),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

fn thousands(value: f64) -> String {
    let digits = format!("{value:.0}");
    let split = digits.len().saturating_sub(3);
    let (head, tail) = digits.split_at(split);
    if head.len() > 3 {
        return format!("{},{tail}", thousands(head.parse().unwrap_or(f64::NAN)));
    }
    format!("{head},{tail}")
}

fn trimmed(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
