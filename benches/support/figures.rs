//! Figures, what they say over several rounds, and the table they end in.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::Outcome;

/// The figures of one run of one program, by name.
pub(crate) struct Figures(BTreeMap<String, f64>);

impl Figures {
    /// From a line such as `cycles=14000 cpu_us=84.20`.
    pub(crate) fn parse(line: &str) -> Outcome<Self> {
        let pair = |word: &str| {
            let (name, value) = word.split_once('=')?;
            Some((name.to_owned(), value.parse().ok()?))
        };
        let all: Option<BTreeMap<_, _>> = line.split_whitespace().map(pair).collect();
        all.map(Self).ok_or_else(|| format!("no figures: {line:?}").into())
    }

    /// NaN where it was not measured, which meets no goal.
    pub(crate) fn get(&self, name: &str) -> f64 {
        self.0.get(name).copied().unwrap_or(f64::NAN)
    }
}

/// One figure over all rounds.
#[derive(Clone, Copy)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    least: f64,
    most: f64,
}

impl Spread {
    pub(crate) fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut all: Vec<f64> = values.collect();
        all.sort_by(f64::total_cmp);
        let at = |i: usize| all.get(i).copied().unwrap_or(f64::NAN);
        let middle = all.len() / 2;
        let median = match all.len() % 2 {
            0 if middle > 0 => f64::midpoint(at(middle - 1), at(middle)),
            _ => at(middle),
        };
        Self { median, least: at(0), most: at(all.len().wrapping_sub(1)) }
    }
}

/// The result in Markdown, a row a figure.
pub(crate) struct Table(String);

impl Table {
    pub(crate) fn new() -> Self {
        Self(
            "| Figure | Ours | Beside it | Ratio: median (least–most) | Goal | Met |\n\
             |---|---|---|---|---|---|\n"
                .to_owned(),
        )
    }

    /// A figure that counts beside another one, round by round. Without a goal it is for the
    /// reader only.
    pub(crate) fn ratio(
        &mut self,
        what: &str,
        (ours, beside, other): (Spread, Spread, &str),
        ratio: Spread,
        goal: Option<f64>,
    ) {
        let Spread { median, least, most } = ratio;
        let goal_text = goal.map_or_else(String::new, |g| format!("≤ {g:.2}"));
        self.row(&[
            what,
            &format!("{:.1} µs", ours.median),
            &format!("{other} {:.1} µs", beside.median),
            &format!("{median:.3} ({least:.2}–{most:.2})"),
            &goal_text,
            goal.map_or("", |g| verdict(median <= g)),
        ]);
    }

    /// A figure that counts by itself.
    pub(crate) fn amount(&mut self, what: &str, value: f64, unit: &str, goal: f64) {
        self.row(&[
            what,
            format!("{value:.0} {unit}").trim_end(),
            "",
            "",
            format!("≤ {goal:.0} {unit}").trim_end(),
            verdict(value <= goal),
        ]);
    }

    pub(crate) fn text(&self) -> &str {
        &self.0
    }

    fn row(&mut self, cells: &[&str]) {
        // Writing to a string does not fail.
        let _ = writeln!(self.0, "| {} |", cells.join(" | "));
    }
}

fn verdict(met: bool) -> &'static str {
    if met { "yes" } else { "**no**" }
}
