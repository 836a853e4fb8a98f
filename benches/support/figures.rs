//! Figures, and their statistics over several rounds.

use std::collections::BTreeMap;

use super::Outcome;

/// The figures of one run of one program, by name.
pub(crate) struct Figures(BTreeMap<String, f64>);

impl Figures {
    /// Parses a line such as `cycles=14000 cpu_us=84.20`.
    pub(crate) fn parse(line: &str) -> Outcome<Self> {
        let pair = |word: &str| {
            let (name, value) = word.split_once('=')?;
            Some((name.to_owned(), value.parse().ok()?))
        };
        let all: Option<BTreeMap<_, _>> = line.split_whitespace().map(pair).collect();
        all.map(Self).ok_or_else(|| format!("no figures: {line:?}").into())
    }

    /// Returns NaN for a figure that was not measured. NaN meets no goal.
    pub(crate) fn get(&self, name: &str) -> f64 {
        self.0.get(name).copied().unwrap_or(f64::NAN)
    }

    pub(crate) fn set(&mut self, name: &str, value: f64) {
        self.0.insert(name.to_owned(), value);
    }
}

/// One figure over all rounds.
#[derive(Clone, Copy)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

impl Spread {
    /// Returns `None` if there are no values.
    pub(crate) fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        let mut all: Vec<f64> = values.filter(|v| !v.is_nan()).collect();
        all.sort_by(f64::total_cmp);
        let (least, most) = (*all.first()?, *all.last()?);
        let middle = all.len() / 2;
        let median = match all.len() % 2 {
            0 => f64::midpoint(all[middle - 1], all[middle]),
            _ => all[middle],
        };
        Some(Self { median, least, most })
    }
}
