//! Checks the checker of histories. It must accept possible histories. It must reject impossible ones for the
//! reason that the case was written for.

// These tests leave out some parts, which the soak uses.
#[allow(dead_code)]
#[path = "../../support/history/mod.rs"]
mod history;

mod cases;

use std::collections::BTreeSet;

use cases::Case;
use history::{History, Limits, Rule, Violation};

#[test]
fn possible_histories_are_accepted() {
    let cases = Case::all("good");
    assert!(cases.len() >= 30, "{} cases", cases.len());
    let wrong: String = cases.iter().filter_map(accept).collect();
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn impossible_histories_are_rejected_with_the_reason() {
    let cases = Case::all("bad");
    assert!(cases.len() >= 30, "{} cases", cases.len());
    let wrong: String = cases.iter().filter_map(reject).collect();
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn every_rule_has_a_bad_case() {
    let cases = Case::all("bad");
    for rule in Rule::ALL {
        let name = format!("{}:", rule.name());
        let is_there = |case: &Case| case.expected.as_ref().is_some_and(|it| it.starts_with(&name));
        assert!(cases.iter().any(is_there), "nothing shows {name}");
    }
}

/// The checker's mistake in a good case, if it makes one.
fn accept(case: &Case) -> Option<String> {
    assert_eq!(case.expected, None, "{}: it is a good one", case.name);
    let found = violations(case);
    (!found.is_empty()).then(|| format!("{} was found to be bad:\n{}", case.name, text(&found)))
}

/// The checker's mistake in a bad case, if it makes one.
fn reject(case: &Case) -> Option<String> {
    let expected = case.expected.as_ref().expect("a bad case says what is bad");
    let found = violations(case);
    let rules: BTreeSet<_> = found.iter().map(|it| it.rule.name()).collect();
    let is_rejected = rules.len() == 1 && text(&found).contains(expected);
    let words = || format!("{} is not {expected:?}, but:\n{}", case.name, text(&found));
    (!is_rejected).then(words)
}

fn violations(case: &Case) -> Vec<Violation> {
    history::check(&History::read(&case.files), &Limits::default())
}

fn text(found: &[Violation]) -> String {
    found.iter().map(|it| format!("{it}\n")).collect()
}
