//! All measurements and their evaluation: medians over the rounds, and ratios within a round. A machine that is
//! slow for a while is equally slow for both sides of a ratio.

use std::collections::{BTreeMap, BTreeSet};

use super::Outcome;
use super::contenders::Who;
use super::figures::{Figures, Spread};
use super::process::go_on;
use super::turns::{End, Fault, Record, Turn};

/// If others used more of the machine than this, the round is measured again if there is time.
pub(crate) const BUSY: f64 = 0.08;

#[derive(Default)]
pub(crate) struct Results {
    runs: BTreeMap<Turn, Vec<Record>>,
    absent: BTreeMap<Who, String>,
    faults: BTreeSet<String>,
}

impl Results {
    pub(crate) fn note_absence(&mut self, who: Who, why: String) {
        self.absent.insert(who, why);
    }

    pub(crate) fn is_absent(&self, who: Who) -> bool {
        self.absent.contains_key(&who)
    }

    pub(crate) fn absent(&self) -> impl Iterator<Item = (Who, &str)> {
        self.absent.iter().map(|(who, why)| (*who, &**why))
    }

    /// A failed measurement does not end the bench. A request of the user does.
    pub(crate) fn tolerate<T>(&mut self, what: &str, outcome: Outcome<T>) -> Outcome<Option<T>> {
        go_on()?;
        let why = match outcome {
            Ok(value) => return Ok(Some(value)),
            Err(why) => why,
        };
        self.faults.insert(format!("{what}: {why}"));
        Ok(None)
    }

    pub(crate) fn add(&mut self, turn: Turn, record: Record) {
        self.runs.entry(turn).or_default().push(record);
    }

    pub(crate) fn contenders(&self) -> BTreeSet<Who> {
        self.runs.keys().map(|turn| turn.who).collect()
    }

    pub(crate) fn records(&self, turn: Turn) -> &[Record] {
        self.runs.get(&turn).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn rounds_below(&self, turn: Turn, share: f64) -> usize {
        self.records(turn).iter().filter(|record| record.by_others <= share).count()
    }

    /// A turn that has hung once or failed twice is not worth another round.
    pub(crate) fn is_hopeless(&self, turn: Turn) -> bool {
        let hung = |record: &&Record| matches!(record.end, End::Hung);
        let failed = |record: &&Record| matches!(record.end, End::Failed(_));
        let records = self.records(turn).iter();
        records.clone().any(|record| hung(&record)) || records.filter(failed).count() > 1
    }

    /// One figure of a turn over its quieter rounds. `None` if there are none.
    pub(crate) fn spread(&self, turn: Turn, name: &str) -> Option<Spread> {
        let of = |(round, others, figures): (_, _, &Figures)| (round, others, figures.get(name));
        Spread::of(quieter(self.figures(turn).map(of)).into_iter())
    }

    /// Compares one figure of two turns.
    pub(crate) fn ratio(&self, turn: Turn, beside: Turn, name: &str) -> Option<Spread> {
        self.ratio_of((turn, name), (beside, name))
    }

    /// Compares a figure of one turn with a figure of another.
    pub(crate) fn ratio_of(
        &self,
        (turn, name): (Turn, &str),
        (beside, base): (Turn, &str),
    ) -> Option<Spread> {
        let ratios = self.figures(turn).filter_map(|(round, others, figures)| {
            let (_, disturbed, other) = self.figures(beside).find(|it| it.0 == round)?;
            Some((round, others.max(disturbed), figures.get(name) / other.get(base)))
        });
        Spread::of(quieter(ratios).into_iter())
    }

    /// Compares two figures of one turn.
    pub(crate) fn ratio_within(&self, turn: Turn, name: &str, beside: &str) -> Option<Spread> {
        let ratio = |(round, others, figures): (_, _, &Figures)| {
            (round, others, figures.get(name) / figures.get(beside))
        };
        Spread::of(quieter(self.figures(turn).map(ratio)).into_iter())
    }

    /// The sum of one figure over all runs of a contender, with and without faults. `None` if there are none.
    pub(crate) fn total(&self, who: Who, name: &str) -> Option<f64> {
        let runs = self.runs.keys().filter(|turn| turn.who == who);
        let all = runs.flat_map(|turn| self.figures(*turn)).map(|it| it.2.get(name));
        all.filter(|value| !value.is_nan()).reduce(|sum, value| sum + value)
    }

    /// For each turn that a goal depends on, the share of the machine that others used.
    pub(crate) fn disturbances(&self) -> Vec<f64> {
        let core = self.runs.iter().filter(|(turn, _)| turn.who <= Who::Floor);
        core.flat_map(|(_, records)| records).map(|record| record.by_others).collect()
    }

    /// The measurements that failed, and the messages of contenders that failed, each once.
    pub(crate) fn failures(&self) -> BTreeSet<String> {
        let mut all = self.faults.clone();
        for (turn, records) in &self.runs {
            for record in records {
                match &record.end {
                    End::Failed(why) => all.insert(format!("{}: {why}", turn.who.name())),
                    End::Hung if turn.fault == Fault::None => {
                        all.insert(format!("{}: {}", turn.who.name(), super::talk::Hung))
                    }
                    End::Hung | End::Figures(_) => false,
                };
            }
        }
        all
    }

    fn figures(&self, turn: Turn) -> impl Iterator<Item = (usize, f64, &Figures)> {
        self.records(turn).iter().filter_map(|record| match &record.end {
            End::Figures(figures) => Some((record.round, record.by_others, figures)),
            End::Hung | End::Failed(_) => None,
        })
    }
}

/// The values of the quiet rounds, but at least those of the quieter two thirds.
fn quieter(values: impl Iterator<Item = (usize, f64, f64)>) -> Vec<f64> {
    let mut all: Vec<_> = values.collect();
    all.sort_by(|a, b| a.1.total_cmp(&b.1));
    let quiet = all.iter().filter(|it| it.1 <= BUSY).count();
    all.truncate(quiet.max((2 * all.len()).div_ceil(3)));
    all.into_iter().map(|it| it.2).collect()
}
