//! One line of figures, and more if something was wrong.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

use crate::history::{self, Event, History, Op, Rule, Sample, Violation};
use crate::plan::Plan;
use crate::storm::Faults;

/// Further violations are not printed.
const SHOWN: usize = 20;

pub(crate) struct Report {
    plan: Plan,
    faults: Faults,
    /// How often the locking calls returned each status.
    statuses: BTreeMap<String, u64>,
    writes: u64,
    lines: usize,
    /// By how much the steady workers have grown, the maximum of each.
    drift: Sample,
    samples: usize,
    found: Vec<Violation>,
    /// Where the logs are.
    pub(crate) kept: Option<PathBuf>,
}

impl Report {
    pub(crate) fn new(
        plan: &Plan,
        history: &History<'_>,
        faults: Faults,
        found: Vec<Violation>,
    ) -> Self {
        let mut statuses = BTreeMap::new();
        let mut writes = 0;
        for line in &history.lines {
            match line.event {
                Event::Return(it) if matches!(it.op, Op::Lock | Op::TryLock | Op::Continue) => {
                    *statuses.entry(it.status.to_owned()).or_default() += 1;
                }
                Event::Wrote(_) => writes += 1,
                _ => {}
            }
        }
        let samples = history::samples(history);
        let longest = samples.values().map(Vec::len).max().unwrap_or_default();
        let mut drift = Sample { fds: i64::MIN, threads: i64::MIN, rss_kb: i64::MIN };
        for samples in samples.values().filter(|it| it.len() * 10 >= longest * 9) {
            let values: Vec<_> = samples.iter().map(|it| it.1).collect();
            let grown = history::drift_of(&values);
            drift.fds = drift.fds.max(grown.fds);
            drift.threads = drift.threads.max(grown.threads);
            drift.rss_kb = drift.rss_kb.max(grown.rss_kb);
        }
        let lines = history.lines.len();
        let (plan, samples, kept) = (*plan, longest, None);
        Self { plan, faults, statuses, writes, lines, drift, samples, found, kept }
    }

    pub(crate) fn is_clean(&self) -> bool {
        self.found.is_empty()
    }

    pub(crate) fn counts(&self, rule: Rule) -> usize {
        self.found.iter().filter(|it| it.rule == rule).count()
    }

    /// All figures.
    pub(crate) fn line(&self) -> String {
        let status = |name: &str| self.statuses.get(name).copied().unwrap_or_default();
        let kinds: Vec<_> =
            self.faults.counts.iter().map(|(kind, it)| format!("{kind} {it}")).collect();
        let mut line = format!(
            "soak: {:.1} min, seed {}{}: {} workers, {} acquires, {} refusals, {} unreachable, \
             {} too slow, {} writes, {} log lines; {} faults ({}); ",
            self.plan.time.as_secs_f64() / 60.0,
            self.plan.seed,
            if self.plan.is_lawless { ", lawless" } else { "" },
            self.faults.workers,
            status("OK"),
            status("TAKEN"),
            status("UNREACHABLE"),
            status("TOO_SLOW"),
            self.writes,
            self.lines,
            self.faults.counts.values().sum::<u64>(),
            kinds.join(", "),
        );
        let _ = write!(
            line,
            "{} overlaps, {} lost updates, {} orphans, {} late calls, {} other violations; \
             drift in {} samples: {:+} KiB, {:+} descriptors, {:+} threads; {} ms late at most",
            self.counts(Rule::Overlap),
            self.counts(Rule::LostUpdate),
            self.counts(Rule::Orphan),
            self.counts(Rule::LateCall),
            self.others(),
            self.samples,
            self.drift.rss_kb,
            self.drift.fds,
            self.drift.threads,
            self.faults.lateness.as_millis(),
        );
        line
    }

    /// The violations, in words.
    pub(crate) fn violations(&self) -> String {
        let mut text = format!("{} violations", self.found.len());
        for violation in self.found.iter().take(SHOWN) {
            let _ = write!(text, "\n{violation}");
        }
        if self.found.len() > SHOWN {
            let _ = write!(text, "\n... and {} more", self.found.len() - SHOWN);
        }
        if let Some(kept) = &self.kept {
            let _ = write!(text, "\nThe logs are in {}", kept.display());
        }
        text
    }

    fn others(&self) -> usize {
        let named = [Rule::Overlap, Rule::LostUpdate, Rule::Orphan, Rule::LateCall];
        self.found.iter().filter(|it| !named.contains(&it.rule)).count()
    }
}
