//! The resources that processes use: the same at the end as at the beginning.

use std::collections::BTreeMap;

use super::Limits;
use super::line::{Event, Line, Sample};
use super::read::History;
use super::verdict::{Rule, Violation};

/// By how much descriptors, threads and memory have grown from the first tenth of the samples to the last:
/// from the maximum of the first to the minimum of the last.
pub(crate) fn drift_of(samples: &[Sample]) -> Sample {
    let tenth = (samples.len() / 10).max(1);
    let (first, last) =
        (&samples[..tenth.min(samples.len())], &samples[samples.len().saturating_sub(tenth)..]);
    let growth = |part: fn(&Sample) -> i64| {
        let most = first.iter().map(part).max().unwrap_or_default();
        last.iter().map(part).min().unwrap_or_default() - most
    };
    Sample {
        fds: growth(|it| it.fds),
        threads: growth(|it| it.threads),
        rss_kb: growth(|it| it.rss_kb),
    }
}

pub(super) fn check(history: &History<'_>, limits: &Limits, found: &mut Vec<Violation>) {
    for (process, samples) in samples(history) {
        if samples.len() < limits.samples {
            continue;
        }
        let values: Vec<_> = samples.iter().map(|it| it.1).collect();
        let grown = drift_of(&values);
        let (first, last) = (samples[0].0, samples[samples.len() - 1].0);
        for (what, growth, most) in [
            ("descriptors", grown.fds, limits.fds),
            ("threads", grown.threads, limits.threads),
            ("KiB of memory", grown.rss_kb, limits.rss_kb),
        ] {
            if growth > most {
                let words = format!("{process} has {growth} {what} more than at first");
                found.push(Violation::new(Rule::Leak, words, &[first, last]));
            }
        }
    }
}

/// By process, the resources that each used, and the lines that say so.
pub(crate) fn samples<'h, 'a>(
    history: &'h History<'a>,
) -> BTreeMap<&'a str, Vec<(&'h Line<'a>, Sample)>> {
    let mut samples: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for line in &history.lines {
        if let Event::Sample(sample) = line.event {
            samples.entry(line.process).or_default().push((line, sample));
        }
    }
    samples
}
